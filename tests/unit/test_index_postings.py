"""The postings of words: they give the scores of the formula, follow what is written, and one writer may be killed."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askalike.errors import DamagedForumError
from askalike.index import postings, words
from askalike.index.cursor import Cursor
from askalike.index.postings import TEXT, hash_of, kept_lengths
from askalike.index.words import FieldWeights, IndexEntry, WordIndex, best
from askalike.types import Filters

FIELDS = FieldWeights()
WORDS = [f"w{place}" for place in range(200)]
Table = dict[int, IndexEntry]


@pytest.fixture
def _in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small indexes have several segments, as large ones do."""
    monkeypatch.setattr(words, "EXACT", 0)
    monkeypatch.setattr("askalike.index.segments.SMALL", 4)


in_segments = pytest.mark.usefixtures("_in_segments")


def drawn(numbers: range, seed: int = 0) -> Table:
    draw = random.Random(seed)

    def terms(count: int) -> list[str]:
        return [WORDS[min(len(WORDS) - 1, int(draw.paretovariate(0.6)))] for _ in range(count)]

    return {
        num: IndexEntry(
            num,
            terms(draw.randint(0, 9)),
            terms(draw.choice([0, 3, 30, 400])),
            draw.sample(["Wifi", "home"], draw.randint(0, 2)),
            draw.choice([None, draw.randint(-5, 5)]),
            f"text {num} {seed}".encode(),
            terms(draw.choice([0, 20])),
        )
        for num in numbers
    }


def filled(folder: Path, entries: Table, every: int = 1_000_000) -> WordIndex:
    """Return an index that was filled with entries, with a commit after so many."""
    index = WordIndex.create(folder, applied=0, fingerprint="f")
    with index.writing() as writer:
        for place, entry in enumerate(entries.values(), start=1):
            writer.put(entry)
            if place % every == 0:
                writer.commit(Cursor(0, entry.num, is_complete=False, fingerprint="f"))
        writer.commit(Cursor(0, 0, is_complete=True, fingerprint="f"))
    return index


def write(index: WordIndex, *entries: IndexEntry, gone: Sequence[int] = ()) -> None:
    with index.writing() as writer:
        for entry in entries:
            writer.put(entry)
        writer.remove(gone)
        writer.commit(replace(index.cursor, applied=index.cursor.applied + 1))


def queries(count: int, seed: int = 1) -> list[dict[str, float]]:
    draw = random.Random(seed)
    return [{term: draw.random() + 0.1 for term in draw.sample(WORDS, draw.choice([1, 3, 20]))} for _ in range(count)]


def scores_by_hand(entries: Table, weights: dict[str, float], fields: FieldWeights = FIELDS) -> dict[int, float]:
    """Return the scores of the formula, one entry and one term after the other."""
    counts = {
        num: (Counter(entry.title), Counter([*entry.title, *entry.body]), Counter(entry.answers))
        for num, entry in entries.items()
    }
    scores: dict[int, float] = {}
    for field, weight in enumerate((fields.title, fields.text, fields.answers)):
        lengths = {num: sum(of[field].values()) for num, of in counts.items()}
        mean = max(1, sum(lengths.values())) / max(1, len(lengths))
        for term, factor in weights.items():
            having = {num: of[field][term] for num, of in counts.items() if of[field][term]}
            rarity = math.log(1 + (len(entries) - len(having) + 0.5) / (len(having) + 0.5))
            for num, frequency in having.items():
                length = int(kept_lengths(np.array([lengths[num]]))[0])
                part = frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / mean))
                scores[num] = scores.get(num, 0.0) + weight * factor * rarity * part
    return {num: score for num, score in scores.items() if score > 0}


def assert_scores_of_the_formula(index: WordIndex, entries: Table) -> None:
    for weights in queries(20):
        assert index.scores(weights, FIELDS, list(entries)) == pytest.approx(scores_by_hand(entries, weights), rel=1e-5)


