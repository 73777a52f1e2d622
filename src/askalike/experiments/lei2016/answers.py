"""What each row's system says of each task: scores of the candidates.

Enters: a row, a set, and whatever trains encoders. Leaves: runs by task. May import: similarity, text, types, its own
folder and its neighbours in experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from askalike.experiments.lei2016.rows import Row
from askalike.experiments.lei2016.sets import LeiSet, labelled
from askalike.experiments.rankings import rerank
from askalike.experiments.scorers import PairScorer, make_scorer
from askalike.experiments.tasks import RerankTask, judge
from askalike.experiments.vector_scorer import Encoder, VectorScorer
from askalike.models.similarity.features import SimilarityFeatures
from askalike.models.similarity.ranking_svm import RankingGroup, RankingSvm, SimilaritySvm, choose_cost, ranking_groups
from askalike.text.settings import TextSettings
from askalike.types import Question, Run

__all__ = ["answers"]


def answers(row: Row, data: LeiSet, train: Callable[[], Encoder]) -> dict[str, Run]:
    """Return the run of each task, dev first, by the task's name.

    Args:
        train: asked for the rows with an encoder only.

    Raises:
        MissingExtraError: what the row needs is not installed.
    """
    tasks = {task.name: task for task in (data.dev, *data.tests)}
    if row.system == "bm25":
        return {name: task.lexical for name, task in tasks.items()}
    if row.system == "svm":
        return _by_svm(data)
    if row.reads == "title":
        tasks = {name: _titles_only(task) for name, task in tasks.items()}
    scorer: PairScorer
    if row.system == "tfidf":
        scorer = make_scorer(row.scorer, tasks[data.dev.name].statistics, TextSettings())
    else:
        scorer = VectorScorer(train())
    return {name: _answer(task, scorer) for name, task in tasks.items()}


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
