"""The tables: every row's means over seeds on dev and both tests, beside what was reported.

Enters: trained autoencoders, the judged sets. Leaves: ``TableRow`` values. May import: evaluate, its own folder and its
neighbours in experiments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from askalike.experiments.matcher import ChangedStates, Matcher, all_alike
from askalike.experiments.row_comparison import Compared, compare_rows
from askalike.experiments.seed_means import SeedMean, over_seeds, seed_mean
from askalike.experiments.tasks import RerankTask, judge
from askalike.experiments.whitening import Whitening
from askalike.experiments.zhang2018.combination import choose_weights, combined_run, parts
from askalike.experiments.zhang2018.data import TESTS, ZhangData
from askalike.experiments.zhang2018.rows import LAYERS, Choice, choose_settings
from askalike.experiments.zhang2018.training import Autoencoder, AutoencoderTrainer, Kind
from askalike.forum.states import ModelStates
from askalike.models.ramn.score import RamnSettings
from askalike.types import Run

__all__ = [
    "COMPARED",
    "MEASURES",
    "TableRow",
    "Trained",
    "compared",
    "kind_rows",
    "search_rows",
    "trained",
    "whitened",
    "words_alone",
]

MEASURES = ("map", "mrr")

COMPARED: Final[Sequence[tuple[str, str]]] = (
    ("attention-base", "gru-base"),
    ("attention-full", "gru-full"),
    ("attention-mismatch", "attention-base"),
    ("attention-full", "attention-mismatch"),
    ("attention-full", "ir"),
    ("attention-tuned", "ir"),
    ("attention-both", "attention-tuned"),
    ("attention-both", "ir"),
    ("attention-full", "words-full"),
    ("attention-tuned", "words-tuned"),
    ("attention-both", "words-both"),
    ("attention-combined", "words-combined"),
    ("gru-full", "words-full"),
    ("attention-white-base", "attention-base"),
    ("attention-white-full", "attention-full"),
    ("attention-white-both", "words-both"),
    ("attention-white-combined", "words-combined"),
    ("attention-combined", "bm25"),
)
"""What the paper says of rows: attention helps, every layer helps, and all of them beat the search engine. From
``attention-tuned`` on, it is what we ask of rows that we added."""

WORDS: Final = "words"
"""The kind of the rows without an autoencoder: what its states bring is what the others are above these."""
WHITE: Final = "white"
"""Ends the kind of rows with whitened states."""

Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Task → measure → query → value."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row.

    Args:
        id: "ir", "bm25", "oracle", or kind and layers as in "attention-full"; "attention-combined" is our own sum, and
            "words-full" and the like are the same without an autoencoder.
        amount: texts that its autoencoder learned from, or its words were counted in; 0 without any.
        seeds: of the autoencoders.
        settings: of RAMN, or None.
        means: task → measure → mean over seeds; p-values are against the search engine's order.
        precisions: task → query → average precision, the mean over seeds.
        weights: of the parts of "combined", or None.
    """

    id: str
    amount: int
    seeds: tuple[int, ...]
    settings: RamnSettings | None
    means: Mapping[str, Mapping[str, SeedMean]]
    precisions: Mapping[str, Mapping[str, float]]
    weights: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Trained:
    """The autoencoders of one kind and amount, one for each seed.

    Args:
        kind: "attention" or "gru", "attention-white" or "gru-white" with whitened states; "words" with no autoencoder.
    """

    kind: str
    amount: int
    seeds: tuple[int, ...]
    matchers: tuple[Matcher, ...]


def trained(trainer: AutoencoderTrainer, kind: Kind, amount: int, seeds: Sequence[int]) -> Trained:
    """Return what is finished of one kind and amount; there may be no seed.

    Raises:
        ModelError: a model cannot be read.
    """
    ones = [Autoencoder(kind, amount, seed) for seed in seeds]
    ready = [one for one in ones if trainer.is_finished(one)]
    matchers = tuple(Matcher(ModelStates(trainer.model(one))) for one in ready)
    count = amount or len(trainer.data.texts)
    return Trained(kind, count, tuple(one.seed for one in ready), matchers)


