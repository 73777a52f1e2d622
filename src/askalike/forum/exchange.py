"""Records into a forum and out of it: archives, exports that read back as the same records, data frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from askalike._version import __version__
from askalike.errors import InputError, SettingError, optional_module
from askalike.files import replace_whole, writing_whole
from askalike.progress import Progress
from askalike.readers.frame import ReadContext, Reader, ReadOptions, Rejects
from askalike.records import FORMS, TABLES, Form, arrow_rows, arrow_schema, batches, write_records
from askalike.store import LoadReport, Store
from askalike.store.rows import is_storable
from askalike.types import Question, Record, Reject, Source


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How an archive is read into a forum.

    Args:
        format: a name from ``readers.detection.READERS``; "" detects it.
        source: what the records belong to; reading the same source again also deletes what has gone from it.
            "" takes the archive's own path.
        is_mass_delete_allowed: go on when more than half of the source's questions would be deleted.
        read: options of the reader.
    """

    format: str = ""
    source: str = ""
    is_mass_delete_allowed: bool = False
    read: ReadOptions = field(default_factory=ReadOptions)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What reading an archive did.

    Args:
        records_in: questions, answers, links and judgements that the files hold, readable or not.
        rejected: how many of them could not be read or stored; ``first_rejects`` names some, the reject file all.
        skipped: kind → count of what is no question, answer or link.
        repaired: kind → count of values that were mended, such as a date that is none.
    """

    format: str
    source: str
    load: LoadReport
    records_in: int
    rejected: int
    first_rejects: tuple[Reject, ...]
    skipped: dict[str, int]
    repaired: dict[str, int]


def import_archive(
    store: Store,
    path: Path,
    options: ImportOptions,
    rejects_path: Path,
    progress: Progress,
    tag: Callable[[Question], Question] = lambda question: question,
) -> ImportReport:
    """Read ``path`` into the store: all of it at once, or after an error nothing.

    Args:
        tag: gives a question its language.

    Raises:
        InputError: the path cannot be read; the message names file and line.
    """
    from askalike.readers.detection import find_archive  # every reader: a search needs none

    path, reader, left_out = find_archive(path, options.format or None)
    if left_out:
        progress.notice(f"{path.name} is read; not read: {', '.join(left_out)[:200]}")
    source = Source(_source_name(options.source, path), reader.name)
    with _refusals_named(path):
        progress.start(f"reading {path.name} ({reader.name})", reader.size_bytes(path), "bytes")
    with Rejects() as rejects:
        known_site = store.sites().get(source.name, "")
        read_options = replace(options.read, site_url=options.read.site_url or known_site)
        context = ReadContext(options=read_options, rejects=rejects, advance=progress.advance, notice=progress.notice)
        refused = 0

        def refuse(reject: Reject) -> None:
            nonlocal refused
            refused += 1
            rejects.add(reject)

        def read() -> Iterator[Record]:
            rejects.keep_in(rejects_path)  # only now: another load may have been under way, which writes this file
            yield from _checked(reader, path, context)

        try:
            report = store.load(
                (tag(record) if isinstance(record, Question) else record for record in read()),
                source,
                refuse,
                unread=lambda: rejects.count - refused,
                accepted=lambda: context.accepted,
                is_mass_delete_allowed=options.is_mass_delete_allowed,
            )
        except InputError as error:
            if type(error) is not InputError or not rejects.count:
                raise
            raise _with_first_reject(error, rejects) from error
        if read_options.site_url != known_site:
            store.put_site(source.name, read_options.site_url)
        return ImportReport(
            format=reader.name,
            source=source.name,
            load=report,
            records_in=context.records_in,
            rejected=rejects.count,
            first_rejects=tuple(rejects.first),
            skipped=dict(context.skipped),
            repaired=dict(context.repaired),
        )


def _checked(reader: Reader, path: Path, context: ReadContext) -> Iterator[Record]:
    """Yield the reader's records; a file that the system refuses to give is an InputError, not a crash."""
    with _refusals_named(path):
        yield from reader.read(path, context)


@contextmanager
def _refusals_named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{error.filename or path} cannot be read: {error.strerror or error}", "check its rights"
        ) from error


def _source_name(name: str, path: Path) -> str:
    """Return the name that is stored: the one given, or the archive's path, of which odd bytes are written out."""
    if not name:
        return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")
    if not is_storable(name):
        raise SettingError(f"the source's name {name!r} is not UTF-8", "choose another name")
    return name


