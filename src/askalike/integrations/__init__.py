"""A forum as a part of other frameworks, each a module that needs its framework; here is what they have in common."""

from __future__ import annotations

from typing import Any

from askalike.text.markup import plain_text
from askalike.types import Hit


def text_of(hit: Hit) -> str:
    """Return a hit as a model reads it: title, body, and the best answer, in plain text."""
    question, answer = hit.question, hit.answer
    parts = [question.title, plain_text(question.body, question.markup)]
    if answer is not None:
        parts.append(f"Answer: {plain_text(answer.body, answer.markup)}")
    return "\n\n".join(part for part in parts if part.strip())


def metadata_of(hit: Hit) -> dict[str, Any]:
    """Return what is known of a hit besides its text."""
    question = hit.question
    return {
        "id": question.id,
        "title": question.title,
        "url": question.url,
        "tags": list(question.tags),
        "created": None if question.created is None else question.created.isoformat(),
        "answers": hit.answer_count,
        "score": hit.score,
        "likelihood": hit.likelihood,
    }
