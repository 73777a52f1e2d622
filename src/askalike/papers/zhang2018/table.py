"""How the rows are answered, and the tables: one for dev and each test, for each number of texts to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from askalike.evaluation.forum.tasks import RerankTask, bm25_run, judge, standardised
from askalike.papers.harness import (
    Answers,
    Options,
    Paper,
    Part,
    Reported,
    RowResult,
    Runner,
    chosen_rows,
    compared,
    figures_json,
    run_all,
    tie_settings,
)
from askalike.papers.zhang2018.autoencoders import StateTrainer
from askalike.papers.zhang2018.data import TESTS, ZhangData, read_data
from askalike.papers.zhang2018.ramn import ALPHAS, Matcher, RamnSettings, engine_ranks
from askalike.papers.zhang2018.rows import BASELINE, COMPARED, REPORTED, ROWS, RamnRow
from askalike.progress import Progress, SilentProgress
from askalike.training.recipe import network_recipe
from askalike.types import Run

MEASURES: Final = ("map", "mrr")
TASKS: Final = ("dev", *TESTS)
SET: Final = "semeval"


@dataclass
class RamnSystems:
    """Answers rows whose states are learned from one number of texts."""

    data: ZhangData
    trainer: StateTrainer
    _matchers: dict[tuple[str, int], Matcher] = field(default_factory=dict, repr=False)

    def answer(self, row: RamnRow, seed: int) -> Answers:
        """Return the runs of all tasks, and the α that dev chose."""
        tasks = self.data.tasks()
        if row.settings is None:
            return Answers({task.name: search_run(row.id, task) for task in tasks})
        matcher = self._matcher(row, seed)
        settings, tried = choose_alpha(matcher, tasks[0], row.settings)
        runs = {task.name: matcher.run(task, settings) for task in tasks}
        return Answers(runs, {SET: asdict(settings)}, {SET: tried} if tried else {})

    def decides(self, row: RamnRow, seed: int) -> Any:
        """Return the row's settings, what its states are learned from, and the judgements."""
        learned = [row.system, self.trainer.size, self._described] if row.settings else []
        return [row.id, seed, row.settings and asdict(row.settings), learned, self._judged]

    def quiet(self) -> RamnSystems:
        """Return the same for a process of its own."""
        return RamnSystems(self.data, replace(self.trainer, threads=1, progress=SilentProgress()))

    def _matcher(self, row: RamnRow, seed: int) -> Matcher:
        key = (row.system, seed)
        if key not in self._matchers:
            self._matchers = {key: Matcher(self.trainer.source(row.states, seed))}  # rows of the same states follow
        return self._matchers[key]

    @cached_property
    def _described(self) -> Mapping[str, object]:
        return self.trainer.described()

    @cached_property
    def _judged(self) -> list[str]:
        return [task.digest() for task in self.data.tasks()]


def choose_alpha(
    matcher: Matcher, dev: RerankTask, settings: RamnSettings
) -> tuple[RamnSettings, list[dict[str, object]]]:
    """Return settings with dev's best α of the paper's grid, the first of equals; and every α with its dev MAP."""
    if not settings.alpha:
        return settings, []
    maps = {alpha: judge(dev, matcher.run(dev, replace(settings, alpha=alpha))).means["map"] for alpha in ALPHAS}
    tried: list[dict[str, object]] = [{"alpha": alpha, "dev_map": round(value, 6)} for alpha, value in maps.items()]
    return replace(settings, alpha=max(maps, key=lambda alpha: maps[alpha])), tried


def search_run(name: str, task: RerankTask) -> Run:
    """Return the run of a row without RAMN."""
    if name == BASELINE:
        return task.given
    if name == "oracle":
        return {
            query: [(document, float(task.qrels[query].get(document, 0) > 0)) for document, _ in candidates]
            for query, candidates in task.given.items()
        }
    lexical = bm25_run(task)
    return lexical if name == "bm25" else rank_bm25_run(task.given, lexical)


