"""Distil, export and judge the bundled encoder: ``python -m recipes.encoder distill …``, then ``… export``.

It needs the dependency group ``recipes``, folders of all-MiniLM-L6-v2 and all-mpnet-base-v2 as sentence-transformers
writes them, and the data sets (``ASKALIKE_DATA``). ``distill`` may be stopped and continues; ``export`` writes the
package's folder from its state, or from MiniLM itself where none is named; ``evaluate`` writes
``results/encoder.json``; ``adapt`` trains it on forums and writes ``results/adaptation.json``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.record import reddit_rows, write

from askalike.text.markup import plain_text
from recipes.folders import MINILM, REPOSITORY

if TYPE_CHECKING:
    from recipes.encoder.distill import CommunityQuestion

PACKAGED: Final = REPOSITORY / "src" / "askalike" / "data" / "models" / "general"
BODY_CHARACTERS: Final = 1_500
COMPARED: Final = 400
SAMPLES: Final = 400
"""Texts by which the inputs of products are balanced; others than are compared."""


def read_questions() -> dict[str, list[CommunityQuestion]]:
    """Return the questions of each subreddit, bodies as plain text."""
    from recipes.encoder.distill import CommunityQuestion

    questions: dict[str, list[CommunityQuestion]] = {}
    for row in reddit_rows():
        body = plain_text(row["body"] or "", "markdown")[:BODY_CHARACTERS]
        questions.setdefault(row["tags"][0], []).append(CommunityQuestion(row["title"], body))
    return questions


def run_distill(options: argparse.Namespace) -> None:
    """Train the student."""
    import torch

    from recipes.encoder.distill import DistillSettings, distill

    torch.set_num_threads(options.threads)
    settings = DistillSettings(steps=options.steps, seed=options.seed)
    distill(read_questions(), options.base, options.teacher, options.work, settings)


def run_export(options: argparse.Namespace) -> None:
    """Write the package's folder, and print its size and how near its vectors are to those in float32."""
    from recipes.encoder.export import cosines_to_float32, export

    rows = reddit_rows(COMPARED + SAMPLES)
    texts: Sequence[str] = [f"{row['title']}\n{row['body'] or ''}"[:BODY_CHARACTERS] for row in rows]
    manifest = export(options.base, options.state, options.out, texts[COMPARED:])
    size = sum(file.stat().st_size for file in options.out.iterdir())
    texts = texts[:COMPARED]
    cosines = cosines_to_float32(options.base, options.state, options.out, texts)
    print(f"{manifest.name}: {size / 1e6:.1f} MB; cosine to float32 {cosines.mean():.4f}, least {cosines.min():.4f}")


def run_evaluate(options: argparse.Namespace) -> None:
    """Judge encoders and write the result."""
    from recipes.encoder.evaluate import evaluate

    names = " ".join(f"{name}=FOLDER" for name, _ in options.encoders)
    write("encoder", f"python -m recipes.encoder evaluate {names}", evaluate(options.base, dict(options.encoders)))


def run_adapt(options: argparse.Namespace) -> None:
    """Adapt the bundled encoder to forums, judge it and write the result."""
    from recipes.encoder.adapt import FORUMS, adapt

    forums = options.forums or FORUMS
    seeds = " ".join(map(str, options.seeds))
    named = " ".join(["python -m recipes.encoder adapt", *options.forums])
    command = f"{named} --seeds {seeds} --work FOLDER --device {options.device}"
    options.work.mkdir(parents=True, exist_ok=True)
    write("adaptation", command, adapt(forums, options.seeds, options.device, options.work))


def _named(written: str) -> tuple[str, Path]:
    name, _, path = written.rpartition("=")
    return name or Path(path).name, Path(path)


def main() -> None:
    """Read the command line and run a stage."""
    parser = argparse.ArgumentParser(prog="python -m recipes.encoder", description=__doc__)
    stages = parser.add_subparsers(required=True, metavar="STAGE")
    distilling = stages.add_parser("distill", help="move MiniLM towards its teacher")
    distilling.add_argument("--teacher", type=Path, required=True, help="folder of all-mpnet-base-v2")
    distilling.add_argument("--work", type=Path, required=True, help="folder of the state and the log")
    distilling.add_argument("--steps", type=int, default=2_800)
    distilling.add_argument("--seed", type=int, default=1)
    distilling.add_argument("--threads", type=int, default=2)
    distilling.set_defaults(run=run_distill)
    exporting = stages.add_parser("export", help="write the package's folder")
    exporting.add_argument("--state", type=Path, help="a state of distill; MiniLM itself if omitted")
    exporting.add_argument("--out", type=Path, default=PACKAGED)
    exporting.set_defaults(run=run_export)
    evaluating = stages.add_parser("evaluate", help="compare encoders on judged queries")
    evaluating.add_argument(
        "encoders",
        nargs="+",
        type=_named,
        metavar="[NAME=]PATH",
        help="exported folders, states and others",
    )
    evaluating.set_defaults(run=run_evaluate)
    adapting = stages.add_parser("adapt", help="adapt the bundled encoder to forums and judge it")
    adapting.add_argument("forums", nargs="*", metavar="FORUM", help="all that are judged if omitted")
    adapting.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    adapting.add_argument("--work", type=Path, required=True, help="folder of finished trainings")
    adapting.add_argument("--device", default="cpu")
    adapting.set_defaults(run=run_adapt)
    for stage in (distilling, exporting, evaluating):
        stage.add_argument("--base", type=Path, default=MINILM, help="folder of all-MiniLM-L6-v2")
    options = parser.parse_args()
    options.run(options)


main()
