"""What is special to a store in an SQLite file: values that read back, the file, its connections, rights and errors."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike import Answer, Forum, Link, Question
from askalike.errors import (
    DamagedForumError,
    DiskFullError,
    ForumError,
    ForumNotFoundError,
    ForumVersionError,
    InputError,
    UnknownIdError,
)
from askalike.files import replace_whole
from askalike.progress import SilentProgress
from askalike.store import ForumLayout, stored_faults
from askalike.store.sqlite import SCHEMA, SqliteStore
from askalike.store.sqlite_file import SqliteFile
from askalike.types import Feedback, Record, Reject, Source

pytestmark = pytest.mark.usefixtures("words_alone")

DUMP = Source("dump", "jsonl")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.create(tmp_path / "forum" / "archive.sqlite", {"language": '"english"'})
    yield store
    store.close()


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


def elsewhere(call: Callable[[], Any]) -> None:
    """Do this in another thread, through a connection of its own, and pass on what it raises."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(call).result()


# -- values: what is acknowledged reads back equal, everything else is refused by name -------------------------------


class _Refusing(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise OverflowError("date value out of range")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question(" a", "t"), "id is ' a'"),
        (Question("a", "t", tags=("\udfff",)), "tag has a lone surrogate"),
        (Question("a", "t", "nul \x00"), "body has a NUL"),
        (Question("a", "t", markup="bbcode"), "markup is 'bbcode'"),  # type: ignore[arg-type]
        (Question("a" * 513, "t"), "513 characters"),
        (Question("a", "t" * (16 * 1024 * 1024 + 1)), "characters"),
        (Question("a", "t", tags="wifi"), "tags is str"),  # type: ignore[arg-type]
        (Question("a", "t", tags=("wifi", 7)), "tag is int"),  # type: ignore[arg-type]
        (Question("a", "t", created="2020-01-01"), "created is str"),  # type: ignore[arg-type]
        (Question("a", "t", created=datetime(2020, 1, 1, tzinfo=_Refusing())), "created is"),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused_by_name(archive: SqliteStore, question: Question, words: str) -> None:
    with pytest.raises(InputError, match=words):
        archive.put_questions([question])
    assert archive.counts().questions == 0


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


zones = st.sampled_from([UTC, *(timezone(timedelta(hours=hours)) for hours in (-23, -14, 14, 23))])
edges = st.sampled_from([datetime.min, datetime.max, datetime(9999, 12, 31), datetime(1, 1, 2), datetime(1970, 1, 1)])
moments = st.none() | st.datetimes() | st.builds(lambda moment, zone: moment.replace(tzinfo=zone), edges, zones)
texts = st.text(st.characters(), max_size=20)
scores = st.none() | st.integers(-(2**64), 2**64) | st.sampled_from([2**63 - 1, -(2**63), 2**63])
markups = st.sampled_from(["html", "markdown", "plain", "bbcode", ""])
questions = st.builds(
    Question,
    texts,
    texts,
    texts,
    markup=markups,
    tags=st.lists(texts, max_size=3).map(tuple),
    created=moments,
    closed=moments,
    score=scores,
    url=texts,
    author=texts,
)
answers = st.builds(
    Answer, texts, texts, texts, markup=markups, created=moments, score=scores, author=texts, is_accepted=st.booleans()
)


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    store = SqliteStore.create(tmp_path_factory.mktemp("property") / "archive.sqlite", {})
    store.connection.execute("PRAGMA synchronous = OFF")
    yield store
    store.close()


@given(questions)
def test_a_question_is_refused_or_reads_back_equal(shared: SqliteStore, question: Question) -> None:
    try:
        shared.put_questions([question])
    except InputError:
        return
    stored = shared.question(question.id)
    assert stored.created == _in_utc(question.created)
    assert stored.closed == _in_utc(question.closed)
    fields = ("id", "title", "body", "markup", "tags", "score", "url", "author")
    assert [getattr(stored, name) for name in fields] == [getattr(question, name) for name in fields]
    load_back: list[Reject] = []
    report = shared.load([question], Source("dump", ""), load_back.append, is_mass_delete_allowed=True)
    assert (report.questions.unchanged, load_back) == (1, [])


