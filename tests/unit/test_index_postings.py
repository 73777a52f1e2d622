"""Postings: they give tantivy's scores, follow what is written, and are done without where they cannot be trusted."""

from __future__ import annotations

import json
import math
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askalike.errors import DamagedForumError
from askalike.index.cursor import Cursor
from askalike.index.words import FieldWeights, IndexEntry, WordIndex, WordSnapshot, postings
from askalike.index.words.postings import (
    Collector,
    Part,
    PostingsManifest,
    best,
    idf,
    kept_lengths,
    postings_faults,
    read_part,
    saturated,
    write_part,
    write_postings,
)
from askalike.index.words.snapshot import State
from askalike.types import Filters

FIELDS = FieldWeights()
WORDS = [f"w{place}" for place in range(200)]
Entries = dict[int, IndexEntry]


@pytest.fixture(autouse=True)
def _of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "LEAST", 50)
    monkeypatch.setattr(postings, "LEAST_WRITTEN", 20)
    monkeypatch.setattr(postings, "FIRST", 0)


def drawn(numbers: range, seed: int = 0) -> Entries:
    draw = random.Random(seed)

    def terms(count: int) -> list[str]:
        return [WORDS[min(len(WORDS) - 1, int(draw.paretovariate(0.6)))] for _ in range(count)]

    return {num: IndexEntry(num, terms(draw.randint(0, 9)), terms(draw.choice([0, 3, 30, 400]))) for num in numbers}


def made(folder: Path, entries: Entries, every: int = 1_000_000) -> WordIndex:
    """Return an index that was filled with entries, with a commit after so many."""
    index = WordIndex.create(folder, applied=0, fingerprint="f")
    with index.writing() as writer:
        for place, entry in enumerate(entries.values(), start=1):
            writer.put(entry)
            if place % every == 0:
                writer.commit(Cursor(0, entry.num, is_complete=False, fingerprint="f"))
        writer.commit(Cursor(0, 0, is_complete=True, fingerprint="f"))
    return index


def written(index: WordIndex, *entries: IndexEntry, gone: tuple[int, ...] = ()) -> None:
    with index.writing() as writer:
        for entry in entries:
            writer.put(entry)
        writer.remove(gone)
        writer.commit(replace(index.cursor, applied=index.cursor.applied + 1))


def by_tantivy(index: WordIndex) -> WordSnapshot:
    """Return the same state of the index without its postings."""
    now = index._now
    state = State(now.file, now.cursor, now.searcher, now.schema, now.counted)
    return WordSnapshot(index.folder, state, index._texts)


def queries(count: int, seed: int = 1) -> list[dict[str, float]]:
    draw = random.Random(seed)
    return [{term: draw.random() + 0.1 for term in draw.sample(WORDS, draw.choice([1, 3, 20]))} for _ in range(count)]


def base_of(index: WordIndex) -> Path:
    base = PostingsManifest.read(index.folder).base
    assert base is not None
    return index.folder / base.name


def test_an_impact_worked_out_by_hand() -> None:
    # Two entries: "a" with the body "b b", and the body "b" alone. Texts have 3 and 1 terms, 2 on average; titles ½.
    assert saturated(np.array([2]), np.array([3]), 2.0)[0] == pytest.approx(2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 1.5)))
    assert idf(2, np.array([2]))[0] == pytest.approx(math.log(1 + 0.5 / 2.5))
    assert idf(2, np.array([1]))[0] == pytest.approx(math.log(2))


def test_scores_worked_out_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "LEAST", 1)
    index = made(tmp_path / "lexical", {1: IndexEntry(1, ["a"], ["b", "b"]), 2: IndexEntry(2, ["c"], ["b"])})
    assert index.has_postings
    [(_, first), (_, second)] = index.search({"b": 1.0}, FIELDS, 10)
    # 3 and 2 terms, 2.5 on average; both have "b", in no title
    factor = math.log(1 + 0.5 / 2.5)
    assert first == pytest.approx(factor * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2.5)))
    assert second == pytest.approx(factor * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2.5)))
    [(num, both)] = index.search({"a": 3.0}, FIELDS, 10)
    # once in the text of 3, and once in a title of 1 where 1 is the mean, which counts a quarter
    assert num == 1
    assert both == pytest.approx(3 * math.log(2) * (2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / 2.5)) + 0.25 * 2.2 / 2.2))


