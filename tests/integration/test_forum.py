"""From an archive to an answer, and back to a readable forum after every kind of accident; by words alone.

What the general model adds is in ``test_general_model.py``, what vectors need in ``test_forum_vectors.py``.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest

from askalike import Answer, Filters, Forum, ForumSettings, ImportOptions, Link, Query, Question, TextSettings
from askalike.errors import (
    BusyForumError,
    DamagedForumError,
    ForumError,
    ForumExistsError,
    ForumNotFoundError,
    ForumVersionError,
    InputError,
    SettingError,
    UnknownIdError,
)
from askalike.forum.forum import discard_if_empty
from askalike.index.catchup import Steps, catch_up
from askalike.index.word_indexer import fingerprint, word_indexer
from askalike.index.words import WordIndex
from askalike.progress import SilentProgress
from askalike.store import ForumLayout, open_store
from askalike.text.analyzer import Analyzer
from askalike.types import Source

pytestmark = pytest.mark.usefixtures("words_alone")


class Interrupting(SilentProgress):
    """Stops the work as Ctrl-C does, once more than ``after`` units are done."""

    def __init__(self, after: int) -> None:
        self.left = after

    def advance(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise KeyboardInterrupt


def ids(forum: Forum, title: str, k: int = 10, filters: Filters | None = None) -> list[str]:
    return [hit.question.id for hit in forum.similar(title, k=k, filters=filters)]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "small.forum") as forum:
        forum.add(
            [
                Question(
                    "1",
                    "Printer is offline",
                    "It says offline since the update.",
                    created=datetime(2020, 1, 1, tzinfo=UTC),
                ),
                Question(
                    "2",
                    "Router reboots at night",
                    "every night",
                    tags=("Router", "wifi"),
                    created=datetime(2021, 1, 1, tzinfo=UTC),
                ),
                Question("3", "Printer prints garbage", "strange letters", tags=("printer",)),
            ]
        )
        yield forum


# -- finding -------------------------------------------------------------------------------------------------------


def test_no_words_find_nothing_and_more_hits_than_questions_are_no_error(small: Forum) -> None:
    assert small.similar("") == []
    assert small.similar("the of and", "?!") == []
    assert sorted(ids(small, "printer", k=1000)) == ["1", "3"]


@pytest.mark.parametrize(
    "question",
    [
        Question("1", ""),
        Question("1", "   ", "\n"),
        Question("new", "", "<p> </p>", "html"),
        Question("new", "", "\x00"),
    ],
)
def test_a_question_without_text_is_refused_and_wipes_none(small: Forum, question: Question) -> None:
    before = small.question("1")
    for change in (small.put, small.add, small.edit, small.put_unindexed):
        with pytest.raises(InputError, match="empty"):
            change([Question("other", "Printer jams"), question])
    assert (small.question("1"), len(small)) == (before, 3)


def test_a_text_where_several_are_expected_is_refused(small: Forum) -> None:
    for wrong in ({"tags": "wifi"}, {"exclude_ids": "12"}):
        with pytest.raises(SettingError, match="is the text"):
            Filters(**wrong)  # type: ignore[arg-type]
    for k in (2.5, "3", None, True, 0, 1001):
        with pytest.raises(SettingError, match="k is "):
            small.similar("printer", k=k)  # type: ignore[arg-type]
    for moment in ("2020-01-01", date(2020, 1, 1)):
        with pytest.raises(SettingError, match=r"expected (a |`)datetime"):
            Filters(before=moment)  # type: ignore[arg-type]


def test_ids_may_be_numbers_of_a_data_frame_and_what_is_no_id_is_not_there(small: Forum) -> None:
    number: Any = np.int64(1)
    assert small.question(number) == small.question("1")
    small.add(Question(np.int64(77), "numbered"))  # type: ignore[arg-type]
    small.judge(1, 2, "different")
    small.delete(np.int64(77))  # type: ignore[arg-type]
    wrong: Any
    for wrong in (None, 1.0, True, b"1"):
        with pytest.raises(UnknownIdError):
            small.question(wrong)
        assert small.answers(wrong) == small.store.links_of(wrong) == []


def test_a_moment_of_pandas_that_is_none_is_named(small: Forum) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="question '9': created is NaT"):
        small.put(Question("9", "never", created=pandas.NaT))
    small.put(Question("9", "once", created=pandas.Timestamp("2020-01-01T00:00:00.000001999")))
    small.delete("9")


def test_equal_scores_are_ordered_by_id(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(name, "same words here") for name in ("c", "a", "b")])
        assert ids(forum, "same words") == ["a", "b", "c"]


# -- changing ------------------------------------------------------------------------------------------------------


def test_each_change_shows_in_the_next_search(small: Forum) -> None:
    small.add(Question("4", "Scanner is silent"))
    assert ids(small, "scanner") == ["4"]
    small.edit(Question("4", "Keyboard is silent"))
    assert ids(small, "scanner") == []
    assert ids(small, "keyboard") == ["4"]
    small.delete("4")
    assert ids(small, "keyboard") == []
    small.put([Question("1", "Monitor flickers"), Question("5", "Monitor is dark")])
    assert sorted(ids(small, "monitor")) == ["1", "5"]
    with pytest.raises(UnknownIdError):
        small.edit(Question("6", "nowhere"))


def test_answers_and_marks_are_shown(small: Forum) -> None:
    small.store.add_answers([Answer("a", "1", "Switch it on.", is_accepted=True), Answer("b", "1", "Pray.")])
    small.store.put_links([Link("3", "1", "duplicate")])
    hits = {hit.question.id: hit for hit in small.search(Query("printer", is_canonical=False)).hits}
    answer = hits["1"].answer
    assert answer is not None
    assert (answer.id, hits["1"].answer_count, hits["3"].duplicate_of) == ("a", 2, ("1",))


def test_threads_may_search_and_write_at_once(small: Forum) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                word = f"w{number}x{step}"
                small.add(Question(f"t{number}-{step}", f"thread speaks {word}"))
                assert ids(small, word) == [f"t{number}-{step}"]
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which fails the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(ids(small, "thread speaks", k=100)) == 20


def test_what_failed_for_one_thread_is_not_done_for_the_next(small: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("askalike.forum.indexes.catch_up", failing)
        with pytest.raises(OSError, match="no room"):
            small.add(Question("t", "thread speaks"))
    small.catch_up()
    assert ids(small, "thread speaks") == ["t"]


def failing(*_given: Any, **_named: Any) -> int:
    raise OSError("no room")


# -- loading again -------------------------------------------------------------------------------------------------


def write_archive(path: Path, records: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_indexing_again_adds_edits_deletes_and_says_how_many(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.jsonl", [{"id": f"{n}", "title": f"title number {n}"} for n in range(10)])
    with Forum.create(tmp_path / "f") as forum:
        forum.load(archive)
        records: list[dict[str, object]] = [{"id": f"{n}", "title": f"title number {n}"} for n in range(1, 12)]
        records[0]["title"] = "something else"
        write_archive(archive, records)
        questions = forum.load(archive).load.questions
        assert (questions.added, questions.edited, questions.deleted, questions.unchanged) == (2, 1, 1, 8)
        assert ids(forum, "title number", k=100).count("0") == 0
        assert ids(forum, "something else") == ["1"]


def test_a_truncated_archive_changes_nothing(tmp_path: Path) -> None:
    archive = tmp_path / "a.jsonl.gz"
    lines = "".join(json.dumps({"id": f"{n}", "title": f"title number {n}"}) + "\n" for n in range(1000))
    archive.write_bytes(gzip.compress(lines.encode()))
    with Forum.create(tmp_path / "f") as forum:
        forum.load(archive)
        before = forum.info()
        archive.write_bytes(archive.read_bytes()[:-2000])
        with pytest.raises(InputError, match=r"a\.jsonl"):
            forum.load(archive)
        assert replace(forum.info(), size_bytes=0) == replace(before, size_bytes=0)


def test_nothing_is_deleted_when_a_record_could_not_be_read(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.jsonl", [{"id": f"{n}", "title": f"title number {n}"} for n in range(10)])
    with Forum.create(tmp_path / "f") as forum:
        forum.load(archive)
        archive.write_bytes(b'{"id": "new", "title": "new"}\n' + b'{"id": "0", "title": "\xff\xfe broken"}\n')
        report = forum.load(archive, options=ImportOptions(format="jsonl"))
        assert (report.rejected, report.load.questions.kept, report.load.questions.deleted) == (1, 10, 0)
        assert report.first_rejects[0].line == 2
        assert forum.question("0").title == "title number 0"


def test_a_load_that_waited_in_vain_leaves_the_rejects_of_the_one_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = write_archive(tmp_path / "a.jsonl", [{"id": "1", "title": "one"}, {"title": ""}])

    def busy(*_: object, **__: object) -> None:
        raise BusyForumError("another process is loading an archive")

    with Forum.create(tmp_path / "f") as forum:
        forum.load(archive, options=ImportOptions(format="jsonl"))
        before = ForumLayout(tmp_path / "f").rejects.read_bytes()
        monkeypatch.setattr("askalike.store.base.Store.load", busy)
        with pytest.raises(BusyForumError):
            forum.load(archive, options=ImportOptions(format="jsonl"))
    assert ForumLayout(tmp_path / "f").rejects.read_bytes() == before


def test_an_archive_of_rejects_alone_says_the_first(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.jsonl", [{"id": "1", "title": ""}, {"title": "x"}])
    with (
        Forum.create(tmp_path / "f") as forum,
        pytest.raises(
            InputError, match=r"contains no questions; 2 records were rejected, the first in a\.jsonl, line 1: "
        ) as refused,
    ):
        forum.load(archive, options=ImportOptions(format="jsonl"))
    assert refused.value.hint == "correct the records, or name the right --format", "a new forum's rejects are not kept"


def test_a_path_that_is_not_utf8_names_its_source_and_makes_no_forum(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.jsonl"))
    write_archive(odd, [{"id": "1", "title": "one"}])
    with Forum.create(tmp_path / "f") as forum:
        assert forum.load(odd).source.endswith("a\\xff.jsonl")
        with pytest.raises(SettingError, match="not UTF-8"):
            forum.load(odd, options=ImportOptions(source="\udcff"))
    with pytest.raises(ForumError, match="not UTF-8"):
        Forum.create(odd.with_suffix(".forum"))
    assert not odd.with_suffix(".forum").exists()


# -- accidents -----------------------------------------------------------------------------------------------------


def test_a_forum_is_not_made_over_something_else(tmp_path: Path) -> None:
    Forum.create(tmp_path / "f").close()
    with pytest.raises(ForumExistsError, match="already"):
        Forum.create(tmp_path / "f")
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(ForumExistsError, match="not empty"):
        Forum.create(tmp_path / "g")
    assert (tmp_path / "g" / "letter.txt").read_text(encoding="utf-8") == "dear"


def test_a_search_takes_a_title_and_says_what_else_was_given(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(Question("a", "The printer is offline"))
        assert forum.search("printer offline").hits == forum.search(Query("printer offline")).hits
        wrong: Any = 3
        with pytest.raises(SettingError, match=r"a search for 3 \(expected texts as title and body\)"):
            forum.similar(wrong)
        wrong = Question("b", "The printer")
        with pytest.raises(SettingError, match=r"a search for a Question \(expected a text, or Query"):
            forum.search(wrong)
        with pytest.raises(SettingError, match="many searches were asked for with one text"):
            forum.similar_many("printer")
        with pytest.raises(SettingError, match="the minimum is 80"):
            forum.pairs.duplicates(80)


@pytest.mark.parametrize("value", ["The printer", [("b", "The printer")], [Question("b", "t"), 5], None])
def test_what_is_no_question_is_not_stored(tmp_path: Path, value: Any) -> None:
    with Forum.create(tmp_path / "f") as forum:
        for change in (forum.add, forum.put, forum.edit):
            with pytest.raises(SettingError, match=r"was given \(expected several, each Question"):
                change(value)
        assert len(forum) == 0


def test_an_empty_forum_can_be_discarded_but_not_one_that_is_filled_or_being_filled(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with Forum.create(path) as forum, contextlib.closing(open_store(ForumLayout(path))) as other:
        with other.write():
            assert not discard_if_empty(forum)
        assert discard_if_empty(Forum.open(path))
        assert not path.exists()
        with pytest.raises(ForumNotFoundError, match="deleted or replaced"):
            other.add_questions([Question("a", "t")])
    with Forum.create(path) as forum:
        forum.add(Question("a", "t"))
        assert not discard_if_empty(forum)
    with Forum.open(path) as forum:
        assert forum.question("a").title == "t"


def test_opening_nothing_says_how_to_make_a_forum(tmp_path: Path) -> None:
    with pytest.raises(ForumNotFoundError, match="askalike index"):
        Forum.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_an_index_that_was_left_half_built_is_finished_at_open(small: Forum) -> None:
    layout = ForumLayout(small.path)
    small.close()
    archive = open_store(layout)
    analyzer = Analyzer(TextSettings())
    index = WordIndex.create(layout.lexical, applied=archive.last_change(), fingerprint=fingerprint(analyzer))
    with pytest.raises(KeyboardInterrupt):
        catch_up(archive, word_indexer(index, analyzer, steps=Steps(batch=2, scan=2, changes=2)), Interrupting(after=2))
    assert (index.cursor.is_complete, index.cursor.scanned, index.entries) == (False, 2, 2)
    archive.close()
    with Forum.open(small.path) as forum:
        assert sorted(ids(forum, "printer router")) == ["1", "2", "3"]
        assert forum.info().indexed == 3


def test_a_missing_index_is_built_anew(small: Forum) -> None:
    import shutil

    small.close()
    shutil.rmtree(ForumLayout(small.path).lexical)
    with Forum.open(small.path) as forum:
        assert sorted(ids(forum, "printer router")) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("file", "content"), [("mark.json", b"{"), ("mark.json", b'{"format": 99}'), ("*.words", b"damaged")]
)
def test_a_damaged_index_is_refused_and_reindex_mends_it(small: Forum, file: str, content: bytes) -> None:
    small.close()
    [path] = ForumLayout(small.path).lexical.glob(file)
    path.unlink()
    path.write_bytes(content)
    with pytest.raises(DamagedForumError, match="askalike reindex"):
        Forum.open(small.path)
    with Forum.reindex(small.path) as forum:
        assert sorted(ids(forum, "printer router")) == ["1", "2", "3"]


def test_a_write_beside_a_busy_indexer_is_stored_and_says_so(small: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.forum.indexes.LOCK_TIMEOUT_S", 0.05)
    with filelock.FileLock(ForumLayout(small.path).lock), pytest.raises(BusyForumError, match="change is stored"):
        small.add(Question("4", "Scanner is silent"))
    assert small.question("4").title == "Scanner is silent"
    with Forum.open(small.path) as other:
        assert ids(other, "scanner") == ["4"]


def test_a_reader_opens_beside_a_busy_indexer(small: Forum) -> None:
    with filelock.FileLock(ForumLayout(small.path).lock):
        with contextlib.closing(open_store(ForumLayout(small.path))) as store:
            store.add_questions([Question("4", "Scanner is silent")])
        with Forum.open(small.path) as other:
            assert other.info().behind == 1
            assert sorted(ids(other, "printer")) == ["1", "3"]


def test_an_open_forum_goes_on_while_its_index_is_built_anew(small: Forum) -> None:
    import shutil

    folder = ForumLayout(small.path).lexical
    shutil.rmtree(folder)
    assert sorted(ids(small, "printer")) == ["1", "3"]
    WordIndex.create(folder, applied=0, fingerprint=fingerprint(small.analyzer))
    assert sorted(ids(small, "printer")) == ["1", "3"]
    small.add(Question("4", "Printer of the neighbour"))
    assert sorted(ids(small, "printer")) == ["1", "3", "4"]


def test_settings_of_a_newer_version_are_refused(small: Forum) -> None:
    with contextlib.closing(sqlite3.connect(ForumLayout(small.path).archive)) as connection, connection:
        connection.execute("INSERT INTO settings VALUES ('accents', 'true')")
    with pytest.raises(ForumVersionError, match="accents"):
        Forum.open(small.path)


def test_a_word_that_only_an_answer_has_finds_its_question(tmp_path: Path) -> None:
    title = "What is the German beer purity law?"
    others = [Question(f"q{number}", f"Which beer number {number} is strong?", "A lager.") for number in range(40)]
    with Forum.create(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as forum:
        forum.add([Question("law", title), *others])
        forum.store.put_answers([Answer("a", "law", "<p>The <b>Reinheitsgebot</b> of 1516.</p>", "html")])
        forum.catch_up()
        result = forum.search("Reinheitsgebot")
        assert [hit.question.id for hit in result.likely_hits] == ["law"]
        assert [(match.word, match.field) for match in result.hits[0].matched] == [("Reinheitsgebot", "answer")]
        assert not result.is_new
        forum.store.delete_answers(["a"])
        forum.catch_up()
        assert forum.search("Reinheitsgebot").hits == ()


def test_operators_alone_find_their_title(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as forum:
        forum.add([Question("1", "What does `!==` do?"), Question("2", "What does == do?")])
        assert [hit.question.id for hit in forum.search("!==").likely_hits] == ["1"]


def test_deleted_answers_of_deleted_questions_do_not_keep_an_index_behind(tmp_path: Path) -> None:
    questions = [Question("1", "wifi drops"), Question("2", "printer is offline")]
    with Forum.create(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as forum:
        source = Source("dump", "jsonl")
        forum.store.load([*questions, Answer("a", "1", "Move the router.")], source, lambda _: None)
        forum.catch_up()
        forum.store.load(questions[1:], source, lambda _: None, is_mass_delete_allowed=True)
        forum.store.add_questions([Question("3", "screen flickers")])  # the log ends with something to be indexed
        forum.catch_up()
        assert forum.info().behind == 0
    with Forum.open(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as forum:
        assert forum.info().behind == 0
        assert [hit.question.id for hit in forum.similar("screen flickers")] == ["3"]