@given(answers, texts, st.sampled_from(["duplicate", "different", "withdrawn", "perhaps"]))
def test_an_answer_and_a_judgement_are_refused_or_read_back_equal(
    shared: SqliteStore, answer: Answer, judge: str, verdict: str
) -> None:
    try:
        shared.put_questions([Question(answer.question_id, "t"), Question("other one", "t")])
        shared.put_answers([answer])
    except InputError:
        return
    (stored,) = [
        other for other in shared.answers_of([answer.question_id])[answer.question_id] if other.id == answer.id
    ]
    assert stored.created == _in_utc(answer.created)
    fields = ("id", "question_id", "body", "markup", "score", "author", "is_accepted")
    assert [getattr(stored, name) for name in fields] == [getattr(answer, name) for name in fields]
    try:
        given_one = shared.add_judgement(Feedback(answer.question_id, "other one", verdict, judge))  # type: ignore[arg-type]
    except InputError:
        return
    assert list(shared.all_judgements())[-1] == given_one
    shared.put_links([Link(answer.question_id, "other one")])
    assert Link(answer.question_id, "other one") in shared.links()


# -- the file --------------------------------------------------------------------------------------------------------


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
    with contextlib.closing(SqliteStore.create(path, {"language": "english"})) as store:
        assert store.settings() == {"language": "german"}


@pytest.mark.parametrize("replaces", [False, True])
def test_a_write_to_a_file_that_has_gone_is_no_success(archive: SqliteStore, replaces: bool) -> None:
    archive.add_questions([Question("a", "t")])
    archive.path.unlink()
    if replaces:
        SqliteStore.create(archive.path.with_name("other"), {}).close()
        archive.path.with_name("other").rename(archive.path)
    with pytest.raises(ForumNotFoundError, match="was moved, deleted or replaced while it was open"):
        archive.add_questions([Question("b", "t")])


@pytest.mark.parametrize("kept", [0.02, 0.1, 0.5])
def test_damage_met_by_opening_or_by_a_write_is_named(archive: SqliteStore, kept: float) -> None:
    archive.load([Question(f"q{number}", "title", "body " * 200) for number in range(300)], DUMP, no_reject)
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


def test_damage_that_sqlite_quotes_is_told_as_damage(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "t")])
    archive.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    archive.close()
    content = archive.path.read_bytes()
    assert b"CREATE TABLE answers (" in content
    archive.path.write_bytes(content.replace(b"CREATE TABLE answers (", b"CREATE TABL\xc8 answers ("))
    with pytest.raises(DamagedForumError, match=r"archive\.sqlite is damaged"):
        SqliteStore(archive.path).answers("a")


def test_a_row_that_is_not_as_it_was_written_is_damage(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "t")])
    archive.connection.execute("UPDATE questions SET tags = '['")
    with pytest.raises(DamagedForumError, match="tags of question 'a'"):
        archive.question("a")


def test_a_database_of_another_format_is_refused(archive: SqliteStore) -> None:
    connection = sqlite3.connect(archive.path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ForumVersionError, match="format 99"):
        SqliteStore(archive.path)


def test_a_full_disk_changes_nothing_and_says_so(archive: SqliteStore) -> None:
    archive.connection.execute("PRAGMA max_page_count = 30")
    questions = [Question(f"q{number}", "title", "body " * 200) for number in range(300)]
    with pytest.raises(ForumError, match="cannot be written: its disk is full") as caught:
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
        archive.load([Question("a", "t")], DUMP, no_reject)
    assert archive.question("a").title == "t"


def test_a_load_that_fails_leaves_no_file_and_one_that_was_killed_is_cleared(archive: SqliteStore) -> None:
    folder = archive.path.parent
    left = folder / "loading.sqlite"

    def broken() -> Iterator[Record]:
        yield Question("a", "t")
        raise InputError("line 2 is damaged")

    with pytest.raises(InputError, match="line 2"):
        archive.load(broken(), DUMP, no_reject)
    assert not left.exists()
    left.write_bytes(b"left by a process that was killed")
    archive.load([Question("a", "t")], DUMP, no_reject)
    assert not left.exists()
    assert archive.question("a").title == "t"


