"""How the general model fares with fewer words: dev scores and bytes of its first 10,000, 20,000 … words.

Command: ``python -m benchmarks.model_size [--model FOLDER]``. Words are ordered by how often they occur in the training
data; those that are cut off are read as unknown ones, as they would have been in a smaller model. Only dev splits are
scored, by the encoder alone.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from askalike.data import default_model
from askalike.evaluation.forum.tasks import RerankTask, VectorScorer
from askalike.models.encoders.model import Model
from askalike.models.vocabulary import Vocabulary
from benchmarks.labelled_pairs import pair_average_precision
from benchmarks.quality_sets import SETS, Task, present_sets
from benchmarks.record import write
from benchmarks.systems import PairTask, Vectors, judge

COMMAND = "python -m benchmarks.model_size"
SIZES = (10_000, 20_000, 40_000, 60_000)


def cut(model: Model, words: int) -> Model:
    """Return the model with its first words only."""
    return Model.build(
        model.settings,
        Vocabulary(model.vocabulary.words[:words]),
        model.embedding()[: words + 1],
        model.parameters(),
    )


def score(model: Model, task: Task) -> float:
    """Return the main measure of a task, times 100."""
    system = Vectors(VectorScorer(model))
    if isinstance(task, PairTask):
        return 100 * pair_average_precision(system.pairs(task), task.labels)
    run = system.rerank(task) if isinstance(task, RerankTask) else system.retrieve(task)
    return 100 * judge(task, run).means[task.main]


def megabytes(model: Model) -> float:
    """Return the size of the model's folder."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return round(sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6, 1)


def main() -> None:
    """Score every size and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=default_model(), help="a model's folder")
    model = Model.load(parser.parse_args().model)
    tasks = {title: task for name in present_sets() for title, task in SETS[name]("dev").items()}
    rows: dict[str, Any] = {}
    for size in (size for size in SIZES if size <= len(model.vocabulary)):
        smaller = cut(model, size)
        rows[f"{size:,} words"] = {
            "megabytes": megabytes(smaller),
            **{title: round(score(smaller, task), 2) for title, task in tasks.items()},
        }
        print(f"{size:,} words: {rows[f'{size:,} words']}", flush=True)
    write("model-size", COMMAND, {"rows": rows})


if __name__ == "__main__":
    main()
