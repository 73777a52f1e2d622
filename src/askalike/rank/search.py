"""The search pipeline: query → candidates → records → hits.

Enters: a ``Query``, filters and an ``Engine``. Leaves: ``Hit`` values. May import: text, types, errors, its own folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from askalike.errors import SettingError
from askalike.rank.engine import Candidate, Engine
from askalike.rank.matches import matches
from askalike.rank.query import Query, QuerySettings, QueryTerm, weigh
from askalike.text.analyzer import Analyzer
from askalike.types import Filters, Hit, Question

__all__ = ["MAX_HITS", "Ranking", "SearchSettings", "ranking", "similar"]

MAX_HITS = 1000


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Everything that a search can be tuned by."""

    query: QuerySettings = field(default_factory=QuerySettings)


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a search found, before it is explained: the query's weighted terms and the questions, best first."""

    terms: dict[str, QueryTerm]
    found: list[tuple[Candidate, Question]]


def ranking(
    engine: Engine, analyzer: Analyzer, query: Query, k: int, filters: Filters, settings: SearchSettings
) -> Ranking:
    """Return the at most ``k`` questions most similar to ``query``, best first, ties by id.

    Questions in ``filters.exclude_ids`` are never found. A question that was deleted after the candidate search saw it
    is left out, so that nothing is shown that the forum no longer holds.

    Raises:
        SettingError: k is not between 1 and ``MAX_HITS``.
    """
    if not 1 <= k <= MAX_HITS:
        raise SettingError(f"k is {k}", f"expected a number from 1 to {MAX_HITS}")
    terms = weigh(query, analyzer, settings.query, engine.size(), engine.document_frequency)
    weights = {term: found.weight for term, found in terms.items()}
    limit = k + len(filters.exclude_ids)
    while True:
        candidates = engine.lexical(weights, limit, filters)
        questions = engine.questions([candidate.key for candidate in candidates])
        kept = [
            (candidate, questions[candidate.key])
            for candidate in candidates
            if candidate.key in questions and questions[candidate.key].id not in filters.exclude_ids
        ]
        if len(kept) >= k or len(candidates) < limit:
            return Ranking(terms, sorted(kept, key=lambda pair: (-pair[0].score, pair[1].id))[:k])
        limit *= 2


def similar(
    engine: Engine, analyzer: Analyzer, query: Query, k: int, filters: Filters, settings: SearchSettings
) -> list[Hit]:
    """Return ``ranking`` as hits: with what matched, the best answer, and what a question is a duplicate of.

    Raises:
        SettingError: k is not between 1 and ``MAX_HITS``.
    """
    ranked = ranking(engine, analyzer, query, k, filters, settings)
    hits: list[Hit] = []
    for rank, (candidate, question) in enumerate(ranked.found, start=1):
        answers = engine.answers(question.id)
        hits.append(
            Hit(
                rank=rank,
                score=candidate.score,
                question=question,
                components={"bm25": candidate.score},
                matched=matches(question, ranked.terms, analyzer),
                answer=answers[0] if answers else None,
                answer_count=len(answers),
                duplicate_of=engine.originals(question.id),
            )
        )
    return hits
