"""A large load into an archive that holds questions fills new tables, which take the place of its own in one step."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum, Link, Question
from askalike.errors import BusyForumError, ForumError, ForumVersionError, InputError
from askalike.progress import Progress, SilentProgress
from askalike.store.sqlite import beside, replacement, schema
from askalike.store.sqlite.store import SqliteStore
from askalike.types import Answer, Feedback, Record, Reject, Source, Thread

DUMP = Source("dump", "jsonl")
OTHER = Source("other", "jsonl")
OLD = [Question(f"old{number}", "title", "body") for number in range(5)]
OLD_ANSWERS = [Answer(f"older{number}", f"old{number}", "answer") for number in range(3)]
OLD_LINKS = [Link("old1", "old0"), Link("old2", "old1", "related")]
NEW = [Question(f"new{number}", "title", "body") for number in range(5)]
NEW_ANSWERS = [Answer(f"newer{number}", f"new{number}", "answer") for number in range(3)]
ALL: list[Record] = [*NEW, *NEW_ANSWERS, Link("new1", "new0"), Link("new2", "old0", "related")]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "ROWS", 2)
    monkeypatch.setattr(beside, "PAUSE_S", 0.0)
    monkeypatch.setattr(replacement, "LEAST", 5)
    monkeypatch.setattr(replacement, "LEFT", 2)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.create(tmp_path / "forum" / "archive.sqlite", {"language": '"english"'})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replacement, "LEAST", 1_000)
        made.load([*OLD, *OLD_ANSWERS, *OLD_LINKS], OTHER, no_reject)
    yield made
    made.close()


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


def elsewhere(call: Callable[[], Any]) -> Any:
    """Do this in another thread, through a connection of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


@contextlib.contextmanager
def after_filling(step: Callable[[], object]) -> Iterator[None]:
    """Let others do something when the new tables are filled, before they take the place of the old ones."""
    with pytest.MonkeyPatch.context() as patched:
        real = replacement.Replacement.fill

        def fill(one: replacement.Replacement, progress: Progress) -> None:
            real(one, progress)
            elsewhere(step)

        patched.setattr(replacement.Replacement, "fill", fill)
        yield


def left(store: SqliteStore) -> list[str]:
    """Return what is in the file that is not the archive's own."""
    found = store.rows("SELECT name FROM sqlite_schema WHERE name GLOB 'loaded_*' OR name GLOB 'noted_*'")
    return sorted(row[0] for row in found)


def ids(store: SqliteStore) -> set[str]:
    """Return the ids of all questions."""
    return {question.id for _, question in store.all_questions()}


def begun(store: SqliteStore) -> list[str]:
    """Return where the transactions of a store are noted from now on."""
    found: list[str] = []
    store.connection.set_trace_callback(lambda text: found.append(text) if text == "BEGIN IMMEDIATE" else None)
    return found


def test_a_large_load_is_applied_in_many_transactions_and_a_small_one_in_one(archive: SqliteStore) -> None:
    noted = begun(archive)
    archive.load(NEW[:4], DUMP, no_reject)
    assert len(noted) == 1
    report = archive.load(ALL, DUMP, no_reject)
    assert len(noted) == 2  # eight differences, of which four are new questions, are less than half of what is there
    archive.load([Question(f"q{number}", "t") for number in range(9)], Source("third", "jsonl"), no_reject)
    assert len(noted) > 15
    assert (report.questions.added, report.questions.unchanged) == (1, 4)
    assert archive.count_questions() == 19
    assert left(archive) == []


def test_what_was_there_stays_with_its_number(archive: SqliteStore) -> None:
    before = archive.nums_by_id([one.id for one in OLD])
    newer = [Question(one.id, "edited") for one in OLD[:3]]
    report = archive.load([*newer, OLD[3], *NEW, *OLD_ANSWERS], OTHER, no_reject)
    assert (report.questions.added, report.questions.edited, report.questions.deleted) == (5, 3, 1)
    assert (report.answers.unchanged, report.links.deleted) == (3, 2)
    assert archive.nums_by_id([one.id for one in OLD]) == {key: before[key] for key in list(before)[:4]}
    assert archive.question("old0").title == "edited"


