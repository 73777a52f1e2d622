"""Pairs of question ids: which question is a duplicate of which, or linked to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from askalike.errors import DamagedInputError
from askalike.readers.files import first_bytes, plain_suffix, read_lines
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.values import Unreadable, identifier
from askalike.types import Link, LinkKind, Record

_KINDS: dict[str, LinkKind] = {
    "duplicate": "duplicate",
    "3": "duplicate",
    "related": "related",
    "linked": "related",
    "1": "related",
}
_HEADER_NAMES = frozenset(["duplicate_id", "original_id", "source_id", "target_id", "post_id", "related_post_id"])
_SNIFFED_LINES = 20


class PairsReader(Reader):
    """Reads a table of links on its own, to be added to questions that are already there."""

    name = "pairs"
    title = "a table of links: duplicate id, original id, kind (duplicate or related)"

    def matches(self, path: Path) -> bool:
        """Say whether the first lines are two ids and a kind of link."""
        separator = _separator(path)
        if separator is None:
            return False
        lines = first_bytes(path).decode("utf-8", "replace").splitlines()[:_SNIFFED_LINES]
        rows = [line.split(separator) for line in lines]
        if rows and _is_header(rows[0]):
            return len(rows[0]) in (2, 3)
        return bool(rows) and all(len(row) == 3 and row[2].strip().lower() in _KINDS and row[0] != "" for row in rows)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield a link a line; a line without a kind is a duplicate."""
        return iter(read_links(path, path.name, "duplicate", context))


def read_links(path: Path, name: str, default: LinkKind, context: ReadContext) -> Iterator[Link]:
    """Yield the links of one table.

    Args:
        name: what messages and rejects call it.
        default: the kind of pairs whose line names none.

    Raises:
        DamagedInputError: empty, not UTF-8, or a gzip stream is damaged; names file and line.
    """
    separator = _separator(path) or "\t"
    for number, line in read_lines(path, name, context):
        try:
            cells = [cell.strip() for cell in line.decode("utf-8").split(separator)]
        except UnicodeDecodeError as error:
            raise DamagedInputError(f"{name}, line {number}: not UTF-8", "convert the file to UTF-8") from error
        if cells == [""]:
            context.skipped["blank line"] += 1
        elif number == 1 and _is_header(cells):
            continue
        else:
            yield from _links(cells, name, number, default, context)


def _links(cells: list[str], name: str, number: int, default: LinkKind, context: ReadContext) -> Iterator[Link]:
    try:
        if len(cells) not in (2, 3):
            raise Unreadable(f"{len(cells)} cells, expected two ids and a kind")
        source, target = identifier(cells[0], "duplicate id"), identifier(cells[1], "original id")
        kind = _KINDS.get(cells[2].lower()) if len(cells) == 3 else default
        if kind is None:
            raise Unreadable(f"the kind is {cells[2][:40]!r}, expected one of {', '.join(_KINDS)}")
        if source == target:
            raise Unreadable("a question linked to itself")
    except Unreadable as error:
        context.reject(name, number, cells[0][:100], str(error))
        return
    context.records_in += 1
    yield Link(source, target, kind)


def _separator(path: Path) -> str | None:
    return {".tsv": "\t", ".csv": ","}.get(plain_suffix(path))


def _is_header(cells: list[str]) -> bool:
    return len(cells) >= 2 and all(cell.strip().strip('"').lower() in _HEADER_NAMES for cell in cells[:2])
