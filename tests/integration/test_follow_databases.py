"""Forums are followed by the rows of their databases; the ready queries fit the tables that each product publishes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests import mariadb_server
from tests.command import Run
from tests.postgres_server import new_database

from askalike import Forum
from askalike.errors import SourceError
from askalike.follow.database import Database, named_query
from askalike.follow.follower import Follower
from askalike.follow.pace import Pace
from askalike.follow.settings import FollowSettings, open_source
from askalike.follow.state import State
from askalike.store import ForumLayout
from askalike.text.markup import plain_text
from askalike.types import Link
from askalike.web import FailedError

pytestmark = pytest.mark.usefixtures("words_alone")


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))


# The columns that the queries name, with the types that each product's own installation gives them on MySQL.
PHPBB = """
CREATE TABLE phpbb_forums (forum_id int unsigned NOT NULL, forum_name varchar(255) NOT NULL DEFAULT '',
    forum_type tinyint NOT NULL DEFAULT 0, PRIMARY KEY (forum_id));
CREATE TABLE phpbb_users (user_id int unsigned NOT NULL, username varchar(255) NOT NULL DEFAULT '',
    PRIMARY KEY (user_id));
CREATE TABLE phpbb_topics (topic_id int unsigned NOT NULL, forum_id int unsigned NOT NULL DEFAULT 0,
    topic_title varchar(255) NOT NULL DEFAULT '', topic_time int unsigned NOT NULL DEFAULT 0,
    topic_status tinyint NOT NULL DEFAULT 0, topic_visibility tinyint NOT NULL DEFAULT 0,
    topic_first_post_id int unsigned NOT NULL DEFAULT 0, topic_first_poster_name varchar(255) NOT NULL DEFAULT '',
    topic_last_post_time int unsigned NOT NULL DEFAULT 0, PRIMARY KEY (topic_id));
CREATE TABLE phpbb_posts (post_id int unsigned NOT NULL, topic_id int unsigned NOT NULL DEFAULT 0,
    forum_id int unsigned NOT NULL DEFAULT 0, poster_id int unsigned NOT NULL DEFAULT 0,
    post_username varchar(255) NOT NULL DEFAULT '', post_time int unsigned NOT NULL DEFAULT 0,
    post_text mediumtext NOT NULL, post_edit_time int unsigned NOT NULL DEFAULT 0,
    post_visibility tinyint NOT NULL DEFAULT 0, PRIMARY KEY (post_id));
INSERT INTO phpbb_forums VALUES (1, 'Networks', 1), (2, 'Elsewhere', 2);
INSERT INTO phpbb_users VALUES (7, 'ann'), (8, 'bob');
INSERT INTO phpbb_topics VALUES (1, 1, 'Wifi drops', 1700000000, 0, 1, 11, 'ann', 1700000100),
    (2, 1, 'Waits for approval', 1700000000, 0, 0, 13, 'ann', 1700000000),
    (3, 1, 'Printer jams', 1700000200, 1, 1, 14, 'bob', 1700000200);
INSERT INTO phpbb_posts VALUES
    (11, 1, 1, 7, '', 1700000000, '<r>Every <B><s>[b]</s>evening<e>[/b]</e></B>.<br/>Channel 6 &amp; 11.</r>', 0, 1),
    (12, 1, 1, 8, '', 1700000100, 'Change the channel.', 0, 1), (13, 2, 1, 7, '', 1700000000, '<t>Hm.</t>', 0, 0),
    (14, 3, 1, 8, '', 1700000200, '<t>Paper.</t>', 0, 1), (15, 1, 1, 1, 'guest', 1700000050, 'Deleted.', 0, 2);
"""
FLARUM = """
CREATE TABLE users (id int unsigned NOT NULL, username varchar(100) NOT NULL, PRIMARY KEY (id));
CREATE TABLE tags (id int unsigned NOT NULL, name varchar(100) NOT NULL, slug varchar(100) NOT NULL, PRIMARY KEY (id));
CREATE TABLE discussion_tag (discussion_id int unsigned NOT NULL, tag_id int unsigned NOT NULL,
    PRIMARY KEY (discussion_id, tag_id));
