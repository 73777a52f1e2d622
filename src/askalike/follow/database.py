"""The database of a forum, by a query that gives a row for each question and each answer.

Columns: ``id``, ``question_id`` (NULL for a question), ``updated``, and any that a line of our own format has: title,
body, markup, tags, created, closed, score, url, author, language, accepted, duplicate_of. ``updated`` is a number or a
text that rises; rows of one moment are all found, whatever their number. Ready queries lie beside this file, in
``queries/``.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from askalike.errors import MissingExtraError, SourceError
from askalike.follow.pace import Pace
from askalike.follow.source import Cursor, Piece, Reading, Seen, reading_context, reading_of
from askalike.readers.jsonl import line_records
from askalike.web import FailedError

QUERIES: Final = Path(__file__).parent / "queries"
ROWS: Final = 5_000
"""In one piece of a list."""
_COLUMNS: Final = ("title", "body", "markup", "tags", "created", "closed", "score", "url", "author", "language")
_TIMEOUT_S: Final = 60.0


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

    def __init__(self, address: str) -> None:
        try:
            import psycopg
            from psycopg.rows import dict_row
        except ImportError as error:
            raise MissingExtraError(
                "PostgreSQL is asked through psycopg, which is not installed", "postgresql"
            ) from error
        if urlsplit(address).password:
            raise SourceError(
                "the address holds a password, which would be stored", "leave it out, and set PGPASSWORD or use .pgpass"
            )
        self._psycopg, self._rows, self._address = psycopg, dict_row, address

    def rows(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        try:
            with self._psycopg.connect(self._address, connect_timeout=30, row_factory=self._rows) as connection:
                connection.read_only = True
                found: list[dict[str, Any]] = connection.execute(statement, values).fetchall()
                return found
        except self._psycopg.OperationalError as error:
            raise FailedError(f"the database does not answer: {error}") from error
        except self._psycopg.Error as error:
            raise _unfit(error) from error

    def variants(self, identifier: str) -> list[Any]:
        return [identifier]


def _unfit(error: Exception) -> SourceError:
    return SourceError(
        f"the query cannot be used: {error}", "it needs the columns id, question_id (NULL for questions) and updated"
    )


class Database:
    """What a query finds.

    Args:
        address: sqlite:///PATH or postgresql://….
        query: one SELECT, or the name of a ready one.
    """

    kind = "database"
    are_lists_whole = False

    def __init__(self, address: str, pace: Pace, query: str) -> None:
        self.address, self.pace = address, pace
        self._database: Connection = _Sqlite(address) if address.startswith("sqlite:") else _Postgres(address)
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

    def _record(self, row: dict[str, Any]) -> dict[str, Any]:
        found = {name: _plain(row[name]) for name in _COLUMNS if row.get(name) is not None}
        accepted = {"accepted": bool(row["accepted"])} if row.get("accepted") is not None else {}
        return found | accepted | {"id": str(row["id"])}

    def _rows(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        return self._database.rows(statement.replace("{query}", f"({self._query}) AS rows_of_the_forum"), values)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if value is None or isinstance(value, bool | int | float | str | list) else str(value)


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
