"""Why a question was found: the words that matched, those it lacks, and how much each word counts to the encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from askalike.search.engine import Encoder, WordEncoder
from askalike.search.query import QueryTerm
from askalike.text.analyzer import Analyzer
from askalike.text.markup import plain_text, readable
from askalike.types import Explanation, Hit, Match, Query, Question, WordWeight

MAX_BODY_CHARACTERS = 50_000
"""Only so much of a body is looked at for the words to show; the score has seen all of it."""

INFORMATIVE_SHARE = 0.25
"""A word that is missing is told where it weighs this share of the query's most informative one or more."""

MOST_MISSING = 5


def matches(question: Question, terms: Mapping[str, QueryTerm], analyzer: Analyzer) -> dict[str, list[Match]]:
    """Return the terms of the query that a question has → a ``Match`` for each field, in the question's own spelling.

    A match's weight is ``weight(t) · idf(t)``: its part of the score before term frequency and length count.
    """
    body = readable(question.body[:MAX_BODY_CHARACTERS], question.markup, with_code=analyzer.settings.with_code)
    texts: tuple[tuple[Literal["title", "body"], str], ...] = (("title", question.title), ("body", body))
    found: dict[str, list[Match]] = {}
    for field, text in texts:
        for term, word in analyzer.first_among(text, terms.keys()).items():
            found.setdefault(term, []).append(Match(word, field, terms[term].weight * terms[term].idf))
    return found


def informative_words(query: Query, terms: Mapping[str, QueryTerm], analyzer: Analyzer) -> dict[str, str]:
    """Return the informative terms of a query → the word that the asker wrote, most informative first."""
    weights = {term: found.weight * found.idf for term, found in terms.items()}
    least = INFORMATIVE_SHARE * max(weights.values(), default=0.0)
    best = sorted((-weight, term) for term, weight in weights.items() if weight >= least)
    body = readable(query.body[:MAX_BODY_CHARACTERS], query.markup, with_code=analyzer.settings.with_code)
    words = analyzer.first_among(f"{query.title} {body}", {term for _, term in best})
    return {term: words[term] for _, term in best if term in words}


def explanations(query: Query, hits: Sequence[Hit], encoder: Encoder | None) -> list[Explanation]:
    """Return one explanation for each hit, in their order; without words where the model cannot weigh them."""
    words = encoder if isinstance(encoder, WordEncoder) else None
    title = _weights(query.title, words)
    body = _weights(plain_text(query.body, query.markup), words)
    return [Explanation(title, body, _weights(hit.question.title, words)) for hit in hits]


def _weights(text: str, encoder: WordEncoder | None) -> tuple[WordWeight, ...]:
    found = [] if encoder is None else encoder.word_weights(text)
    return tuple(WordWeight(word, weight) for word, weight in found)
