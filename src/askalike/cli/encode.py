"""``askalike encode``: a forum's questions into vectors, by a text encoder, its own model or the package's."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, get_args

import typer

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.calling import command, same_again, telling_how_to_go_on
from askalike.cli.display import console, print_json, print_whole, safe
from askalike.cli.progress import BarProgress
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.index.encoder_settings import (
    AGREED_VARIABLE,
    SHAPES,
    EncoderSettings,
    Kind,
    agree,
    agreed_file,
)
from askalike.index.model_source import remove_own_model
from askalike.progress import Progress
from askalike.store import ForumLayout


def is_text_encoder(written: str) -> bool:
    """Return whether a user names a text encoder, not a model's folder.

    >>> is_text_encoder("tei:http://localhost:8080"), is_text_encoder("C:/models/own"), is_text_encoder("general")
    (True, False, False)
    """
    return written == "minilm" or (":" in written and written.partition(":")[0] in get_args(Kind))


def use_named(forum: Forum, settings: EncoderSettings, progress: Progress) -> None:
    """Let a forum be encoded with the text encoder that the user names, and keep that they agreed to it.

    Raises:
        EncoderError: it cannot be had.
    """
    forum.use_encoder(settings)
    try:
        agree(settings)
    except OSError as error:
        progress.notice(
            f"{error.filename or agreed_file()} cannot be written ({error.strerror or error}): later commands use the"
            f' encoder only with {AGREED_VARIABLE}="{settings.agreement}" in the environment'
        )


def encode(
    forum: ForumArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help=f"A text encoder: {SHAPES}. general takes the forum's own model and encoder away, and the package's "
            "model answers. Or the folder of a model that askalike trained, a copy of which becomes the forum's own.",
        ),
    ] = "",
    key_variable: Annotated[
        str, typer.Option("--key-variable", help="Environment variable that holds the endpoint's key.")
    ] = "",
    query_prompt: Annotated[
        str | None, typer.Option("--query-prompt", help="Written before queries, in place of the model's own prompt.")
    ] = None,
    document_prompt: Annotated[
        str | None, typer.Option("--document-prompt", help="Written before the forum's questions, in the same way.")
    ] = None,
    truncate: Annotated[
        int | None, typer.Option("--truncate", help="Keep the first so many dimensions (Matryoshka models).")
    ] = None,
    pca: Annotated[
        int | None, typer.Option("--pca", help="Keep so many principal directions of the forum's vectors.")
    ] = None,
    precision: Annotated[
        str, typer.Option("--precision", help="float32 or int8, for a sentence transformer; int8 for minilm.")
    ] = "",
    characters: Annotated[
        int | None, typer.Option("--characters", min=1, help="Characters of a question that are read.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Encode the questions that are not encoded yet.

    These are all of them when the model has changed. It can be interrupted and goes on.
    """
    began = time.monotonic()
    options = {
        "key_variable": key_variable or None,
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
        "truncate": truncate,
        "pca": pca,
        "precision": precision or None,
        "max_characters": characters,
    }
    given = {name: value for name, value in options.items() if value is not None}
    named = replace(EncoderSettings.parse(model), **given) if is_text_encoder(model) else None  # type: ignore[arg-type]
    if given and named is None:
        raise SettingError(f"{', '.join(given)} given without a text encoder", f"name it with --model: one of {SHAPES}")
    with (
        telling_how_to_go_on(lambda: ("vectors encoded so far are kept", same_again())),
        BarProgress() as progress,
        Forum.open(forum, progress=progress) as opened,
    ):
        if model == "general":
            remove_own_model(ForumLayout(forum), opened.analyzer.settings.language)
        elif named is not None:
            use_named(opened, named, progress)
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
    if vectors.problem:
        print_whole(safe(f"note: {vectors.problem}"))
    console.print(f"{vectors.entries:,} questions are encoded by the model {safe(vectors.model)} ({seconds:.1f} s)")
    print_whole(f'  {command("search", forum)} "your question"')