FOREIGN = {
    "trigger": "CREATE TRIGGER odd AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
    "view": "CREATE VIEW odd AS SELECT load_extension('odd')",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_triggers_and_views_of_others_are_named_and_never_run(archive: SqliteStore, kind: str) -> None:
    archive.add_questions([Question("a", "t")])
    archive.connection.execute(FOREIGN[kind].format(table="changes"))
    archive.close()
    with pytest.raises(DamagedForumError, match=f"holds the {kind} 'odd', which askalike does not make"):
        SqliteStore(archive.path)
    faults = list(stored_faults(ForumLayout(archive.path.parent), SilentProgress()))
    assert faults == [f"it holds the {kind} 'odd', which askalike does not make"]


def test_the_schema_of_a_file_is_not_trusted(archive: SqliteStore) -> None:
    assert archive.rows("PRAGMA trusted_schema")[0][0] == 0


def test_a_trigger_beside_the_likely_pairs_is_damage_that_is_mended(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question("a", "wifi drops"), Question("b", "wifi drops")])
        while forum.pairs.advance(10):
            pass
        before = forum.pairs.store.count()
    with contextlib.closing(sqlite3.connect(ForumLayout(tmp_path / "f").pairs)) as connection:
        connection.execute(FOREIGN["trigger"].format(table="pairs"))
    with Forum.open(tmp_path / "f") as forum:
        with pytest.raises(DamagedForumError, match="the trigger 'odd'"):
            forum.pairs.store.count()
        while forum.pairs.advance(10):
            pass
        assert forum.pairs.store.count() == before == 1


def test_a_backup_is_the_store_of_a_moment_while_others_write_and_is_never_written_over(
    archive: SqliteStore, tmp_path: Path
) -> None:
    archive.load([Question(f"q{number}", "t", "body " * 50) for number in range(500)], DUMP, no_reject)
    archive.add_judgement(Feedback("q1", "q2", "different"))
    with archive.write() as connection:  # one that is under way is not in it
        connection.execute("UPDATE questions SET title = 'changed'")
        elsewhere(lambda: archive.backup(tmp_path / "backup.sqlite"))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["backup.sqlite"]
    with pytest.raises(ForumError, match=r"backup\.sqlite exists"):
        archive.backup(tmp_path / "backup.sqlite")
    (tmp_path / "restored").mkdir()
    (tmp_path / "backup.sqlite").rename(tmp_path / "restored" / "archive.sqlite")
    assert list(stored_faults(ForumLayout(tmp_path / "restored"), SilentProgress())) == []
    with Forum.open(tmp_path / "restored") as forum:
        assert {question.title for question in forum.questions()} == {"t"}
        assert (len(forum), len(list(forum.store.all_judgements())), forum.info().behind) == (500, 1, 0)


def test_a_backup_that_finds_no_room_leaves_nothing(archive: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(ForumError, match="cannot be"):
        archive.backup(tmp_path / "nowhere" / "backup.sqlite")
    assert not (tmp_path / "nowhere").exists()


# -- connections -----------------------------------------------------------------------------------------------------


def handles() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list a process's file handles")
def test_threads_that_have_ended_leave_no_file_handles(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "t")])
    elsewhere(lambda: archive.question("a"))
    before = handles()
    for _ in range(40):
        elsewhere(lambda: archive.question("a"))
    assert handles() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list a process's file handles")
def test_an_archive_that_nobody_closed_leaves_no_file_handles(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    SqliteStore.create(path, {}).close()
    gc.collect()  # what other tests have left open
    before = handles()
    forgotten = SqliteStore(path)
    elsewhere(forgotten.last_change)
    del forgotten
    gc.collect()
    assert handles() == before


def test_closing_closes_the_connections_of_threads_that_live(archive: SqliteStore) -> None:
    there, go = threading.Event(), threading.Event()
    opened: list[sqlite3.Connection] = []

    def wait() -> None:
        opened.append(archive.connection)
        there.set()
        go.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    there.wait()
    archive.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
    go.set()
    thread.join()


# -- rights and errors -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="rights are others there")
def test_files_with_the_forums_content_are_its_owners_alone_from_the_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    previous = os.umask(0)
    monkeypatch.setattr(os, "chmod", lambda *_: pytest.fail("narrowed after it was made"))
    try:
        archive = SqliteStore.create(tmp_path / "f" / "archive.sqlite", {})

        def records() -> Iterator[Record]:
            yield Question("a", "t")
            folder = archive.path.parent
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.glob("*.sqlite*")}
            assert set(modes) >= {"archive.sqlite", "archive.sqlite-wal", "archive.sqlite-shm"}
            assert set(modes.values()) == {0o600}

        archive.load(records(), DUMP, no_reject)
        archive.close()
        with Forum.create(tmp_path / "g") as forum:
            dump = tmp_path / "dump.jsonl"
            dump.write_text('{"id": "a", "title": "t"}\n' * 2, encoding="utf-8")
            forum.load(dump)
        assert stat.S_IMODE(ForumLayout(tmp_path / "g").rejects.stat().st_mode) == 0o600
        replace_whole(tmp_path / "secret", b"x", is_narrow=True)
        assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    finally:
        os.umask(previous)


