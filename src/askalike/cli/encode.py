"""``askalike encode``: a forum's questions into vectors, by the package's encoder, another, or its own model."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from askalike.agreement import agreed_file
from askalike.cli.arguments import ForumArgument, JsonOption, command, interruptible, same_again
from askalike.cli.display import console, print_whole
from askalike.cli.messages import BarProgress, print_json, safe
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.models.encoder_settings import (
    AGREED_VARIABLE,
    RERANKER_SHAPES,
    SHAPES,
    EncoderSettings,
    Kind,
    RerankerSettings,
    agree,
    is_transformer_folder,
)
from askalike.progress import Progress

DEFAULT_VARIABLE = "ASKALIKE_ENCODER"
"""Environment variable that names what new forums are encoded with."""


def default_encoder() -> str:
    """Return what the environment names to encode new forums with, "" where it names nothing."""
    return os.environ.get(DEFAULT_VARIABLE, "")


def is_text_encoder(written: str) -> bool:
    """Return whether a user names a text encoder, not the folder of a model that askalike trained.

    >>> is_text_encoder("openai:http://localhost:8080/v1#bge"), is_text_encoder("C:/models/own")
    (True, False)
    """
    has_kind = written == "general" or (":" in written and written.partition(":")[0] in get_args(Kind))
    return has_kind or (bool(written) and is_transformer_folder(Path(written)))


def use_named(forum: Forum, settings: EncoderSettings, progress: Progress) -> None:
    """Let a forum be encoded with the text encoder that the user names, and keep that they agreed to it."""
    forum.models.use_encoder("general" if settings.kind == "general" else settings)
    keep_agreement(settings, progress)


def keep_agreement(settings: EncoderSettings | RerankerSettings, progress: Progress) -> None:
    """Keep that the user agreed to an encoder or reranker by naming it."""
    try:
        agree(settings)
    except OSError as error:
        progress.notice(
            f"{error.filename or agreed_file()} cannot be written ({error.strerror or error}): later commands use"
            f' {settings.written} only with {AGREED_VARIABLE}="{settings.agreement}" in the environment'
        )


def _encoder_of(model: str, options: Mapping[str, Any]) -> EncoderSettings | None:
    """Return the text encoder that the user names, None where they name a folder or nothing."""
    if is_text_encoder(model):
        if model == "general" and options:
            raise SettingError(f"{', '.join(options)} given for the bundled encoder", "leave them out")
        return replace(EncoderSettings.parse(model), **options)
    if model and not Path(model).exists():
        raise SettingError(
            f"there is no encoder {model[:200]!r}, and no such folder",
            f"expected {SHAPES}, or the folder of a model that askalike trained",
        )
    if options:
        raise SettingError(
            f"{', '.join(options)} given without a text encoder", f"name it with --model: one of {SHAPES}"
        )
    return None


def encode(
    forum: ForumArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help=f"An encoder: {SHAPES}. general is the package's own, and takes the forum's own model and encoder "
            "away. A PATH may stand alone. Or the folder of a model that askalike trained, a copy of which becomes the"
            " forum's own.",
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
    precision: Annotated[str, typer.Option("--precision", help="float32 or int8, for a sentence transformer.")] = "",
    characters: Annotated[
        int | None, typer.Option("--characters", min=1, help="Characters of a question that are read.")
    ] = None,
    reranker: Annotated[
        str,
        typer.Option(
            "--reranker",
            help=f"What puts the 20 best hits in its order: {RERANKER_SHAPES}; none takes it away. --key-variable is"
            " its own where no --model is given.",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Encode the questions that are not encoded yet.

    These are all of them when the model has changed. It can be interrupted and goes on.
    """
    began = time.monotonic()
    ranked_by = (
        RerankerSettings.parse(reranker, "" if model else key_variable) if reranker not in ("", "none") else None
    )
    options = {
        "key_variable": None if ranked_by and not model else key_variable or None,
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
        "truncate": truncate,
        "precision": precision or None,
        "max_characters": characters,
    }
    encoder_options = {name: value for name, value in options.items() if value is not None}
    named = _encoder_of(model, encoder_options)
    with (
        interruptible(lambda: ("vectors encoded so far are kept", same_again())),
        BarProgress() as progress,
        Forum.open(forum, progress=progress) as opened,
    ):
        if named is not None:
            use_named(opened, named, progress)
        elif model:
            opened.models.use_model(model)
        if reranker:
            opened.models.use_reranker(ranked_by)
        if ranked_by is not None:
            keep_agreement(ranked_by, progress)
        if model or not reranker:
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
                **({"reranker": ranked_by and ranked_by.written} if reranker else {}),
                "seconds": seconds,
            }
        )
        return
    if vectors.problem:
        print_whole(safe(f"note: {vectors.problem}"))
    if reranker:
        print_whole(safe(f"the best hits are put in order by {ranked_by.written if ranked_by else 'the probability'}"))
    if model or not reranker:
        console.print(f"{vectors.entries:,} questions are encoded by the model {safe(vectors.model)} ({seconds:.1f} s)")
    print_whole(f'  {command("search", forum)} "your question"')
