"""A forum's duplicate links as tasks, re-ranking and retrieval, and what the forum's own rankers answer to them.

The candidates are always those of the lexical search, whatever the forum's default ranker is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from askalike.forum import Forum
from askalike.forum_evaluation.links import DuplicateTask, judge_candidates
from askalike.forum_evaluation.scorers import JoinedTerms, OnQuery, ignore, over_all
from askalike.forum_evaluation.tasks import RerankTask
from askalike.rank.settings import MAX_HITS
from askalike.types import Filters, Question, Run

CANDIDATES: Final = 20


def forum_run(
    forum: Forum,
    task: DuplicateTask,
    depth: int,
    *,
    title_only: bool = False,
    ranker: str | None = None,
    on_query: OnQuery = ignore,
) -> Run:
    """Return the forum's own search for each query, the query itself excluded, and what is not in the collection.

    Args:
        ranker: one of the forum's, or None for its default.
        on_query: called after each query.
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
        on_query()
    return run


def lexical_run(forum: Forum, task: DuplicateTask, depth: int, on_query: OnQuery = ignore) -> Run:
    """Return the forum's search by words alone for each query, the query itself excluded."""
    return forum_run(forum, task, depth, ranker="lexical", on_query=on_query)


def collection_run(
    task: DuplicateTask, scorer: JoinedTerms, collection: Sequence[Question], depth: int, on_query: OnQuery = ignore
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
        on_query()
    return run


def search_rerank(
    forum: Forum, task: DuplicateTask, candidates: Run, ranker: str | None, on_query: OnQuery = ignore
) -> Run:
    """Return the candidates of each query with the scores of the forum's own search, in the candidates' own order.

    A candidate that is not among the search's ``MAX_HITS`` best comes after those that are.

    Args:
        ranker: one of the forum's, or None for its default.
    """
    searched = forum_run(forum, task, MAX_HITS, ranker=ranker, on_query=on_query)
    run: Run = {}
    for identifier, found in candidates.items():
        scores = dict(searched[identifier])
        last = min(scores.values(), default=0.0) - 1.0
        run[identifier] = [(document, scores.get(document, last)) for document, _ in found]
    return run


def forum_rerank_task(name: str, forum: Forum, links: DuplicateTask) -> RerankTask:
    """Return the twenty best of the lexical search for each query, under AskUbuntu's protocol.

    A query that the search finds nothing for is left out.
    """
    found = {query: entries for query, entries in lexical_run(forum, links, CANDIDATES).items() if entries}
    return RerankTask(
        name=f"{name} {links.split}",
        protocol="askubuntu",
        queries={query: links.queries[query] for query in found},
        documents={document: links.collection[document] for entries in found.values() for document, _ in entries},
        given=found,
        lexical=found,
        qrels=judge_candidates(links, found),
        statistics=tuple(links.collection.values()),
    )
