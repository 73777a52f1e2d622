"""``askalike demo``: the bundled forum indexed, three questions asked, and what to try next."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from askalike.cli.arguments import JsonOption, command
from askalike.cli.display import console, print_hits, print_whole
from askalike.cli.messages import BarProgress, print_json
from askalike.data import bundled_forum
from askalike.errors import ForumNotFoundError, SettingError
from askalike.forum import Forum, ImportOptions

QUESTIONS: Final = (
    "Can't reach my web server by its domain name from home",
    "Bluetooth headphones: bad sound during calls",
    "Zoom stutters when my wife uploads photos",
)
"""Each finds its first hit without a near copy: a test deletes those and asks again. The third shows how far a
paraphrase gets: first, with a low probability."""

SHOWN = 3
SOURCE = "homenet"


def demo(
    into: Annotated[Path, typer.Option("--into", help="Where the demonstration forum is kept.")] = Path(
        "homenet.forum"
    ),
    as_json: JsonOption = False,
) -> None:
    """Index the bundled forum and answer three questions."""
    began = time.monotonic()
    with BarProgress() as progress:
        try:
            forum = Forum.open(into, progress=progress)
        except ForumNotFoundError:
            forum = Forum.create(into)
        if forum.store.sources() and SOURCE not in forum.store.sources():
            raise SettingError(f"{into} is another forum", "choose another folder with --into")
        forum.load(bundled_forum(), options=ImportOptions(format="jsonl", source=SOURCE), progress=progress)
    with forum:
        counts = forum.info().counts
        indexed_s = time.monotonic() - began
        answers = {question: forum.similar(question, k=SHOWN) for question in QUESTIONS}
        model = forum.indexes.state().model
    if as_json:
        print_json(answers)
        return
    print_whole(
        f"{counts.questions} questions and {counts.answers} answers of the bundled forum are in {into}"
        f" ({indexed_s:.1f} s)."
    )
    print_whole(
        f"They are searched by words (bm25) and by meaning (cosine), with the encoder {model}."
        if model
        else "note: this package contains no encoder, so searches use words only."
    )
    for question, hits in answers.items():
        console.rule(f"[bold]“{question}”", align="left", style="dim")
        print_hits(hits, {})
    console.rule(style="dim")
    console.print("Try next:", style="bold")
    for line in (
        f'{command("search", into)} "printer gone after a power cut" -k 5',
        command("evaluate", into),
        f"{command('index', 'YOUR-ARCHIVE', '--into', 'my.forum')}   (Stack Exchange dump, Discourse, CSV, JSONL, …)",
    ):
        print_whole(f"  {line}")
