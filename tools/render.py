"""From a results file to the lines of a Markdown table: rows are records, cells are templates filled from them.

A template is a format string over a record: ``{search[title][p50_ms]:.1f}``. ``{name}`` is what the record is called.
Beside Python's formats there are ``c``, a share in hundredths (``{mean:.2c}`` of .465 is 46.50), and ``join``, the
names and values of a mapping. A cell of which a part is missing is empty.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["REPOSITORY", "RESULTS", "Facts", "Table", "cell", "load", "rendered"]

REPOSITORY: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = REPOSITORY / "results"

Record = Mapping[str, Any]
Cell = str | Callable[[Record], str]
Records = Iterable[tuple[str, Record]]


@dataclass(frozen=True, slots=True)
class Table:
    """One row a record of a results file.

    Args:
        result: the name of the results file; several: each whole file is a record.
        columns: heading → template, or a function of the record.
        rows: where the records are, a path of keys, or a function that gives names and records.
        labels: name of a record → what the table calls it; others are left out. Empty: all, by their names.
        caption: a template over the whole file, below the table.
    """

    result: str | Sequence[str]
    columns: Mapping[str, Cell]
    rows: Sequence[str] | Callable[[Record], Records] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures of several results, a line each.

    Args:
        lines: what it is, the results file, the templates of the figures. Without the first, a list of sentences.
        headings: of the columns.
    """

    lines: Sequence[tuple[str, str, *tuple[Cell, ...]]]
    headings: Sequence[str] = ("what", "figure")


class _Missing(Exception):
    """A part of a template is not in the record."""


class _Formatter(string.Formatter):
    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            return super().get_field(field_name, args, kwargs)
        except (KeyError, IndexError, AttributeError, TypeError):
            raise _Missing(field_name) from None

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            raise _Missing(format_spec)
        if format_spec == "join":
            return ", ".join(f"{name} {count:,}" for name, count in value.items())
        if format_spec.endswith("c"):
            return format(100 * value, f"{format_spec[:-1]}f")
        return str(super().format_field(value, format_spec))


_FORMATTER: Final = _Formatter()


def cell(template: Cell, record: Record) -> str:
    """Return a filled template, "" where a part of it is missing.

    >>> cell("{map:.1c} ({interval[0]:.1c}–{interval[1]:.1c})", {"map": 0.465, "interval": [0.408, 0.525]})
    '46.5 (40.8–52.5)'
    >>> cell("{mrr:.1c}", {"map": 0.465})
    ''
    """
    if not isinstance(template, str):
        return template(record)
    try:
        return _FORMATTER.vformat(template, (), record)
    except _Missing:
        return ""


def load(name: str) -> dict[str, Any]:
    """Return the content of a results file."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return content


def rendered(table: Table | Facts, page: Path) -> list[str]:
    """Return the lines of a table, with links as they are on a page.

    Args:
        page: relative to the repository.
    """
    if isinstance(table, Facts):
        names = list(dict.fromkeys(result for _, result, *_ in table.lines))
        filled = [
            (label, *(cell(template, load(result)) for template in templates))
            for label, result, *templates in table.lines
        ]
        if not table.lines[0][0]:
            return [*(f"- {line[1]}" for line in filled), "", _provenance(names, page)]
        return [*markdown(table.headings, filled), "", _provenance(names, page)]
    names = [table.result] if isinstance(table.result, str) else list(table.result)
    lines = markdown(
        table.columns, [[cell(template, record) for template in table.columns.values()] for record in _records(table)]
    )
    caption = [cell(table.caption, load(names[0])), ""] if table.caption else []
    return [*lines, "", *caption, _provenance(names, page)]


def markdown(headings: Iterable[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; a column in which nothing stands is left out.

    >>> markdown(("row", "p"), [("bm25", ""), ("svm", "")])
    ['| row |', '|---|', '| bm25 |', '| svm |']
    """
    columns = [column for column in zip(headings, *rows, strict=True) if any(column[1:])]
    header, *body = zip(*columns, strict=True)
    return [_line(header), "|" + "---|" * len(header), *map(_line, body)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _records(table: Table) -> Iterable[Record]:
    if not isinstance(table.result, str):
        return [{"name": name, **load(name)} for name in table.result]
    content: Any = load(table.result)
    if callable(table.rows):
        records = dict(table.rows(content))
    else:
        for key in table.rows:
            content = content[key]
        if isinstance(content, Mapping):
            records = {
                name: record if isinstance(record, Mapping) else {"value": record} for name, record in content.items()
            }
        else:
            records = {str(record.get("name", place)): record for place, record in enumerate(content)}
    labels = table.labels or {name: name for name in records}
    return [{**records[name], "name": label} for name, label in labels.items() if name in records]


def _provenance(names: Sequence[str], page: Path) -> str:
    """Return by which command, at which commit and where figures were measured."""
    up = "../" * (len(page.parts) - 1)
    parts = []
    for name in names:
        result = load(name)
        machine = result["machine"]
        parts.append(
            f"[{name}]({up}results/{name}.json): `{result['command']}`, commit `{result['commit']}`,"
            f" {result['when'][:10]}, {machine['cores']} cores of {machine['cpu']}"
        )
    return f"*{'; '.join(parts)}.*"
