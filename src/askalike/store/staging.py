"""What a load has read: records in an SQLite file of their own, until they are compared with those of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from askalike.store import rows
from askalike.store.sqlite_file import open_scratch
from askalike.types import Answer, Link, Question

STAGED: Final = {
    **{table: ("place", "digest", *columns) for table, columns in rows.POSTS.items()},
    "links": ("source_id", "target_id", "kind"),
}
"""The columns of ``staged_questions`` and so on; ``place`` is the place in the stream."""
COMPARED: Final = {
    **{f"changed_{table}": ("place", "num") for table in rows.POSTS},
    **{f"gone_{table}": ("num",) for table in rows.POSTS},
    "gone_links": STAGED["links"],
}
"""The columns of what a load finds: the places of what is not in the store as it was read, with the numbers of what is
known and differs; and what is no longer in the source."""


class Staging:
    """The records of one load.

    Args:
        path: of the file; what a killed load has left there is removed. None for a private file of the system.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._connection = open_scratch(path)
        execute = self._connection.execute
        for table, columns in rows.POSTS.items():
            rest = ", ".join(columns[1:])
            execute(f"CREATE TABLE staged_{table} (place INTEGER PRIMARY KEY, digest, id NOT NULL UNIQUE, {rest})")
        key = ", ".join(STAGED["links"])
        execute(f"CREATE TABLE staged_links ({key}, PRIMARY KEY ({key})) WITHOUT ROWID")
        for name, columns in COMPARED.items():
            execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        execute("BEGIN")

    def add(self, record: Question | Answer) -> bool:
        """Note a record; return whether it is the first with its id.

        Raises:
            InputError: a value cannot be stored.
        """
        table, values = "questions" if isinstance(record, Question) else "answers", rows.values_of(record)
        marks = ", ".join("?" * (1 + len(values)))
        insert = f"INSERT OR IGNORE INTO staged_{table} VALUES (NULL, {marks})"
        return self._connection.execute(insert, (rows.digest(values), *values)).rowcount > 0

    def add_link(self, link: Link) -> None:
        """Note a link.

        Raises:
            InputError: a value cannot be stored.
        """
        rows.check_link(link)
        insert = "INSERT OR IGNORE INTO staged_links VALUES (?, ?, ?)"
        self._connection.execute(insert, (link.source_id, link.target_id, link.kind))

    def accept(self, ids: Iterable[str]) -> int:
        """Mark answers as accepted; return how many ids no answer has."""
        select = f"SELECT {', '.join(rows.ANSWER_COLUMNS)} FROM staged_answers WHERE id = ?"
        update = "UPDATE staged_answers SET is_accepted = 1, digest = ? WHERE id = ?"
        missing = 0
        for identifier in ids:
            values = self._connection.execute(select, (identifier,)).fetchone()
            if values is None:
                missing += 1
            else:
                self._connection.execute(update, (rows.digest((*values[:-1], 1)), identifier))
        return missing

    def finish(self) -> None:
        """Write what was noted into the file."""
        self._connection.execute("COMMIT")

    def read(self, table: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a staged table, in the order of ``STAGED``."""
        yield from self._connection.execute(f"SELECT {', '.join(STAGED[table])} FROM staged_{table}")

    def close(self) -> None:
        """Close the file, and remove it."""
        self._connection.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)
