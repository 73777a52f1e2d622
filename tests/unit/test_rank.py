"""Query weighing and explanations, worked by hand, over an engine that needs no disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from askalike.errors import SettingError
from askalike.lexical.bm25 import inverse_document_frequency
from askalike.rank import Candidate, Query, QuerySettings, QueryTerm, SearchSettings, ranking, similar
from askalike.rank.matches import matches
from askalike.rank.query import weigh
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Filters, Question

ANALYZER = Analyzer(TextSettings())


class ListEngine:
    """Holds questions in a list; a question's score is the sum of the weights of the terms that it has."""

    def __init__(self, questions: Sequence[Question], gone: frozenset[int] = frozenset()) -> None:
        self.held = questions
        self.gone = gone
        self.asked: list[int] = []

    def size(self) -> int:
        return len(self.held)

    def document_frequency(self, term: str) -> int:
        return sum(term in ANALYZER.terms(f"{one.title} {one.body}") for one in self.held)

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        self.asked.append(limit)
        scored = [
            Candidate(key, sum(weights.get(term, 0.0) for term in set(ANALYZER.terms(f"{one.title} {one.body}"))))
            for key, one in enumerate(self.held)
        ]
        return sorted((one for one in scored if one.score), key=lambda one: (-one.score, one.key))[:limit]

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        return {key: self.held[key] for key in keys if key not in self.gone}

    def answers(self, question_id: str) -> list[Answer]:
        return []

    def originals(self, question_id: str) -> tuple[str, ...]:
        return ()


def test_weights_are_title_counts_plus_weighted_body_counts() -> None:
    query = Query("printer printer offline", "printer network network")
    terms = weigh(query, ANALYZER, QuerySettings(body_weight=0.5), 100, lambda term: 1)
    assert {term: found.weight for term, found in terms.items()} == {"printer": 2.5, "offlin": 1.0, "network": 1.0}


def test_terms_that_no_question_has_are_left_out() -> None:
    terms = weigh(Query("printer zzz"), ANALYZER, QuerySettings(), 100, lambda term: int(term == "printer"))
    assert terms == {"printer": QueryTerm(1.0, inverse_document_frequency(100, 1))}


def test_only_the_most_telling_terms_are_kept() -> None:
    frequency = {"rare": 1, "common": 90, "middl": 30}
    terms = weigh(Query("common rare middle"), ANALYZER, QuerySettings(max_terms=2), 100, frequency.__getitem__)
    assert list(terms) == ["rare", "middl"]


def test_a_body_that_does_not_count_is_not_looked_at() -> None:
    assert weigh(Query("", "printer"), ANALYZER, QuerySettings(body_weight=0.0), 10, lambda term: 1) == {}


@pytest.mark.parametrize(("body_weight", "max_terms"), [(-1.0, 5), (0.5, 0)])
def test_settings_out_of_range_are_refused(body_weight: float, max_terms: int) -> None:
    with pytest.raises(SettingError, match="expected body_weight"):
        QuerySettings(body_weight, max_terms)


def test_matches_show_the_words_of_the_found_question_strongest_first() -> None:
    question = Question("1", "Printers are offline", "The <b>printer</b> prints nothing", "html")
    terms = {"printer": QueryTerm(2.0, 1.0), "offlin": QueryTerm(0.5, 2.0), "print": QueryTerm(0.5, 1.0)}
    found = matches(question, terms, ANALYZER)
    assert [(match.word, match.field, match.weight) for match in found] == [
        ("Printers", "title", 2.0),
        ("printer", "body", 2.0),
        ("offline", "title", 1.0),
        ("prints", "body", 0.5),
    ]


def test_questions_that_have_gone_are_replaced_by_the_next_best() -> None:
    engine = ListEngine([Question(str(number), "printer") for number in range(10)], gone=frozenset(range(6)))
    hits = similar(engine, ANALYZER, Query("printer"), 3, Filters(), SearchSettings())
    assert [hit.question.id for hit in hits] == ["6", "7", "8"]
    assert engine.asked == [3, 6, 12]


def test_a_ranking_is_sorted_by_score_and_then_by_id() -> None:
    engine = ListEngine([Question("b", "printer"), Question("a", "printer"), Question("c", "printer offline")])
    found = ranking(engine, ANALYZER, Query("printer offline"), 3, Filters(), SearchSettings()).found
    assert [question.id for _, question in found] == ["c", "a", "b"]
