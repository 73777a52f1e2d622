"""What RAMN should be in a forum: both its dev sets, each way of matching, and every weight of its layers.

Command: ``python -m benchmarks.tune_ramn --out FOLDER --amount N --forum FORUM``, after ``askalike reproduce zhang2018
--out FOLDER --amount N`` and ``askalike train FORUM --recipe ramn --hold-out-test`` on a forum of travel's duplicates.
SemEval's dev set has ten candidates a query in a web search engine's order, the forum's dev part the twenty best of its
search by words. MAP by each one's own protocol, the mean over the autoencoder's seeds; no test part is looked at.
Writes ``results/tune-ramn.json``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Final

from askalike.archive import Layout
from askalike.encode.model import Model
from askalike.experiments.forum_training import forum_training
from askalike.experiments.matcher import Matcher
from askalike.experiments.tasks import RerankTask, judge
from askalike.experiments.zhang2018.data import read_data
from askalike.experiments.zhang2018.training import Autoencoder
from askalike.forum import Forum
from askalike.forum.states import ModelStates
from askalike.rank.ramn import RamnSettings
from askalike.rank.ramn.settings import FORUM
from askalike.rank.word_states import Similarity
from benchmarks.record import need_data, write

COMMAND = "python -m benchmarks.tune_ramn"
SIMILARITIES: Final[tuple[Similarity, ...]] = ("dot", "cosine", "shifted-cosine")
WEIGHTS: Final = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
ALPHAS: Final = (0.0, 0.035, 0.05, 0.07, 0.1)
WAYS: Final = {
    "product, from the query": (False, False),
    "per word, from the query": (True, False),
    "per word, both ways": (True, True),
}
"""Name → (per word, both ways)."""
MOST_SEEDS = 100

Judged = tuple[RerankTask, list[Matcher]]


def variants() -> Iterator[tuple[str, RamnSettings]]:
    """Yield every variant with the name of its way of matching."""
    for (way, (per_word, both)), similarity in product(WAYS.items(), SIMILARITIES):
        for weight, alpha in product(WEIGHTS, ALPHAS):
            yield (
                way,
                RamnSettings(
                    alpha=alpha, similarity=similarity, mismatch_weight=weight, is_per_word=per_word, is_both_ways=both
                ),
            )


def semeval(out: Path, amount: int) -> Judged:
    """Return SemEval's dev set, and the attention autoencoders that are finished."""
    folders = [Autoencoder("attention", amount, seed).folder(out) / "model" for seed in range(MOST_SEEDS)]
    dev = read_data(need_data("semeval-task3-b")).dev
    return dev, [Matcher(ModelStates(Model.load(folder))) for folder in folders if folder.is_dir()]


def forum_dev(path: Path) -> Judged:
    """Return a forum's dev part, and what it has learned.

    Raises:
        SystemExit: it has no dev part.
    """
    with Forum.open(path) as forum:
        training = forum_training(forum, is_test_held_out=True)
    if training.dev is None:
        raise SystemExit(f"{path} has no dev part: {training.why_no_dev}")
    return training.dev, [Matcher(ModelStates(Model.load(Layout(path).ranker("ramn"))))]


def mean_map(judged: Judged, settings: RamnSettings) -> float:
    """Return the mean over seeds of dev MAP, times 100."""
    task, matchers = judged
    return 100 * fmean(judge(task, matcher.run(task, settings)).means["map"] for matcher in matchers)


def main() -> None:
    """Score every variant and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the autoencoders of SemEval's texts")
    parser.add_argument("--amount", type=int, required=True, help="texts that they learned from")
    parser.add_argument("--forum", type=Path, required=True, help="a forum that has learned the ranker ramn")
    given = parser.parse_args()
    sets = {"semeval dev": semeval(given.out, given.amount), "forum dev": forum_dev(given.forum)}
    if not sets["semeval dev"][1]:
        raise SystemExit(f"no autoencoder of {given.amount:,} texts is finished in {given.out}")
    tried = []
    for way, settings in variants():
        values = {name: round(mean_map(judged, settings), 2) for name, judged in sets.items()}
        tried.append({"way": way, **asdict(settings), **values, "mean": round(fmean(values.values()), 2)})
    lexical = {name: round(100 * judge(task, task.given).means["map"], 2) for name, (task, _) in sets.items()}
    write(
        "tune-ramn",
        f"{COMMAND} --out FOLDER --amount {given.amount} --forum FORUM",
        {
            "queries": {name: len(task.queries) for name, (task, _) in sets.items()},
            "seeds": {name: len(matchers) for name, (_, matchers) in sets.items()},
            "given": lexical,
            "chosen": asdict(FORUM),
            "tried": tried,
        },
    )


if __name__ == "__main__":
    main()
