"""The database of a forum, by a query that gives a row for each question and each answer.

Columns: ``id``, ``question_id`` (NULL for a question), ``updated``, and any that a line of our own format has: title,
body, markup, tags, created, closed, score, url, author, language, accepted, duplicate_of. ``updated`` is a number or a
text that rises; rows of one moment are all found, whatever their number. ``markup`` may be s9e too: XML of s9e's
formatter, in which phpBB and Flarum keep posts. Ready queries lie beside this file, in ``queries/``.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from askalike.errors import MissingExtraError, SourceError
from askalike.follow.pace import Pace
from askalike.follow.source import Cursor, Piece, Reading, Seen, reading_context, reading_of
from askalike.readers.jsonl import line_records
from askalike.web import FailedError

QUERIES: Final = Path(__file__).parent / "queries"
ROWS: Final = 5_000
"""In one piece of a list."""
_COLUMNS: Final = ("title", "body", "markup", "tags", "created", "closed", "score", "url", "author", "language")
_TIMEOUT_S: Final = 60
_MYSQL_AGAIN: Final = frozenset({1040, 1053, 1203, 1205, 1213, 1226, 2002, 2003, 2006, 2013, 2014, 2055})
"""Errors of MySQL's and MariaDB's after which another try may succeed: full, going down, locked, not reached, lost."""
_S9E_MARKERS: Final = re.compile(r"<([sei])>[^<]*</\1>")
"""What the author typed to mark text up, such as [b] or ##: the elements around it say the same."""
_S9E_NAMES: Final = {"CODE": "pre", "C": "code", "QUOTE": "blockquote", "LIST": "ul"}
_S9E_TAG: Final = re.compile(rf"<(/?)({'|'.join(_S9E_NAMES)})\b[^>]*>")


