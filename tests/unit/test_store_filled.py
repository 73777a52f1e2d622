"""An empty archive is filled in short transactions, and everybody sees all of it at once or nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum, Link, Question
from askalike.errors import BusyForumError, ForumError, InputError, UnknownIdError
from askalike.forum import ImportOptions
from askalike.progress import SilentProgress
from askalike.store import ForumLayout
from askalike.store.sqlite import schema, staging
from askalike.store.sqlite.soundness import stored_faults
from askalike.store.sqlite.store import SqliteStore
from askalike.types import Answer, Feedback, Record, Reject, Source, Thread

DUMP = Source("dump", "jsonl")
OTHER = Source("other", "jsonl")
QUESTIONS = [Question(f"q{number}", f"title {number}", "body") for number in range(7)]
ANSWERS = [Answer(f"a{number}", f"q{number}", "answer") for number in range(5)]
LINKS = [Link("q1", "q0"), Link("q2", "q1", "related"), Link("q3", "elsewhere")]
ALL: list[Record] = [*ANSWERS[:1], *QUESTIONS[:4], *LINKS, *ANSWERS[1:], *QUESTIONS[4:]]

pytestmark = pytest.mark.usefixtures("words_alone")


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "WRITTEN_EACH", 2)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.create(tmp_path / "forum" / "archive.sqlite", {"language": '"english"'})
    yield made
    made.close()


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


def elsewhere(call: Callable[[], Any]) -> Any:
    """Do this in another thread, through a connection of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


def with_a_step(place: int, step: Callable[[], object], records: list[Record] = ALL) -> Iterator[Record]:
    """Yield records, and do something else in the middle of them."""
    yield from records[:place]
    elsewhere(step)
    yield from records[place:]


def held(store: SqliteStore) -> tuple[list[Question], dict[str, list[Answer]], list[Link], int]:
    """Return what others see."""
    questions = [question for _, question in store.all_questions()]
    return questions, store.answers_of([one.id for one in QUESTIONS]), store.links(), store.last_change()


def tables(store: SqliteStore) -> list[tuple[str, str]]:
    """Return what the file is made of, whatever its indexes are called."""
    found = store.connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    plain = [(kind, name, sql.replace('"', "").replace("_2 ON", " ON")) for kind, name, sql in found]
    return sorted((kind, sql if kind == "index" else f"{name}: {sql}") for kind, name, sql in plain)


def filled_anew(path: Path, records: list[Record]) -> tuple[Any, ...]:
    """Return what a load in one transaction leaves."""
    store = SqliteStore.create(path / "archive.sqlite", {"language": '"english"'})
    with pytest.MonkeyPatch.context() as patched, contextlib.closing(store):
        patched.setattr(staging, "WRITTEN_EACH", 1_000)
        report = store.load(records, DUMP, no_reject)
        return held(store)[:3], report, store.counts(), tables(store)


def test_short_transactions_leave_what_one_leaves(archive: SqliteStore, tmp_path: Path) -> None:
    begun: list[str] = []
    archive.connection.set_trace_callback(lambda text: begun.append(text) if text == "BEGIN IMMEDIATE" else None)
    report = archive.load(ALL, DUMP, no_reject)
    assert len(begun) > 8
    assert (held(archive)[:3], report, archive.counts(), tables(archive)) == filled_anew(tmp_path, ALL)


def stopped(archive: SqliteStore, records: list[Record], source: Source = DUMP) -> None:
    """Load, and stop after these records as Ctrl-C does, which leaves what a kill leaves."""

    def broken() -> Iterator[Record]:
        yield from records
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.load(broken(), source, no_reject)
    assert held(archive)[:3] == ([], {}, [])


WITHOUT_LINKS = [one for one in ALL if not isinstance(one, Link)]