@pytest.mark.skipif(os.name == "nt", reason="rights are others there")
def test_an_archive_that_was_shared_with_a_group_stays_so(archive: SqliteStore) -> None:
    archive.close()
    archive.path.chmod(0o660)
    opened = SqliteStore(archive.path)
    opened.add_questions([Question("a", "t")])
    assert stat.S_IMODE(archive.path.with_name("archive.sqlite-wal").stat().st_mode) == 0o660
    opened.close()
    SqliteStore.create(archive.path, {}).close()
    assert stat.S_IMODE(archive.path.stat().st_mode) == 0o660


def test_an_error_of_sqlite_while_reading_names_the_file_and_what_to_do(archive: SqliteStore) -> None:
    archive.connection.execute("DROP TABLE links")
    for call in (archive.links, lambda: archive.delete_links([Link("a", "b")]), lambda: archive.counts()):
        with pytest.raises(DamagedForumError, match=r"archive\.sqlite is damaged: no such table") as caught:
            call()
        assert "backup" in caught.value.hint


def test_a_full_disk_is_named_where_sqlite_speaks_of_input_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4_096))
    file = SqliteFile(tmp_path / "archive.sqlite", SCHEMA)
    with pytest.raises(DiskFullError, match="its disk is full"), file.errors():
        raise error


@pytest.mark.parametrize("name", ["archive.sqlite", "f"])
def test_a_store_that_may_not_be_written_is_read_and_refuses_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "f" / "archive.sqlite"
    with contextlib.closing(SqliteStore.create(path, {})) as writer:
        writer.add_questions([Question("1", "Printer")])
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != name)
        with contextlib.closing(SqliteStore(path)) as reader:
            assert reader.question("1").title == "Printer"
            with pytest.raises(ForumError, match=r"archive\.sqlite cannot be written") as caught:
                reader.add_questions([Question("2", "Toaster")])
            assert "how its disk is mounted" in caught.value.hint
            writer.add_questions([Question("3", "Router")])
            assert reader.question("3").title == "Router"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder that is writable, and may only be read under the name "mounted" beside it."""
    folder, mounted = tmp_path / "disk", tmp_path / "mounted"
    folder.mkdir()
    mounted.mkdir()
    for words in (["--bind", str(folder), str(mounted)], ["-o", "remount,ro,bind", str(mounted)]):
        if os.name == "nt" or subprocess.run(["mount", *words], capture_output=True, check=False).returncode:
            pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(mounted)], check=True)


def test_a_store_on_a_disk_that_may_only_be_read_follows_whoever_writes_it_elsewhere(disk: Path) -> None:
    path = disk / "archive.sqlite"
    SqliteStore.create(path, {}).close()
    with contextlib.closing(SqliteStore(disk.with_name("mounted") / path.name)) as reader:
        assert reader.count_questions() == 0
        for number in range(3):  # with a write-ahead log at first, and without one once it is closed
            with contextlib.closing(SqliteStore(path)) as writer:
                writer.add_questions([Question(f"a{number}", "Printer")])
                assert reader.count_questions() == 2 * number + 1
                writer.add_questions([Question(f"b{number}", "Printer")])
                assert reader.count_questions() == 2 * number + 2
            assert reader.count_questions() == 2 * number + 2
        with pytest.raises(ForumError, match="cannot be written"):
            reader.add_questions([Question("c", "Toaster")])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_reject_file_that_finds_no_room_is_named(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text('{"id": "a", "title": "t"}\n' * 500, encoding="utf-8")
    with Forum.create(tmp_path / "f") as forum:
        rejects = ForumLayout(forum.path).rejects

        def is_full(path: str, flags: int, mode: int = 0o777) -> int:
            return real("/dev/full" if str(path) == str(rejects) else path, flags, mode)

        real = os.open
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "open", is_full)
            with pytest.raises(ForumError, match=rf"rejects\.jsonl cannot be written: {os.strerror(errno.ENOSPC)}"):
                forum.load(dump)
        assert len(forum) == 0
