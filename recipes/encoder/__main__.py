"""Distil and export the bundled encoder: ``python -m recipes.encoder distill …``, then ``… export``.

It needs the dependency group ``recipes``, folders of all-MiniLM-L6-v2 and all-mpnet-base-v2 as sentence-transformers
writes them, and the Reddit set (``ASKALIKE_DATA``). ``distill`` may be stopped and goes on; ``export`` writes the
package's folder from its newest state, or from MiniLM itself where no state is named.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from askalike.text.markup import plain_text
from recipes.folders import MINILM, REPOSITORY, need_data

if TYPE_CHECKING:
    from recipes.encoder.distill import CommunityQuestion

PACKAGED: Final = REPOSITORY / "src" / "askalike" / "data" / "models" / "general"
QUESTIONS: Final = "reddit/questions.jsonl.gz"
BODY_CHARACTERS: Final = 1_500
COMPARED: Final = 400


def read_questions() -> dict[str, list[CommunityQuestion]]:
    """Return the questions of each subreddit, bodies as plain text."""
    from recipes.encoder.distill import CommunityQuestion

    questions: dict[str, list[CommunityQuestion]] = {}
    with gzip.open(need_data(QUESTIONS), "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
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

    manifest = export(options.base, options.state, options.out)
    size = sum(file.stat().st_size for file in options.out.iterdir())
    with gzip.open(need_data(QUESTIONS), "rt", encoding="utf-8") as lines:
        rows = list(map(json.loads, islice(lines, COMPARED)))
    texts: Sequence[str] = [f"{row['title']}\n{row['body'] or ''}" for row in rows]
    cosines = cosines_to_float32(options.base, options.state, options.out, texts)
    print(f"{manifest.name}: {size / 1e6:.1f} MB; cosine to float32 {cosines.mean():.4f}, least {cosines.min():.4f}")


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
    exporting.add_argument("--state", type=Path, help="state.pt of distill; MiniLM itself if omitted")
    exporting.add_argument("--out", type=Path, default=PACKAGED)
    exporting.set_defaults(run=run_export)
    for stage in (distilling, exporting):
        stage.add_argument("--base", type=Path, default=MINILM, help="folder of all-MiniLM-L6-v2")
    options = parser.parse_args()
    options.run(options)


main()
