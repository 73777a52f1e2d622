"""``askalike reproduce``: the tables of a paper, row by row, beside the figures that it reports."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from askalike.cli.arguments import JsonOption
from askalike.cli.display import errors, print_whole
from askalike.cli.reproduce_das2016 import reproduce_das2016
from askalike.cli.reproduce_lei2016 import reproduce_lei2016
from askalike.cli.reproduce_zhang2018 import reproduce_zhang2018
from askalike.cli.reproduction import Wanted
from askalike.errors import SettingError

__all__ = ["PAPERS", "reproduce"]

PAPERS: Mapping[str, tuple[Callable[[Wanted], None], str]] = {
    "lei2016": (reproduce_lei2016, "lei2016"),
    "zhang2018": (reproduce_zhang2018, "ramn"),
    "das2016": (reproduce_das2016, "scqa"),
}
"""Paper → what runs it, and its recipe."""

_OWN: Mapping[str, str] = {
    "--amount": "zhang2018",
    "--first": "zhang2018",
    "--vectors": "lei2016",
    "--pairs": "das2016",
}
"""Option of one paper alone → that paper."""


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(PAPERS)}.")],
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="The folder of the paper's data, or one with the sets that stand in for it: see docs/recipes.md.",
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="A row or a set, of das2016 a system too, of zhang2018 attention or gru; may be repeated."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Trainings of each encoder.", min=1)] = 5,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for what is finished; named after the paper if left out.")
    ] = None,
    recipe: Annotated[
        str, typer.Option("--recipe", help="How encoders are trained: a name or a file; the paper's if left out.")
    ] = "",
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option(
            "--unlabelled", help="lei2016, zhang2018: an archive more whose texts are learned from; may be repeated."
        ),
    ] = None,
    amount: Annotated[
        list[int] | None,
        typer.Option("--amount", help="zhang2018: so many texts, 0 for all; may be repeated for a curve.", min=0),
    ] = None,
    first: Annotated[
        str,
        typer.Option(
            "--first", help="zhang2018: the kind of text that amounts take first: questions, comments or an archive."
        ),
    ] = "",
    pairs: Annotated[
        int, typer.Option("--pairs", help="das2016: so many questions with answers, 0 for all.", min=0)
    ] = 0,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors", help="lei2016: word vectors in word2vec's text format; trained on all texts if left out."
        ),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option("--jobs", help="Trainings beside each other, of one thread each.", min=1)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Run the rows of a paper's tables and print them beside the reported figures.

    What is finished is kept in the output folder: an interrupted run goes on where it was. lei2016: every encoder is
    trained with each seed; word vectors are trained once a seed, and pre-training is done once for each network and
    seed, on the texts and training pairs of all sets in the folder. zhang2018: an autoencoder of each kind is trained
    with each seed on each amount of text; dev chooses what the paper leaves open. das2016: language models are learned
    from questions with their answers and tuned on dev; siamese networks, and models of topics, with each seed.
    """
    if paper not in PAPERS:
        raise SettingError(f"there is no paper {paper!r}", f"expected one of {', '.join(PAPERS)}")
    given = {
        "--amount": bool(amount),
        "--first": bool(first),
        "--vectors": vectors is not None,
        "--pairs": bool(pairs),
    }
    _refuse_options(given, paper)
    if device != "cpu" and importlib.util.find_spec("torch") is not None:
        from askalike.training.encoder import device_named

        device_named(device)  # before anything is read
    folder = out or Path(paper)
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"{folder} is a file, and what is finished needs a folder", "name a folder with --out")
    run, usual = PAPERS[paper]
    wanted = Wanted(
        data=data,
        only=tuple(only or ()),
        seeds=seeds,
        out=folder,
        recipe=recipe or usual,
        unlabelled=tuple(unlabelled or ()),
        amounts=tuple(dict.fromkeys(amount or (0,))),
        vectors=vectors,
        device=device,
        jobs=jobs,
        as_json=as_json,
        pairs=pairs,
        first=first,
    )
    run(wanted)
    if not as_json:
        print_whole(f"what is finished is kept in {wanted.out}", errors)


def _refuse_options(given: Mapping[str, bool], paper: str) -> None:
    """Raise SettingError where an option was given that is another paper's."""
    if wrong := [option for option, is_given in given.items() if is_given and _OWN[option] != paper]:
        raise SettingError(f"{wrong[0]} is an option of {_OWN[wrong[0]]}, not of {paper}", "leave it out")
