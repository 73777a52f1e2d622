"""Tasks as values: candidates to re-rank, a collection to search, pairs to tell apart.

Enters: questions and what is known of them. Leaves: values that every system answers and ``judge`` scores.
May import: types, errors, evaluate, train's corpus.

Each task carries the answer of the lexical search, so that it is the same for every system whatever the default
ranker of a forum is, and so that a hybrid needs to know of no engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from askalike.evaluation import CandidateTask, Report, evaluate
from askalike.training.corpus import TrainingData
from askalike.types import Qrels, Question, Run

__all__ = ["PairTask", "RerankTask", "RetrievalTask", "candidate_task", "judge"]

RETRIEVAL_MEASURES: Final = ("recall@10", "recall@100", "mrr", "ndcg@10")
RERANK_MEASURES: Final = ("map", "mrr", "p@1", "p@5")


@dataclass(frozen=True, slots=True)
class RerankTask:
    """A few candidates a query, to be put in a better order.

    Args:
        name: the set and its part, such as "travel dev".
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
        texts = TrainingData((*self.queries.values(), *self.documents.values(), *self.statistics)).digest()
        judged = [self.name, self.protocol, self.main, self.given, self.lexical, self.qrels]
        return hashlib.sha256(json.dumps([texts, judged], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RetrievalTask:
    """A whole collection to search, the query itself excluded.

    Args:
        name: the set and its part.
        queries: id → question; members of the collection.
        collection: every question that can be found, by id.
        lexical: query id → the lexical search's best, many more than are scored.
        qrels: query id → {relevant id: 1}.
        main: the measure that systems are compared by.
    """

    name: str
    queries: Mapping[str, Question]
    collection: tuple[Question, ...]
    lexical: Run
    qrels: Qrels
    main: str = "ndcg@10"


@dataclass(frozen=True, slots=True)
class PairTask:
    """Pairs of questions, some of which ask the same.

    Args:
        name: the set and its part.
        pairs: first and second question.
        labels: 1 for a duplicate, else 0.
        statistics: the questions that document frequencies are taken from.
    """

    name: str
    pairs: tuple[tuple[Question, Question], ...]
    labels: tuple[int, ...]
    statistics: tuple[Question, ...]


def judge(task: RerankTask | RetrievalTask, run: Run) -> Report:
    """Return what a run is worth under the task's protocol."""
    if isinstance(task, RerankTask):
        return evaluate(task.qrels, run, task.protocol, RERANK_MEASURES)
    return evaluate(task.qrels, run, "trec", RETRIEVAL_MEASURES)


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
