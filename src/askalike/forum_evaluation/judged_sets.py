"""Judged sets as tasks: SemEval, AskUbuntu and others to re-rank, labelled pairs in two halves that share no question.

Policy: pairs that share a question's text are one component, and a component is in one half. "dev" may tune, "test" is
scored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from askalike.errors import EvaluationError
from askalike.evaluate import split_components
from askalike.forum_evaluation.scorers import make_scorer, rerank
from askalike.forum_evaluation.tasks import PairTask, RerankTask
from askalike.read.labelled import Pair
from askalike.text.settings import TextSettings
from askalike.types import Judged, Question, Run


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


HALVES: Final[Mapping[str, float]] = {"dev": 0.5, "test": 0.5}
SPLIT_SEED: Final = 0


def pair_task(name: str, pairs: Iterable[Pair], half: str) -> PairTask:
    """Return one half of labelled pairs; document frequencies are those of the questions of the half "dev".

    Raises:
        EvaluationError: there is no such half.
    """
    if half not in HALVES:
        raise EvaluationError(f"there is no half {half!r} of the pairs", f"expected one of {', '.join(HALVES)}")
    known = list(pairs)
    parts = split_components([(pair.first, pair.second) for pair in known], HALVES, SPLIT_SEED)
    members = {part: set(texts) for part, texts in parts.items()}
    mine = [pair for pair in known if pair.first in members[half]]
    return PairTask(
        name=f"{name} {half}",
        pairs=tuple((_question(pair.first), _question(pair.second)) for pair in mine),
        labels=tuple(int(pair.is_duplicate) for pair in mine),
        statistics=tuple(_question(text) for text in sorted(members["dev"])),
    )


def _question(text: str) -> Question:
    return Question(text, text)
