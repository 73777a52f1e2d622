"""What the archive promises: durable rows, a change log, and clear refusals."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from askalike.errors import (
    DamagedForumError,
    ForumError,
    ForumNotFoundError,
    ForumVersionError,
    InputError,
    UnknownIdError,
)
from askalike.store.sqlite import SqliteStore
from askalike.types import Answer, Link, Question, Record, Reject, Source

FULL = Question(
    id="q1",
    title="Títle 🙂",
    body="<p>body</p>",
    markup="html",
    tags=("b", "a"),
    created=datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    closed=datetime(2021, 1, 2, tzinfo=UTC),
    score=-3,
    url="https://example.org/q1",
    author="ann",
)
FIRST = Source("first", "jsonl")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.create(tmp_path / "forum" / "archive.sqlite", {"language": "english"})
    yield made
    made.close()


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


def test_a_question_comes_back_as_it_was_put(archive: SqliteStore) -> None:
    archive.add_questions([FULL])
    assert archive.question("q1") == FULL


def test_a_moment_in_another_zone_comes_back_in_utc(archive: SqliteStore) -> None:
    there = datetime(2020, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    archive.add_questions([Question("q", "t", created=there)])
    assert archive.question("q").created == there
    assert archive.question("q").created == datetime(2020, 6, 1, 10, tzinfo=UTC)


def test_settings_are_kept(archive: SqliteStore) -> None:
    assert archive.settings() == {"language": "english"}


def test_adding_a_taken_id_stores_nothing(archive: SqliteStore) -> None:
    archive.add_questions([FULL])
    with pytest.raises(InputError, match="'q1' is taken"):
        archive.add_questions([Question("q2", "new"), Question("q1", "again")])
    assert archive.counts().questions == 1


def test_adding_one_id_twice_at_once_stores_nothing(archive: SqliteStore) -> None:
    with pytest.raises(InputError, match="'a' is taken"):
        archive.add_questions([Question("a", "one"), Question("a", "two")])
    assert archive.counts().questions == 0


def test_editing_an_unknown_question_stores_nothing(archive: SqliteStore) -> None:
    archive.add_questions([FULL])
    with pytest.raises(UnknownIdError, match="'q2'"):
        archive.edit_questions([Question("q1", "changed"), Question("q2", "unknown")])
    assert archive.question("q1") == FULL


def test_an_edit_keeps_the_internal_number_and_a_delete_frees_it_for_ever(archive: SqliteStore) -> None:
    archive.add_questions([FULL])
    before = archive.nums_by_id(["q1"])["q1"]
    archive.edit_questions([Question("q1", "changed")])
    assert archive.nums_by_id(["q1"])["q1"] == before
    archive.put_questions([], ["q1"])
    archive.add_questions([FULL])
    assert archive.nums_by_id(["q1"])["q1"] > before


def test_the_log_names_each_change_in_order(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "one"), Question("b", "two")])
    archive.put_questions([Question("a", "one"), Question("b", "changed")])
    archive.put_questions([], ["a"])
    log = archive.changes(0, 100)
    assert [(change.operation, change.num) for change in log] == [("add", 1), ("add", 2), ("edit", 2), ("delete", 1)]
    assert archive.last_change() == log[-1].seq
    assert archive.changes(log[1].seq, 100) == log[2:]
    assert archive.count_changes(log[1].seq) == 2


def test_deleting_a_question_takes_its_answers_and_links_along(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "one"), Question("b", "two")])
    archive.add_answers([Answer("x", "a", "because")])
    archive.put_links([Link("b", "a", "duplicate")])
    archive.put_questions([], ["a"])
    assert archive.answers_of(["a"]).get("a", []) == []
    assert archive.links() == []


def test_answers_come_best_first(archive: SqliteStore) -> None:
    archive.add_questions([Question("q", "t")])
    old, new = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)
    archive.add_answers(
        [
            Answer("late", "q", "b", created=new, score=2),
            Answer("early", "q", "b", created=old, score=2),
            Answer("voted", "q", "b", created=new, score=9),
            Answer("right", "q", "b", created=new, score=0, is_accepted=True),
        ]
    )
    assert [answer.id for answer in archive.answers_of(["q"]).get("q", [])] == ["right", "voted", "early", "late"]


def test_an_answer_needs_its_question(archive: SqliteStore) -> None:
    with pytest.raises(UnknownIdError, match="'nowhere'"):
        archive.add_answers([Answer("x", "nowhere", "b")])


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question("", "t"), "id is ''"),
        (Question(" a", "t"), "id is ' a'"),
        (Question("a", "t\ud800"), "title has a lone surrogate"),
        (Question("a", "t", tags=("\udfff",)), "tag has a lone surrogate"),
        (Question("a", "t", markup="bbcode"), "markup is 'bbcode'"),  # type: ignore[arg-type]
        (Question("a", "t", score=2**70), "score is"),
        (Question("a" * 513, "t"), "513 characters"),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused_by_name(archive: SqliteStore, question: Question, words: str) -> None:
    with pytest.raises(InputError, match=words):
        archive.put_questions([question])
    assert archive.counts().questions == 0


def test_a_link_to_itself_is_refused(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "t")])
    with pytest.raises(InputError, match="linked to itself"):
        archive.put_links([Link("a", "a")])


# -- bulk load -----------------------------------------------------------------------------------------------------


def test_loading_again_adds_updates_and_deletes(archive: SqliteStore) -> None:
    first: list[Record] = [Question(f"q{number}", f"title {number}") for number in range(10)]
    first += [Answer("a0", "q0", "old"), Answer("a1", "q1", "stays"), Link("q1", "q0")]
    archive.load(first, FIRST, no_reject)
    second: list[Record] = [Question(f"q{number}", f"title {number}") for number in range(1, 12)]
    second[0] = Question("q1", "changed")
    second += [Answer("a1", "q1", "stays"), Answer("a2", "q2", "new"), Link("q3", "q2", "related")]
    report = archive.load(second, FIRST, no_reject)
    questions = report.questions
    assert (questions.added, questions.edited, questions.deleted, questions.unchanged) == (2, 1, 1, 8)
    assert archive.question("q1").title == "changed"
    assert [answer.id for answer in archive.answers_of(["q2"]).get("q2", [])] == ["a2"]
    assert archive.links() == [Link("q3", "q2", "related")]


def test_loading_the_same_again_changes_nothing(archive: SqliteStore) -> None:
    records: list[Record] = [FULL, Answer("a", "q1", "b"), Question("q2", "t"), Link("q2", "q1")]
    archive.load(records, FIRST, no_reject)
    before = archive.last_change()
    report = archive.load(records, FIRST, no_reject)
    assert archive.last_change() == before
    assert report.questions.unchanged == 2
    assert report.answers.unchanged == 1
    assert report.links.unchanged == 1


def test_loading_one_source_leaves_the_others_alone(archive: SqliteStore) -> None:
    archive.add_questions([Question("by-hand", "t")])
    archive.load([Question("one", "t")], FIRST, no_reject)
    archive.load([Question("two", "t")], Source("second", "jsonl"), no_reject)
    archive.load([Question("three", "t")], FIRST, no_reject)
    assert {question.id for _, question in archive.all_questions()} == {"by-hand", "two", "three"}


def test_answers_may_come_before_their_question(archive: SqliteStore) -> None:
    archive.load([Answer("a", "q", "b"), Question("q", "t")], FIRST, no_reject)
    assert [answer.id for answer in archive.answers_of(["q"]).get("q", [])] == ["a"]


def test_an_answer_id_is_not_taken_twice(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "one"), Question("b", "two")])
    archive.add_answers([Answer("x", "a", "because")])
    with pytest.raises(InputError, match="'x' is taken"):
        archive.add_answers([Answer("x", "b", "because")])
    assert [answer.id for answer in archive.answers_of(["a"]).get("a", [])] == ["x"]


def test_another_archive_with_the_same_ids_changes_nothing(archive: SqliteStore) -> None:
    archive.load([Question("1", "printer"), Question("2", "router")], FIRST, no_reject)
    other: list[Record] = [Question("1", "zebra"), Question("2", "router"), Question("3", "lion")]
    with pytest.raises(InputError, match=r"1 ids of second, such as '1', .* came from first"):
        archive.load(other, Source("second", "jsonl"), no_reject)
    assert [question.title for _, question in archive.all_questions()] == ["printer", "router"]


def test_the_same_content_under_another_name_is_no_conflict(archive: SqliteStore) -> None:
    archive.load([Question("1", "printer")], FIRST, no_reject)
    archive.load([Question("1", "printer"), Question("2", "lion")], Source("second", "jsonl"), no_reject)
    archive.load([Question("1", "scanner")], FIRST, no_reject)
    assert [question.title for _, question in archive.all_questions()] == ["scanner", "lion"]


def test_an_edit_by_hand_stays_with_its_archive_and_the_next_load_restores_it(archive: SqliteStore) -> None:
    archive.load([Question("1", "printer")], FIRST, no_reject)
    archive.edit_questions([Question("1", "edited")])
    report = archive.load([Question("1", "printer")], FIRST, no_reject)
    assert (report.questions.edited, archive.question("1").title) == (1, "printer")


def test_a_question_whose_new_version_cannot_be_stored_keeps_its_old_one(archive: SqliteStore) -> None:
    archive.load([Question("1", "printer"), Question("2", "router")], FIRST, no_reject)
    rejects: list[Reject] = []
    report = archive.load([Question("1", "bad \ud800"), Question("2", "router")], FIRST, rejects.append)
    assert (len(rejects), report.questions.kept, report.questions.deleted) == (1, 1, 0)
    assert archive.question("1").title == "printer"


def test_an_answer_moved_to_a_question_that_is_not_there_is_rejected_and_counted_right(archive: SqliteStore) -> None:
    archive.load([Question("1", "printer"), Answer("a", "1", "b"), Question("2", "t")], FIRST, no_reject)
    rejects: list[Reject] = []
    report = archive.load([Question("1", "printer"), Answer("a", "9", "b"), Question("2", "t")], FIRST, rejects.append)
    counts = report.answers
    assert (counts.added, counts.edited, counts.unchanged, counts.deleted, counts.rejected) == (0, 0, 0, 0, 1)


def test_an_answer_that_outlives_its_question_in_the_archive_is_rejected(archive: SqliteStore) -> None:
    archive.load([Question("1", "printer"), Answer("a", "1", "b"), Question("2", "t")], FIRST, no_reject)
    rejects: list[Reject] = []
    report = archive.load([Answer("a", "1", "b"), Question("2", "t")], FIRST, rejects.append)
    assert (report.questions.deleted, report.answers.unchanged, report.answers.rejected) == (1, 0, 1)
    assert [reject.record_id for reject in rejects] == ["a"]


def test_orphans_and_repeated_ids_are_rejected_by_name(archive: SqliteStore) -> None:
    rejects: list[Reject] = []
    records: list[Record] = [Question("q", "first"), Question("q", "second"), Answer("a", "gone", "b")]
    report = archive.load(records, FIRST, rejects.append)
    assert [(reject.record_id, "before" in reject.reason or "gone" in reject.reason) for reject in rejects] == [
        ("q", True),
        ("a", True),
    ]
    assert archive.question("q").title == "first"
    assert (report.questions.rejected, report.answers.rejected, report.answers.added) == (1, 1, 0)


def test_an_error_in_the_middle_leaves_the_archive_as_it_was(archive: SqliteStore) -> None:
    archive.load([Question("old", "t")], FIRST, no_reject)

    def broken() -> Iterator[Record]:
        yield Question("new", "t")
        raise InputError("line 2 is damaged")

    with pytest.raises(InputError, match="line 2"):
        archive.load(broken(), FIRST, no_reject)
    assert {question.id for _, question in archive.all_questions()} == {"old"}


def test_a_source_without_questions_is_refused(archive: SqliteStore) -> None:
    with pytest.raises(InputError, match="contains no questions"):
        archive.load([], FIRST, no_reject)


def test_links_alone_are_taken_for_the_questions_of_other_sources(archive: SqliteStore) -> None:
    links = [Link("q1", "q2")]
    with pytest.raises(InputError, match="contains only links, and the forum has no questions"):
        archive.load(links, Source("marks", "pairs"), no_reject)
    archive.load([Question("q1", "t"), Question("q2", "u")], FIRST, no_reject)
    assert archive.load(links, Source("marks", "pairs"), no_reject).links.added == 1
    assert archive.originals_of(["q1"]) == {"q1": ("q2",)}
    assert archive.load(links, Source("marks", "pairs"), no_reject).links.unchanged == 1
    with pytest.raises(InputError, match="contains no questions"):
        archive.load(links, FIRST, no_reject)


def test_losing_most_of_a_source_needs_a_word(archive: SqliteStore) -> None:
    archive.load([Question(f"q{number}", "t") for number in range(50)], FIRST, no_reject)
    with pytest.raises(InputError, match="49 of the 50"):
        archive.load([Question("q0", "t")], FIRST, no_reject)
    assert archive.counts().questions == 50
    archive.load([Question("q0", "t")], FIRST, no_reject, is_mass_delete_allowed=True)
    assert archive.counts().questions == 1


# -- the file ------------------------------------------------------------------------------------------------------


def test_there_is_no_archive_where_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ForumNotFoundError, match="no forum"):
        SqliteStore(tmp_path / "archive.sqlite")


def test_an_archive_that_was_not_finished_is_finished_by_create(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    sqlite3.connect(path).close()
    path.touch()
    with pytest.raises(ForumNotFoundError, match="not created completely"):
        SqliteStore(path)
    SqliteStore.create(path, {}).close()
    SqliteStore(path).close()


def test_making_an_archive_that_another_process_has_just_made_keeps_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    SqliteStore.create(path, {"language": "german"}).close()
    with contextlib.closing(SqliteStore.create(path, {"language": "english"})) as made:
        assert made.settings() == {"language": "german"}


@pytest.mark.parametrize("replaces", [False, True])
def test_a_write_to_a_file_that_has_gone_is_no_success(archive: SqliteStore, replaces: bool) -> None:
    archive.add_questions([Question("a", "t")])
    archive.path.unlink()
    if replaces:
        SqliteStore.create(archive.path.with_name("other"), {}).close()
        archive.path.with_name("other").rename(archive.path)
    with pytest.raises(ForumNotFoundError, match="deleted or replaced while it was open"):
        archive.add_questions([Question("b", "t")])


@pytest.mark.parametrize("kept", [0.02, 0.1, 0.5])
def test_damage_met_by_opening_or_by_a_write_is_named(archive: SqliteStore, kept: float) -> None:
    archive.load([Question(f"q{number}", "title", "body " * 200) for number in range(300)], FIRST, no_reject)
    archive.close()
    content = bytearray(archive.path.read_bytes())
    whole = int(len(content) * kept)
    content[whole:] = b"\xff" * (len(content) - whole)
    archive.path.write_bytes(bytes(content))
    with (
        pytest.raises(DamagedForumError, match="is damaged"),
        contextlib.closing(SqliteStore(archive.path)) as damaged,
    ):
        damaged.add_questions([Question("new", "t")])


def test_a_row_that_is_not_as_it_was_written_is_damage(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "t")])
    archive.connection.execute("UPDATE questions SET tags = '['")
    with pytest.raises(DamagedForumError, match="tags of question 'a'"):
        archive.question("a")


def test_a_full_disk_changes_nothing_and_says_so(archive: SqliteStore) -> None:
    archive.connection.execute("PRAGMA max_page_count = 30")
    questions = [Question(f"q{number}", "title", "body " * 200) for number in range(300)]
    with pytest.raises(ForumError, match="cannot be written: database or disk is full") as caught:
        archive.add_questions(questions)
    assert "free space" in caught.value.hint
    assert archive.counts().questions == 0


def test_a_checkpoint_that_finds_no_room_does_not_undo_a_load(
    archive: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(store: SqliteStore, statement: str, *values: object) -> list[object]:
        if "wal_checkpoint" in statement:
            raise ForumError("database or disk is full")
        return real(store, statement, *values)  # type: ignore[arg-type]

    real = SqliteStore.rows
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "rows", full)
        archive.load([Question("a", "t")], FIRST, no_reject)
    assert archive.question("a").title == "t"


def test_an_id_with_half_a_surrogate_pair_is_not_there(archive: SqliteStore) -> None:
    for refused in (archive.question, lambda odd: archive.put_questions([], [odd])):
        with pytest.raises(UnknownIdError):
            refused("\udcff")
    assert archive.answers_of(["\udcff"]).get("\udcff", []) == []
    archive.add_questions([Question("a", "t")])
    with pytest.raises(InputError, match="lone surrogate"):
        archive.add_questions([Question("\udcff", "t")])
    with pytest.raises(InputError, match="lone surrogate"):
        archive.add_answers([Answer("\udcff", "a", "b")])


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    path.write_bytes(b"hello, this is not a database " * 100)
    with pytest.raises(DamagedForumError, match="cannot be read as a database"):
        SqliteStore(path)


def test_a_database_of_another_format_is_refused(archive: SqliteStore) -> None:
    connection = sqlite3.connect(archive.path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ForumVersionError, match="format 99"):
        SqliteStore(archive.path)


def test_each_thread_reads_through_its_own_connection(archive: SqliteStore) -> None:
    import threading

    archive.add_questions([FULL])
    seen: list[Question] = []
    threads = [threading.Thread(target=lambda: seen.append(archive.question("q1"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [FULL] * 4