def test_lengths_are_kept_as_tantivy_keeps_them() -> None:
    lengths = np.arange(200_000)
    kept = kept_lengths(lengths)
    assert (kept[:41] == lengths[:41]).all()
    assert (np.diff(kept) >= 0).all()
    assert (kept <= lengths).all()
    assert len(np.unique(kept)) <= 256
    assert ((lengths - kept) / np.maximum(lengths, 1)).max() < 1 / 8


def test_a_search_by_postings_is_that_of_tantivy(tmp_path: Path) -> None:
    entries = drawn(range(1, 401))
    index = made(tmp_path / "lexical", entries)
    assert index.has_postings
    plain = by_tantivy(index)
    for weights in queries(100):
        expected = plain.scores(weights, FIELDS, list(entries))
        assert index.scores(weights, FIELDS, list(entries)) == pytest.approx(expected, rel=1e-5)
        found = index.search(weights, FIELDS, 30)
        assert [score for _, score in found] == pytest.approx([one for _, one in plain.search(weights, FIELDS, 30)])
        assert dict(found) == pytest.approx({num: expected[num] for num, _ in found}, rel=1e-5)
        assert found == sorted(found, key=lambda one: (-one[1], one[0]))


def test_other_weights_of_fields_and_filters_are_left_to_tantivy(tmp_path: Path) -> None:
    entries = drawn(range(1, 101))
    entries[7] = IndexEntry(7, ["w1"], ["w2"], tags=("wifi",))
    index = made(tmp_path / "lexical", entries)
    plain = by_tantivy(index)
    for weights in queries(20):
        for fields in (FieldWeights(1.0, 1.0), FieldWeights(1.0, 0.0), FieldWeights(0.5, 2.0)):
            expected = dict(plain.search(weights, fields, 200))
            assert dict(index.search(weights, fields, 200)) == pytest.approx(expected, rel=1e-5)
    assert [num for num, _ in index.search({"w1": 1.0}, FIELDS, 10, Filters(tags=("wifi",)))] == [7]
    assert [num for num, _ in index.search({"w2": 1.0}, FIELDS, 10, None, [7, 999])] == [7]


