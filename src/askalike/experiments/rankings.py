"""Runs: what a system answers to every query of a task.

Enters: tasks and systems. Leaves: ``Run`` values. May import: forum, lexical, types, its own folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from askalike.experiments.duplicates import DuplicateTask
from askalike.experiments.scorers import JoinedTerms, PairScorer
from askalike.forum import Forum
from askalike.lexical import TfIdf
from askalike.types import Filters, Question, Run

__all__ = ["forum_run", "rerank", "tfidf_run"]


def forum_run(forum: Forum, task: DuplicateTask, depth: int, *, title_only: bool = False) -> Run:
    """Return the forum's own search for each query, the query itself excluded."""
    run: Run = {}
    for identifier, question in task.queries.items():
        run[identifier] = forum.ranking(
            question.title,
            "" if title_only else question.body,
            depth,
            markup=question.markup,
            filters=Filters(exclude_ids=frozenset([identifier])),
        )
    return run


def tfidf_run(task: DuplicateTask, scorer: JoinedTerms, collection: Sequence[Question], depth: int) -> Run:
    """Return the best of a whole collection by TF-IDF cosine, each query itself excluded; ties by id."""
    if not isinstance(scorer.model, TfIdf):
        raise TypeError(f"expected a scorer over TF-IDF, got {type(scorer.model).__name__}")
    ordered = sorted(collection, key=lambda question: question.id)
    vectors = scorer.model.vectors([scorer.terms(question) for question in ordered])  # (N, V)
    queries = scorer.model.vectors([scorer.terms(question) for question in task.queries.values()])  # (Q, V)
    run: Run = {}
    for row, identifier in enumerate(task.queries):
        scores = np.asarray((vectors @ queries[[row]].T).toarray(), dtype=np.float64).ravel()  # (N,)
        best = np.argsort(-scores, kind="stable")[: depth + 1]
        found = [(ordered[place].id, float(scores[place])) for place in best if scores[place] > 0]
        run[identifier] = [entry for entry in found if entry[0] != identifier][:depth]
    return run


def rerank(
    candidates: Run, scorer: PairScorer, queries: Mapping[str, Question], documents: Mapping[str, Question]
) -> Run:
    """Return the candidates of each query with the scorer's scores, in the candidates' own order.

    The scores decide; equal ones keep the order of the candidate search, as the protocols for re-ranking have it.
    """
    run: Run = {}
    for identifier, found in candidates.items():
        ids = [document for document, _ in found]
        scores = scorer.scores(queries[identifier], [documents[document] for document in ids])
        run[identifier] = [(document, float(score)) for document, score in zip(ids, scores, strict=True)]
    return run