class Connection(Protocol):
    """What is asked of a database."""

    mark: str
    """What stands for a value in a statement."""

    def rows(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the rows that a statement finds."""

    def variants(self, identifier: str) -> list[Any]:
        """Return the values that an id may have in the database, all of one type where it is strict about them."""


class _Sqlite:
    mark = "?"

    def __init__(self, address: str) -> None:
        path = Path(unquote(address.removeprefix("sqlite:///")))
        if not path.is_file():
            raise SourceError(f"there is no database {path}", "expected sqlite:///relative/path or sqlite:////path")
        self._uri = f"{path.resolve().as_uri()}?mode=ro"

    def rows(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        try:
            with contextlib.closing(sqlite3.connect(self._uri, uri=True, timeout=_TIMEOUT_S)) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(statement, values)]
        except sqlite3.OperationalError as error:
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise FailedError(f"the database is busy: {error}") from error
            raise _unfit(error) from error
        except sqlite3.Error as error:
            raise _unfit(error) from error

    def variants(self, identifier: str) -> list[Any]:
        is_whole = identifier.isascii() and identifier.isdecimal() and len(identifier) <= 18
        return [identifier, int(identifier)] if is_whole else [identifier]


class _Postgres:
    mark = "%s"

    def __init__(self, address: str, key: str) -> None:
        try:
            import psycopg
            from psycopg.rows import dict_row
        except ImportError as error:
            raise MissingExtraError(
                "PostgreSQL is asked through psycopg, which is not installed", "postgresql"
            ) from error
        _check_address(address)
        self._psycopg, self._rows, self._address = psycopg, dict_row, address
        self._password: dict[str, Any] = {"password": key} if key else {}

    def rows(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        try:
            with self._psycopg.connect(
                self._address, connect_timeout=30, row_factory=self._rows, **self._password
            ) as connection:
                connection.read_only = True
                found: list[dict[str, Any]] = connection.execute(statement, values).fetchall()
                return found
        except self._psycopg.OperationalError as error:
            raise FailedError(f"the database does not answer: {error}") from error
        except self._psycopg.Error as error:
            raise _unfit(error) from error

    def variants(self, identifier: str) -> list[Any]:
        return [identifier]


class _MySql:
    mark = "%s"

    def __init__(self, address: str, key: str) -> None:
        try:
            import pymysql
            from pymysql.cursors import DictCursor
        except ImportError as error:
            raise MissingExtraError(
                "MariaDB and MySQL are asked through PyMySQL, which is not installed", "mysql"
            ) from error
        parts = _check_address(address)
        asked = parse_qs(parts.query)
        if unknown := asked.keys() - {"socket", "ssl_ca"}:
            raise SourceError(f"the address has {min(unknown)!r} behind its ?", "expected socket=PATH or ssl_ca=PATH")
        self._pymysql = pymysql
        self._given: dict[str, Any] = {
            "host": parts.hostname or "localhost",
            "port": parts.port or 3306,
            "user": unquote(parts.username or ""),
            "password": key,
            "database": unquote(parts.path.strip("/")),
            "unix_socket": asked.get("socket", [None])[0],
            "ssl_ca": asked.get("ssl_ca", [None])[0],
            "charset": "utf8mb4",
            "connect_timeout": 30,
            "read_timeout": _TIMEOUT_S,
            "cursorclass": DictCursor,
            "autocommit": True,  # what is read is the newest each time
        }
        self._held: Any = None

    def rows(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        try:
            if self._held is None:  # to connect takes longer than to find a thread
                self._held = self._pymysql.connect(**self._given)
                with self._held.cursor() as cursor:
                    cursor.execute("SET SESSION TRANSACTION READ ONLY")
                    cursor.execute("SET SESSION time_zone = '+00:00'")
            with self._held.cursor() as cursor:
                cursor.execute(statement, tuple(values))
                return list(cursor.fetchall())
        except self._pymysql.Error as error:
            if self._held is not None:
                with contextlib.suppress(self._pymysql.Error):
                    self._held.close()
                self._held = None
            if error.args and error.args[0] in _MYSQL_AGAIN:
                raise FailedError(f"the database does not answer: {error.args[-1]}") from error
            raise _unfit(error) from error
        except (OSError, RuntimeError) as error:  # no such certificate; a way to log in that needs another package
            raise SourceError(f"the database cannot be asked: {error}", "check the address and its ssl_ca") from error

    def variants(self, identifier: str) -> list[Any]:
        return [identifier]


def _check_address(address: str) -> SplitResult:
    """Return the parts of an address.

    Raises:
        SourceError: it is none, or holds a password.
    """
    try:
        parts = urlsplit(address)
        is_open, _ = bool(parts.password), parts.port
    except ValueError as error:
        raise SourceError(f"the address cannot be read: {error}", "expected mysql://USER@HOST:PORT/DATABASE") from error
    if is_open:
        hint = "leave it out, and name the environment variable that holds it with --key-variable"
        raise SourceError("the address holds a password, which would be stored", hint)
    return parts


def _unfit(error: Exception) -> SourceError:
    return SourceError(
        f"the query cannot be used: {error}", "it needs the columns id, question_id (NULL for questions) and updated"
    )


class Database:
    """What a query finds.

    Args:
        address: sqlite:///PATH, postgresql://… or mysql://….
        query: one SELECT, or the name of a ready one.
        key: the password, or "".
    """

    kind = "database"
    are_lists_whole = False

    def __init__(self, address: str, pace: Pace, query: str, key: str = "") -> None:
        self.address, self.pace = address, pace
        self._database: Connection
        if address.startswith("sqlite:"):
            self._database = _Sqlite(address)
        elif address.startswith(("mysql:", "mariadb:")):
            self._database = _MySql(address, key)
        else:
            self._database = _Postgres(address, key)
        escaped = query.strip().rstrip(";")
        self._query = escaped if self._database.mark == "?" else escaped.replace("%", "%%")

    def poll(self, cursor: Cursor) -> Iterator[Piece]:
        """Yield the threads of rows that were updated since the cursor, or at its very moment."""
        mark = self._database.mark
        if not isinstance(cursor, dict) or cursor.get("updated") is None:
            found = self._rows("SELECT max(updated) AS updated FROM {query}", ())
            yield Piece({"updated": _plain(found[0]["updated"])})
            return
        at = cursor["updated"]
        thread = "SELECT coalesce(question_id, id) AS thread, updated FROM {query} WHERE updated"
        rows = self._rows(f"{thread} = {mark}", (at,))
        while True:
            more = self._rows(f"{thread} > {mark} ORDER BY updated LIMIT {ROWS}", (at,))
            if more:
                at = _plain(more[-1]["updated"])
                rows += [*more, *self._rows(f"{thread} = {mark}", (at,))]  # as many as that moment has
            yield Piece({"updated": at}, tuple(Seen(one) for one in dict.fromkeys(str(row["thread"]) for row in rows)))
            if len(more) < ROWS:
                return
            rows = []

    def sweep(self, place: Cursor) -> Piece:
        """Return threads in the order of their ids, each with what differs when one of its rows does."""
        mark = self._database.mark
        thread = "coalesce(question_id, id)"
        behind = "" if place is None else f" WHERE {thread} > {mark}"
        found = self._rows(
            f"SELECT {thread} AS thread, max(updated) AS updated, count(*) AS many FROM {{query}}{behind}"
            f" GROUP BY {thread} ORDER BY {thread} LIMIT {ROWS}",
            () if place is None else (place,),
        )
        seen = tuple(Seen(str(row["thread"]), f"{_plain(row['updated'])} {row['many']}") for row in found)
        return Piece(_plain(found[-1]["thread"]) if len(found) == ROWS else None, seen)

    def read(self, identifier: str) -> Reading:
        """Return a question with its answers."""
        values = self._database.variants(identifier)
        marks = ", ".join([self._database.mark] * len(values))
        questions = self._rows(f"SELECT * FROM {{query}} WHERE question_id IS NULL AND id IN ({marks})", values)
        if not questions:
            return Reading(None, is_there=False)
        answers = self._rows(f"SELECT * FROM {{query}} WHERE question_id IN ({marks})", values)
        line = self._record(questions[0]) | {"answers": [self._record(row) for row in answers]}
        if (original := questions[0].get("duplicate_of")) is not None:
            line["duplicate_of"] = [str(original)]
        content = json.dumps(line, default=str).encode()
        context = reading_context()
        return reading_of(line_records(self.address, context)(1, content), context)

    def check_access(self) -> None:
        """Do nothing: a query that is refused fails, and does not find fewer rows."""

    def _record(self, row: dict[str, Any]) -> dict[str, Any]:
        found = {name: _plain(row[name]) for name in _COLUMNS if row.get(name) is not None}
        if found.get("markup") == "s9e":
            found |= {"markup": "html", "body": s9e_html(str(found.get("body", "")))}
        accepted = {"accepted": bool(row["accepted"])} if row.get("accepted") is not None else {}
        return found | accepted | {"id": str(row["id"])}

    def _rows(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        return self._database.rows(statement.replace("{query}", f"({self._query}) AS rows_of_the_forum"), values)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if value is None or isinstance(value, bool | int | float | str | list) else str(value)


def s9e_html(content: str) -> str:
    """Return XML of s9e's TextFormatter as HTML.

    >>> s9e_html("<r>Set <B><s>[b]</s>channel<e>[/b]</e></B>:<CODE><s>```</s><i>x</i>iw set<e>```</e></CODE></r>")
    'Set <B>channel</B>:<pre>iw set</pre>'
    """
    plain = _S9E_MARKERS.sub("", content.strip()).removeprefix("<r>").removeprefix("<t>")
    plain = plain.removesuffix("</r>").removesuffix("</t>")
    return _S9E_TAG.sub(lambda found: f"<{found[1]}{_S9E_NAMES[found[2]]}>", plain)


def named_query(given: str) -> str:
    """Return a query: the text itself, that of a file, or a ready one by its name.

    Raises:
        SourceError: it is none of these.
    """
    names = sorted(file.stem for file in QUERIES.glob("*.sql"))
    if given in names:
        return (QUERIES / f"{given}.sql").read_text(encoding="utf-8")
    if given.lstrip().lower().startswith(("select", "with")):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = f"give a SELECT, a file that holds one, or one of {', '.join(names)}"
        raise SourceError(f"there is no query {given[:100]!r}", hint) from error