def _with_first_reject(error: InputError, rejects: Rejects) -> InputError:
    """Return the error with what was rejected before it: a new forum is taken away again, and its reject file too."""
    first = rejects.first[0]
    where = f"{first.file}, line {first.line}" if first.line else first.file
    counted = "1 record was" if rejects.count == 1 else f"{rejects.count:,} records were"
    rejected = f"{counted} rejected, the first in {where}: {first.reason}"
    hint = "correct the records, or name the right --format"
    return InputError(f"{error.message}; {rejected}", hint if error.hint in hint else f"{error.hint}; or {hint}")


_BATCH = 500
MOST_ENTRIES = 2**62
"""Of the log: all."""


def records_of(store: Store, table: str) -> Iterator[Record]:
    """Yield the records of one of ``TABLES``: those that the forum shows, not what waits for a missing question."""
    if table == "questions":
        yield from (question for _, question in store.all_questions())
    elif table == "answers":
        for batch in batches((question.id for _, question in store.all_questions()), _BATCH):
            answers = store.answers_of(batch)
            yield from (answer for question_id in batch for answer in answers.get(question_id, ()))
    elif table == "links":
        yield from store.links()
    elif table == "judgements":
        yield from store.all_judgements()
    else:
        yield from reversed(store.log(MOST_ENTRIES))


def check_tables(names: Collection[str], tables: Collection[str]) -> None:
    """Raise SettingError for a name that is none of these tables."""
    for name in names:
        if name not in tables:
            raise SettingError(f"there is no table {name!r}", f"expected one of {', '.join(tables)}")


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
    from askalike.readers.exported import FORMAT, MANIFEST, Manifest

    if form not in FORMS:
        raise SettingError(f"there is no form {form!r}", f"expected one of {', '.join(FORMS)}")
    check_tables(tables, TABLES)
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
                written[table] = write_records(records_of(store, table), TABLES[table], form, file)
    manifest = Manifest(FORMAT, __version__, form, written, text)
    replace_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return written


FrameLibrary = Literal["pandas", "polars", "pyarrow"]


def frame_of(records: Iterable[Any], kind: type, library: FrameLibrary) -> Any:
    """Return records as a data frame.

    Raises:
        SettingError: there is no such library.
        MissingExtraError: it, or pyarrow, is not installed.
    """
    if library not in ("pandas", "polars", "pyarrow"):
        raise SettingError(f"there is no library {library!r} of data frames", "expected pandas, polars or pyarrow")
    table = _module("pyarrow").Table.from_pylist(arrow_rows(records), schema=arrow_schema(kind))
    if library == "pyarrow":
        return table
    module = _module(library)
    return table.to_pandas() if library == "pandas" else module.from_arrow(table)


def arrow_table(frame: Any) -> Any:
    """Return a data frame as a table of pyarrow.

    Args:
        frame: with ``__arrow_c_stream__`` (pandas 2.2 and later, polars, pyarrow, DuckDB, …) or ``__dataframe__``.

    Raises:
        SettingError: it is no data frame, two columns have one name, or a column has values of several types.
        MissingExtraError: pyarrow is not installed.
    """
    pyarrow = _module("pyarrow")
    names = [str(name) for name in getattr(frame, "columns", ())] if hasattr(frame, "iloc") else []
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SettingError(f"the data frame has two columns of one name: {repeated[0]!r}", "rename one of them")
    try:
        if hasattr(frame, "__arrow_c_stream__"):
            return pyarrow.table(frame)
        if hasattr(frame, "__dataframe__"):
            return _module("pyarrow.interchange").from_dataframe(frame)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        why = "; ".join(str(part) for part in error.args)
        raise SettingError(
            f"the data frame has values that are no column of one type: {why}"[:300],
            'give each column one type, such as frame.astype({"COLUMN": str})',
        ) from error
    raise SettingError(
        f"a {type(frame).__name__} is no data frame",
        "expected one of pandas, polars, pyarrow or another that speaks Arrow",
    )


def archive_of(frame: Any, folder: Path) -> Path:
    """Write a data frame to a file that the reader of tables takes, and return its path."""
    path = folder / "frame.parquet"
    _module("pyarrow.parquet").write_table(arrow_table(frame), path)
    return path


def _module(name: str) -> Any:
    return optional_module(name, f"data frames need {name.split('.')[0]}, which is not installed", "frames")