def test_nobody_sees_anything_before_its_end(archive: SqliteStore) -> None:
    def look() -> tuple[object, ...]:
        return ids(archive), archive.links(), archive.last_change(), archive.sources(), archive.counts()

    before, seen = look(), []
    with after_filling(lambda: seen.append(look())):
        archive.load(ALL, DUMP, no_reject)
    assert seen == [before]
    assert archive.sources() == ("other", "dump")


def test_who_reads_meanwhile_goes_on_reading_what_was_there(archive: SqliteStore) -> None:
    with contextlib.closing(sqlite3.connect(archive.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM questions").fetchone() == (5,)
        archive.load(ALL, DUMP, no_reject)
        assert reader.execute("SELECT count(*) FROM questions").fetchone() == (5,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM questions").fetchone() == (10,)


def test_an_answer_is_kept_whose_question_others_bring_meanwhile(archive: SqliteStore) -> None:
    records = [*ALL, Answer("theirs", "by hand", "b"), Answer("lost", "nowhere", "b")]
    rejects: list[Reject] = []
    with after_filling(lambda: archive.put_questions([Question("by hand", "t")])):
        report = archive.load(records, DUMP, rejects.append)
    assert [one.record_id for one in rejects] == ["lost"]
    assert (report.answers.added, report.answers.rejected) == (4, 1)
    assert list(archive.answers_of(["by hand"])) == ["by hand"]


def test_an_answer_is_rejected_whose_question_others_take_away_meanwhile(archive: SqliteStore) -> None:
    follower = Source("follower", "discourse")
    archive.replace_threads([Thread(Question("leaving", "t"))], [], follower)
    records = [*ALL, Answer("theirs", "leaving", "b")]
    rejects: list[Reject] = []
    with after_filling(lambda: archive.replace_threads([], ["leaving"], follower)):
        report = archive.load(records, DUMP, rejects.append)
    assert [one.record_id for one in rejects] == ["theirs"]
    assert (report.answers.added, report.answers.rejected) == (3, 1)
    assert archive.counts().answers_without_question == 0


def test_an_answer_of_another_source_waits_for_the_return_of_its_question(archive: SqliteStore) -> None:
    archive.put_answers([Answer("by hand", "old4", "b")])
    archive.load([*OLD[:4], *NEW, *OLD_ANSWERS], OTHER, no_reject)
    assert archive.counts().answers_without_question == 1
    archive.load([*OLD, *NEW[:1]], OTHER, no_reject, is_mass_delete_allowed=True)
    assert list(archive.answers_of(["old4"])) == ["old4"]


def test_a_link_that_is_undone_meanwhile_does_not_return(archive: SqliteStore) -> None:
    (made,) = archive.decide([Feedback("old3", "old4", "duplicate", "someone")], has_links=True).entries
    records: list[Record] = [*OLD, *OLD_ANSWERS, *OLD_LINKS, Link("old3", "old4"), *NEW, *archive.log(10)]
    archive.delete_links([Link("old3", "old4")])
    with after_filling(lambda: archive.undo([made.number], "someone")):
        archive.load(records, OTHER, no_reject)
    assert Link("old3", "old4") not in archive.links()
    assert len(archive.links()) == len(OLD_LINKS)


def test_a_claimed_link_stays_when_its_decision_is_undone(archive: SqliteStore) -> None:
    (made,) = archive.decide([Feedback("old3", "old4", "duplicate", "someone")], has_links=True).entries
    archive.load([*OLD, *OLD_ANSWERS, *OLD_LINKS, Link("old3", "old4"), *NEW], OTHER, no_reject)
    archive.undo([made.number], "someone")
    assert Link("old3", "old4") in archive.links()


def test_an_id_that_others_take_meanwhile_refuses_the_load_and_leaves_theirs(archive: SqliteStore) -> None:
    with (
        after_filling(lambda: archive.put_questions([Question("new0", "mine")])),
        pytest.raises(InputError, match=r"1 ids of dump, such as 'new0', .* came from manual"),
    ):
        archive.load(ALL, DUMP, no_reject)
    assert ids(archive) == {"new0", *(one.id for one in OLD)}
    assert archive.question("new0").title == "mine"
    assert (left(archive), archive.sources()) == ([], ("other", "manual"))


def test_what_others_have_written_of_the_load_itself_stays_theirs(archive: SqliteStore) -> None:
    with after_filling(lambda: archive.put_questions([NEW[0], Question("by hand", "t")])):
        report = archive.load(ALL, DUMP, no_reject)
    assert (report.questions.added, report.questions.unchanged) == (4, 1)
    assert {one.name: one.questions for one in archive.source_counts()} == {"other": 5, "dump": 4, "manual": 2}


def test_much_that_others_have_written_is_taken_over_before_the_last_transaction(archive: SqliteStore) -> None:
    taken: list[int] = []
    with pytest.MonkeyPatch.context() as patched:
        real = replacement.Replacement._take_notes
        follow = replacement.Replacement._follow

        def noted(one: replacement.Replacement, most: int, undone: Any) -> None:
            taken.append(archive.rows(f"SELECT count(*) FROM {beside.NOTES} WHERE kind <> 'source'")[0][0])
            real(one, most, undone)

        def followed(one: replacement.Replacement) -> None:
            archive.put_questions([Question(f"hand{number}", "t") for number in range(20)])
            follow(one)

        patched.setattr(replacement.Replacement, "_take_notes", noted)
        patched.setattr(replacement.Replacement, "_follow", followed)
        patched.setattr(replacement, "CAUGHT_UP", 6)
        archive.load(ALL, DUMP, no_reject)
    assert taken[0] == 20
    assert taken[-1] <= 2
    assert len(taken) > 3
    assert archive.count_questions() == 30
    assert len({change.num for change in archive.changes(0, 1_000)}) == 30


def test_others_write_between_the_transactions_of_a_load(archive: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that writes whenever the load pauses is never kept out, and loses nothing."""
    done: list[int] = []

    def write() -> None:
        elsewhere(lambda: archive.put_questions([Question(f"hand{len(done)}", "t")]))
        done.append(archive.count_questions())

    monkeypatch.setattr(beside.time, "sleep", lambda _: write())
    archive.load(ALL, DUMP, no_reject)
    assert len(done) > 15
    assert archive.count_questions() == len(OLD) + len(NEW) + len(done)
    assert {change.num for change in archive.changes(0, 10_000)} == set(archive.numbers())


def test_who_follows_the_log_misses_nothing(archive: SqliteStore) -> None:
    seen: list[int] = []

    def write() -> None:
        archive.put_questions([Question("by hand", "t")])
        seen.append(archive.last_change())

    with after_filling(write):
        archive.load([Question("old0", "edited"), *NEW], OTHER, no_reject, unread=lambda: 1)
    wanted = archive.nums_by_id(["old0", *(one.id for one in NEW)])
    assert {change.num for change in archive.changes(seen[0], 100)} == set(wanted.values())


@pytest.mark.parametrize("error", [MemoryError(), OSError("disk")])
def test_a_load_that_ends_early_leaves_nothing(archive: SqliteStore, error: BaseException) -> None:
    def broken() -> None:
        raise error

    before = (ids(archive), archive.last_change(), archive.sources())
    with after_filling(broken), pytest.raises(type(error)):
        archive.load(ALL, DUMP, no_reject)
    assert (ids(archive), archive.last_change(), archive.sources()) == before
    assert left(archive) == []


def stopped_after(steps: int, archive: SqliteStore, records: list[Record]) -> None:
    """Stop a load, as Ctrl-C does, after so many of its transactions."""
    left = [steps]

    def stop(_: float) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(beside.time, "sleep", stop)
        with pytest.raises(KeyboardInterrupt):
            archive.load(records, DUMP, no_reject)


def test_a_load_that_is_stopped_is_gone_on_with(archive: SqliteStore) -> None:
    before, run = (ids(archive), archive.last_change(), archive.sources()), list[str]()
    stopped_after(15, archive, ALL)
    assert (ids(archive), archive.last_change(), archive.sources()) == before
    assert left(archive)
    archive.connection.set_trace_callback(run.append)
    report = archive.load(ALL, DUMP, no_reject)
    assert not [one for one in run if one.startswith("INSERT INTO loaded_new_questions SELECT * FROM questions")]
    assert report.resumed > 3
    assert (report.questions.added, report.answers.added, report.links.added) == (5, 3, 2)
    assert left(archive) == []
    logged = [(change.kind, change.num) for change in archive.changes(before[1], 100) if change.kind != "link"]
    assert len(set(logged)) == len(logged) == 5


def test_what_differs_from_a_stopped_load_is_as_the_new_one_has_it(archive: SqliteStore) -> None:
    stopped_after(17, archive, ALL)
    archive.put_questions([Question("by hand", "t"), Question("old0", "edited")])
    records: list[Record] = [Question("new0", "another"), *NEW[2:], Question("newest", "t"), *NEW_ANSWERS[:2]]
    rejects: list[Reject] = []
    report = archive.load(records, DUMP, rejects.append)
    assert [one.record_id for one in rejects] == ["newer1"]  # its question is in the archive no longer
    assert (report.questions.added, report.answers.added, report.resumed > 0) == (5, 1, True)
    assert ids(archive) == {"by hand", "newest", "new0", "new2", "new3", "new4", *(one.id for one in OLD)}
    assert (archive.question("new0").title, archive.question("old0").title) == ("another", "edited")
    assert left(archive) == []


def test_what_a_stopped_load_has_left_goes_with_a_smaller_one_or_one_of_another_source(archive: SqliteStore) -> None:
    stopped_after(15, archive, ALL)
    assert archive.load(NEW[:2], DUMP, no_reject).resumed == 0
    assert (left(archive), archive.count_questions()) == ([], 7)
    stopped_after(15, archive, ALL)
    archive.load([Question("third", "t")], Source("third", "jsonl"), no_reject)
    assert (left(archive), archive.count_questions()) == ([], 8)


def test_a_disk_that_is_full_is_named_and_leaves_what_was_there(archive: SqliteStore) -> None:
    long: list[Record] = [Question(f"q{number}", "title", "body " * 2_000) for number in range(40)]
    archive.connection.execute("PRAGMA max_page_count = 60")
    with pytest.raises(ForumError, match="cannot be written: database or disk is full"):
        archive.load(long, DUMP, no_reject)
    assert ids(archive) == {one.id for one in OLD}
    archive.connection.execute("PRAGMA max_page_count = 1000000")
    archive.put_questions([Question("by hand", "t")])
    archive.load(long, DUMP, no_reject)
    assert archive.count_questions() == 46
    assert left(archive) == []


def test_a_source_is_not_deleted_while_the_tables_are_replaced(archive: SqliteStore) -> None:
    def delete() -> None:
        with pytest.raises(BusyForumError):
            archive.delete_source("other")

    with after_filling(delete):
        archive.load(ALL, DUMP, no_reject)
    assert archive.count_questions() == 10
    archive.delete_source("other")
    assert ids(archive) == {one.id for one in NEW}


def test_an_archive_that_another_version_has_changed_meanwhile_is_left_alone(archive: SqliteStore) -> None:
    def upgrade() -> None:
        with contextlib.closing(sqlite3.connect(archive.path)) as other:
            other.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")

    with after_filling(upgrade), pytest.raises(ForumVersionError, match="newer version"):
        archive.load(ALL, DUMP, no_reject)
    assert ids(archive) == {one.id for one in OLD}


def test_check_tells_what_a_killed_load_has_left_and_writes_go_on(
    archive: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("askalike.store.sqlite.staging.drop_all", lambda *_: None)  # as if it were killed
        with pytest.raises(MemoryError), after_filling(killed):
            archive.load(ALL, DUMP, no_reject)
    assert left(archive)
    assert archive.sources() == ("other",)
    found = [one for one in Forum.check(archive.path.parent).findings if one.part == "archive"]
    assert [(one.what.split(" of ")[0], one.is_damage) for one in found] == [("keeps 16 records", False)]
    archive.put_questions([Question("by hand", "t"), Question("old0", "edited")], ["old1"])
    archive.load([Question("small", "t")], Source("small", "jsonl"), no_reject)
    assert left(archive) == []
    assert archive.question("old0").title == "edited"
    assert sorted(archive.sources()) == ["manual", "other", "small"]


def killed() -> None:
    """Stop a load."""
    raise MemoryError


def test_a_source_may_be_deleted_when_a_killed_load_has_left_something(
    archive: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("askalike.store.sqlite.staging.drop_all", lambda *_: None)
        with pytest.raises(MemoryError), after_filling(killed):
            archive.load(ALL, DUMP, no_reject)
    assert archive.delete_source("other").questions == 5
    assert (left(archive), archive.sources()) == ([], ())


def test_a_writer_waits_for_one_part_at_most(archive: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that tries all the time has written something before each further part."""
    done, is_over, parts = [0], threading.Event(), list[int]()

    def write() -> None:
        while not is_over.is_set():
            archive.put_questions([Question(f"hand{done[0]}", "t")])
            done[0] += 1

    def wait(_: float) -> None:
        before = done[0]
        while done[0] == before and not is_over.wait(0.001):
            pass
        parts.append(done[0])

    monkeypatch.setattr(replacement, "SHARE", 0.0)  # however much the thread has written before
    monkeypatch.setattr(beside, "time", type("Time", (), {"sleep": staticmethod(wait)}))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        archive.load(ALL, DUMP, no_reject)
    finally:
        is_over.set()
        writer.join()
    assert len(parts) > 15
    assert parts == sorted(set(parts))
    assert archive.count_questions() == len(OLD) + len(NEW) + done[0]
    assert {change.num for change in archive.changes(0, 100_000)} == set(archive.numbers())


def test_what_is_written_after_reading_is_told_to_its_end(archive: SqliteStore) -> None:
    told: list[tuple[str, int]] = []
    done: list[int] = []

    class Told(SilentProgress):
        def start(self, phase: str, total: int, unit: str) -> None:
            told.append((phase, total))

        def advance(self, count: int) -> None:
            done.append(count)

    archive.load([*OLD[1:], *NEW], OTHER, no_reject, progress=Told())
    held = 5 + 3 + 2 + 10  # questions, answers, links, changes
    assert told == [("writing", 2 * held + 5 + 1 + 3)]
    assert sum(done) == told[0][1]
    assert max(done) <= 2


def test_an_answer_that_was_there_goes_with_a_question_that_others_take_away_meanwhile(archive: SqliteStore) -> None:
    follower = Source("follower", "discourse")
    archive.replace_threads([Thread(Question("leaving", "t"))], [], follower)
    known = Answer("theirs", "leaving", "b")
    archive.load([*OLD, *OLD_ANSWERS, *OLD_LINKS, known], OTHER, no_reject)
    rejects: list[Reject] = []
    with after_filling(lambda: archive.replace_threads([], ["leaving"], follower)):
        archive.load([*OLD, *OLD_ANSWERS, *OLD_LINKS, known, *NEW], OTHER, rejects.append)
    assert [one.record_id for one in rejects] == ["theirs"]
    assert archive.rows("SELECT count(*) FROM answers")[0][0] == 3


def test_a_link_that_others_make_or_take_away_meanwhile_is_looked_at_again(archive: SqliteStore) -> None:
    def write() -> None:
        archive.put_links([Link("old3", "old4")])
        archive.delete_links([Link("old1", "old0")])

    records: list[Record] = [*OLD, *OLD_ANSWERS, *OLD_LINKS, *NEW, Link("old3", "old4"), Link("new0", "old0")]
    with after_filling(write):
        report = archive.load(records, OTHER, no_reject)
    assert (report.links.added, report.links.unchanged) == (2, 2)
    assert {one.name: one.links for one in archive.source_counts()} == {"other": 3, "manual": 1}
