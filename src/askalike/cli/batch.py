"""``askalike batch``: a forum or Parquet files, encoded and compared on all cores of a machine, or by a cluster."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from askalike import batch as batches
from askalike.cli.arguments import JsonOption, same_again, telling_how_to_go_on
from askalike.cli.display import BarProgress, print_json, print_whole
from askalike.forum.groups import DEFAULT_MINIMUM, LEAST

MADE = {"encode": "vectors", "pairs": "pairs", "groups": "groups"}


def batch(
    what: Annotated[
        Literal["encode", "pairs", "groups"],
        typer.Argument(help="Vectors, pairs that may ask the same, or groups of these.", show_default=False),
    ],
    source: Annotated[
        list[Path],
        typer.Argument(
            metavar="FORUM|PARQUET...",
            help="A forum's folder; or Parquet files with the columns id, title, body and markup, or a folder of them.",
            show_default=False,
        ),
    ],
    into: Annotated[
        Path, typer.Option("--into", help="The folder of the batch; every machine has it under this path.")
    ],
    cluster: Annotated[str, typer.Option("--cluster", help=f"{batches.SHAPES}.")] = "local",
    model: Annotated[
        str,
        typer.Option("--model", help="general, a model's folder, or a text encoder; by default the forum's."),
    ] = "",
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; by default one for each core.")
    ] = None,
    part_size: Annotated[
        int, typer.Option("--part-size", min=1, help="Questions of a forum that are one part.")
    ] = batches.PART,
    minimum: Annotated[
        float, typer.Option("--min", "--minimum", min=LEAST, max=1, help="The least probability of a pair of a group.")
    ] = DEFAULT_MINIMUM,
    language: Annotated[str, typer.Option("--language", help="Of Parquet files; a forum has its own.")] = "english",
    as_json: JsonOption = False,
) -> None:
    """Encode or compare a whole archive, in parts.

    Writes vectors/, pairs.parquet or groups.parquet, and before that what it needs. A forum's questions are taken as
    they are when the batch begins. Parts that are done stay: the same command goes on.
    """
    named = source[0] if len(source) == 1 else source
    with (
        telling_how_to_go_on(lambda: ("parts that are done are kept", same_again())),
        BarProgress() as progress,
    ):
        how = {"cluster": cluster, "model": model, "workers": workers, "part_size": part_size, "language": language}
        if what == "groups":
            done = batches.groups(named, into, minimum, progress=progress, **how)
        else:
            done = {"encode": batches.encode, "pairs": batches.pairs}[what](named, into, progress=progress, **how)
    if as_json:
        print_json({**asdict(done), "path": str(done.path)})
        return
    print_whole(
        f"{done.count:,} {MADE[what]} of {done.questions:,} questions are in {done.path} ({done.seconds:.1f} s)"
    )
