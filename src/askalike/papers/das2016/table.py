"""How rows are answered, and the tables: one for each test of each set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from askalike.errors import SettingError
from askalike.evaluation.forum.tasks import bm25_run
from askalike.papers.das2016.data import SETS, DasData, read_data
from askalike.papers.das2016.rows import BASELINE, COMPARED, MEASURES, ROWS, DasRow, grid
from askalike.papers.das2016.scqa import RECIPE, ScqaSettings
from askalike.papers.das2016.systems import (
    Learner,
    SiameseTrainer,
    TrigramCosine,
    language_answers,
    scorer_answers,
    siamese_answers,
)
from askalike.papers.harness import (
    OTHER_DATA,
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
)
from askalike.papers.lei2016.sets import JudgedSet
from askalike.progress import Progress, SilentProgress
from askalike.types import Run


@dataclass
class DasSystems:
    """Answers rows on all sets."""

    data: DasData
    learner: Learner
    trainer: SiameseTrainer

    def answer(self, row: DasRow, seed: int) -> Answers:
        """Return the runs of all tasks, and what dev chose."""
        if row.system == "language":
            return language_answers(row.learner, seed, self.learner)
        if row.system == "siamese":
            model = self.trainer.model(row.learner, seed, row.kept)
            return siamese_answers(model, self.data, row, self._lexical if row.has_words else {})
        if row.system == "trigrams":
            has_idf = row.id == "trigrams-idf"
            return scorer_answers(self.data, lambda collection: TrigramCosine(collection if has_idf else None))
        if row.system == "search":
            return Answers({task.name: task.given for task in self.data.tasks()})
        return Answers(dict(self._lexical))

    def decides(self, row: DasRow, seed: int) -> Any:
        """Return what the row learns from, what dev may choose, and the judgements."""
        learned: list[Any] = []
        if row.system == "language":
            learned = [self.learner.digest, [repr(options) for options in grid(row.learner, seed)]]
        elif row.system == "siamese":
            learned = [self.data.pairs.digest(), self.trainer.settings_of(row.learner).to_json()]
            learned += [row.alpha, row.scaling]
        return [row.id, seed, learned, self._judged]

    def quiet(self) -> DasSystems:
        """Return the same for a process of its own."""
        learner = replace(self.learner, notice=_ignore)
        return DasSystems(self.data, learner, replace(self.trainer, threads=1, progress=SilentProgress(), done=set()))

    @cached_property
    def _lexical(self) -> dict[str, Run]:
        """BM25 of all tasks."""
        return {task.name: bm25_run(task) for task in self.data.tasks()}

    @cached_property
    def _judged(self) -> list[str]:
        """The digests of what is scored."""
        return [task.digest() for task in self.data.tasks()]


def _ignore(text: str) -> None:
    """Take no notice: in a process of its own nobody would see it."""


def runner_of(data: DasData, options: Options, progress: Progress) -> Runner[DasRow]:
    """Return what runs the rows; outcomes lie in the folder ``rows``, what was learned beside it.

    Raises:
        SettingError: the recipe cannot be used.
    """
    out = options.out
    recipe = RECIPE if options.recipe == PAPER.recipe else Path(options.recipe)
    trainer = SiameseTrainer(ScqaSettings.read(recipe), data, out, options.device, progress=progress)
    systems = DasSystems(data, Learner(data, out, progress.notice), trainer)
    return Runner(systems, data.tasks(), out / "rows", MEASURES, BASELINE)


def reproduce(options: Options, progress: Progress) -> list[Part]:
    """Run what is not finished, and return the tables."""
    rows = chosen_rows(ROWS, (name for name in options.only if name not in SETS))
    data = read_data(options.data, options.pairs, has_pairs=any(row.learner for row in rows), progress=progress)
    pairs = data.pairs
    if pairs.questions:
        left_out = "".join(f"; left out: {what} ({count:,})" for what, count in pairs.left_out.items())
        progress.notice(f"{len(pairs.questions):,} questions to learn from, {len(pairs.answers):,} answers{left_out}")
    sets = _sets(data, [name for name in options.only if name in SETS])
    seeds = range(options.seeds)
    runner = runner_of(data, options, progress)
    reasons = run_all({"": runner}, rows, seeds, progress.notice, jobs=options.jobs)
    results = runner.results(rows, seeds, reasons[""])
    tests = {f"{one_set.title}: {test.name}": test.name for one_set in sets for test in one_set.tests}
    return [
        Part(
            as_json=table_object(data, sets, results),
            rows=results,
            tables=tests,
            measures=MEASURES,
            reported=_reported,
            note="" if data.is_original else OTHER_DATA,
            compared={"Rows beside each other, by MAP": compared(results, COMPARED, list(tests.values()))},
        )
    ]


def _sets(data: DasData, names: Sequence[str]) -> list[JudgedSet]:
    known = [one_set.name for one_set in data.sets]
    if missing := [name for name in names if name not in known]:
        raise SettingError(f"there is no set {missing[0]!r} in the folder", f"it holds {', '.join(known)}")
    return [one_set for one_set in data.sets if not names or one_set.name in names]


def table_object(data: DasData, sets: Sequence[JudgedSet], results: Sequence[RowResult[DasRow]]) -> dict[str, Any]:
    """Return the tables as JSON has them, set by set; means lie in [0, 1]."""
    return {
        "is_the_papers_data": data.is_original,
        "learned_from": {
            "questions": len(data.pairs.questions),
            "answers": len(data.pairs.answers),
            "sources": dict(data.pairs.sources),
            "left_out": dict(data.pairs.left_out),
        },
        "sets": {one_set.name: _set_object(one_set, results) for one_set in sets},
    }


def _set_object(one_set: JudgedSet, results: Sequence[RowResult[DasRow]]) -> dict[str, Any]:
    names = [task.name for task in one_set.tasks()]
    return {
        "title": one_set.title,
        "dev": one_set.dev.name,
        "tests": [task.name for task in one_set.tests],
        "queries": {task.name: len(task.queries) for task in one_set.tasks()},
        "rows": [_row_object(result, one_set.name, names) for result in results],
        "compared": [comparison.to_json() for comparison in compared(results, COMPARED, names)],
    }


def _row_object(result: RowResult[DasRow], set_name: str, tasks: Sequence[str]) -> dict[str, Any]:
    shown = result.to_json()
    return {
        **shown,
        "found": {task: means for task, means in shown["found"].items() if task in tasks},
        "reported": figures_json(dict(zip(MEASURES, result.row.reported, strict=False)), "paper"),
        "by_seed": {
            str(outcome.seed): {
                "settings": outcome.settings.get(set_name),
                "tried": _best(outcome.tried).get(set_name),
            }
            for outcome in result.outcomes
        },
    }


def _best(tried: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return all α of a set, and of longer lists how many choices there were and the range of dev MAP."""
    shown: dict[str, Any] = {}
    for name, choices in tried.items():
        values = [choice["dev_map"] for choice in choices]
        is_curve = "alpha" in choices[0] and len(choices[0]) == 2
        shown[name] = list(choices) if is_curve else {"count": len(choices), "dev_map": [min(values), max(values)]}
    return shown


def _reported(row: DasRow, task: str) -> Reported:
    figures = {name: f"{value:.1f}" for name, value in zip(MEASURES, row.reported, strict=False)}
    return {"paper": figures} if figures else {}


PAPER: Final = Paper(
    recipe="scqa",
    rows=ROWS,
    legend=(
        "Means times 100; ± is the standard deviation over seeds, then the 95 % interval of MAP over seeds and "
        f"queries; p is the paired randomisation test of MAP against {BASELINE}, where that row is run. Each set's dev "
        "split chose the settings. Reported figures are of Yahoo! Answers."
    ),
    reproduce=reproduce,
    sets=SETS,
)
