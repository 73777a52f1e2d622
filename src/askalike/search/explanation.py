"""What a hit shows beside its question: the words that matched and those that are missing, answers and originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from askalike.search.candidates import Candidates
from askalike.search.engine import Engine
from askalike.search.query import QueryTerm
from askalike.search.rankers import PROBABILITY
from askalike.search.texts import ANSWER_CHARACTERS, MOST_ANSWERS, beginning
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.types import Answer, Hit, Match, Query, Question

MAX_BODY_CHARACTERS: Final = 50_000
"""Only so much of a body is looked at for the words to show; the score has seen all of it."""

INFORMATIVE_SHARE: Final = 0.25
"""A word that is missing is told where it weighs this share of the query's most informative one or more."""

MOST_MISSING: Final = 5

_FIELDS: Final = ("title", "body", "answer")


def explain(engine: Engine, analyzer: Analyzer, tables: Sequence[Candidates]) -> list[list[Hit]]:
    """Return the rows of each table as hits: with what matched, the best answer, and what it is a duplicate of."""
    shown = [question for table in tables for question in (*table.questions, *table.via) if question is not None]
    ids = list(dict.fromkeys(question.id for question in shown))
    answers = engine.answers(ids) if ids else {}
    unread = [question.id for table in tables if table.links is None for question in table.questions]
    links = engine.duplicate_links(unread) if unread else None
    hits: list[list[Hit]] = []
    for table in tables:
        terms = shown_terms(table, analyzer.of(table.query.language))
        targets = (table.links or links).targets if table.questions else {}  # type: ignore[union-attr]
        words_of: dict[Analyzer, dict[str, str]] = {}
        columns = {name: column.tolist() for name, column in table.components.items()}
        rows: list[Hit] = []
        for row, (question, via, score) in enumerate(
            zip(table.questions, table.via, table.scores.tolist(), strict=True)
        ):
            source = via or question  # what was found: its words are those that matched
            matched = matches(source, answers.get(source.id, ()), terms, analyzer.of(source.language))
            reading = analyzer.for_query(source.language, table.query.language)
            if reading not in words_of:
                words_of[reading] = informative_words(table.query, terms, reading)
            listed = sorted(
                (match for same_term in matched.values() for match in same_term),
                key=lambda match: (-match.weight, _FIELDS.index(match.field), match.word),
            )
            missing = dict.fromkeys(word for term, word in words_of[reading].items() if term not in matched)
            components = {name: column[row] for name, column in columns.items() if column[row] == column[row]}
            is_probability = table.ranker.name == PROBABILITY
            replies = answers.get(question.id, ())
            rows.append(
                Hit(
                    rank=row + 1,
                    score=score,
                    question=question,
                    components=components,
                    matched=tuple(listed),
                    missing=tuple(missing)[:MOST_MISSING],
                    likelihood=components.get("first", score) if is_probability else None,
                    answer=replies[0] if replies else None,
                    answer_count=len(replies),
                    duplicate_of=targets.get(question.id, ()),
                    via=via,
                    notice=table.notice,
                )
            )
        hits.append(rows)
    return hits


def shown_terms(table: Candidates, analyzer: Analyzer) -> dict[str, QueryTerm]:
    """Return the terms of a query that explain a hit: idle ones only where its title has no others."""
    idle = analyzer.idle_terms
    if idle.issuperset(analyzer.terms(table.query.title)):
        return dict(table.terms)
    return {term: weighed for term, weighed in table.terms.items() if term not in idle}


def matches(
    question: Question, answers: Sequence[Answer], terms: Mapping[str, QueryTerm], analyzer: Analyzer
) -> dict[str, list[Match]]:
    """Return the terms of the query that a question has → a ``Match`` for each field, in the question's own spelling.

    Its best answers are looked at for those that it lacks itself. A match's weight is ``weight(t) · idf(t)``: its part
    of the score before term frequency and length count.
    """
    body = readable(question.body[:MAX_BODY_CHARACTERS], question.markup, with_code=analyzer.settings.with_code)
    texts: tuple[tuple[Literal["title", "body"], str], ...] = (("title", question.title), ("body", body))
    matched: dict[str, list[Match]] = {}
    for place, text in texts:
        for term, word in analyzer.first_among(text, terms.keys()).items():
            matched.setdefault(term, []).append(Match(word, place, terms[term].weight * terms[term].idf))
    for answer in answers[:MOST_ANSWERS]:
        body = beginning(answer.body, ANSWER_CHARACTERS)
        text = readable(body, answer.markup, with_code=analyzer.settings.with_code)
        for term, word in analyzer.first_among(text, terms.keys() - matched.keys()).items():
            matched[term] = [Match(word, "answer", terms[term].weight * terms[term].idf)]
    return matched


def informative_words(query: Query, terms: Mapping[str, QueryTerm], analyzer: Analyzer) -> dict[str, str]:
    """Return the informative terms of a query → the word that the asker wrote, most informative first."""
    weights = {term: weighed.weight * weighed.idf for term, weighed in terms.items()}
    least = INFORMATIVE_SHARE * max(weights.values(), default=0.0)
    best = sorted((-weight, term) for term, weight in weights.items() if weight >= least)
    body = readable(query.body[:MAX_BODY_CHARACTERS], query.markup, with_code=analyzer.settings.with_code)
    words = analyzer.first_among(f"{query.title} {body}", {term for _, term in best})
    return {term: words[term] for _, term in best if term in words}
