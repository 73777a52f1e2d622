"""A forum's records as files: everything in a folder, which reads back as the same forum, or one table."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from askalike._version import __version__
from askalike.errors import SettingError
from askalike.files import replace_whole, writing_whole
from askalike.progress import Progress
from askalike.readers.exported import FORMAT, MANIFEST, Manifest
from askalike.records import FORMS, TABLES, Form, batches, write_records
from askalike.store import Store
from askalike.types import Answer, Feedback, Link, Question

_BATCH = 500


def records_of(store: Store, table: str) -> Iterator[Question | Answer | Link | Feedback]:
    """Yield the records of one of ``TABLES``: those that the forum shows, not what waits for a missing question.

    Raises:
        SettingError: there is no such table.
    """
    if table == "questions":
        yield from (question for _, question in store.all_questions())
    elif table == "answers":
        for batch in batches((question.id for _, question in store.all_questions()), _BATCH):
            held = store.answers_of(batch)
            yield from (answer for one in batch for answer in held.get(one, ()))
    elif table == "links":
        yield from store.links()
    elif table == "judgements":
        yield from store.all_feedback()
    else:
        raise SettingError(f"there is no table {table!r}", f"expected one of {', '.join(TABLES)}")


def export_table(store: Store, table: str, form: Form, file: BinaryIO) -> int:
    """Write one of ``TABLES`` to an open file; return the number of its records.

    Raises:
        SettingError: there is no such table or form.
        MissingExtraError: Parquet without pyarrow.
    """
    return write_records(records_of(store, table), TABLES.get(table, Question), form, file)


def export_forum(
    store: Store, folder: Path, form: Form, tables: Collection[str], text: dict[str, Any], progress: Progress
) -> dict[str, int]:
    """Write tables and a manifest to a folder, which is made; return the number of records of each.

    A table of an export that is there is replaced; nothing else is touched. The manifest comes last, so that what was
    begun and not finished is no export.

    Raises:
        SettingError: there is no such table or form, or the folder holds something else.
        MissingExtraError: Parquet without pyarrow.
    """
    if form not in FORMS:
        raise SettingError(f"there is no form {form!r}", f"expected one of {', '.join(FORMS)}")
    if folder.exists() and not (folder / MANIFEST).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingError(f"{folder} is there and is no export", "name a new folder, or an empty one")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    written: dict[str, int] = {}
    for table in TABLES:
        for other in FORMS:
            (folder / f"{table}.{other}").unlink(missing_ok=True)
        if table in tables:
            progress.start(f"writing {table}", 0, table)
            with writing_whole(folder / f"{table}.{form}") as file:
                written[table] = export_table(store, table, form, file)
    manifest = Manifest(FORMAT, __version__, form, written, text)
    replace_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return written