def test_what_was_written_since_is_found_and_what_was_replaced_is_not(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    written(index, IndexEntry(3, ["new"], ["w1"]), IndexEntry(500, ["new"], []), gone=(4,))
    assert index.has_postings
    assert [num for num, _ in index.search({"new": 1.0}, FIELDS, 10)] == [500, 3]
    found = dict(index.search({"w1": 1.0}, FIELDS, 1_000))
    assert found.keys() == dict(by_tantivy(index).search({"w1": 1.0}, FIELDS, 1_000)).keys()
    assert 3 in found
    assert 4 not in found
    assert index.scores({"new": 1.0}, FIELDS, [3, 4, 5, 500]).keys() == {3, 500}


def test_postings_follow_hundreds_of_changes(tmp_path: Path) -> None:
    draw = random.Random(3)
    entries = drawn(range(1, 201))
    index = made(tmp_path / "lexical", entries)
    names = {base_of(index).name}
    for step in range(30):
        changed = drawn(range(1, 301), seed=step)
        put = [changed[num] for num in draw.sample(range(1, 301), 6)]
        gone = tuple(num for num in draw.sample(sorted(entries), 3) if num not in {one.num for one in put})
        written(index, *put, gone=gone)
        entries = {num: one for num, one in (entries | {one.num: one for one in put}).items() if num not in gone}
        names.add(base_of(index).name)
        assert index.has_postings
        for term in WORDS[1:6]:
            expected = {num for num, one in entries.items() if term in one.title or term in one.body}
            assert {num for num, _ in index.search({term: 1.0}, FIELDS, 1_000)} == expected
            assert index.scores({term: 1.0}, FIELDS, range(1, 301)).keys() == expected
    assert len(names) > 2, "made anew when a fifth was written since"
    assert [path.name for path in index.folder.glob("*.postings")] == [base_of(index).name]
    for weights in queries(30):
        expected = dict(by_tantivy(index).search(weights, FIELDS, 1_000))
        assert dict(index.search(weights, FIELDS, 1_000)) == pytest.approx(expected, rel=0.1), "mean lengths of before"


@pytest.mark.parametrize("every", [7, 30, 1_000_000])
def test_an_index_filled_in_several_commits_has_the_same_postings(tmp_path: Path, every: int) -> None:
    entries = drawn(range(1, 101))
    whole, _, _ = read_part(tmp_path / "whole", manifest_base(made(tmp_path / "whole", entries)))
    index = made(tmp_path / "several", entries, every)
    several, _, _ = read_part(index.folder, manifest_base(index))
    assert as_counts(several) == as_counts(whole) == counted(entries)


def manifest_base(index: WordIndex) -> postings.FileEntry:
    base = PostingsManifest.read(index.folder).base
    assert base is not None
    return base


def as_counts(part: Part) -> dict[tuple[int, int], tuple[int, int]]:
    """Return (number, hash of a term) → how often it is in the title and in the text."""
    terms = np.repeat(part.hashes, np.diff(part.starts.astype(np.int64))).tolist()
    keys = zip(part.nums[part.rows].tolist(), terms, strict=True)
    return dict(zip(keys, zip(part.in_title.tolist(), part.in_text.tolist(), strict=True), strict=True))


def counted(entries: Entries) -> dict[tuple[int, int], tuple[int, int]]:
    found = {}
    for num, one in entries.items():
        title, text = Counter(one.title), Counter([*one.title, *one.body])
        found |= {(num, postings.hash_of(term)): (title[term], text[term]) for term in text}
    return found


def test_parts_become_one_and_the_last_of_a_number_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_AT_ONCE", 100)  # many ranges of terms
    first, second, third = drawn(range(1, 60), 1), drawn(range(40, 80), 2), drawn(range(1, 10), 3)
    parts = []
    for some in (first, second, third):
        collector = Collector()
        for entry in some.values():
            collector.put(entry.num, entry.title, entry.body)
        parts.append(collector.part())
    path = tmp_path / "00000001-00000000.postings"
    left_out = np.array([5, 20, 21, 45], np.int64)
    entry = write_postings(path, parts, left_out)
    assert entry is not None
    merged, impacts, _ = read_part(tmp_path, entry)
    expected = {num: one for num, one in first.items() if num not in left_out} | second | third
    assert merged.nums.tolist() == sorted(expected)
    assert as_counts(merged) == counted(expected)
    assert merged.lengths[0].tolist() == [len(expected[num].title) for num in sorted(expected)]
    assert impacts is not None
    assert (impacts > 0).all()


def test_a_killed_fill_goes_on_with_what_was_committed(tmp_path: Path) -> None:
    entries = drawn(range(1, 101))
    index = WordIndex.create(tmp_path / "lexical", applied=0, fingerprint="f")
    with index.writing() as writer:
        for num in range(1, 61):
            writer.put(entries[num])
            if num == 40:
                writer.commit(Cursor(0, 40, is_complete=False, fingerprint="f"))
    again = WordIndex(index.folder)
    orphan = again.folder / "00000009-00000000.postings"
    collector = Collector()
    collector.put(1, ["a"], [])
    write_part(orphan, collector.part())  # of a writer that was killed before it named the file
    with again.writing() as writer:
        for num in range(41, 101):
            writer.put(entries[num])
        writer.commit(Cursor(0, 0, is_complete=True, fingerprint="f"))
    part, _, _ = read_part(again.folder, manifest_base(again))
    assert as_counts(part) == counted(entries)
    assert not orphan.exists()


def test_few_entries_have_no_postings_until_there_are_enough(tmp_path: Path) -> None:
    entries = drawn(range(1, 121))
    index = made(tmp_path / "lexical", {num: entries[num] for num in range(1, 31)})
    assert not index.has_postings
    assert not list(index.folder.glob("*.postings"))
    for num in range(31, 61):
        written(index, entries[num])
    assert index.has_postings
    part, _, _ = read_part(index.folder, manifest_base(index))
    assert as_counts(part).items() <= counted(entries).items()
    assert index.search({"w1": 1.0}, FIELDS, 5)


def test_a_snapshot_stays_as_it_was_while_postings_are_made_anew(tmp_path: Path) -> None:
    entries = drawn(range(1, 101))
    index = made(tmp_path / "lexical", entries)
    before = index.snapshot()
    expected = before.search({"w1": 1.0, "w2": 0.5}, FIELDS, 20)
    written(index, *(IndexEntry(num, ["w1"], []) for num in range(1, 60)))
    assert index.snapshot().search({"w1": 1.0, "w2": 0.5}, FIELDS, 20) != expected
    assert before.search({"w1": 1.0, "w2": 0.5}, FIELDS, 20) == expected


def test_another_process_sees_what_one_has_written(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    other = WordIndex(index.folder)
    for start in (200, 300):
        written(index, *(IndexEntry(num, ["new"], []) for num in range(start, start + 15)))
        other.refresh()
        assert other.has_postings
        assert other.search({"new": 1.0}, FIELDS, 100) == index.search({"new": 1.0}, FIELDS, 100)


def without_file(path: Path) -> None:
    path.unlink()


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def of_another(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20] + b"\x07" + path.read_bytes()[21:])


@pytest.mark.parametrize("damage", [without_file, cut_off, of_another])
def test_tantivy_answers_where_the_file_cannot_be_used(tmp_path: Path, damage: object) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    expected = index.search({"w1": 1.0}, FIELDS, 10)
    path = base_of(index)
    assert callable(damage)
    damage(path)
    again = WordIndex(index.folder)
    assert not again.has_postings
    assert dict(again.search({"w1": 1.0}, FIELDS, 10)) == pytest.approx(dict(expected))
    [(name, _)] = postings_faults(again.folder, entries=100, is_in_step=False, read=lambda _: None)
    assert name == path.name
    for num in range(300, 360):
        written(again, IndexEntry(num, ["w1"], []))
    assert {300, 359} <= dict(again.search({"w1": 1.0}, FIELDS, 200)).keys()


def test_scipy_is_loaded_when_a_process_has_searched_some_times(tmp_path: Path) -> None:
    made(tmp_path / "lexical", drawn(range(1, 101)))
    script = """
import sys
from pathlib import Path
from askalike.index.words import FieldWeights, WordIndex, postings
postings.FIRST = 4
index = WordIndex(Path(sys.argv[1]))
for search in range(4):
    found = index.search({"w1": 1.0}, FieldWeights(), 5)
    best = found[0][0]
    print("scipy.sparse" in sys.modules, best in index.scores({"w1": 1.0}, FieldWeights(), [best]))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "lexical")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["False True", "False True", "True True", "True True"]


def test_many_entries_without_postings_are_told(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    (index.folder / "postings.json").unlink()
    again = WordIndex(index.folder)
    faults = dict(postings_faults(again.folder, entries=100, is_in_step=again.has_postings, read=lambda _: None))
    assert faults == {"postings.json": "names no postings of 100 questions: searches take longer without them"}
    assert not list(postings_faults(again.folder, entries=99, is_in_step=again.has_postings, read=lambda _: None))


def test_a_damaged_manifest_is_told_and_done_without(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    (index.folder / "postings.json").write_text('{"format": 1, "base": {"name": "../../x"}, "runs": []}')
    again = WordIndex(index.folder)
    assert not again.has_postings
    [(name, what)] = postings_faults(again.folder, entries=100, is_in_step=False, read=lambda _: None)
    assert (name, "does not name files" in what) == ("postings.json", True)
    written(again, IndexEntry(300, ["w1"], []))
    assert again.search({"w1": 1.0}, FIELDS, 5)


def test_a_posting_of_a_question_that_is_not_there_is_damage(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    live = index._now.live
    assert live is not None
    rows = live.postings.part.rows.copy()
    rows[-3:] = 2**31 - 1
    [place] = np.flatnonzero(live.postings.part.starts[:-1] <= len(rows) - 1)[-1:]
    object.__setattr__(live.postings.part, "rows", rows)
    hashes = live.postings.part.hashes
    [term] = [term for term in WORDS if postings.hash_of(term) == int(hashes[place])]
    with pytest.raises(DamagedForumError, match="a question that is not there"):
        index.search({term: 1.0}, FIELDS, 5)


def test_entries_without_terms_count_among_the_others(tmp_path: Path) -> None:
    entries = drawn(range(1, 61)) | {num: IndexEntry(num, [], []) for num in range(61, 121)}
    index = made(tmp_path / "lexical", entries, every=60)
    assert index.has_postings
    assert as_counts(read_part(index.folder, manifest_base(index))[0]) == counted(entries)
    written(index, *(IndexEntry(num, [], []) for num in range(200, 230)))
    assert index.has_postings
    assert manifest_base(index).rows == 150


def test_damaged_notes_end_the_postings_and_nothing_else(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    written(index, IndexEntry(3, ["new"], []))
    with closing(sqlite3.connect(index.folder / "texts.sqlite")) as connection:
        connection.execute("UPDATE notes SET terms = x'00'")
        connection.commit()
    written(index, *(IndexEntry(num, ["new"], []) for num in range(200, 230)))
    assert not index.has_postings
    assert len(index.search({"new": 1.0}, FIELDS, 100)) == 31


def test_postings_that_lack_what_was_written_are_not_used(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", drawn(range(1, 101)))
    written(index, IndexEntry(3, ["new"], []))
    with closing(sqlite3.connect(index.folder / "texts.sqlite")) as connection:
        connection.execute("DELETE FROM notes")
        connection.commit()
    again = WordIndex(index.folder)
    assert not again.has_postings, "its row of question 3 would be taken for alive"
    assert [num for num, _ in again.search({"new": 1.0}, FIELDS, 5)] == [3]
    faults = postings_faults(again.folder, entries=100, is_in_step=again.has_postings, read=lambda _: None)
    assert [what for _, what in faults] == ["does not hold what the index holds: searches do without it"]


KILLED = """
import json, os, sys
from pathlib import Path
from askalike.index import cursor
from askalike.index.words import index, postings, texts

folder, entries, at = json.load(sys.stdin)
postings.LEAST, postings.LEAST_WRITTEN, steps = 50, 20, 0

def step():
    global steps
    steps += 1
    if steps == at:
        os._exit(9)

def killing(owner, name):
    inner = getattr(owner, name)
    def call(*arguments, **named):
        step()
        found = inner(*arguments, **named)
        step()
        return found
    setattr(owner, name, call)

killing(texts.TextWriter, "commit"), killing(texts.TextWriter, "forget"), killing(postings, "write_postings")
killing(postings.PostingsManifest, "write"), killing(postings.PostingsWriter, "_clear"), killing(index, "_write_cursor")
opened = index.WordIndex(Path(folder))
with opened.writing() as writer:
    for entry in entries:
        writer.put(index.IndexEntry(*entry))
    writer.remove([7])
    writer.commit(cursor.Cursor(1, 0, True, "f"))
print(steps)
"""


@pytest.mark.slow
def test_a_writer_may_be_killed_at_every_step(tmp_path: Path) -> None:
    entries = drawn(range(1, 101))
    put = list(drawn(range(80, 130), seed=5).values())
    expected = {num: one for num, one in (entries | {one.num: one for one in put}).items() if num != 7}
    given = [(one.num, one.title, one.body) for one in put]
    made(tmp_path / "made", entries)
    killed, at = 0, 0
    while killed == at:
        at += 1
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "made", folder)
        command, told = [sys.executable, "-c", KILLED], json.dumps([str(folder), given, at])
        done = subprocess.run(command, input=told, capture_output=True, text=True, check=False)
        killed += done.returncode == 9
        assert done.returncode in (0, 9), done.stderr
        index = WordIndex(folder)  # as whoever only reads finds it
        for term in WORDS[1:6]:
            found = {num for num, _ in index.search({term: 1.0}, FIELDS, 1_000)}
            assert found == {num for num, _ in by_tantivy(index).search({term: 1.0}, FIELDS, 1_000)}
        written(index, *put, gone=(7,))  # what its cursor does not name is done again
        assert index.has_postings
        for term in WORDS[1:6]:
            has = {num for num, one in expected.items() if term in one.title or term in one.body}
            assert {num for num, _ in index.search({term: 1.0}, FIELDS, 1_000)} == has
        assert len(list(folder.glob("*.postings"))) == 1
    assert killed >= 12


def test_the_best_are_those_of_a_whole_sort() -> None:
    draw = np.random.default_rng(0)
    for size in (0, 1, 63, 64, 65, 1_000, 10_000):
        for share in (0.0, 0.001, 0.5, 1.0):
            sums = np.where(draw.random(size) < share, draw.integers(1, 50, size), 0).astype(np.float32)
            for limit in (1, 10, 100, 20_000):
                expected = [row for row in np.lexsort((np.arange(size), -sums)).tolist() if sums[row] > 0][:limit]
                assert best(sums, limit).tolist() == expected


def test_a_search_leaves_nothing_to_the_next_one_of_as_many_terms(tmp_path: Path) -> None:
    index = made(tmp_path, drawn(range(500)))
    queries = [{"w1": 1.0, "w2": 0.5}, {"w3": 2.0, "w1": 1.0}, {"w2": 1.0, "w9": 1.0}]
    first = [index.search(weights, FieldWeights(), 50) for weights in queries]
    again = [index.search(weights, FieldWeights(), 50) for weights in reversed(queries)]
    assert first == again[::-1]
    assert len({tuple(found) for found in first}) == len(queries)
    expected = [by_tantivy(index).search(weights, FieldWeights(), 50) for weights in queries]
    assert [dict(found) for found in first] == [pytest.approx(dict(found), rel=1e-5) for found in expected]
