"""Writes: each one transaction, none waits for a load that is being read; files that only their owner may read."""

from __future__ import annotations

import errno
import gc
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum, Link, Question
from askalike.errors import BusyForumError, DamagedForumError, ForumError, InputError, UnknownIdError
from askalike.files import replace_whole
from askalike.forum import ImportOptions
from askalike.store import ForumLayout, sqlite
from askalike.store.sqlite import SqliteStore
from askalike.types import Record, Reject, Source

pytestmark = pytest.mark.usefixtures("words_alone")

DUMP = Source("dump", "jsonl")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.create(tmp_path / "forum" / "archive.sqlite", {"language": '"english"'})
    yield made
    made.close()


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


def elsewhere(call: Callable[[], Any]) -> None:
    """Do this in another thread, through a connection of its own, and pass on what it raises."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(call).result()


# -- one change, one transaction -------------------------------------------------------------------------------------


def test_storing_and_deleting_together_is_one_change(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(Question("old", "t"))
        with pytest.raises(UnknownIdError):
            forum.put_unindexed([Question("new", "t")], gone=["nowhere"])
        assert [question.id for question in forum.questions()] == ["old"]
        assert forum.put_unindexed([Question("new", "t")], gone=["old"]) == {"new": "add"}
        assert [question.id for question in forum.questions()] == ["new"]


def test_a_store_takes_the_lock_once(archive: SqliteStore) -> None:
    begun: list[str] = []
    archive.connection.set_trace_callback(lambda text: begun.append(text) if text.startswith("BEGIN") else None)
    archive.put_questions([Question("a", "t")])
    archive.put_questions([Question("b", "t")], ["a"])
    assert len(begun) == 2


def test_a_question_and_its_duplicate_mark_are_added_together_or_not_at_all(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(Question("original", "t"))
        with pytest.raises(UnknownIdError):
            forum.add(Question("new", "t"), links=[Link("new", "nowhere")])
        assert len(forum) == 1
        forum.add(Question("new", "t"), links=[Link("new", "original")])
        assert forum.links() == [Link("new", "original")]


# -- loads -----------------------------------------------------------------------------------------------------------


def test_others_write_while_an_archive_is_read(archive: SqliteStore) -> None:
    archive.load([Question("a", "t"), Question("gone", "t"), Question("deleted", "t")], DUMP, no_reject)

    def records() -> Iterator[Record]:
        yield Question("a", "changed")
        yield Question("deleted", "t")
        elsewhere(lambda: archive.put_questions([Question("by-hand", "t")], ["deleted"]))
        yield Question("new", "t")

    report = archive.load(records(), DUMP, no_reject)
    assert {question.id: question.title for _, question in archive.all_questions()} == {
        "a": "changed",
        "by-hand": "t",
        "deleted": "t",  # the archive holds it
        "new": "t",
    }
    assert (report.questions.added, report.questions.edited, report.questions.deleted) == (2, 1, 1)


def test_an_id_that_somebody_takes_while_an_archive_is_read_is_contested(archive: SqliteStore) -> None:
    def records() -> Iterator[Record]:
        yield Question("a", "t")
        elsewhere(lambda: archive.put_questions([Question("a", "other")]))

    with pytest.raises(InputError, match=r"1 ids of dump, such as 'a', .* came from manual"):
        archive.load(records(), DUMP, no_reject)
    assert archive.question("a").title == "other"


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


def test_the_change_log_names_what_a_load_did(archive: SqliteStore) -> None:
    archive.load([Question(f"q{number}", "t") for number in range(3)], DUMP, no_reject)
    before = archive.last_change()
    archive.load([Question("q1", "changed"), Question("q2", "t"), Question("q3", "t")], DUMP, no_reject)
    nums = archive.nums_by_id(["q1", "q3"])
    log = [(change.operation, change.num) for change in archive.changes(before, 10)]
    assert log == [("edit", nums["q1"]), ("add", nums["q3"]), ("delete", 1)]


def test_a_second_load_waits_for_the_first_and_then_says_so(
    archive: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.store.sqlite.BUSY_TIMEOUT_S", 0.0)

    def records() -> Iterator[Record]:
        yield Question("a", "t")
        with pytest.raises(BusyForumError, match="loading an archive"):
            elsewhere(lambda: archive.load([Question("b", "t")], Source("other", ""), no_reject))

    archive.load(records(), DUMP, no_reject)
    assert archive.counts().questions == 1


def test_a_forum_into_which_another_process_loads_is_not_discarded(tmp_path: Path) -> None:
    forum = Forum.create(tmp_path / "f")
    archive = SqliteStore(tmp_path / "f" / "archive.sqlite")

    def records() -> Iterator[Record]:
        yield Question("a", "t")
        assert not forum.discard_if_empty()

    archive.load(records(), DUMP, no_reject)
    assert archive.question("a").title == "t"
    archive.close()


def test_the_refusal_of_a_mass_delete_names_its_option_beside_rejects_too(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text("".join(f'{{"id": "q{number}", "title": "t{number}"}}\n' for number in range(20)), encoding="utf-8")
    options = ImportOptions(format="jsonl", source="dump")
    with Forum.create(tmp_path / "f") as forum:
        forum.load(dump, options=options)
        dump.write_text('{"id": "q1", "title": "t1"}\n' * 2, encoding="utf-8")  # the second is rejected
        with pytest.raises(InputError, match="19 of the 20") as caught:
            forum.load(dump, options=options)
        assert "--allow-mass-delete" in caught.value.hint


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


# -- files -----------------------------------------------------------------------------------------------------------


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


# -- errors ----------------------------------------------------------------------------------------------------------


def test_an_error_of_sqlite_while_reading_names_the_file_and_what_to_do(archive: SqliteStore) -> None:
    archive.connection.execute("DROP TABLE links")
    for call in (archive.links, lambda: archive.delete_links([Link("a", "b")]), lambda: archive.counts()):
        with pytest.raises(DamagedForumError, match=r"archive\.sqlite is damaged: no such table") as caught:
            call()
        assert "backup" in caught.value.hint


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_BUSY, BusyForumError, "another process"),
        (sqlite3.SQLITE_FULL, ForumError, "free space"),
        (sqlite3.SQLITE_IOERR, ForumError, "check the disk"),
        (sqlite3.SQLITE_READONLY, ForumError, "must be writable"),
        (sqlite3.SQLITE_CANTOPEN, ForumError, "must be writable"),
        (sqlite3.SQLITE_CORRUPT, DamagedForumError, "backup"),
        (sqlite3.SQLITE_NOTADB, DamagedForumError, "backup"),
    ],
)
def test_each_error_of_sqlite_has_its_meaning(tmp_path: Path, code: int, kind: type[ForumError], words: str) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = code
    refused = sqlite.refusal(tmp_path / "archive.sqlite", error)
    assert type(refused) is kind
    assert words in str(refused)
    assert "reindex" not in str(refused)


def test_a_forum_whose_folder_cannot_be_written_says_which(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ForumError, match=r"file.* cannot be written"):
        SqliteStore.create(tmp_path / "file" / "archive.sqlite", {})


@pytest.mark.parametrize("name", ["archive.sqlite", "f"])
def test_a_forum_on_a_disk_that_is_read_only_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    Forum.create(tmp_path / "f").close()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != name)
    for call in (Forum.open, Forum.reindex):
        with pytest.raises(ForumError, match=f"{name} cannot be written") as caught:
            call(tmp_path / "f")
        assert "how its disk is mounted" in caught.value.hint


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
