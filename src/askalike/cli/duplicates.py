"""``askalike duplicates``: the pairs of a forum's questions that may ask the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final

import msgspec
import typer

from askalike.cli.arguments import CsvOption, ForumArgument, JsonOption, ParquetOption, form_of, moment
from askalike.cli.calling import same_again, telling_how_to_go_on
from askalike.cli.display import print_records
from askalike.cli.progress import BarProgress
from askalike.forum import Duplicate, Forum


class Row(msgspec.Struct, frozen=True):
    """A pair; ``id`` is the later question, which may be a duplicate of the earlier one, ``original_id``."""

    score: float
    likelihood: float
    cosine: float | None
    exact: bool
    id: str
    original_id: str
    title: str
    original_title: str


COLUMNS: Final[Mapping[str, Callable[[Row], str]]] = {
    "likely": lambda row: "exact" if row.exact else f"{row.likelihood:.0%}",
    "question": lambda row: f"{row.id}: {row.title}",
    "may repeat": lambda row: f"{row.original_id}: {row.original_title}",
}


def duplicates(
    forum: ForumArgument,
    minimum: Annotated[
        float, typer.Option("--min", help="The least probability of being duplicates.", min=0, max=1)
    ] = 0.5,
    since: Annotated[
        str | None, typer.Option("--since", help="Only pairs of which one was asked on this date or later.")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Only questions with the same text.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="Print at most so many pairs; 0: all.", min=0)] = 0,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    as_parquet: ParquetOption = False,
) -> None:
    """List pairs of the forum's questions that may be duplicates.

    The best come first; pairs that are linked or were judged are left out. Every question is compared with all others
    once, and again after it has changed: what was compared is kept, so that Ctrl-C loses nothing.
    """
    form = form_of(as_json, as_csv, as_parquet)
    start = moment(since, "--since")
    with (
        telling_how_to_go_on(lambda: ("what was compared is kept", same_again())),
        BarProgress() as progress,
        Forum.open(forum, progress=progress) as opened,
    ):
        found = opened.duplicates(minimum, since=start, is_exact=exact, progress=progress)
        rows = [row for row, _ in zip(_rows(found), range(limit), strict=False)] if limit else list(_rows(found))
    print_records(rows, Row, form, COLUMNS)


def _rows(found: Iterator[Duplicate]) -> Iterator[Row]:
    for one in found:
        new, old = one.question, one.candidate
        yield Row(one.score, one.likelihood, one.cosine, one.is_exact, new.id, old.id, new.title, old.title)