def rank_bm25_run(ranking: Run, lexical: Run) -> Run:
    """Return the sum of -rank and of BM25, each standardised over a query's candidates.

    Example:
        The second candidate shares more words by as many deviations as it is ranked below the first:

        >>> rank_bm25_run({"q": [("a", 1.0), ("b", 0.5)]}, {"q": [("a", 1.0), ("b", 2.0)]})
        {'q': [('a', 0.0), ('b', 0.0)]}
    """
    run: Run = {}
    for query, candidates in ranking.items():
        words = np.array([score for _, score in lexical[query]])
        scores = standardised(-engine_ranks(candidates).astype(np.float64)) + standardised(words)
        run[query] = [(document, score) for (document, _), score in zip(candidates, scores.tolist(), strict=True)]
    return run


def reproduce(options: Options, progress: Progress) -> list[Part]:
    """Run what is not finished, and return a part for each number of texts.

    Raises:
        SettingError: an unknown row, too few texts, or the folder is of another recipe or of other texts.
        InputError: data cannot be read.
    """
    named = chosen_rows(ROWS, options.only)
    rows = [ROWS[BASELINE], *(row for row in named if row.id != BASELINE)]
    is_learning = any(row.settings for row in rows)
    data = read_data(options.data, options.unlabelled if is_learning else (), progress)
    if is_learning:
        kinds = ", ".join(f"{kind} ({count:,})" for kind, count in data.kinds.items())
        progress.notice(f"texts to learn from, in this order: {kinds}")
    sizes = options.sizes if is_learning else (0,)
    for size in sizes:
        data.first(size)
    trainer = StateTrainer(network_recipe(options.recipe), data, options.out, 0, options.device, progress=progress)
    if is_learning:
        tie_settings(options.out, trainer.described())
    seeds = range(options.seeds)
    runners = {}
    for size in sizes:
        systems, folder = RamnSystems(data, replace(trainer, size=size)), options.out / f"rows-{size or 'all'}"
        name = f"{size or len(data.texts)} texts" if is_learning else SET
        runners[name] = Runner(systems, data.tasks(), folder, MEASURES, BASELINE)
    reasons = run_all(runners, rows, seeds, progress.notice, jobs=options.jobs)
    return [part(data, name, runner.results(rows, seeds, reasons[name])) for name, runner in runners.items()]


def part(data: ZhangData, name: str, results: Sequence[RowResult[RamnRow]]) -> Part:
    """Return the tables of one number of texts."""
    comparisons = compared(results, COMPARED, TASKS)
    return Part(
        name=name,
        as_json={
            "texts": data.kinds,
            "queries": {task.name: len(task.queries) for task in data.tasks()},
            "rows": [_row_object(result) for result in results],
            "compared": [comparison.to_json() for comparison in comparisons],
        },
        rows=results,
        tables={task if name == SET else f"{task}, learned from {name}": task for task in TASKS},
        measures=MEASURES,
        reported=_reported,
        compared={f"Rows beside each other, by MAP, {name}": comparisons},
    )


def _row_object(result: RowResult[RamnRow]) -> dict[str, Any]:
    chosen = {
        str(outcome.seed): {"settings": outcome.settings, "tried": outcome.tried}
        for outcome in result.outcomes
        if outcome.settings
    }
    reported = {
        task: figures_json(dict(zip(MEASURES, figures, strict=True)), "paper")
        for task, figures in REPORTED.get(result.row.id, {}).items()
    }
    return {**result.to_json(), "reported": reported, "by_seed": chosen}


def _reported(row: RamnRow, task: str) -> Reported:
    figures = REPORTED.get(row.id, {}).get(task)
    return {"paper": dict(zip(MEASURES, (f"{figure:.2f}" for figure in figures), strict=True))} if figures else {}


PAPER: Final = Paper(
    recipe="ramn",
    rows=ROWS,
    legend=(
        "MAP and MRR times 100 by the official protocol; means over seeds, ± their standard deviation, then the 95 % "
        "interval of MAP over seeds and queries; p is the paired randomisation test of MAP against the search engine's "
        "order. Dev chose α. Rows: base is the match by meaning, mismatch adds the missing words, full adds the search "
        "engine's rank; clamped and positions are other readings of the rank, cosine is another similarity. States: "
        "of both autoencoders; untrained, of an encoder that was drawn; word2vec, its word vectors; words, none."
    ),
    reproduce=reproduce,
)
