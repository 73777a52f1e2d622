"""Runs: what a system answers to every query of a task.

Enters: tasks and systems. Leaves: ``Run`` values. May import: forum, lexical, rank, types, its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.experiments.duplicates import DuplicateTask
from askalike.experiments.scorers import JoinedTerms, PairScorer, TermScorer
from askalike.forum import Forum
from askalike.lexical import TfIdf
from askalike.rank.settings import MAX_HITS
from askalike.types import Filters, Question, Run

__all__ = ["Told", "collection_run", "forum_run", "lexical_run", "over_all", "rerank", "search_rerank"]


Told = Callable[[], object]
"""Called after each query."""


def untold() -> None:
    """Take no notice of a query that is done."""


def forum_run(
    forum: Forum,
    task: DuplicateTask,
    depth: int,
    *,
    title_only: bool = False,
    ranker: str | None = None,
    told: Told = untold,
) -> Run:
    """Return the forum's own search for each query, the query itself excluded, and what is not in the collection.

    Args:
        ranker: one of the forum's, or None for its default.
        told: called after each query.
    """
    run: Run = {}
    for identifier, question in task.queries.items():
        found = forum.ranking(
            question.title,
            "" if title_only else question.body,
            depth,
            markup=question.markup,
            filters=Filters(exclude_ids=frozenset([identifier])),
            ranker=ranker,
        )
        run[identifier] = [entry for entry in found if entry[0] in task.collection]
        told()
    return run


def lexical_run(forum: Forum, task: DuplicateTask, depth: int, told: Told = untold) -> Run:
    """Return the forum's search by words alone for each query, the query itself excluded."""
    return forum_run(forum, task, depth, ranker="lexical", told=told)


def collection_run(
    task: DuplicateTask, scorer: JoinedTerms, collection: Sequence[Question], depth: int, told: Told = untold
) -> Run:
    """Return the best of a whole collection by scoring every pair, each query itself excluded; ties by id."""
    ordered = sorted(collection, key=lambda question: question.id)
    score = over_all(scorer.model, [scorer.terms(question) for question in ordered])
    run: Run = {}
    for identifier, question in task.queries.items():
        scores = score(scorer.terms(question))  # (N,)
        best = np.argsort(-scores, kind="stable")[: depth + 1]
        found = [(ordered[place].id, float(scores[place])) for place in best if scores[place] > 0]
        run[identifier] = [entry for entry in found if entry[0] != identifier][:depth]
        told()
    return run


def over_all(model: TermScorer, documents: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    """Return the function from a query's terms to the scores of all documents; vectors are made once."""
    if not isinstance(model, TfIdf):
        return lambda query: model.scores(query, documents)
    vectors = model.vectors(documents)  # (N, V)
    return lambda query: np.asarray((vectors @ model.vectors([query]).T).toarray(), dtype=np.float64).ravel()


def rerank(
    candidates: Run,
    scorer: PairScorer,
    queries: Mapping[str, Question],
    documents: Mapping[str, Question],
    told: Told = untold,
) -> Run:
    """Return the candidates of each query with the scorer's scores, in the candidates' own order.

    The scores decide; equal ones keep the order of the candidate search, as the protocols for re-ranking have it.
    """
    run: Run = {}
    for identifier, found in candidates.items():
        ids = [document for document, _ in found]
        scores = scorer.scores(queries[identifier], [documents[document] for document in ids])
        run[identifier] = [(document, float(score)) for document, score in zip(ids, scores, strict=True)]
        told()
    return run


def search_rerank(forum: Forum, task: DuplicateTask, candidates: Run, ranker: str | None, told: Told = untold) -> Run:
    """Return the candidates of each query with the scores of the forum's own search, in the candidates' own order.

    A candidate that is not among the search's ``MAX_HITS`` best comes after those that are.

    Args:
        ranker: one of the forum's, or None for its default.
    """
    searched = forum_run(forum, task, MAX_HITS, ranker=ranker, told=told)
    run: Run = {}
    for identifier, found in candidates.items():
        scores = dict(searched[identifier])
        last = min(scores.values(), default=0.0) - 1.0
        run[identifier] = [(document, scores.get(document, last)) for document, _ in found]
    return run
