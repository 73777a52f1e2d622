"""From an archive's files into a forum's store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from askalike.errors import InputError, SettingError
from askalike.progress import Progress
from askalike.readers.detection import find_archive
from askalike.readers.frame import ReadContext, Reader, ReadOptions, Rejects
from askalike.store import LoadReport, Store
from askalike.store.rows import is_storable
from askalike.types import Record, Reject, Source


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How an archive is read into a forum.

    Args:
        format: a name from ``readers.detection.READERS``; "" detects it.
        source: what the records belong to; reading the same source again also deletes what has gone from it.
            "" takes the archive's own path.
        is_mass_delete_allowed: go on when more than half of the source's questions would be deleted.
        read: what the reader is told.
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
    store: Store, path: Path, options: ImportOptions, rejects_path: Path, progress: Progress
) -> ImportReport:
    """Read ``path`` into the store in one transaction: all of it, or after an error nothing.

    Raises:
        InputError: the path cannot be read; the message names file and line.
    """
    path, reader, left_out = find_archive(path, options.format or None)
    if left_out:
        progress.notice(f"{path.name} is read; not read: {', '.join(left_out)[:200]}")
    source = Source(_source_name(options.source, path), reader.name)
    with _refusals_named(path):
        progress.start(f"reading {path.name} ({reader.name})", reader.size_bytes(path), "bytes")
    with Rejects(rejects_path) as rejects:
        context = ReadContext(options=options.read, rejects=rejects, advance=progress.advance, notice=progress.notice)
        refused = 0

        def refuse(reject: Reject) -> None:
            nonlocal refused
            refused += 1
            rejects.add(reject)

        try:
            report = store.load(
                _checked(reader, path, context),
                source,
                refuse,
                unread=lambda: rejects.count - refused,
                is_mass_delete_allowed=options.is_mass_delete_allowed,
            )
        except InputError as error:
            if type(error) is not InputError or not rejects.count:
                raise
            raise _with_first_reject(error, rejects) from error
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


def _source_name(given: str, path: Path) -> str:
    """Return the name that is stored: the one given, or the archive's path, of which odd bytes are written out."""
    if not given:
        return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")
    if not is_storable(given):
        raise SettingError(f"the source's name {given!r} is not UTF-8", "choose another name")
    return given


def _with_first_reject(error: InputError, rejects: Rejects) -> InputError:
    """Return the error with what was rejected before it: a new forum is taken away again, and its reject file too."""
    first = rejects.first[0]
    where = f"{first.file}, line {first.line}" if first.line else first.file
    found = f"{rejects.count:,} records were rejected, the first in {where}: {first.reason}"
    hint = "correct the records, or name the right --format"
    return InputError(f"{error.message}; {found}", hint if error.hint in hint else f"{error.hint}; or {hint}")