def test_scores_worked_out_by_hand(tmp_path: Path) -> None:
    index = filled(tmp_path / "lexical", {1: IndexEntry(1, ["a"], ["b", "b"]), 2: IndexEntry(2, ["c"], ["b"])})
    [(_, first), (_, second)] = index.search({"b": 1.0}, FIELDS, 10)
    # 3 and 2 terms, 2.5 on average; both have "b", in no title
    factor = math.log(1 + 0.5 / 2.5)
    assert first == pytest.approx(factor * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2.5)))
    assert second == pytest.approx(factor * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2.5)))
    [(num, both)] = index.search({"a": 3.0}, FIELDS, 10)
    # once in the text of 3, and once in a title of 1 where 1 is the mean, which counts a quarter
    assert num == 1
    assert both == pytest.approx(3 * math.log(2) * (2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / 2.5)) + 0.25 * 2.2 / 2.2))


def test_lengths_are_kept_in_a_byte() -> None:
    lengths = np.arange(200_000)
    kept = kept_lengths(lengths)
    assert (kept[:41] == lengths[:41]).all()
    assert (np.diff(kept) >= 0).all()
    assert (kept <= lengths).all()
    assert len(np.unique(kept)) <= 256
    assert ((lengths - kept) / np.maximum(lengths, 1)).max() < 1 / 8


@pytest.mark.parametrize("fields", [FIELDS, FieldWeights(1.0, 0.0), FieldWeights(0.0, 2.0)])
def test_a_search_gives_the_scores_of_the_formula(tmp_path: Path, fields: FieldWeights) -> None:
    entries = drawn(range(1, 401))
    index = filled(tmp_path / "lexical", entries)
    for weights in queries(40):
        expected = scores_by_hand(entries, weights, fields)
        assert index.scores(weights, fields, list(entries)) == pytest.approx(expected, rel=1e-5)
        hits = index.search(weights, fields, 30)
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
        assert [score for _, score in hits] == pytest.approx(sorted(expected.values(), reverse=True)[:30], rel=1e-5)
        assert dict(hits) == pytest.approx({num: expected[num] for num, _ in hits}, rel=1e-5)


def admitted_by_hand(entries: Table, filters: Filters) -> list[int]:
    def fits(entry: IndexEntry) -> bool:
        tags = {tag.casefold() for tag in entry.tags}
        return tags >= set(filters.tags) and not tags & set(filters.exclude_tags)

    return sorted(num for num, entry in entries.items() if fits(entry))


@in_segments
def test_an_index_follows_hundreds_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "DRIFT", 0.2)
    draw = random.Random(3)
    entries = drawn(range(1, 201))
    index = filled(tmp_path / "lexical", entries)
    files = 0
    for step in range(30):
        changed = drawn(range(1, 301), seed=step + 1)
        put = [changed[num] for num in draw.sample(range(1, 301), draw.choice([1, 6, 40]))]
        gone = [num for num in draw.sample(sorted(entries), 3) if num not in {entry.num for entry in put}]
        write(index, *put, gone=gone)
        entries = {
            num: entry for num, entry in (entries | {entry.num: entry for entry in put}).items() if num not in gone
        }
        files = max(files, len(list(index.folder.glob("*.words"))))
        assert index.numbers() == sorted(entries)
        assert index.texts(range(1, 301)) == {num: entry.text for num, entry in sorted(entries.items())}
        for term in WORDS[1:6]:
            having = {num for num, entry in entries.items() if term in entry.title or term in entry.body}
            answered = {num for num, entry in entries.items() if term in entry.answers}
            assert {num for num, _ in index.search({term: 1.0}, FIELDS, 1_000)} == having | answered
            assert index.document_frequencies([term]).get(term, 0) == len(having or answered)
        for filters in (Filters(tags=("wifi",)), Filters(tags=("wifi", "home")), Filters(exclude_tags=("home",))):
            expected = admitted_by_hand(entries, filters)
            assert (index.all_admitted(filters), index.count_admitted(filters)) == (expected, len(expected))
            assert index.admitted(range(1, 301), filters) == set(expected)
            hits = index.search({"w1": 1.0, "w2": 1.0}, FIELDS, 1_000, filters)
            assert {num for num, _ in hits} <= set(expected)
    assert files > 2
    for weights in queries(30):
        expected_scores = scores_by_hand(entries, weights)
        scores = index.scores(weights, FIELDS, range(1, 301))
        assert scores == pytest.approx(expected_scores, rel=words.DRIFT), "mean lengths of before"


