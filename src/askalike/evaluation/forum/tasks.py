"""A re-ranking task as a value, and a forum's duplicate links as tasks that its rankers answer.

The candidates are always those of the lexical search, whatever the forum's default ranker is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from askalike.evaluation import CandidateTask, Report, evaluate
from askalike.evaluation.forum.links import DuplicateTask, judge_candidates
from askalike.evaluation.forum.scorers import JoinedTerms, OnQuery, ignore, make_scorer, over_all, rerank
from askalike.forum import Forum
from askalike.search.settings import MAX_HITS
from askalike.text.settings import TextSettings
from askalike.types import Filters, Judged, Qrels, Query, Question, Run

RERANK_MEASURES: Final = ("map", "mrr", "p@1", "p@5")


@dataclass(frozen=True, slots=True)
class RerankTask:
    """A few candidates a query, to be put in a better order.

    Args:
        name: the set and its split, such as "travel dev".
        protocol: whose scoring: "askubuntu" or "semeval".
        queries: id → question.
        documents: id → question, of every candidate.
        given: query id → candidates with the scores of the search that found them, in its order.
        lexical: the same candidates in the same order with their BM25 scores.
        qrels: query id → {candidate id: grade}.
        statistics: the questions that document frequencies are taken from.
        main: the measure that systems are compared by.
    """

    name: str
    protocol: str
    queries: Mapping[str, Question]
    documents: Mapping[str, Question]
    given: Run
    lexical: Run
    qrels: Qrels
    statistics: tuple[Question, ...]
    main: str = "map"

    def digest(self) -> str:
        """Return the SHA-256 of everything that decides a score, texts and judgements, in hexadecimal."""
        found = hashlib.sha256()
        for one in (*self.queries.values(), *self.documents.values(), *self.statistics):
            found.update(json.dumps([one.id, one.title, one.markup, one.body]).encode())
        judged = [self.name, self.protocol, self.main, self.given, self.lexical, self.qrels]
        found.update(json.dumps(judged, sort_keys=True).encode())
        return found.hexdigest()


def judge(task: RerankTask, run: Run) -> Report:
    """Return what a run is worth under the task's protocol."""
    return evaluate(task.qrels, run, task.protocol, RERANK_MEASURES)


def candidate_task(task: RerankTask) -> CandidateTask:
    """Return a re-ranking task in numbers, to be scored after every epoch of a training.

    Its policy is AskUbuntu's; its questions are each distinct question once, queries first.
    """
    places: dict[Question, int] = {}
    for question in (*task.queries.values(), *task.documents.values()):
        places.setdefault(question, len(places))
    found = {query: [document for document, _ in entries] for query, entries in task.given.items() if entries}
    return CandidateTask(
        list(places),
        [places[task.queries[query]] for query in found],
        [[places[task.documents[document]] for document in ids] for ids in found.values()],
        [[task.qrels[query].get(document, 0) for document in ids] for query, ids in found.items()],
    )


def questions_of(judged: Judged) -> list[Question]:
    """Return every question of a set once, queries first."""
    return list({**judged.queries, **judged.documents}.values())


def bm25_task(judged: Judged, protocol: str, statistics: Iterable[Question]) -> RerankTask:
    """Return a set whose candidates came from a web search: BM25 is computed, over title and body joined.

    Args:
        statistics: questions that document frequencies are taken from; not those of a test set.
    """
    known = tuple(statistics)
    scorer = make_scorer("bm25", known, TextSettings())
    lexical = rerank(judged.candidates, scorer, judged.queries, judged.documents)
    return _task(judged, protocol, lexical, known)


def released_task(judged: Judged, protocol: str, statistics: Iterable[Question]) -> RerankTask:
    """Return a set that was released with the BM25 scores of its candidates, as AskUbuntu's was."""
    return _task(judged, protocol, judged.candidates, tuple(statistics))


def _task(judged: Judged, protocol: str, lexical: Run, statistics: tuple[Question, ...]) -> RerankTask:
    return RerankTask(
        name=judged.name,
        protocol=protocol,
        queries=judged.queries,
        documents=judged.documents,
        given=judged.candidates,
        lexical=lexical,
        qrels=judged.qrels,
        statistics=statistics,
    )


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
        body = "" if title_only else question.body
        others = Filters(exclude_ids=frozenset([identifier]))
        found = forum.ranking(Query(question.title, body, question.markup, depth, others, ranker))
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
