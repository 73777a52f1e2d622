"""How rows are answered, and the table: one for each test of each set of a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from askalike.evaluation.forum.tasks import (
    RERANK_MEASURES,
    Encoder,
    PairScorer,
    RerankTask,
    VectorScorer,
    judge,
    make_scorer,
    rerank,
)
from askalike.models.ranking_svm import RankingGroup, RankingSvm, SimilaritySvm, choose_cost, ranking_groups
from askalike.models.similarity import SimilarityFeatures
from askalike.papers.harness import (
    Answered,
    RowResult,
    Runner,
    chosen_rows,
    compared,
    comparison_objects,
    means_object,
    tie_settings,
)
from askalike.papers.lei2016.rows import COMPARED, ROWS, Figure, LeiRow
from askalike.papers.lei2016.sets import LeiSet, find_sets, labelled
from askalike.papers.lei2016.training import EncoderTrainer
from askalike.papers.paper import OTHER_DATA, Options, Paper, Part, not_run, row_table
from askalike.progress import Progress, SilentProgress
from askalike.readers.detection import choose
from askalike.readers.frame import ReadContext
from askalike.text.settings import TextSettings
from askalike.training.recipe import network_recipe
from askalike.types import Question, Run

BASELINE: Final = "bm25"

Trainer = Callable[[LeiRow, int, LeiSet, Path], Encoder]
"""(row, seed, set, a folder for checkpoints that belongs to this training) → an encoder, such as ``Model``."""


@dataclass(frozen=True)
class LeiSystems:
    """Answers rows on one set."""

    data: LeiSet
    out: Path
    train: Trainer

    def answer(self, row: LeiRow, seed: int) -> Answered:
        """Return the runs of all tasks."""
        tasks = {task.name: task for task in self.data.tasks()}
        if row.system == "search" or (row.system == BASELINE and self.data.is_original):
            return Answered({name: task.lexical for name, task in tasks.items()})
        if row.system == "svm":
            return Answered(_by_svm(self.data))
        if row.reads == "title":
            tasks = {name: _titles_only(task) for name, task in tasks.items()}
        scorer: PairScorer
        if row.encoder:
            place = self.out / self.data.name / f"{row.id}-seed{seed}"
            scorer = VectorScorer(self.train(row, seed, self.data, place))
        else:
            scorer = make_scorer(row.scorer, tasks[self.data.dev.name].statistics, TextSettings())
        return Answered({name: _answer(task, scorer) for name, task in tasks.items()})

    def decides(self, row: LeiRow, seed: int) -> Any:
        """Return the row's settings, and the digest of all texts, labelled pairs and judgements."""
        return [row.decides(), self.data.digest]

    def quiet(self) -> LeiSystems:
        """Return the same for a process of its own."""
        train = self.train
        if isinstance(train, EncoderTrainer):
            train = replace(train, threads=1, progress=SilentProgress())
        return replace(self, train=train)


def _by_svm(data: LeiSet) -> dict[str, Run]:
    """Return the SVM's runs: C is chosen on dev; for the tests dev is learned from too, as the paper does."""
    features = SimilarityFeatures(data.questions, TextSettings())
    train, dev = (ranking_groups(features, examples) for examples in (data.examples, labelled(data.dev)))
    chosen, _ = choose_cost(train, lambda model: _dev_map(data.dev, dev, model))
    final = SimilaritySvm(features, RankingSvm.fit([*train, *dev], chosen.cost))
    runs = {data.dev.name: _answer(data.dev, SimilaritySvm(features, chosen))}
    return runs | {task.name: _answer(task, final) for task in data.tests}


def _dev_map(task: RerankTask, groups: list[RankingGroup], model: RankingSvm) -> float:
    run: Run = {}
    for (query, found), group in zip(task.given.items(), groups, strict=True):
        scores = model.scores(group.features).tolist()
        run[query] = [(document, score) for (document, _), score in zip(found, scores, strict=True)]
    return judge(task, run).means["map"]


def _answer(task: RerankTask, scorer: PairScorer) -> Run:
    return rerank(task.given, scorer, task.queries, task.documents)


def _titles_only(task: RerankTask) -> RerankTask:
    def cut(questions: Mapping[str, Question]) -> dict[str, Question]:
        return {identifier: replace(question, body="") for identifier, question in questions.items()}

    return replace(
        task,
        queries=cut(task.queries),
        documents=cut(task.documents),
        statistics=tuple(replace(question, body="") for question in task.statistics),
    )


