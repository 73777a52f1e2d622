"""Judged sets (SemEval, AskUbuntu) as re-ranking tasks.

Enters: a set as its reader gives it. Leaves: ``RerankTask``. May import: types, text, its own folder.
"""

from __future__ import annotations

from collections.abc import Iterable

from askalike.experiments.rankings import rerank
from askalike.experiments.scorers import make_scorer
from askalike.experiments.tasks import RerankTask
from askalike.text.settings import TextSettings
from askalike.types import Judged, Question, Run

__all__ = ["bm25_task", "questions_of", "released_task"]


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