CREATE TABLE discussions (id int unsigned NOT NULL, title varchar(200) NOT NULL, slug varchar(255) NOT NULL,
    created_at datetime NOT NULL, user_id int unsigned DEFAULT NULL, first_post_id int unsigned DEFAULT NULL,
    last_posted_at datetime DEFAULT NULL, hidden_at datetime DEFAULT NULL, is_private tinyint(1) NOT NULL DEFAULT 0,
    is_locked tinyint(1) NOT NULL DEFAULT 0, PRIMARY KEY (id));
CREATE TABLE posts (id int unsigned NOT NULL, discussion_id int unsigned NOT NULL, number int unsigned DEFAULT NULL,
    created_at datetime NOT NULL, user_id int unsigned DEFAULT NULL, type varchar(100) DEFAULT NULL,
    content mediumtext DEFAULT NULL, edited_at datetime DEFAULT NULL, hidden_at datetime DEFAULT NULL,
    is_private tinyint(1) NOT NULL DEFAULT 0, PRIMARY KEY (id));
INSERT INTO users VALUES (7, 'ann'), (8, 'bob');
INSERT INTO tags VALUES (1, 'Networks', 'networks');
INSERT INTO discussion_tag VALUES (1, 1);
INSERT INTO discussions VALUES
    (1, 'Wifi drops', 'wifi', '2023-11-14 22:13:20', 7, 11, '2023-11-14 22:15:00', NULL, 0, 0),
    (2, 'Hidden', 'hidden', '2023-11-14 22:13:20', 7, 13, '2023-11-14 22:13:20', '2023-11-15 00:00:00', 0, 0),
    (3, 'Printer jams', 'printer', '2023-11-14 22:16:40', 8, 14, '2023-11-14 22:16:40', NULL, 0, 1);