@pytest.mark.parametrize("place", range(len(ALL) + 1))
def test_a_load_goes_on_where_one_was_stopped(archive: SqliteStore, tmp_path: Path, place: int) -> None:
    stopped(archive, ALL[:place])
    report = archive.load(ALL, DUMP, no_reject)
    written = ALL[: max(0, place - 1) // 2 * 2]  # in steps of two, at the record after them
    resumed = sum(not isinstance(one, Link) for one in written)
    has_questions = any(isinstance(one, Question) for one in written)  # else it begins again
    assert report.resumed == (resumed if has_questions else 0)
    report.resumed = 0
    assert (held(archive)[:3], report, archive.counts(), tables(archive)) == filled_anew(tmp_path, ALL)
    assert not list(stored_faults(ForumLayout(archive.path.parent), nothing, nothing, nothing))
    assert sorted(change.num for change in archive.changes(0, 100)) == archive.numbers()


def nothing(_: object) -> None:
    """Take no notice."""


OTHERS: dict[str, list[Record]] = {
    "other from the first": [Question("q0", "other", "body"), *ALL],
    "other in the middle": [*ALL[:3], Question("new", "title", "body"), *ALL[3:]],
    "an answer edited": [Answer("a0", "q0", "other"), *ALL[1:]],
    "shorter": [*QUESTIONS[:2], *ANSWERS[:1]],
    "longer": [*ALL, Question("new", "title", "body"), Answer("newer", "q0", "answer")],
    "other order": [*QUESTIONS, *LINKS, *ANSWERS],
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_load_of_other_records_goes_on_where_they_are_the_same(
    archive: SqliteStore, tmp_path: Path, name: str
) -> None:
    records = list({(type(one), getattr(one, "id", one)): one for one in OTHERS[name]}.values())
    stopped(archive, ALL)
    report = archive.load(records, DUMP, no_reject)
    resumed, report.resumed = report.resumed, 0
    assert (held(archive)[:3], report, archive.counts(), tables(archive)) == filled_anew(tmp_path, records)
    assert sorted(change.num for change in archive.changes(0, 100)) == archive.numbers()
    assert resumed < len(WITHOUT_LINKS)


@pytest.mark.parametrize("name", OTHERS)
def test_a_load_that_is_stopped_while_it_goes_on_with_another_leaves_nothing_half_deleted(
    tmp_path: Path, name: str
) -> None:
    records = list({(type(one), getattr(one, "id", one)): one for one in OTHERS[name]}.values())
    expected = filled_anew(tmp_path, ALL)
    for turn in count(1):
        made = SqliteStore.create(tmp_path / str(turn) / "archive.sqlite", {"language": '"english"'})
        with contextlib.closing(made) as archive, pytest.MonkeyPatch.context() as patched:
            stopped(archive, ALL)
            began = count(1)
            write = archive.write

            @contextlib.contextmanager
            def stopping(
                write: Callable[[], contextlib.AbstractContextManager[Any]] = write,
                began: Iterator[int] = began,
                turn: int = turn,
            ) -> Iterator[Any]:
                if next(began) == turn:
                    raise KeyboardInterrupt
                with write() as connection:
                    yield connection

            patched.setattr(archive, "write", stopping)
            try:
                archive.load(records, DUMP, no_reject)
            except KeyboardInterrupt:
                report = archive.load(ALL, DUMP, no_reject)
            else:
                break
            if archive.count_questions() and report.questions.added:
                report.resumed = 0
                assert (held(archive)[:3], report, archive.counts(), tables(archive)) == expected, turn
            assert not list(stored_faults(ForumLayout(archive.path.parent), nothing, nothing, nothing))
            assert sorted(change.num for change in archive.changes(0, 100)) == archive.numbers()
    assert turn > 5


def test_what_a_stopped_load_has_left_is_dropped_by_another_source_or_when_something_was_stored(
    archive: SqliteStore,
) -> None:
    fresh = tables(archive)
    stopped(archive, ALL)
    assert archive.load(QUESTIONS[:1], OTHER, no_reject).resumed == 0
    assert tables(archive) == fresh
    assert archive.sources() == ("other",)
    archive.delete_source("other")
    stopped(archive, ALL)
    archive.put_questions([QUESTIONS[6], Question("by hand", "kept")])
    assert archive.load(ALL, DUMP, no_reject).resumed == 0
    assert sorted(one.id for one in held(archive)[0]) == sorted([*(one.id for one in QUESTIONS), "by hand"])
    assert tables(archive) == fresh


def test_the_source_of_a_load_is_not_seen_before_its_end(archive: SqliteStore) -> None:
    seen: list[object] = []
    archive.load(with_a_step(len(ALL) - 1, lambda: seen.append(archive.sources())), DUMP, no_reject)
    assert (seen, archive.sources()) == ([()], ("dump",))


def test_what_a_stopped_load_has_left_goes_with_its_source(archive: SqliteStore) -> None:
    fresh = tables(archive)
    stopped(archive, ALL)
    assert archive.sources() == ()
    with pytest.raises(UnknownIdError):
        archive.delete_source("dump")
    assert tables(archive) == fresh
    assert archive.load(ALL, DUMP, no_reject).resumed == 0


def test_a_source_is_not_deleted_while_it_is_loaded(archive: SqliteStore) -> None:
    def delete() -> None:
        with pytest.raises(BusyForumError):
            archive.delete_source("dump")

    archive.load(with_a_step(len(ALL) - 1, delete), DUMP, no_reject)
    assert archive.count_questions() == len(QUESTIONS)


def test_a_new_forum_stays_whose_load_was_stopped(archive: SqliteStore) -> None:
    with archive.held_if_empty() as is_empty:
        assert is_empty
    stopped(archive, ALL)
    with archive.held_if_empty() as is_empty:
        assert not is_empty


def test_check_tells_what_a_stopped_load_has_left(archive: SqliteStore) -> None:
    stopped(archive, ALL[:9])
    findings = [one for one in Forum.check(archive.path.parent).findings if one.part == "archive"]
    assert [(one.what.split(" of ")[0], one.is_damage) for one in findings] == [("keeps 5 records", False)]
    assert list(Forum.check(archive.path.parent).damaged("archive")) == []


def test_an_archive_that_was_emptied_is_filled_again_and_gives_no_number_twice(archive: SqliteStore) -> None:
    fresh = tables(archive)
    given: set[int] = set()
    for _ in range(3):
        archive.load(ALL, DUMP, no_reject)
        nums = set(archive.numbers())
        assert len(nums) == len(QUESTIONS)
        assert not nums & given
        given |= nums
        assert tables(archive) == fresh
        archive.put_questions([], [one.id for one in QUESTIONS])
        archive.delete_source("dump")


def test_nobody_sees_anything_of_a_load_before_its_end(archive: SqliteStore) -> None:
    seen: list[object] = []

    def look() -> None:
        seen.append((*held(archive), archive.count_questions(), archive.numbers(), archive.changes(0, 100)))

    archive.load(with_a_step(len(ALL) - 1, look), DUMP, no_reject)
    assert seen == [([], {}, [], 0, 0, [], [])]
    assert archive.count_questions() == len(QUESTIONS)


def test_who_reads_meanwhile_goes_on_reading_what_was_there(archive: SqliteStore) -> None:
    with contextlib.closing(sqlite3.connect(archive.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM questions").fetchone() == (0,)
        archive.load(ALL, DUMP, no_reject)
        assert reader.execute("SELECT count(*) FROM questions").fetchone() == (0,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM questions").fetchone() == (len(QUESTIONS),)


def test_who_reads_for_long_keeps_nobody_waiting_at_the_end_of_a_load(
    archive: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    real = SqliteStore.rows

    def noted(store: SqliteStore, statement: str, *values: Any) -> list[Any]:
        if "TRUNCATE" in statement:
            waited.append(real(store, "PRAGMA busy_timeout")[0][0])
        return real(store, statement, *values)

    monkeypatch.setattr(SqliteStore, "rows", noted)
    archive.load(ALL, DUMP, no_reject)
    assert waited == [200]
    assert real(archive, "PRAGMA busy_timeout")[0][0] == 30_000
    assert not archive.path.with_name("archive.sqlite-wal").stat().st_size


def test_a_log_that_could_not_be_emptied_is_shortened_by_later_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [one.replace("67108864", "50000") for one in schema._SETTINGS]
    monkeypatch.setattr(schema, "_SETTINGS", settings)
    monkeypatch.setattr(staging, "WRITTEN_EACH", 200)
    store = SqliteStore.create(tmp_path / "archive.sqlite", {})
    log = tmp_path / "archive.sqlite-wal"
    with contextlib.closing(store), contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM questions").fetchone()
        store.load([Question(f"q{number}", "t", "long " * 2_000) for number in range(600)], DUMP, no_reject)
        assert log.stat().st_size > 5_000_000
        reader.execute("COMMIT")
        store.put_questions([Question("one", "t")])
        store.put_questions([Question("two", "t")])
        assert log.stat().st_size <= 50_000


def test_a_search_finds_nothing_and_then_everything(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text("".join(f'{{"id": "q{number}", "title": "printer {number}"}}\n' for number in range(9)), "utf-8")
    found: list[tuple[int, int]] = []
    with Forum.create(tmp_path / "f") as forum, Forum.open(tmp_path / "f") as other:

        class Looking(SilentProgress):
            def advance(self, count: int) -> None:
                found.append(elsewhere(lambda: (len(other.similar("printer", k=20)), other.size())))

        forum.load(dump, options=ImportOptions(format="jsonl", source="dump"), progress=Looking())
        assert len(other.similar("printer", k=20)) == 9
    assert found[0] == (0, 0)
    assert {size for _, size in found} == {0, 9}


def test_what_others_write_meanwhile_stays_and_is_logged_before(archive: SqliteStore) -> None:
    archive.put_questions([Question("before", "t")])
    archive.put_questions([], ["before"])

    def write() -> None:
        archive.put_questions([Question("hand", "t"), Question("gone", "t")])
        archive.put_answers([Answer("theirs", "hand", "b")])
        archive.put_links([Link("hand", "gone")])
        archive.add_feedback(Feedback("gone", "hand", "duplicate"))
        archive.put_questions([Question("hand", "edited")], ["gone"])
        seen.append((archive.nums_by_id(["hand"])["hand"], archive.last_change()))

    seen: list[tuple[int, int]] = []
    report = archive.load(with_a_step(6, write), DUMP, no_reject)
    assert {question.id for _, question in archive.all_questions()} == {"hand", *(one.id for one in QUESTIONS)}
    assert archive.question("hand").title == "edited"
    assert archive.answers_of(["hand"])["hand"] == [Answer("theirs", "hand", "b")]
    assert archive.nums_by_id(["hand"])["hand"] == seen[0][0]
    assert report.questions.added == len(QUESTIONS)
    changes = archive.changes(seen[0][1], 100)  # whoever has seen theirs sees all of the load
    assert [change.operation for change in changes] == ["add"] * len(QUESTIONS)
    assert {change.num for change in changes} == set(archive.nums_by_id([one.id for one in QUESTIONS]).values())
    assert len(archive.changes(0, 100)) == 6 + len(QUESTIONS)


def test_what_others_store_of_the_archive_itself_stays_theirs(archive: SqliteStore) -> None:
    def write() -> None:
        archive.put_questions([QUESTIONS[0], QUESTIONS[6]])
        archive.put_answers([ANSWERS[0]])

    report = archive.load(with_a_step(7, write), DUMP, no_reject)
    assert sorted(held(archive)[0], key=lambda one: one.id) == QUESTIONS
    assert held(archive)[1] == {one.question_id: [one] for one in ANSWERS}
    assert (report.questions.added, report.questions.unchanged) == (5, 2)
    assert (report.answers.added, report.answers.unchanged) == (4, 1)
    assert {one.name: one.questions for one in archive.source_counts()} == {"dump": 5, "manual": 2}
    there = set(archive.numbers())
    told = {change.num: change.operation for change in archive.changes(0, 100)}
    assert {num for num, operation in told.items() if operation == "add"} == there


def test_a_link_that_a_person_made_meanwhile_stays_theirs(archive: SqliteStore) -> None:
    def write() -> None:
        archive.put_questions([QUESTIONS[0], QUESTIONS[1]])
        archive.put_links([LINKS[0]])

    report = archive.load(with_a_step(8, write), DUMP, no_reject)
    assert (report.links.added, report.links.unchanged) == (2, 1)
    assert {one.name: one.links for one in archive.source_counts()} == {"dump": 2, "manual": 1}


def test_other_content_under_an_id_refuses_the_load_and_leaves_nothing(archive: SqliteStore) -> None:
    fresh = tables(archive)
    with pytest.raises(InputError, match=r"1 ids of dump, such as 'q0', .* came from manual"):
        archive.load(with_a_step(9, lambda: archive.put_questions([Question("q0", "mine")])), DUMP, no_reject)
    assert held(archive)[:3] == ([Question("q0", "mine")], {}, [])
    assert tables(archive) == fresh
    assert archive.sources() == ("manual",)


def test_an_older_state_of_the_same_source_gives_way(archive: SqliteStore) -> None:
    def follow() -> None:
        archive.replace_threads([Thread(Question("q0", "older")), Thread(Question("withdrawn", "t"))], [], DUMP)

    report = archive.load(with_a_step(9, follow), DUMP, no_reject)
    assert archive.question("q0").title == "title 0"
    assert (report.questions.added, report.questions.edited, report.questions.deleted) == (6, 1, 1)
    assert archive.count_questions() == len(QUESTIONS)


def test_answers_without_a_question_are_left_out_by_name(archive: SqliteStore) -> None:
    rejects: list[Reject] = []
    report = archive.load([Answer("lost", "nowhere", "b"), *ALL, Answer("stray", "nowhere", "b")], DUMP, rejects.append)
    assert [reject.record_id for reject in rejects] == ["lost", "stray"]
    assert (report.answers.added, report.answers.rejected, archive.counts().answers) == (5, 2, 5)
    assert archive.counts().answers_without_question == 0


@pytest.mark.parametrize("error", [InputError("line 9 is damaged"), MemoryError()])
def test_a_load_that_ends_early_leaves_nothing(archive: SqliteStore, error: BaseException) -> None:
    fresh = tables(archive)

    def broken() -> Iterator[Record]:
        yield from ALL[:-1]
        raise error

    with pytest.raises(type(error)):
        archive.load(broken(), DUMP, no_reject)
    assert held(archive) == ([], {}, [], 0)
    assert tables(archive) == fresh
    assert archive.sources() == ()


def test_a_disk_that_is_full_is_named_and_the_next_load_clears_what_is_left(archive: SqliteStore) -> None:
    long: list[Record] = [Question(f"q{number}", "title", "body " * 2_000) for number in range(40)]
    archive.connection.execute("PRAGMA max_page_count = 60")
    with pytest.raises(ForumError, match="cannot be written: database or disk is full") as caught:
        archive.load(long, DUMP, no_reject)
    assert "free space" in caught.value.hint
    assert held(archive) == ([], {}, [], 0)
    archive.connection.execute("PRAGMA max_page_count = 1000000")
    archive.load(long, DUMP, no_reject)
    assert archive.count_questions() == 40


def test_a_log_that_others_have_filled_meanwhile_keeps_its_order(
    archive: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "LEFT_OUT", 1)
    seen: list[int] = []

    def write() -> None:
        archive.put_questions([Question(f"hand{number}", "t") for number in range(5)])
        seen.append(archive.last_change())

    archive.load(with_a_step(9, write), DUMP, no_reject)
    assert [change.operation for change in archive.changes(seen[0], 100)] == ["add"] * len(QUESTIONS)
    assert archive.count_changes(0) == 5 + len(QUESTIONS)


def test_long_texts_are_written_before_there_are_many(archive: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "WRITTEN_EACH", 1_000)
    monkeypatch.setattr(staging, "WRITTEN_CHARACTERS", 100)
    begun: list[str] = []
    archive.connection.set_trace_callback(lambda text: begun.append(text) if text == "BEGIN IMMEDIATE" else None)
    archive.load([Question(f"q{number}", "t", "x" * 50) for number in range(10)], DUMP, no_reject)
    assert len(begun) >= 5
    assert archive.count_questions() == 10


def test_an_archive_with_questions_is_changed_in_one_transaction(archive: SqliteStore) -> None:
    archive.put_questions([Question("hand", "t")])
    begun: list[str] = []
    archive.connection.set_trace_callback(lambda text: begun.append(text) if text == "BEGIN IMMEDIATE" else None)
    archive.load(ALL, DUMP, no_reject)
    assert len(begun) == 1


def test_others_write_between_the_transactions_of_a_load(archive: SqliteStore) -> None:
    """A thread that writes all the time is never kept out to the end, and loses nothing."""
    done, is_over = [0], threading.Event()

    def write() -> None:
        while not is_over.is_set():
            archive.put_questions([Question(f"hand{done[0]}", "t")])
            done[0] += 1

    def records() -> Iterator[Record]:
        for one in ALL:
            before = done[0]
            while done[0] == before:  # the thread gets its turn between any two records
                pass
            yield one

    writer = threading.Thread(target=write)
    writer.start()
    try:
        archive.load(records(), DUMP, no_reject)
    finally:
        is_over.set()
        writer.join()
    assert archive.count_questions() == len(QUESTIONS) + done[0]
    assert {change.num for change in archive.changes(0, 100_000)} == set(archive.numbers())


@pytest.mark.parametrize("count", range(4))
def test_an_archive_may_end_with_any_number_of_answers(archive: SqliteStore, tmp_path: Path, count: int) -> None:
    """Where the last step had several, what asked whether there are any kept all tables locked."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(staging, "WRITTEN_EACH", 4)
        records: list[Record] = [*QUESTIONS[:4], *ANSWERS[:count]]
        report = archive.load(records, DUMP, no_reject)
    assert (report.questions.added, report.answers.added) == (4, count)
    assert held(archive)[:3] == filled_anew(tmp_path, records)[0]