def runner_of(data: LeiSet, out: Path, train: Trainer) -> Runner[LeiRow]:
    """Return what runs the rows on one set; outcomes and checkpoints of a set lie in its folder."""
    return Runner(LeiSystems(data, out, train), data.tasks(), (), out / data.name, RERANK_MEASURES, BASELINE)


def reproduce(options: Options, progress: Progress) -> list[Part]:
    """Train what is not finished, and return a part for each set."""
    sets = find_sets(options.data)
    chosen = [name for name in options.only if name in sets]
    asked = chosen_rows(ROWS, (name for name in options.only if name not in sets))
    rows = [ROWS[BASELINE], *(row for row in asked if row.id != BASELINE)]
    seeds = range(options.seeds)
    has_encoders = any(row.encoder for row in rows)
    read = {name: sets[name]() for name in sets if has_encoders or not chosen or name in chosen}
    archives = {str(path): _questions(path) for path in (options.unlabelled if has_encoders else ())}
    recipe = network_recipe(options.recipe)
    train = EncoderTrainer(recipe, read, archives, options.vectors, options.device, progress=progress)
    if has_encoders:
        tie_settings(options.out, train.described())
    parts = []
    for data in (read[name] for name in chosen or sets):
        runner = runner_of(data, options.out, train)
        reasons = runner.run_all(rows, seeds, progress.notice, jobs=options.jobs, what=f"{data.name}: ")
        parts.append(part(data, runner.results(rows, seeds, reasons)))
    return parts


def part(data: LeiSet, found: Sequence[RowResult[LeiRow]]) -> Part:
    """Return a set's tables."""
    tests = [task.name for task in data.tests]
    note = "" if data.is_original else OTHER_DATA
    counted = {test: found[0].means[test]["map"].queries for test in tests}
    return Part(
        name=data.name,
        as_json=table_object(data, found),
        tables=[
            row_table(
                f"{data.title}: {test}, {counted[test]} queries", found, test, RERANK_MEASURES, _reported, note=note
            )
            for test in tests
        ],
        compared={"What paper and thesis say of rows, by MAP": compared(found, COMPARED, tests)},
        not_run=not_run(found),
    )


def table_object(data: LeiSet, found: Sequence[RowResult[LeiRow]]) -> dict[str, Any]:
    """Return a set's table as JSON has it; means lie in [0, 1]."""
    return {
        "title": data.title,
        "is_the_papers_data": data.is_original,
        "questions": len(data.questions),
        "training_pairs": len(data.pairs),
        "tasks": {task.name: len(task.queries) for task in data.tasks()},
        "rows": [_row_object(one) for one in found],
        "compared": comparison_objects(compared(found, COMPARED, [task.name for task in data.tests])),
    }


def _row_object(found: RowResult[LeiRow]) -> dict[str, Any]:
    row = found.row
    return {
        "row": row.id,
        "system": row.system,
        "pooling": row.encoder.pooling if row.encoder else "",
        "text": row.reads,
        "pre-training": row.is_pretrained,
        "parameters": row.encoder.parameter_count() if row.encoder else None,
        "how": row.about,
        "seeds": list(found.seeds),
        "not_run": found.reason or None,
        "reported": _figures_object(row.reported),
        "thesis": _figures_object(row.thesis),
        "found": means_object(found.means),
    }


def _figures_object(found: Mapping[str, Figure]) -> dict[str, Any]:
    return {name: {"value": one.value, "origin": one.origin} for name, one in found.items()}


def _reported(row: LeiRow, task: str) -> str:
    """Return what the paper has of a row, then what the thesis has."""
    parts = {"": row.reported, "thesis ": row.thesis}
    return "; ".join(
        name + "/".join(str(found.get(measure, "–")) for measure in RERANK_MEASURES)
        for name, found in parts.items()
        if found
    )


def _questions(archive: Path) -> tuple[Question, ...]:
    """Return the questions of an archive of any format, each id once."""
    found: dict[str, Question] = {}
    for record in choose(archive).read(archive, ReadContext()):
        if isinstance(record, Question):
            found.setdefault(record.id, record)
    return tuple(found.values())


LEI2016: Final = Paper(
    recipe="lei2016",
    options=frozenset({"--vectors", "--unlabelled"}),
    legend=(
        "Means times 100; ± is the standard deviation over seeds, then the 95 % interval of MAP over queries, p the "
        "paired randomisation test of MAP against BM25. Reported figures (MAP/MRR/P@1/P@5) are of AskUbuntu's test "
        "set, the paper's and then those of Joshi's thesis, whose models have other settings: as their texts print "
        "them, = recomputed from the released scores, ~ remembered: to be checked before it is quoted."
    ),
    reproduce=reproduce,
)