INSERT INTO posts VALUES (11, 1, 1, '2023-11-14 22:13:20', 7, 'comment',
        '<r><p>Every <STRONG><s>**</s>evening<e>**</e></STRONG>.<br/>
Channel 6 &amp; 11.</p></r>', NULL, NULL, 0),
    (12, 1, 2, '2023-11-14 22:15:00', 8, 'comment', '<t><p>Change the channel.</p></t>', NULL, NULL, 0),
    (13, 2, 1, '2023-11-14 22:13:20', 7, 'comment', '<t>Hm.</t>', NULL, NULL, 0),
    (14, 3, 1, '2023-11-14 22:16:40', 8, 'comment', '<t><p>Paper.</p></t>', NULL, NULL, 0),
    (15, 1, 3, '2023-11-14 22:15:01', 8, 'discussionRenamed', '["a","b"]', NULL, NULL, 0);
"""
QUESTION2ANSWER = """
CREATE TABLE qa_users (userid int unsigned NOT NULL, handle varchar(20) NOT NULL, PRIMARY KEY (userid));
CREATE TABLE qa_posts (postid int unsigned NOT NULL, type ENUM('Q', 'A', 'C', 'Q_HIDDEN', 'A_HIDDEN', 'C_HIDDEN',
    'Q_QUEUED', 'A_QUEUED', 'C_QUEUED', 'NOTE') NOT NULL, parentid int unsigned, userid int unsigned,
    selchildid int unsigned, closedbyid int unsigned, netvotes smallint NOT NULL DEFAULT 0, created datetime NOT NULL,
    updated datetime, format varchar(20) NOT NULL DEFAULT '', title varchar(800), content varchar(12000),
    tags varchar(800), name varchar(40), PRIMARY KEY (postid));
INSERT INTO qa_users VALUES (7, 'ann'), (8, 'bob');
INSERT INTO qa_posts VALUES
    (1, 'Q', NULL, 7, 12, NULL, 3, '2023-11-14 22:13:20', NULL, 'html', 'Wifi drops',
        '<p>Every evening.<br>Channel 6 &amp; 11.</p>', 'wifi,net', NULL),
    (12, 'A', 1, 8, NULL, NULL, 5, '2023-11-14 22:15:00', NULL, '', NULL, 'Change the channel.', NULL, NULL),
    (13, 'C', 12, 7, NULL, NULL, 0, '2023-11-14 22:15:10', NULL, '', NULL, 'Thanks.', NULL, NULL),
    (2, 'Q_HIDDEN', NULL, 7, NULL, NULL, 0, '2023-11-14 22:13:20', NULL, '', 'Hidden', 'Hm.', '', NULL),
    (3, 'Q', NULL, NULL, NULL, 1, 0, '2023-11-14 22:16:40', '2023-11-14 22:20:00', '', 'Printer jams',
        'Paper.', '', 'guest');
"""
DELETIONS = {
    "phpbb": "DELETE FROM phpbb_topics WHERE topic_id = 3",
    "flarum": "DELETE FROM discussions WHERE id = 3",
    "question2answer": "DELETE FROM qa_posts WHERE postid = 3",
}
TABLES = {"phpbb": PHPBB, "flarum": FLARUM, "question2answer": QUESTION2ANSWER}


EDITS = {
    "phpbb": "UPDATE phpbb_posts SET post_text = '<t>Move it.</t>', post_edit_time = 1700000500 WHERE post_id = 12",
    "flarum": "UPDATE posts SET content = '<t>Move it.</t>', edited_at = '2023-11-14 22:21:40' WHERE id = 12",
    "question2answer": "UPDATE qa_posts SET content = 'Move it.', updated = '2023-11-14 22:21:40' WHERE postid = 12",
}


def database(path: Path, script: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(re.sub(r"ENUM\([^)]*\)", "varchar", script))
    return connection


Execute = Callable[[str], None]


def sqlite_forum(path: Path, script: str) -> tuple[str, Execute]:
    """Return the address of a database with these tables, and what changes it."""
    connection = database(path / "forum.db", script)
    return f"sqlite:///{path / 'forum.db'}", lambda statement: [*connection.execute(statement)] and None


def mariadb_forum(path: Path, script: str) -> tuple[str, Execute]:
    """As ``sqlite_forum``, on a real MariaDB server."""
    address, connection = mariadb_server.new_database()

    def execute(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    for statement in filter(str.strip, script.split(";\n")):
        execute(statement)
    return address, execute


@pytest.mark.parametrize("made", [sqlite_forum, mariadb_forum])
@pytest.mark.parametrize("name", TABLES)
def test_a_ready_query_finds_what_everybody_may_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, made: Callable[[Path, str], Any]
) -> None:
    address, execute = made(tmp_path, TABLES[name])
    monkeypatch.setenv("DB_PASSWORD", mariadb_server.PASSWORD)
    folder = tmp_path / "f"
    Forum.create(folder).close()
    password = ("--key-variable", "DB_PASSWORD") if made is mariadb_forum else ()
    done = run("follow", folder, "--from", address, "--query", name, *password, "--once", "--json")
    assert done.code == 0, done
    with Forum.open(folder) as forum:
        assert {one.id: one.title for one in forum.questions()} == {"1": "Wifi drops", "3": "Printer jams"}
        (answer,) = forum.answers("1")
        assert (answer.id, answer.author, "Change the channel." in answer.body) == ("12", "bob", True)
        assert answer.is_accepted == (name == "question2answer")
        assert forum.question("3").closed is not None
        assert forum.question("1").created == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
        prose = plain_text(forum.question("1").body, forum.question("1").markup)
        assert " ".join(prose.split()) == "Every evening. Channel 6 & 11."
        assert forum.links() == ([Link("3", "1")] if name == "question2answer" else [])
        assert forum.similar("wifi drops")[0].question.id == "1"
    execute(EDITS[name])
    with Forum.open(folder) as forum, State(ForumLayout(folder)) as state:
        settings = FollowSettings.of_json(state.value("settings"))
        follower = Follower(forum, open_source(settings, Pace(0, state)), state, settings.origin)
        follower._poll()
        assert "1" in [one.id for one in state.take(9, 1e12)]  # an edit is found by the poll alone
        follower._read(3)
        assert "Move it." in forum.answers("1")[0].body
    execute(DELETIONS[name])
    assert run("follow", folder, "--once").code == 0
    with Forum.open(folder) as forum:
        assert [one.id for one in forum.questions()] == ["1"]


def test_mariadb_is_asked_by_who_may_only_read_and_its_refusals_are_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, execute = mariadb_forum(tmp_path, "CREATE TABLE posts (id varchar(9), title text, updated datetime(6));\n")
    execute("INSERT INTO posts VALUES ('a', 'Wifi drops', '2026-01-01'), ('b', '50 % slower', '2026-01-01')")
    Forum.create(tmp_path / "f").close()
    words = ("follow", tmp_path / "f", "--from", address, "--query", f"{QUERY} WHERE title LIKE '%s%'", "--once")
    denied = run(*words)
    assert (denied.code, "Access denied" in denied.err) == (1, True)
    open_password = run("follow", tmp_path / "f", "--from", address.replace("@", ":let@"), "--query", QUERY, "--once")
    assert (open_password.code, "--key-variable" in open_password.err) == (1, True)
    monkeypatch.setenv("DB_PASSWORD", mariadb_server.PASSWORD)
    assert run(*words, "--key-variable", "DB_PASSWORD").code == 0
    with Forum.open(tmp_path / "f") as forum:
        assert {one.id: one.title for one in forum.questions()} == {"a": "Wifi drops", "b": "50 % slower"}
    assert mariadb_server.PASSWORD.encode() not in ForumLayout(tmp_path / "f").follow.read_bytes()
    with State(ForumLayout(tmp_path / "f")) as state:
        for query, said in (
            ("SELECT 1) AS a; DROP TABLE posts; --", "SQL syntax"),
            ("SELECT id FROM posts", "updated"),
        ):
            with pytest.raises(SourceError, match=said):
                polled(Database(address, Pace(0, state), query, mariadb_server.PASSWORD), None)
        source = Database(address, Pace(0, state), QUERY, mariadb_server.PASSWORD)
        cursor, _ = polled(source, None)
        execute("INSERT INTO posts VALUES ('c', 'Printer jams', '2026-01-02')")
        assert "c" in polled(source, cursor)[1]  # the connection that is kept sees what came since
        execute("SET @killed = (SELECT max(id) FROM information_schema.processlist WHERE user = 'reader')")
        execute("EXECUTE IMMEDIATE concat('KILL ', @killed)")
        with pytest.raises(FailedError, match="does not answer"):
            polled(source, cursor)
        assert "c" in polled(source, cursor)[1]
        nowhere = Database("mysql://ann@127.0.0.1:1/x", Pace(0, state), QUERY)
        with pytest.raises(FailedError, match="does not answer"):
            polled(nowhere, None)
        with pytest.raises(SourceError, match="behind its"):
            Database("mysql://ann@localhost/x?password=let", Pace(0, state), QUERY)


QUERY = "SELECT id, NULL AS question_id, title, updated FROM posts"


def polled(source: Database, cursor: Any) -> tuple[Any, set[str]]:
    found: set[str] = set()
    for piece in source.poll(cursor):
        cursor, found = piece.cursor, found | {one.id for one in piece.seen}
    return cursor, found


def test_rows_of_one_moment_are_all_found_whatever_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.follow.database.ROWS", 10)
    made = database(tmp_path / "f.db", "CREATE TABLE posts (id INTEGER, title TEXT, updated INTEGER)")
    made.execute("INSERT INTO posts VALUES (1, 'first', 5)")
    with State.create(ForumLayout(tmp_path)) as state:
        source = Database(f"sqlite:///{tmp_path / 'f.db'}", Pace(0, state), QUERY)
        cursor, found = polled(source, None)
        assert (cursor, found) == ({"updated": 5}, set())
        made.executemany("INSERT INTO posts VALUES (?, 'tie', ?)", [(n, 5 + n // 40) for n in range(2, 100)])
        cursor, found = polled(source, cursor)
        assert (cursor, found) == ({"updated": 7}, {str(n) for n in range(1, 100)})
        made.execute("INSERT INTO posts VALUES (200, 'late at the same moment', 7)")
        cursor, found = polled(source, cursor)
        assert "200" in found
    made.close()


def test_a_query_that_does_not_fit_is_named_with_what_it_needs(run: Run, tmp_path: Path) -> None:
    database(tmp_path / "f.db", "CREATE TABLE posts (id INTEGER, title TEXT)").close()
    Forum.create(tmp_path / "f").close()
    done = run(
        "follow", tmp_path / "f", "--from", f"sqlite:///{tmp_path / 'f.db'}", "--query", "SELECT * FROM posts", "--once"
    )
    assert done.code == 1
    assert "no such column" in done.err
    assert "id, question_id" in " ".join(done.err.split())
    with pytest.raises(SourceError, match="there is no query"):
        named_query("nowhere.sql")


def test_a_database_is_only_read(tmp_path: Path) -> None:
    database(tmp_path / "f.db", "CREATE TABLE posts (id INTEGER, title TEXT, updated INTEGER)").close()
    with State.create(ForumLayout(tmp_path)) as state:
        source = Database(f"sqlite:///{tmp_path / 'f.db'}", Pace(0, state), "SELECT 1) AS a; DROP TABLE posts; --")
        with pytest.raises(SourceError):
            polled(source, None)
    with sqlite3.connect(tmp_path / "f.db") as connection:
        assert connection.execute("SELECT count(*) FROM posts").fetchone() == (0,)
    connection.close()


def test_more_than_half_is_not_deleted_without_a_word(run: Run, tmp_path: Path) -> None:
    made = database(tmp_path / "f.db", "CREATE TABLE posts (id INTEGER, title TEXT, updated INTEGER)")
    made.executemany("INSERT INTO posts VALUES (?, ?, ?)", [(n, f"question number {n}", n) for n in range(60)])
    folder = tmp_path / "f"
    Forum.create(folder).close()
    address = f"sqlite:///{tmp_path / 'f.db'}"
    assert run("follow", folder, "--from", address, "--query", QUERY, "--once").code == 0
    made.execute("DELETE FROM posts WHERE id >= 10")
    made.close()
    done = run("follow", folder, "--once")
    assert (done.code, "--allow-mass-delete" in done.err) == (1, True)
    with Forum.open(folder) as forum:
        assert len(forum) > 30
    assert run("follow", folder, "--once", "--allow-mass-delete").code == 0
    with Forum.open(folder) as forum:
        assert len(forum) == 10


def test_a_row_that_cannot_be_stored_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    made = database(tmp_path / "f.db", "CREATE TABLE posts (id, title TEXT, updated INTEGER)")
    made.executemany("INSERT INTO posts VALUES (?, ?, 1)", [(1, "whole"), (2, ""), ("x" * 600, "long id"), (3, "too")])
    made.close()
    Forum.create(tmp_path / "f").close()
    with Forum.open(tmp_path / "f") as forum, State.create(ForumLayout(tmp_path / "f")) as state:
        address = f"sqlite:///{tmp_path / 'f.db'}"
        source = Database(address, Pace(0, state), QUERY)
        settings = FollowSettings(address, "database", query=QUERY)
        assert Follower(forum, source, state, settings.origin).once()
        assert {one.id for one in forum.questions()} == {"1", "3"}
        count, named = state.rejects()
        assert (count, {one for one, _ in named}) == (2, {"2", "x" * 600})


def test_a_postgresql_database_is_followed_by_moments_with_ties(tmp_path: Path) -> None:
    address = new_database()
    psycopg = pytest.importorskip("psycopg")
    query = "SELECT id, parent AS question_id, title, body, updated FROM post WHERE title NOT LIKE '50%'"
    Forum.create(tmp_path / "f").close()
    with psycopg.connect(address, autocommit=True) as made:
        made.execute("CREATE TABLE post (id bigint, parent bigint, title text, body text, updated timestamptz)")
        made.execute(
            "INSERT INTO post VALUES (1, NULL, 'Wifi drops', 'b', '2026-01-01'), (2, 1, '', 'Move it', '2026-01-01')"
        )
        with Forum.open(tmp_path / "f") as forum, State.create(ForumLayout(tmp_path / "f")) as state:
            source = Database(address, Pace(0, state), query)
            follower = Follower(forum, source, state, FollowSettings(address, "database", query=query).origin)
            assert follower.once()
            assert [one.body for one in forum.answers(1)] == ["Move it"]
            made.execute(
                "INSERT INTO post VALUES (3, NULL, 'Printer jams', 'b', '2026-01-01'), (4, NULL, '50 %', 'b', now())"
            )
            made.execute("UPDATE post SET body = 'Move it away' WHERE id = 2")
            follower._poll()
            follower._read(3)
            assert {one.title for one in forum.questions()} == {"Wifi drops", "Printer jams"}
            assert [one.body for one in forum.answers(1)] == ["Move it away"]
            made.execute("DELETE FROM post WHERE id = 3")
            assert follower.once()
            assert [one.title for one in forum.questions()] == ["Wifi drops"]
    with pytest.raises(SourceError, match="password"):
        Database("postgresql://ann:secret@localhost/x", Pace(0, _Silent()), query)


class _Silent:
    def requests(self, since_s: float) -> list[float]:
        return []

    def add_request(self, at_s: float, before_s: float) -> None:
        return