@pytest.mark.parametrize("seed", range(3))
def test_a_small_index_gives_the_same_whatever_its_history(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    entries = drawn(range(1, 101), seed)
    index = filled(tmp_path / "old", drawn(range(1, 120), seed=9))
    for num in draw.sample(range(1, 120), 119):
        write(index, *([entries[num]] if num in entries else []), gone=[] if num in entries else [num])
    anew = filled(tmp_path / "new", entries)
    for weights in queries(20):
        assert index.search(weights, FIELDS, 50) == anew.search(weights, FIELDS, 50)


@in_segments
@pytest.mark.parametrize("every", [7, 30, 1_000_000])
def test_an_index_filled_in_several_commits_is_the_same(tmp_path: Path, every: int) -> None:
    entries = drawn(range(1, 101))
    index = filled(tmp_path / "several", entries, every)
    [path] = index.folder.glob("*.words")
    [whole] = filled(tmp_path / "whole", entries).folder.glob("*.words")
    assert path.read_bytes() == whole.read_bytes()


def test_the_last_of_a_number_counts_though_terms_were_sorted_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "MAX_TOKENS", 50)
    monkeypatch.setattr(postings, "_BLOCK_POSTINGS", 100)  # many ranges of terms
    first, second, third = drawn(range(1, 60), 1), drawn(range(40, 80), 2), drawn(range(1, 10), 3)
    index = WordIndex.create(tmp_path / "lexical", applied=0, fingerprint="f")
    with index.writing() as writer:
        for entry in (*first.values(), *second.values()):
            writer.put(entry)
        writer.remove([3, 5, 45, 70])
        for entry in third.values():
            writer.put(entry)
        writer.commit(replace(index.cursor, is_complete=True))
    expected = {num: entry for num, entry in (first | second).items() if num not in (45, 70)} | third
    assert index.numbers() == sorted(expected)
    assert_scores_of_the_formula(index, expected)
    assert index.texts(sorted(expected)) == {num: entry.text for num, entry in sorted(expected.items())}


@in_segments
def test_a_killed_fill_goes_on_with_what_was_committed(tmp_path: Path) -> None:
    entries = drawn(range(1, 101))
    index = WordIndex.create(tmp_path / "lexical", applied=0, fingerprint="f")
    with index.writing() as writer:
        for num in range(1, 61):
            writer.put(entries[num])
            if num == 40:
                writer.commit(Cursor(0, 40, is_complete=False, fingerprint="f"))
    again = WordIndex(index.folder)
    orphan = again.folder / "00000009-00000000.words"
    orphan.write_bytes(b"of a writer that was killed before it named the file")
    with again.writing() as writer:
        for num in range(41, 101):
            writer.put(entries[num])
        writer.commit(Cursor(0, 0, is_complete=True, fingerprint="f"))
    assert_scores_of_the_formula(again, entries)
    assert not orphan.exists()


READING = """
import json, sys
from pathlib import Path
from askalike.index.words import FieldWeights, WordIndex

folder, last = Path(sys.argv[1]), int(sys.argv[2])
index = WordIndex(folder)
while True:
    index.refresh()
    now = index.snapshot()
    nums = [num for num, _ in now.search({"all": 1.0}, FieldWeights(), 10_000)]
    assert sorted(nums) == now.numbers(), "the hits are those of one commit"
    assert len(nums) == now.document_frequencies(["all"])["all"]
    assert now.texts(nums) == {num: b"text %d" % num for num in nums}
    if now.cursor.applied == last:
        break
"""


@pytest.mark.slow  # two processes read for as long as one writes
@in_segments
def test_processes_that_read_see_one_commit_while_another_writes(tmp_path: Path) -> None:
    def entry(num: int) -> IndexEntry:
        return IndexEntry(num, ["all"], ["body"], text=b"text %d" % num)

    index = filled(tmp_path / "lexical", {num: entry(num) for num in range(300)})
    command = [sys.executable, "-c", READING, str(index.folder), "300"]
    readers = [subprocess.Popen(command) for _ in range(2)]
    draw = random.Random(0)
    for _ in range(300):
        nums = draw.sample(range(600), draw.choice([1, 1, 1, 5, 40]))
        write(index, *map(entry, nums[::2]), gone=nums[1::2])
    assert [reader.wait(timeout=300) for reader in readers] == [0, 0]


