"""A forum in PostgreSQL: several machines, lost servers, late commits, and folders that name a database."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient
from tests.command import Run
from tests.postgres_server import new_database, server_programs

from askalike import Answer, Forum, ForumSettings, Link, Question, TextSettings
from askalike.errors import DatabaseError, ForumError, ForumExistsError, ForumNotFoundError, SettingError
from askalike.forum.check import check_forum
from askalike.progress import SilentProgress
from askalike.server.app import build
from askalike.server.settings import ServeSettings
from askalike.store import ForumLayout, open_store
from askalike.store.postgres import WRITING, PostgresStore
from askalike.types import Feedback, Source, Write

pytestmark = pytest.mark.slow

WRITERS, CHANGES = 8, 500

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.fixture
def database() -> str:
    return new_database()


def ids(forum: Forum, title: str) -> list[str]:
    return [hit.question.id for hit in forum.similar(title, ranker="words")]


def test_two_machines_share_one_database_and_each_sees_what_the_other_writes(database: str, tmp_path: Path) -> None:
    with Forum.attach(tmp_path / "here", database) as here, Forum.attach(tmp_path / "there", database) as there:
        here.add([Question("1", "Wifi drops every evening"), Question("2", "Printer is offline")])
        there.catch_up()
        assert ids(there, "wifi drops") == ids(here, "wifi drops") == ["1"]
        there.edit(Question("1", "Bluetooth stutters"))
        there.delete("2")
        here.catch_up()
        assert (ids(here, "bluetooth stutters"), ids(here, "printer offline")) == (["1"], [])
        assert here.info().counts == there.info().counts
        assert check_forum(tmp_path / "here", SilentProgress()).is_sound
    with Forum.open(tmp_path / "there") as there:
        assert ids(there, "bluetooth stutters") == ["1"]


def test_an_archive_is_loaded_by_the_command_line_and_loaded_again(run: Run, database: str, tmp_path: Path) -> None:
    archive, forum = tmp_path / "archive.jsonl", tmp_path / "travel.forum"
    archive.write_text('{"id": "1", "title": "Wifi drops"}\n{"id": "2", "title": "Printer is offline"}\n')
    assert run("attach", database, "--into", forum, "--json").json["questions"] == 0
    assert run("index", archive, "--into", forum, "--json").json["questions"]["added"] == 2
    archive.write_text('{"id": "1", "title": "Wifi drops"}\n{"id": "3", "title": "Scanner hums"}\n')
    again = run("index", archive, "--into", forum, "--json").json["questions"]
    assert (again["added"], again["deleted"], again["unchanged"]) == (1, 1, 1)
    assert "Scanner hums" in run("search", forum, "scanner").out
    second = run("attach", database, "--into", tmp_path / "second", "--json").json
    assert second["questions"] == 2


def test_a_load_that_is_killed_changes_nothing_and_keeps_nobody_out(database: str, tmp_path: Path) -> None:
    store = PostgresStore.create(database, {})
    store.add_questions([Question("1", "t")])

    def killed() -> object:
        yield Question("2", "t")
        with psycopg.connect(database, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        yield Question("3", "t")

    with pytest.raises(ForumError, match="cannot be used"):
        store.load(killed(), Source("dump", "jsonl"), print)  # type: ignore[arg-type]
    assert [question.id for _, question in store.all_questions()] == ["1"]  # through a new connection
    assert not store.is_loading()
    store.load([Question("2", "t")], Source("dump", "jsonl"), print)
    store.add_questions([Question("4", "t")])
    assert store.count_questions() == 3
    store.close()


def test_a_load_whose_connection_is_lost_after_reading_changes_nothing(database: str) -> None:
    store = PostgresStore.create(database, {})
    dump = Source("dump", "jsonl")
    store.load([Question("1", "t")], dump, print)

    def lost() -> int:
        with psycopg.connect(database, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        return 0

    with pytest.raises(ForumError, match="cannot be used"):
        store.load([Question("2", "t")], dump, print, unread=lost, is_mass_delete_allowed=True)
    assert [question.id for _, question in store.all_questions()] == ["1"]
    assert store.load([Question("2", "t")], dump, print, is_mass_delete_allowed=True).questions.added == 1
    store.close()


def test_a_connection_that_was_lost_in_a_write_stores_nothing_and_the_next_write_goes_on(database: str) -> None:
    store = PostgresStore.create(database, {})

    def half() -> None:
        with store.write() as connection:
            connection.execute("INSERT INTO sources (name, format) VALUES ('half', 'x')")
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(ForumError, match="cannot be used"):
        half()
    assert store.sources() == ()
    store.add_questions([Question("1", "t")])
    assert store.count_questions() == 1
    store.close()


def test_while_the_database_is_away_the_service_answers_503_and_names_it(database: str, tmp_path: Path) -> None:
    name = database.rpartition("?")[0].rpartition("/")[2]
    Forum.attach(tmp_path / "forum", database, settings=ForumSettings(has_vectors=False)).close()

    def allow(word: str) -> None:
        with psycopg.connect(database.replace(name, "postgres"), autocommit=True) as other:
            other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {word}")
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])

    with TestClient(build(ServeSettings(str(tmp_path / "forum"))), base_url="http://localhost:8765") as client:
        assert client.put("/v1/questions/1", json={"title": "Wifi drops"}).status_code == 200
        allow("false")
        for answer in (
            client.put("/v1/questions/2", json={"title": "Scanner hums"}),
            client.get("/v1/questions/1"),
        ):
            assert answer.status_code == 503
            assert f"/{name}" in answer.json()["error"]
        allow("true")
        assert client.put("/v1/questions/2", json={"title": "Scanner hums"}).status_code == 200
        assert {question["id"] for question in client.get("/v1/questions").json()["questions"]} == {"1", "2"}


def _written_late(database: str, wait: str) -> tuple[list[int], list[int]]:
    """Write with eight writers whose commits come late, follow meanwhile, and return (sequence numbers, seen)."""
    store = PostgresStore.create(database, {})
    with psycopg.connect(database, autocommit=True) as connection:  # a commit takes up to 3 ms
        connection.execute(
            "CREATE FUNCTION askalike.late() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_sleep(random() * 0.003); RETURN NULL; END';"
            " CREATE CONSTRAINT TRIGGER late AFTER INSERT ON askalike.changes DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION askalike.late()"
        )
    done, seen, cursor = threading.Event(), [], 0

    def writes(writer: int) -> None:
        with contextlib.closing(psycopg.connect(database, options="-c search_path=askalike")) as own:
            for number in range(CHANGES):
                own.execute(wait)
                own.execute(
                    "INSERT INTO changes (at_us, kind, operation, id, num) VALUES (0, 'question', 'add', 'x', %s)",
                    (CHANGES * writer + number,),
                )
                own.commit()

    threads = [threading.Thread(target=writes, args=(writer,)) for writer in range(WRITERS)]

    def follow() -> None:
        nonlocal cursor
        while True:
            is_last = done.is_set()
            for change in store.changes(cursor, 1000):
                seen.append(change.seq)
                cursor = change.seq
            if is_last:
                return

    follower = threading.Thread(target=follow)
    for thread in (follower, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    follower.join()
    everything = [row[0] for row in store.rows("SELECT seq FROM changes ORDER BY seq")]
    store.close()
    return everything, seen


def test_a_follower_misses_no_change_of_eight_writers_whose_commits_come_late(database: str) -> None:
    everything, seen = _written_late(database, f"SELECT pg_advisory_xact_lock({WRITING})")
    assert len(everything) == WRITERS * CHANGES
    assert seen == everything


def test_without_the_writers_lock_a_follower_would_miss_changes(database: str) -> None:
    everything, seen = _written_late(database, "SELECT 1")
    assert len(everything) == WRITERS * CHANGES
    assert len(seen) < len(everything)


def test_the_lock_of_the_test_is_that_of_writers(database: str) -> None:
    store = PostgresStore.create(database, {})
    with store.write():
        locks = store.rows("SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory'")
    assert locks[0][0] == WRITING
    store.close()


def test_a_folder_names_no_database_that_its_user_has_not_agreed_to(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Forum.attach(tmp_path / "forum", database).close()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    with pytest.raises(ForumError, match="have not agreed"):
        Forum.open(tmp_path / "forum")
    monkeypatch.setenv("ASKALIKE_DATABASES", f"postgresql://else/where, {database}")
    Forum.open(tmp_path / "forum").close()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1, "database": "http://x/y"}', "[" * 100_000])
def test_a_file_that_names_no_database_is_named(tmp_path: Path, content: str) -> None:
    layout = ForumLayout(tmp_path)
    layout.attached.write_text(content)
    with pytest.raises(ForumError, match=r"archive\.json cannot be read"):
        open_store(layout)


@pytest.mark.parametrize(
    "address", ["http://x/y", "postgresql://host", "postgresql://a:secret@host/d", "postgresql://h/d?password=x", "["]
)
def test_an_address_that_is_none_or_holds_a_password_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(SettingError) as refused:
        Forum.attach(tmp_path / "forum", address)
    assert "secret" not in str(refused.value)
    assert not (tmp_path / "forum").exists()


def test_what_cannot_be_attached_is_said(database: str, tmp_path: Path) -> None:
    with pytest.raises(ForumNotFoundError, match="no forum in"):
        PostgresStore(database)
    with pytest.raises(ForumError, match="cannot be used"):
        Forum.attach(tmp_path / "none", "postgresql://127.0.0.1:1/none")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(ForumExistsError):
        Forum.attach(tmp_path / "full", database)


def test_who_attaches_a_database_joins_its_forum_or_is_told_that_it_is_another_one(
    database: str, tmp_path: Path
) -> None:
    with Forum.attach(tmp_path / "here", database) as here:
        here.add(Question("1", "Wifi drops"))
        with pytest.raises(SettingError, match=r'holds a forum whose language is "english", not "german"'):
            Forum.attach(tmp_path / "german", database, text=TextSettings(language="german"))
        assert not (tmp_path / "german").exists()
        with Forum.attach(tmp_path / "there", database, text=TextSettings()) as there:
            assert [question.id for question in there.questions()] == ["1"]


def test_where_the_server_takes_no_more_connections_nothing_acknowledged_is_lost(database: str, tmp_path: Path) -> None:
    role = f"few_{os.getpid()}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 2")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO {role}")
    parts = urlsplit(database)
    address = parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}").geturl()
    outcomes, hints = list[str](), list[str]()
    meeting = threading.Barrier(6)

    def write(number: int) -> None:
        meeting.wait()
        try:
            forum.add(Question(str(number), f"Printer {number}"))
            outcomes.append(str(number))
        except DatabaseError as error:
            hints.append(error.hint)
        meeting.wait()  # each keeps its connection until all have tried

    with Forum.attach(tmp_path / "few", address, settings=ForumSettings(has_vectors=False)) as forum:
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(write, range(6)))
        assert len(outcomes) + len(hints) == 6
        assert hints
        assert all(hint.startswith("raise max_connections") for hint in hints)
        forum.add(Question("after", "Scanner"))
        assert {question.id for question in forum.questions()} == {*outcomes, "after"}


def test_a_changed_row_is_found_by_the_check(database: str, tmp_path: Path) -> None:
    with Forum.attach(tmp_path / "forum", database) as forum:
        forum.add([Question("1", "Wifi drops"), Question("2", "Printer")], links=[Link("1", "2")])
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("UPDATE askalike.questions SET title = 'other' WHERE id = '1'")
    report = check_forum(tmp_path / "forum", SilentProgress())
    assert any(
        "'1'" in finding.what and "does not hold what was written" in finding.what for finding in report.findings
    )


def filled(folder: Path) -> Forum:
    """Return a forum with judgements, links, numbers of deleted questions and odd texts."""
    forum = Forum.create(folder)
    forum.add([Question(str(num), f"Printer {num} is \x01 offline", f"wifi {num}") for num in range(1, 12)])
    forum.store.add_answers([Answer("a1", "1", "Switch it on.")])
    forum.store.put_links([Link("2", "1")])
    forum.judge("3", "4", "different", by="eve")
    forum.store.decide(Feedback("5", "6", "duplicate", "ann"))
    forum.store.decide(Feedback("7", "8", "different", "ann"))
    forum.store.undo(1, "\x01")
    forum.store.put_writes([Write(0, "https://forum.example.org", "5", "6", "link")])
    forum.store.add_helped("2")
    forum.delete("11")
    return forum


def test_a_database_that_is_restored_from_its_dump_has_everything_and_is_written_on(
    database: str, tmp_path: Path
) -> None:
    programs = server_programs()
    if not (programs / "pg_dump").is_file():
        pytest.skip("there is no pg_dump")
    with Forum.attach(tmp_path / "here", database) as here:
        here.add([Question("1", "Wifi\1drops", "é", tags=("net",)), Question("2", "Printer is offline")])
        here.store.add_answers([Answer("a", "1", "Restart it.")])
        here.judge("1", "2", "different")
        before, questions = here.info(), list(here.questions())
        dump = tmp_path / "dump"
        subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", database], check=True)
        here.add(Question("3", "Written after the dump"))
    restored = new_database()
    subprocess.run([programs / "pg_restore", "--no-owner", f"--dbname={restored}", dump], check=True)
    with Forum.attach(tmp_path / "anew", restored) as anew:
        assert list(anew.questions()) == questions
        assert anew.info().counts == before.counts
        assert ids(anew, "printer offline") == ["2"]
        anew.add(Question("4", "Scanner hums"))
        assert ids(anew, "scanner") == ["4"]
        assert check_forum(tmp_path / "anew", SilentProgress()).is_sound


def test_a_forum_moves_to_a_database_and_back_through_an_export(database: str, tmp_path: Path) -> None:
    with filled(tmp_path / "old") as old:
        hits = [hit.question for hit in old.similar("printer 7 offline")]
        old.export(tmp_path / "first")
    with Forum.attach(tmp_path / "there", database) as there:
        there.load(tmp_path / "first")
        assert [hit.question for hit in there.similar("printer 7 offline")] == hits
        there.export(tmp_path / "second")
    with Forum.create(tmp_path / "back") as back:
        back.load(tmp_path / "second")
        back.export(tmp_path / "third")
    names = sorted(path.name for path in (tmp_path / "first").glob("*.jsonl"))
    assert names
    for name in names:
        first, second, third = ((tmp_path / folder / name).read_bytes() for folder in ("first", "second", "third"))
        assert first == second == third
