"""The values of ``askalike.types`` as JSON objects, one shape for the command line, files and the service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from askalike.types import Answer, Explanation, Hit, Question, WordWeight


def moment_text(moment: datetime | None) -> str | None:
    """Return ISO 8601 in UTC with a Z, or None; a moment without a time zone is taken as UTC.

    >>> moment_text(datetime(2024, 5, 1, 12, 30))
    '2024-05-01T12:30:00Z'
    """
    if moment is None:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")


def question_object(question: Question) -> dict[str, Any]:
    """Return a question as JSON."""
    return {
        "id": question.id,
        "title": question.title,
        "body": question.body,
        "markup": question.markup,
        "tags": list(question.tags),
        "created": moment_text(question.created),
        "closed": moment_text(question.closed),
        "score": question.score,
        "url": question.url,
        "author": question.author,
    }


def answer_object(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON."""
    return {
        "id": answer.id,
        "question_id": answer.question_id,
        "body": answer.body,
        "markup": answer.markup,
        "created": moment_text(answer.created),
        "score": answer.score,
        "author": answer.author,
        "accepted": answer.is_accepted,
    }


def hit_object(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON, with its question and best answer."""
    return {
        "rank": hit.rank,
        "score": hit.score,
        "likelihood": hit.likelihood,
        "components": dict(hit.components),
        "matched": [{"word": match.word, "field": match.field, "weight": match.weight} for match in hit.matched],
        "missing": list(hit.missing),
        "duplicate_of": list(hit.duplicate_of),
        "question": question_object(hit.question),
        "answers": hit.answer_count,
        "best_answer": answer_object(hit.answer) if hit.answer else None,
        **({"notice": hit.notice} if hit.notice else {}),
    }


def explanation_object(explanation: Explanation) -> dict[str, Any]:
    """Return as JSON what the encoder takes of each word, or how each of the query's is matched, or what it brings."""
    return {
        "query_title": _word_weights(explanation.query_title),
        "query_body": _word_weights(explanation.query_body),
        "title": _word_weights(explanation.title),
        "matches": [
            {
                "word": one.word,
                "match": one.match,
                "similarity": one.similarity,
                "importance": one.importance,
                "missing": one.is_missing,
            }
            for one in explanation.matches
        ],
        "effects": [{"word": one.word, "effect": one.effect} for one in explanation.effects],
    }


def _word_weights(words: tuple[WordWeight, ...]) -> list[dict[str, Any]]:
    return [{"word": one.word, "weight": one.weight} for one in words]