def test_a_posting_of_a_question_that_is_not_there_is_damage(tmp_path: Path) -> None:
    index = filled(tmp_path / "lexical", drawn(range(1, 101)))
    [part] = index._now.parts
    of = part.segment.entries.fields[TEXT]
    rows = of.rows.copy()
    rows[-3:] = 2**31 - 1
    place = int(np.flatnonzero(of.starts[:-1] <= len(rows) - 1)[-1])
    object.__setattr__(of, "rows", rows)
    part.segment.rows = rows
    [term] = [term for term in WORDS if hash_of(term) == int(part.segment.entries.hashes[place])]
    with pytest.raises(DamagedForumError, match="a question that is not there"):
        index.search({term: 1.0}, FIELDS, 5)
    with pytest.raises(DamagedForumError, match="a question that is not there"):
        index.check()


def test_an_index_of_nothing_finds_nothing(tmp_path: Path) -> None:
    index = filled(tmp_path / "lexical", {})
    assert index.search({"w1": 1.0}, FIELDS, 5) == index.all_admitted(Filters(tags=("wifi",))) == []
    write(index, IndexEntry(1, [], []))
    assert (index.search({"w1": 1.0}, FIELDS, 5), index.entries) == ([], 1)
    write(index, gone=[1])
    assert (index.numbers(), index.document_frequencies(["w1"])) == ([], {})


KILLED = """
import json, os, sys
from pathlib import Path
from askalike.index import cursor, segments, words

folder, entries, at = json.load(sys.stdin)
words.EXACT, steps = 0, 0

def killing(name):
    inner = getattr(os, name)
    def call(*arguments, **named):
        global steps
        steps += 1
        if steps == at:
            os._exit(9)
        return inner(*arguments, **named)
    setattr(os, name, call)

opened = words.WordIndex(Path(folder))
for name in ("replace", "rename", "unlink", "fsync", "write", "open"):
    killing(name)
with opened.writing() as writer:
    for entry in entries:
        writer.put(words.IndexEntry(*entry))
    writer.remove([7])
    writer.commit(cursor.Cursor(1, 0, True, "f"))
"""


@pytest.mark.slow  # a process is killed at each of its steps
def test_a_writer_may_be_killed_at_every_step(tmp_path: Path) -> None:
    entries = drawn(range(1, 101))
    put = list(drawn(range(80, 130), seed=5).values())
    after = {num: entry for num, entry in (entries | {entry.num: entry for entry in put}).items() if num != 7}
    rows = [(entry.num, entry.title, entry.body) for entry in put]
    filled(tmp_path / "whole", entries)
    killed, at = 0, 0
    while killed == at:
        at += 1
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "whole", folder)
        command, orders = [sys.executable, "-c", KILLED], json.dumps([str(folder), rows, at])
        ended = subprocess.run(command, input=orders, capture_output=True, text=True, check=False)
        killed += ended.returncode == 9
        assert ended.returncode in (0, 9), ended.stderr
        index = WordIndex(folder)  # as whoever only reads finds it
        index.check()
        assert index.numbers() == sorted(entries if index.cursor.applied == 0 else after)
        write(index, *put, gone=[7])  # what its cursor does not name is done again
        for term in WORDS[1:6]:
            having = {num for num, entry in after.items() if term in (*entry.title, *entry.body, *entry.answers)}
            assert {num for num, _ in index.search({term: 1.0}, FIELDS, 1_000)} == having
        assert {path.name for path in folder.glob("*.words")} <= index._now.manifest.names()
    assert killed >= 8


def test_the_best_are_those_of_a_whole_sort() -> None:
    draw = np.random.default_rng(0)
    for size in (0, 1, 63, 64, 65, 1_000, 10_000):
        nums = draw.permutation(size).astype(np.int64)
        for share in (0.0, 0.001, 0.5, 1.0):
            sums = np.where(draw.random(size) < share, draw.integers(1, 50, size), 0).astype(np.float32)
            for limit in (1, 10, 100, 20_000):
                expected = [row for row in np.lexsort((nums, -sums)).tolist() if sums[row] > 0][:limit]
                assert best(sums, nums, limit).tolist() == expected
