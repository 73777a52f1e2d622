"""Why a question was found: the words that matched, those it lacks, and how much each word counts to the encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from askalike.models.ramn.comparison import word_matches
from askalike.search.engine import Encoder, WordEncoder
from askalike.search.query import Query, QueryTerm
from askalike.text.analyzer import Analyzer
from askalike.text.markup import plain_text
from askalike.types import Explanation, Hit, Match, Question, WordWeight

MAX_BODY_CHARACTERS = 50_000
"""Only so much of a body is looked at for the words to show; the score has seen all of it."""

INFORMATIVE_SHARE = 0.25
"""A word that is missing is told where it weighs this share of the query's most informative one or more."""

MOST_MISSING = 5


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


def query_words(query: Query, terms: Mapping[str, QueryTerm], analyzer: Analyzer) -> dict[str, str]:
    """Return term → the word that the asker wrote, most informative first."""
    body = plain_text(query.body[:MAX_BODY_CHARACTERS], query.markup, with_code=analyzer.settings.with_code)
    words: dict[str, str] = {}
    for text in (query.title, body):
        for word, term in analyzer.pairs_among(text, terms.keys()):
            words.setdefault(term, word)
    return {term: words[term] for term in sorted(words, key=lambda term: (-_informativeness(terms[term]), term))}


def missing_words(
    words: Mapping[str, str], terms: Mapping[str, QueryTerm], matched: Sequence[Match], analyzer: Analyzer
) -> tuple[str, ...]:
    """Return the informative words of a query that a question lacks, most informative first.

    Args:
        words: term → word, as ``query_words`` gives them.
        matched: what the question has.
    """
    least = INFORMATIVE_SHARE * max((_informativeness(terms[term]) for term in words), default=0.0)
    held = {term for match in matched for term in analyzer.terms(match.word)}
    lacking = [word for term, word in words.items() if term not in held and _informativeness(terms[term]) >= least]
    return tuple(dict.fromkeys(lacking))[:MOST_MISSING]


def _informativeness(term: QueryTerm) -> float:
    return term.weight * term.idf


def explanations(
    query: Query, hits: Sequence[Hit], encoder: Encoder | None, *, has_matches: bool = False
) -> list[Explanation]:
    """Return one explanation for each hit, in their order; without words where the model cannot weigh them.

    Args:
        has_matches: tell too what each word of the query is most like in a hit.
    """
    words = encoder if isinstance(encoder, WordEncoder) else None
    title = _weights(query.title, words)
    body = _weights(plain_text(query.body, query.markup), words)
    found = [Explanation(hit.question.id, title, body, _weights(hit.question.title, words)) for hit in hits]
    if not has_matches or words is None:
        return found
    asked = words.states(query)
    importance = asked.weights / asked.weights.max() if asked.words else asked.weights
    read = words.states_of([(-1 - place, hit.question) for place, hit in enumerate(hits)])
    return [
        replace(one, matches=word_matches(asked, other, importance)) for one, other in zip(found, read, strict=True)
    ]


def _weights(text: str, encoder: WordEncoder | None) -> tuple[WordWeight, ...]:
    found = [] if encoder is None else encoder.word_weights(text)
    return tuple(WordWeight(word, weight) for word, weight in found)
