"""Pairs of question ids: which question is a duplicate of which, or linked to it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from askalike.readers.files import first_bytes, plain_suffix, text_lines
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.values import Unreadable, identifier, read_each
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
        return read_links(path, path.name, "duplicate", context)


def read_links(path: Path, name: str, default: LinkKind, context: ReadContext) -> Iterator[Link]:
    """Yield the links of one table.

    Args:
        name: what messages and rejects call it.
        default: the kind of pairs whose line names none.

    Raises:
        DamagedInputError: empty, not UTF-8, or a gzip stream is damaged; names file and line.
    """
    separator = _separator(path) or "\t"

    def rows() -> Iterator[tuple[int, list[str]]]:
        for number, line in text_lines(path, name, context):
            cells = [cell.strip() for cell in line.split(separator)]
            if number > 1 or not _is_header(cells):
                yield number, cells

    return read_each(rows(), lambda cells: _link(cells, default), name, context, itemgetter(0))


def _link(cells: list[str], default: LinkKind) -> Link:
    if len(cells) not in (2, 3):
        raise Unreadable(f"{len(cells)} cells, expected two ids and a kind")
    source, target = identifier(cells[0], "duplicate id"), identifier(cells[1], "original id")
    kind = _KINDS.get(cells[2].lower()) if len(cells) == 3 else default
    if kind is None:
        raise Unreadable(f"the kind is {cells[2][:40]!r}, expected one of {', '.join(_KINDS)}")
    if source == target:
        raise Unreadable("a question linked to itself")
    return Link(source, target, kind)


def _separator(path: Path) -> str | None:
    return {".tsv": "\t", ".csv": ","}.get(plain_suffix(path))


def _is_header(cells: list[str]) -> bool:
    return len(cells) >= 2 and all(cell.strip().strip('"').lower() in _HEADER_NAMES for cell in cells[:2])
