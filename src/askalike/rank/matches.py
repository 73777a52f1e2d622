"""Which words of a found question made it match: the explanation that lexical search gives for free.

Enters: a question and the weighted terms of the query. Leaves: ``Match`` values, strongest first.
May import: text, types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from askalike.rank.query import QueryTerm
from askalike.text.analyzer import Analyzer
from askalike.text.markup import plain_text
from askalike.types import Match, Question

__all__ = ["matches"]

MAX_BODY_CHARACTERS = 50_000
"""Only so much of a body is looked at for the words to show; the score has seen all of it."""


def matches(question: Question, terms: Mapping[str, QueryTerm], analyzer: Analyzer) -> tuple[Match, ...]:
    """Return one ``Match`` for each query term and field that the question has, in the question's own spelling.

    A match's weight is ``weight(t) · idf(t)``: its part of the score before term frequency and length count.
    """
    with_code = analyzer.settings.with_code
    body = plain_text(question.body[:MAX_BODY_CHARACTERS], question.markup, with_code=with_code)
    texts: tuple[tuple[Literal["title", "body"], str], ...] = (("title", question.title), ("body", body))
    found: list[Match] = []
    for field, text in texts:
        seen: set[str] = set()
        for word, term in analyzer.pairs_among(text, terms.keys()):
            if term not in seen:
                seen.add(term)
                found.append(Match(word, field, terms[term].weight * terms[term].idf))
    return tuple(sorted(found, key=lambda match: (-match.weight, match.field != "title", match.word)))