def words_alone(found: Trained) -> Trained:
    """Return what is left without the autoencoders: the words, and how often they occur in what was learned from."""
    return Trained(WORDS, found.amount, (), (Matcher(ChangedStates(found.matchers[0].source, all_alike)),))


def whitened(found: Trained, data: ZhangData) -> Trained:
    """Return the same autoencoders with whitened states, by those of the texts that they learned from."""
    sources = [one.source for one in found.matchers]
    maps = [Whitening.of_texts(source, data.first(found.amount)) for source in sources]
    changed = [ChangedStates(source, one.applied) for source, one in zip(sources, maps, strict=True)]
    return replace(found, kind=f"{found.kind}-{WHITE}", matchers=tuple(map(Matcher, changed)))


def search_rows(data: ZhangData) -> list[TableRow]:
    """Return the search engine's order, BM25's, and the best order that there is."""
    tasks = _tasks(data)
    runs = {
        "ir": {name: task.given for name, task in tasks.items()},
        "bm25": {name: task.lexical for name, task in tasks.items()},
        "oracle": {name: _oracle(task) for name, task in tasks.items()},
    }
    base = _values(tasks, runs["ir"])
    return [_row(name, [_values(tasks, run)], None if name == "ir" else base) for name, run in runs.items()]


def kind_rows(data: ZhangData, found: Trained) -> tuple[list[TableRow], Choice]:
    """Return the rows of one kind of autoencoder, with settings that dev has chosen, and how it chose."""
    tasks = _tasks(data)
    base = _values(tasks, {name: task.given for name, task in tasks.items()})
    choice = choose_settings(found.matchers, data.dev)
    rows = []
    for layers in LAYERS if found.kind != WORDS else LAYERS[1:]:  # without states there is no match by meaning
        settings = choice.settings[layers]
        by_seed = [
            _values(tasks, {name: matcher.run(task, settings) for name, task in tasks.items()})
            for matcher in found.matchers
        ]
        rows.append(replace(_row(f"{found.kind}-{layers}", by_seed, base), settings=settings))
    rows.append(_combined(found, tasks, choice.settings["full"], base))
    return [replace(row, amount=found.amount, seeds=found.seeds) for row in rows], choice


def compared(rows: Iterable[TableRow], amount: int) -> list[Compared]:
    """Return what the paper says of rows, for those without an autoencoder and those of this amount of text."""
    values = {row.id: row.precisions for row in rows if row.amount in (0, amount)}
    return compare_rows(values, COMPARED, ("dev", *TESTS))


def _combined(found: Trained, tasks: Mapping[str, RerankTask], settings: RamnSettings, base: Values) -> TableRow:
    by_seed = [{name: parts(matcher, task, settings) for name, task in tasks.items()} for matcher in found.matchers]
    weights = choose_weights([one["dev"] for one in by_seed], tasks["dev"])
    values = [
        _values(tasks, {name: combined_run(task, one[name], weights) for name, task in tasks.items()})
        for one in by_seed
    ]
    return replace(_row(f"{found.kind}-combined", values, base), weights=weights)


def _row(name: str, by_seed: Sequence[Values], base: Values | None) -> TableRow:
    precisions = {task: over_seeds([values[task]["map"] for values in by_seed]) for task in by_seed[0]}
    return TableRow(name, 0, (), None, _means(by_seed, base), precisions)


def _tasks(data: ZhangData) -> dict[str, RerankTask]:
    return {"dev": data.dev, **data.tests}


def _values(tasks: Mapping[str, RerankTask], runs: Mapping[str, Run]) -> Values:
    reports = {name: judge(task, runs[name]) for name, task in tasks.items()}
    return {name: {measure: dict(one.per_query[measure]) for measure in MEASURES} for name, one in reports.items()}


def _means(by_seed: Sequence[Values], base: Values | None) -> dict[str, dict[str, SeedMean]]:
    return {
        task: {
            measure: seed_mean(
                [values[task][measure] for values in by_seed], None if base is None else [base[task][measure]]
            )
            for measure in MEASURES
        }
        for task in by_seed[0]
    }


def _oracle(task: RerankTask) -> Run:
    return {
        query: [(document, float(task.qrels[query].get(document, 0) > 0)) for document, _ in found]
        for query, found in task.given.items()
    }
