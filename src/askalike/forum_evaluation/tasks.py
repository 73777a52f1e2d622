"""A task as a value: candidates to re-rank, beside their BM25 scores, so that a hybrid needs to know of no engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from askalike.evaluation import CandidateTask, Report, evaluate
from askalike.forum_evaluation.scorers import make_scorer, rerank
from askalike.text.settings import TextSettings
from askalike.types import Judged, Qrels, Question, Run

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
