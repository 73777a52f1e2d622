"""``askalike deduplicate``: a table of questions without repeats, and what was removed by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from askalike.cli.arguments import ColumnOption, JsonOption, MarkupOption, column_mapping, interruptible, same_again
from askalike.cli.display import console, print_records, print_whole
from askalike.cli.encode import default_encoder
from askalike.cli.messages import BarProgress, print_json, safe
from askalike.deduplication import Deduplication, Removal, check_folder, unique_path
from askalike.deduplication import deduplicate as remove_repeats
from askalike.files import replacing_whole
from askalike.forum.groups import DEFAULT_MINIMUM
from askalike.models.encoder_settings import SHAPES
from askalike.records import Form, write_records
from askalike.text.settings import TextSettings

SHOWN: Final = 20

COLUMNS: Final[Mapping[str, Callable[[Removal], str]]] = {
    "likely": lambda removal: "exact" if removal.is_exact else f"{removal.probability:.0%}",
    "row": lambda removal: str(removal.row),
    "removed": lambda removal: removal.text,
    "kept row": lambda removal: str(removal.kept_row),
    "kept": lambda removal: removal.kept_text,
}


def deduplicate(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV, TSV, JSON Lines or Parquet.", show_default=False)
    ],
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", help="The file for what is kept, replaced if there; NAME.unique.csv beside NAME.csv if omitted."
        ),
    ] = None,
    removed: Annotated[
        Path | None,
        typer.Option("--removed", help="A file for what was removed by what: JSON Lines where it ends so, else CSV."),
    ] = None,
    minimum: Annotated[
        str,
        typer.Option(
            "--min", "--minimum", help="The least probability of two questions of a group; 1: exact repeats alone."
        ),
    ] = f"{DEFAULT_MINIMUM:g}",
    column: ColumnOption = None,
    markup: MarkupOption = None,
    language: Annotated[
        str, typer.Option("--language", help="As of askalike index; several with commas, the main one first.")
    ] = "",
    encoder: Annotated[
        str, typer.Option("--encoder", help=f"What encodes: {SHAPES}. By default as of askalike index.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Remove repeated questions from a table.

    Exact repeats go first, whose text is the same, then likely ones, in groups of which each question asks the same as
    every other. The oldest is kept, or the first where no dates are known; its lines are copied as they are. All that
    was removed is listed with the row that was kept; 0 is the first row.
    """
    text = TextSettings.of(language) if language else None
    if removed is not None:
        check_folder(removed)
    is_replaced = (into or unique_path(table)).exists()
    with (
        interruptible(lambda: ("nothing was written", same_again())),
        BarProgress() as progress,
    ):
        result = remove_repeats(
            table,
            minimum=minimum,
            into=into,
            columns=column_mapping(column or []),
            markup=markup,
            text=text,
            encoder=encoder or default_encoder() or None,
            progress=progress,
        )
    if removed is not None:
        _write(result, removed)
    if as_json:
        print_json(
            {
                "rows": result.rows,
                "kept": result.rows - len(result.removed),
                "into": str(result.kept),
                "minimum": result.minimum,
                "removed": [asdict(removal) for removal in result.removed],
                "unread": [asdict(row) for row in result.unread],
            }
        )
        return
    _show(result, removed, is_replaced=is_replaced)


def _write(result: Deduplication, path: Path) -> None:
    form: Form = "jsonl" if path.suffix.lower() in (".jsonl", ".ndjson") else "csv"
    with replacing_whole(path) as file:
        write_records(result.removed, Removal, form, file)


def _show(result: Deduplication, removed: Path | None, *, is_replaced: bool) -> None:
    count = len(result.removed)
    if count:
        print_records(result.removed[:SHOWN], Removal, None, COLUMNS)
    if count > SHOWN:
        where = "" if removed else ": --removed FILE writes them all"
        console.print(f"… and {count - SHOWN:,} more{where}", style="dim", markup=False)
    likely = f", {count - result.exact:,} at least {result.minimum:.0%} likely" if result.minimum < 1 else ""
    console.print(f"{count:,} of {result.rows:,} rows removed: {result.exact:,} exact{likely}", markup=False)
    if result.unread:
        first = result.unread[0]
        print_whole(f"{len(result.unread):,} rows were kept unread, the first is row {first.row}: {safe(first.reason)}")
    replaced = ", in place of the file that was there" if is_replaced else ""
    print_whole(f"{result.rows - count:,} rows are in {result.kept}{replaced}")
    if removed is not None:
        print_whole(f"what was removed by what is in {removed}")
