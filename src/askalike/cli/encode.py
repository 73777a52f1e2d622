"""``askalike encode``: a forum's questions into vectors, by its own model or the package's."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.calling import command, same_again, telling_how_to_go_on
from askalike.cli.display import console, print_json, print_whole, safe
from askalike.cli.progress import BarProgress
from askalike.forum import Forum
from askalike.index.model_source import remove_own_model
from askalike.store import Layout


def encode(
    forum: ForumArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="A trained model's folder, a copy of which becomes the forum's own model; or general: the forum's own "
            "is taken away, and the package's answers.",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Encode what is not encoded yet; everything, when the model has changed. It can be interrupted and goes on."""
    began = time.monotonic()
    with (
        telling_how_to_go_on(lambda: ("vectors encoded so far are kept", same_again())),
        BarProgress() as progress,
        Forum.open(forum, progress=progress) as opened,
    ):
        if model == "general":
            remove_own_model(Layout(forum), opened.analyzer.settings.language)
        elif model:
            opened.use_model(model)
        opened.encode(progress=progress)
        vectors = opened.info().vectors
    seconds = round(time.monotonic() - began, 2)
    if as_json:
        print_json(
            {
                "forum": str(forum),
                "model": vectors.model,
                "encoded": vectors.entries,
                "not_encoded": vectors.waiting,
                "has_graph": vectors.has_graph,
                "seconds": seconds,
            }
        )
        return
    console.print(f"{vectors.entries:,} questions are encoded by the model {safe(vectors.model)} ({seconds:.1f} s)")
    print_whole(f'  {command("search", forum)} "your question"')
