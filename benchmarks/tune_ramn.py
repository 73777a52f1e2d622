"""What RAMN should be in a forum: both its dev sets, each way of matching, and every weight of its layers.

Command: ``python -m benchmarks.tune_ramn --out FOLDER --amount N --forum FORUM``, after ``askalike reproduce zhang2018
--out FOLDER --amount N`` and ``askalike train FORUM --recipe ramn --hold-out-test`` on a forum of travel's duplicates.
SemEval's dev set has ten candidates a query in a web search engine's order, the forum's dev part the twenty best of its
search by words. MAP by each one's own protocol, the mean over the autoencoder's seeds; no test split is looked at.

States are compared as the encoder gives them, whitened, and with all words alike: what is left without any encoder.
Words that the corpus does not hold count as if they had occurred once, as often as the median word of the vocabulary,
or as the most frequent one. Writes ``results/tune-ramn.json``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.tasks import Matcher, RerankTask, judge
from askalike.forum import Forum
from askalike.index.states import ModelStates
from askalike.models.encoders.model import Model
from askalike.models.ramn import FORUM, RamnSettings, Similarity, WordStates
from askalike.papers.zhang2018.autoencoders import Autoencoder, ChangedStates, Whitening, all_alike
from askalike.papers.zhang2018.data import read_data
from askalike.search.networks import StateSource
from askalike.store import ForumLayout
from askalike.training.session import forum_training
from askalike.types import Query, Question
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

Sources = list[StateSource]
"""One a seed."""


@dataclass(frozen=True)
class Judged:
    """A dev set, and the autoencoders of its texts.

    Args:
        models: one a seed.
        texts: that they learned from.
    """

    task: RerankTask
    models: list[Model]
    texts: Sequence[Question]


@dataclass(frozen=True)
class Recounted:
    """A source whose unknown words count as often as is said."""

    source: StateSource
    unknown: int

    def of_query(self, query: Query) -> WordStates:
        """Return the source's."""
        return self.source.of_query(query)

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> Sequence[WordStates]:
        """Return the source's."""
        return self.source.of_questions(questions)

    def frequencies(self, words: Sequence[str]) -> NDArray[np.integer]:
        """Return the source's, but for words that never occurred."""
        found = self.source.frequencies(words)
        return np.where(found > 0, found, self.unknown)


def variants(similarities: Sequence[Similarity]) -> Iterator[tuple[str, RamnSettings]]:
    """Yield every variant with the name of its way of matching."""
    for (way, (per_word, both)), similarity in product(WAYS.items(), similarities):
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
    data = read_data(need_data("semeval-task3-b"))
    return Judged(data.dev, [Model.load(folder) for folder in folders if folder.is_dir()], data.first(amount))


def forum_dev(path: Path) -> Judged:
    """Return a forum's dev split, and what it has learned.

    Raises:
        SystemExit: it has no dev split.
    """
    with Forum.open(path) as forum:
        training = forum_training(forum, is_test_held_out=True)
    if training.dev is None:
        raise SystemExit(f"{path} has no dev split: {training.why_no_dev}")
    return Judged(training.dev, [Model.load(ForumLayout(path).ranker("ramn"))], training.data.questions)


def as_given(judged: Judged) -> Sources:
    """Return the states of the encoders."""
    return [ModelStates(model) for model in judged.models]


def whitened(judged: Judged) -> Sources:
    """Return them whitened."""
    sources = as_given(judged)
    return [ChangedStates(source, Whitening.of_texts(source, judged.texts).applied) for source in sources]


def alike(judged: Judged) -> Sources:
    """Return one state for all words; seeds do not differ then."""
    return [ChangedStates(source, all_alike) for source in as_given(judged)[:1]]


STATES: Final[dict[str, tuple[Callable[[Judged], Sources], tuple[Similarity, ...]]]] = {
    "of the encoder": (as_given, SIMILARITIES),
    "whitened": (whitened, SIMILARITIES),
    "all alike": (alike, ("cosine",)),
}
"""Name → what gives them, and how they are compared."""


def recounted(judged: Judged) -> dict[str, Sources]:
    """Return the sources by how often unknown words are said to have occurred."""
    counts = [model.counts[1:] for model in judged.models if model.counts is not None]
    often = {
        "once": [1 for _ in counts],
        "as the median word": [int(np.median(one)) for one in counts],
        "as the most frequent word": [int(one.max()) for one in counts],
    }
    return {
        name: [Recounted(source, count) for source, count in zip(as_given(judged), found, strict=True)]
        for name, found in often.items()
    }


def unknown_words(judged: Judged) -> float:
    """Return which share of the words of queries and candidates the autoencoders do not know, in %."""
    source = ModelStates(judged.models[0])
    questions = [*judged.task.queries.values(), *judged.task.documents.values()]
    counted = np.concatenate([source.frequencies(one.words) for one in source.of_questions(list(enumerate(questions)))])
    return round(100 * float((counted == 0).mean()), 2)


def without_words(judged: Judged) -> int:
    """Return how many of the candidates have no words."""
    read = ModelStates(judged.models[0]).of_questions(list(enumerate(judged.task.documents.values())))
    return sum(not one.words for one in read)


def mean_map(task: RerankTask, matchers: Sequence[Matcher], settings: RamnSettings) -> float:
    """Return the mean over seeds of dev MAP, times 100."""
    return round(100 * fmean(judge(task, matcher.run(task, settings)).means["map"] for matcher in matchers), 2)


def main() -> None:
    """Score every variant and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the autoencoders of SemEval's texts")
    parser.add_argument("--amount", type=int, required=True, help="texts that they learned from")
    parser.add_argument("--forum", type=Path, required=True, help="a forum that has learned the ranker ramn")
    given = parser.parse_args()
    sets = {"semeval dev": semeval(given.out, given.amount), "forum dev": forum_dev(given.forum)}
    if not sets["semeval dev"].models:
        raise SystemExit(f"no autoencoder of {given.amount:,} texts is finished in {given.out}")
    tried = []
    for states, (sources, similarities) in STATES.items():
        matchers = {name: list(map(Matcher, sources(judged))) for name, judged in sets.items()}
        for way, settings in variants(similarities):
            values = {name: mean_map(judged.task, matchers[name], settings) for name, judged in sets.items()}
            mean = round(fmean(values.values()), 2)
            tried.append({"states": states, "way": way, **asdict(settings), **values, "mean": mean})
        print(states, flush=True)
    unknown = [
        {
            "settings": name,
            "unknown": often,
            **{
                of_set: mean_map(judged.task, list(map(Matcher, recounted(judged)[often])), settings)
                for of_set, judged in sets.items()
            },
        }
        for name, settings in {"the paper's": RamnSettings(), "a forum's": FORUM}.items()
        for often in recounted(sets["semeval dev"])
    ]
    lexical = {name: round(100 * judge(one.task, one.task.given).means["map"], 2) for name, one in sets.items()}
    write(
        "tune-ramn",
        f"{COMMAND} --out FOLDER --amount {given.amount} --forum FORUM",
        {
            "queries": {name: len(one.task.queries) for name, one in sets.items()},
            "seeds": {name: len(one.models) for name, one in sets.items()},
            "given": lexical,
            "chosen": asdict(FORUM),
            "tried": tried,
            "unknown_share": {name: unknown_words(one) for name, one in sets.items()},
            "without_words": {name: without_words(one) for name, one in sets.items()},
            "unknown": unknown,
        },
    )


if __name__ == "__main__":
    main()
