"""``askalike batch``: a forum or Parquet files, encoded and compared on all cores of a machine, or by a cluster."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from askalike import batch as batches
from askalike.cli.arguments import JsonOption, interruptible, same_again
from askalike.cli.display import print_whole
from askalike.cli.messages import BarProgress, print_json
from askalike.executors import CLUSTERS
from askalike.forum.groups import DEFAULT_MINIMUM

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
            help="A forum's folder; or Parquet files, as of an export, or a folder of them.",
            show_default=False,
        ),
    ],
    into: Annotated[Path, typer.Option("--into", help="The folder that is written to.")],
    cluster: Annotated[
        str, typer.Option("--cluster", help=f"{CLUSTERS}. Its machines have all folders under the same paths.")
    ] = "local",
    model: Annotated[
        str,
        typer.Option("--model", help="general, a model's folder, or a text encoder: of Parquet files."),
    ] = "",
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; by default one for each core.")
    ] = None,
    minimum: Annotated[
        float | None,
        typer.Option(
            "--min",
            "--minimum",
            min=0,
            max=1,
            help="The least probability of a pair; default: 0.5; of groups 0.85, of the least likely pair.",
        ),
    ] = None,
    language: Annotated[str, typer.Option("--language", help="Of Parquet files; a forum has its own.")] = "english",
    as_json: JsonOption = False,
) -> None:
    """Encode or compare a whole archive, also on a cluster.

    Writes vectors.parquet, or pairs.parquet or groups.parquet as "askalike duplicates --parquet" prints them. Of
    Parquet files it makes a forum in the folder first. What is done is kept: the same command goes on.
    """
    named = source[0] if len(source) == 1 else source
    with (
        interruptible(lambda: ("what is done is kept", same_again())),
        BarProgress() as progress,
    ):
        how = {"cluster": cluster, "model": model, "workers": workers, "language": language, "progress": progress}
        if what == "encode":
            done = batches.encode(named, into, **how)
        elif what == "pairs":
            done = batches.pairs(named, into, batches.DEFAULT_SCORE if minimum is None else minimum, **how)
        else:
            done = batches.groups(named, into, DEFAULT_MINIMUM if minimum is None else minimum, **how)
    if as_json:
        print_json({**asdict(done), "path": str(done.path)})
        return
    print_whole(
        f"{done.count:,} {MADE[what]} of {done.questions:,} questions are in {done.path} ({done.seconds:.1f} s)"
    )
