"""The tables: every row's means over seeds on dev and both tests, beside what was reported.

Enters: trained autoencoders, the judged sets. Leaves: ``TableRow`` values. May import: evaluate, its own folder and its
neighbours in experiments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from askalike.experiments.matcher import Matcher
from askalike.experiments.seed_means import SeedMean, seed_mean
from askalike.experiments.tasks import RerankTask, judge
from askalike.experiments.zhang2018.data import ZhangData
from askalike.experiments.zhang2018.rows import LAYERS, Choice, choose_settings
from askalike.experiments.zhang2018.training import Autoencoder, AutoencoderTrainer, Kind
from askalike.rank.ramn import RamnSettings
from askalike.types import Run

__all__ = ["MEASURES", "TableRow", "Trained", "kind_rows", "search_rows", "trained"]

MEASURES = ("map", "mrr")
Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Task → measure → query → value."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row.

    Args:
        id: "ir", "oracle", or kind and layers as in "attention-full".
        amount: texts that its autoencoder learned from; 0 without one.
        seeds: of the autoencoders.
        settings: of RAMN, or None.
        means: task → measure → mean over seeds; p-values are against the search engine's order.
    """

    id: str
    amount: int
    seeds: tuple[int, ...]
    settings: RamnSettings | None
    means: Mapping[str, Mapping[str, SeedMean]]


@dataclass(frozen=True, slots=True)
class Trained:
    """The autoencoders of one kind and amount, one for each seed."""

    kind: Kind
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
    matchers = tuple(Matcher(trainer.model(one)) for one in ready)
    count = amount or len(trainer.data.texts)
    return Trained(kind, count, tuple(one.seed for one in ready), matchers)


def search_rows(data: ZhangData) -> list[TableRow]:
    """Return the search engine's order and the best order that there is."""
    tasks = _tasks(data)
    given = {name: task.given for name, task in tasks.items()}
    oracle = {name: _oracle(task) for name, task in tasks.items()}
    base = _values(tasks, given)
    return [
        TableRow("ir", 0, (), None, _means([base], None)),
        TableRow("oracle", 0, (), None, _means([_values(tasks, oracle)], base)),
    ]


def kind_rows(data: ZhangData, found: Trained) -> tuple[list[TableRow], Choice]:
    """Return the rows of one kind of autoencoder, with settings that dev has chosen, and how it chose."""
    tasks = _tasks(data)
    base = _values(tasks, {name: task.given for name, task in tasks.items()})
    choice = choose_settings(found.matchers, data.dev)
    rows = []
    for layers in LAYERS:
        settings = choice.settings[layers]
        by_seed = [
            _values(tasks, {name: matcher.run(task, settings) for name, task in tasks.items()})
            for matcher in found.matchers
        ]
        rows.append(TableRow(f"{found.kind}-{layers}", found.amount, found.seeds, settings, _means(by_seed, base)))
    return rows, choice


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
