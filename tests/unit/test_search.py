"""Query weighing and explanations, worked by hand, over an engine that needs no disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.term_weighting import inverse_document_frequency
from askalike.search import (
    RANKERS,
    Candidate,
    Candidates,
    JoinSettings,
    Query,
    QuerySettings,
    QueryTerm,
    Searcher,
    SearchSettings,
)
from askalike.search.candidates import find_candidates
from askalike.search.correction import KnownWords
from askalike.search.engine import DuplicateLinks, TermStatistics
from askalike.search.query import TermCounts, weigh
from askalike.search.scorer import Scoring
from askalike.search.settings import MAX_HITS
from askalike.search.texts import Text
from askalike.text.analyzer import Analyzer, Prepared
from askalike.text.settings import TextSettings
from askalike.types import Answer, Filters, Hit, Question

ANALYZER = Analyzer(TextSettings())


class ListEngine:
    """Holds questions in a list; a question's score is the sum of the weights of the terms that it has.

    Args:
        gone: keys whose records were deleted.
        vectors: key → its vector (D,).
    """

    def __init__(
        self,
        questions: Sequence[Question],
        gone: frozenset[int] = frozenset(),
        vectors: Mapping[int, Sequence[float]] | None = None,
    ) -> None:
        self.held = questions
        self.gone = gone
        self.directions = {key: np.array(vector) / np.linalg.norm(vector) for key, vector in (vectors or {}).items()}
        self.asked: list[int] = []

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        texts = [ANALYZER.terms(f"{question.title} {question.body}") for question in self.held]
        counts = {term: sum(term in text for text in texts) for term in terms}
        return TermStatistics(len(self.held), {term: count for term, count in counts.items() if count})

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        self.asked.append(limit)
        keys = [key for key, question in enumerate(self.held) if question.id not in filters.exclude_ids]
        return best(self.lexical_scores(weights, keys), limit)

    def lexical_scores(self, weights: Mapping[str, float], keys: Sequence[int]) -> dict[int, float]:
        terms = {key: set(ANALYZER.terms(f"{self.held[key].title} {self.held[key].body}")) for key in keys}
        scores = {key: sum(weights.get(term, 0.0) for term in terms_of) for key, terms_of in terms.items()}
        return {key: score for key, score in scores.items() if score}

    def nearest(self, vectors: NDArray[np.float32], limit: int, filters: Filters) -> list[list[Candidate]]:
        keys = [key for key in self.directions if self.held[key].id not in filters.exclude_ids]
        return [best(self.cosines(vector, keys), limit) for vector in vectors]

    def cosines(self, vector: NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        return {key: float(self.directions[key] @ vector) for key in keys if key in self.directions}

    def stored_vectors(self, keys: Sequence[int]) -> None:
        return None

    def texts(self, keys: Sequence[int]) -> dict[int, Text]:
        return {}

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        return {key: self.held[key] for key in keys if key not in self.gone}

    def answers(self, ids: Sequence[str]) -> dict[str, list[Answer]]:
        return {}

    def duplicate_links(self, ids: Sequence[str]) -> DuplicateLinks:
        return DuplicateLinks()


class FixedEncoder:
    """Gives every query one vector."""

    def __init__(self, *vector: float) -> None:
        self.vector = np.array(vector, np.float32)

    def encode(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        return np.stack([self.vector for _ in queries])

    def reads(self, query: Query) -> bool:
        return True


def best(scores: Mapping[int, float], limit: int) -> list[Candidate]:
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))[:limit]


ONE = {"printer": 1, "offlin": 1, "network": 1}


class Counted:
    """A forum of so many questions, of which terms occur in so many; ``calls`` holds what was asked for."""

    def __init__(self, size: int, frequencies: Mapping[str, int]) -> None:
        self.size, self.frequencies = size, frequencies
        self.calls: list[list[str]] = []

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        self.calls.append(sorted(terms))
        return TermStatistics(self.size, {term: self.frequencies[term] for term in terms if term in self.frequencies})


def counts(size: int, frequencies: Mapping[str, int]) -> TermCounts:
    return TermCounts(Counted(size, frequencies))  # type: ignore[arg-type]  # no more is asked for


def prepared(query: Query) -> Prepared:
    return ANALYZER.prepare(query.title, query.body, query.markup)


KNOWN = KnownWords({"printer": 0, "offline": 1}, ascii_lowercase)
WITH_ZZZ = KnownWords({**KNOWN.ranks, "zzz": 2}, ascii_lowercase)


def test_a_search_that_corrects_nothing_asks_for_the_counts_of_its_terms_once() -> None:
    class Counting(ListEngine):
        calls: ClassVar[list[list[str]]] = []

        def statistics(self, terms: Collection[str]) -> TermStatistics:
            self.calls.append(sorted(terms))
            return super().statistics(terms)

    engine = Counting(PRINTERS, vectors=DIRECTIONS)
    searcher = Searcher(engine, Scoring(ANALYZER), FixedEncoder(1.0, 0.0), speller_of=lambda _: lambda: WITH_ZZZ)
    [result] = searcher.search([Query("printer", "offline zzz")])
    assert result.corrections == ()
    assert engine.calls == [["offlin", "printer", "zzz"]]


def test_a_query_that_is_corrected_is_encoded_as_it_is_searched_for() -> None:
    class Noting(FixedEncoder):
        def encode(self, queries: Sequence[Query]) -> NDArray[np.float32]:
            self.titles = [*getattr(self, "titles", []), *(query.title for query in queries)]
            return np.stack([np.array([0.0, 1.0] if "prinetr" in query.title else self.vector) for query in queries])

    many = [Question(str(place), "printer offline") for place in range(9)]
    vectors = {place: [1.0, place / 10] for place in range(9)}
    encoder = Noting(1.0, 0.0)
    searcher = Searcher(
        ListEngine(many, vectors=vectors), Scoring(ANALYZER), encoder, HALVES, speller_of=lambda _: lambda: KNOWN
    )
    [result] = searcher.search([Query("prinetr offline")])
    assert [correction.meant for correction in result.corrections] == ["printer"]
    assert encoder.titles == ["printer offline"]


@pytest.mark.parametrize(("ranker", "has_vectors"), [(None, True), ("meaning", True), ("words", False)])
def test_a_result_names_the_ranker_that_answered_and_whether_vectors_did(ranker: str | None, has_vectors: bool) -> None:
    [result] = printers().search([replace(ASKED, ranker=ranker)])
    assert (result.ranker, result.has_vectors) == (ranker or "probability", has_vectors)
    [without] = Searcher(ListEngine(PRINTERS), Scoring(ANALYZER)).search([ASKED])
    assert (without.ranker, without.has_vectors) == ("probability", False)


def test_weights_are_title_counts_plus_weighted_body_counts() -> None:
    query = Query("printer printer offline", "printer network network")
    terms = weigh(prepared(query), QuerySettings(body_weight=0.5), counts(100, ONE))
    assert {term: weighted.weight for term, weighted in terms.items()} == {
        "printer": 2.5,
        "offlin": 1.0,
        "network": 1.0,
    }


def test_terms_that_no_question_has_are_left_out() -> None:
    terms = weigh(prepared(Query("printer zzz")), QuerySettings(), counts(100, {"printer": 1}))
    assert terms == {"printer": QueryTerm(1.0, inverse_document_frequency(100, 1))}


def test_only_the_most_telling_terms_are_kept() -> None:
    frequency = {"rare": 1, "common": 90, "middl": 30}
    terms = weigh(prepared(Query("common rare middle")), QuerySettings(max_terms=2), counts(100, frequency))
    assert list(terms) == ["rare", "middl"]


def test_a_body_that_does_not_count_is_not_looked_at() -> None:
    assert weigh(prepared(Query("", "printer")), QuerySettings(body_weight=0.0), counts(10, ONE)) == {}


@pytest.mark.parametrize(("body_weight", "max_terms"), [(-1.0, 5), (0.5, 0)])
def test_settings_out_of_range_are_refused(body_weight: float, max_terms: int) -> None:
    with pytest.raises(SettingError, match="expected body_weight"):
        QuerySettings(body_weight, max_terms)


def test_a_hit_shows_the_words_that_matched_strongest_first() -> None:
    engine = ListEngine([Question("1", "Offline printers", "The printer is offline")])
    (hit,) = hits_of(Searcher(engine, Scoring(ANALYZER)), Query("printer", "offline"))
    assert [(match.word, match.field) for match in hit.matched] == [
        ("printers", "title"),
        ("printer", "body"),
        ("Offline", "title"),
        ("offline", "body"),
    ]


def test_idle_words_explain_a_hit_only_where_the_title_has_no_others() -> None:
    engine = ListEngine([Question("1", "Why is every printer offline now?"), Question("2", "Now when?")])
    searcher = Searcher(engine, Scoring(ANALYZER))
    (hit,) = hits_of(searcher, Query("Why does every printer only jam now?", k=1))
    assert [match.word for match in hit.matched] == ["printer"]
    assert hit.missing == ()
    (hit,) = hits_of(searcher, Query("when, now?", k=1))
    assert {match.word for match in hit.matched} == {"Now", "when"}


@pytest.mark.parametrize("ranker", [None, "words", "meaning"])
@pytest.mark.parametrize("k", [1, 2, 3, 20])
def test_the_closest_are_those_of_the_ranking_without_their_records(ranker: str | None, k: int) -> None:
    engine = ListEngine(PRINTERS, vectors=DIRECTIONS)
    searcher = Searcher(engine, Scoring(ANALYZER), FixedEncoder(1.0, 0.0))
    query = Query("printer", "offline", k=k, ranker=ranker, is_canonical=False)
    [ranked] = searcher.rank([query])
    assert len(ranked.keys)
    [closest] = searcher.closest([query])
    assert sorted(rows(closest)) == sorted(rows(ranked))


def test_the_closest_of_several_queries_are_those_of_each_alone() -> None:
    engine = ListEngine([*PRINTERS, Question("x", "no such word"), Question("y", "", "")], vectors=DIRECTIONS)
    searcher = Searcher(engine, Scoring(ANALYZER), FixedEncoder(1.0, 0.0))
    queries = [
        Query(title, body, k=k, ranker=ranker, filters=Filters(exclude_ids=excluded), is_canonical=False)
        for title, body in (("printer", "offline"), ("offline printer", ""), ("unheard of", ""), ("", ""))
        for k in (1, 3, 20)
        for ranker in (None, "words", "meaning")
        for excluded in ((), (PRINTERS[0].id,))
    ]
    alone = [table for query in queries for table in searcher.closest([query])]
    assert [rows(table) for table in searcher.closest(queries)] == [rows(table) for table in alone]
    assert searcher.closest([]) == []


def test_the_closest_may_have_gone() -> None:
    engine = ListEngine([Question(str(number), "printer") for number in range(10)], gone=frozenset(range(6)))
    query = Query("printer", k=3, ranker="words", is_canonical=False)
    tables = Searcher(engine, Scoring(ANALYZER)).closest([query, query])
    assert [table.keys.tolist() for table in tables] == [[0, 1, 2]] * 2


def test_questions_that_have_gone_are_replaced_by_the_next_best() -> None:
    engine = ListEngine([Question(str(number), "printer") for number in range(10)], gone=frozenset(range(6)))
    hits = hits_of(Searcher(engine, Scoring(ANALYZER)), Query("printer", k=3, ranker="words", is_canonical=False))
    assert [hit.question.id for hit in hits] == ["6", "7", "8"]
    assert engine.asked == [3, 6, 12]


@pytest.mark.parametrize("k", [800, MAX_HITS])
def test_a_search_that_has_looked_at_as_many_questions_as_it_may_ends_with_fewer_hits(k: int) -> None:
    engine = ListEngine([Question(f"{key:04}", "printer") for key in range(MAX_HITS + 50)], gone=frozenset(range(300)))
    hits = hits_of(Searcher(engine, Scoring(ANALYZER)), Query("printer", k=k, ranker="words", is_canonical=False))
    assert [hit.question.id for hit in hits] == [f"{key:04}" for key in range(300, MAX_HITS)]


def test_equal_scores_at_the_end_of_a_joined_list_are_cut_by_id() -> None:
    questions = [Question("c", "printer"), Question("b", "printer"), Question("a", "printer")]
    searcher = Searcher(ListEngine(questions), Scoring(ANALYZER), FixedEncoder(1.0, 0.0))
    assert [hit.question.id for hit in hits_of(searcher, Query("printer", k=2))] == ["a", "b"]


def test_a_vector_of_zeros_finds_nothing_and_words_answer() -> None:
    engine = ListEngine(PRINTERS, vectors=DIRECTIONS)
    searcher = Searcher(engine, Scoring(ANALYZER), FixedEncoder(0.0, 0.0), HALVES)
    assert hits_of(searcher, replace(ASKED, k=3, ranker="meaning")) == ()
    assert engine.asked == []
    assert [hit.question.id for hit in hits_of(searcher, replace(ASKED, k=3))] == ["words", "both"]


# -- words and vectors together ------------------------------------------------------------------------------------

PRINTERS = [
    Question("words", "printer offline"),  # both words of the query; vector at a right angle to it
    Question("both", "printer silent"),  # one word; cosine 0.8
    Question("meaning", "scanner dead"),  # no word; cosine 0.6
]
DIRECTIONS = {0: [0.0, 1.0], 1: [0.8, 0.6], 2: [0.6, 0.8]}
ASKED = Query("printer offline")
HALVES = SearchSettings(join=JoinSettings(weight=0.5))


def printers(**settings: float) -> Searcher:
    joined = SearchSettings(join=JoinSettings(weight=0.5, **settings))  # type: ignore[arg-type]
    return Searcher(ListEngine(PRINTERS, vectors=DIRECTIONS), Scoring(ANALYZER), FixedEncoder(1.0, 0.0), joined)


def hits_of(searcher: Searcher, query: Query) -> tuple[Hit, ...]:
    [result] = searcher.search([query])
    return result.hits


def rows(table: Candidates) -> list[tuple[float, int, dict[str, float]]]:
    """Return score, key and components of each row, best first."""
    columns = {name: column.tolist() for name, column in table.components.items()}
    parts = [{name: column[row] for name, column in columns.items()} for row in range(len(table.keys))]
    return list(zip((-table.scores).tolist(), table.keys.tolist(), parts, strict=True))


def scores(hits: Sequence[Hit]) -> dict[str, float]:
    return {hit.question.id: pytest.approx(hit.score, abs=1e-6) for hit in hits}


def found(
    weight: float, *, limit: int = 50, count: int = 3, excluded: str = "", **vectors: Sequence[float]
) -> Candidates:
    """Return the candidates of ``ASKED``."""
    engine = ListEngine(PRINTERS, vectors={int(key[1:]): vector for key, vector in vectors.items()} or DIRECTIONS)
    query = replace(ASKED, filters=Filters(exclude_ids=frozenset([excluded])))
    terms = {"printer": QueryTerm(1.0, 1.0), "offlin": QueryTerm(1.0, 1.0)}
    table = Candidates(query, RANKERS["probability"], terms, counts(3, {}), 1, 1)
    table.vector = np.array([1.0, 0.0], np.float32)
    find_candidates(engine, [table], JoinSettings(weight, limit, count))
    return table


def sums(table: Candidates) -> dict[str, float]:
    pairs = zip(table.keys.tolist(), table.scores.tolist(), strict=True)
    return {PRINTERS[key].id: pytest.approx(score, abs=1e-6) for key, score in pairs}


def test_the_weighted_sum_of_cosine_and_share_of_bm25_worked_by_hand() -> None:
    # bm25 2, 1, 0, so shares 1, 1/2, 0; cosines 0, 0.8, 0.6; without a cosine w is .4 at most
    assert sums(found(0.5)) == {"both": 0.65, "words": 0.6, "meaning": 0.3}
    assert sums(found(0.25)) == {"words": 0.75, "both": 0.575, "meaning": 0.15}
    assert sums(found(0.25, count=1)) == {"words": 0.75}


def test_components_are_those_of_the_weighted_sum() -> None:
    for hit in hits_of(printers(), replace(ASKED, k=3)):
        assert hit.components.keys() == {"bm25", "bm25_share", "cosine", "same"}
        assert hit.components["bm25_share"] == pytest.approx(hit.components["bm25"] / 2)


def test_a_candidate_of_one_source_is_scored_by_the_other() -> None:
    best_alone = found(0.5, limit=1, count=1)  # of the best by words, and the best by vectors
    assert sums(best_alone) == {"both": 0.65}
    assert best_alone.components["bm25"].tolist() == [1]


def test_an_excluded_question_does_not_set_the_scale() -> None:
    assert sums(found(0.5, excluded="words")) == {"both": 0.9, "meaning": 0.3}


def test_a_question_without_a_vector_is_weighed_by_its_words() -> None:
    assert sums(found(0.5, v2=[1.0, 0.0])) == {"words": 0.6, "meaning": 0.5, "both": 0.3}


@pytest.mark.parametrize("ranker", list(RANKERS))
def test_more_hits_than_questions_and_an_empty_forum_are_no_error(ranker: str) -> None:
    assert len(hits_of(printers(), replace(ASKED, k=1000, ranker=ranker))) == (3 if ranker == "probability" else 2)
    nothing = Searcher(ListEngine([]), Scoring(ANALYZER), FixedEncoder(1.0, 0.0))
    assert hits_of(nothing, replace(ASKED, k=5, ranker=ranker)) == ()


def test_what_shares_no_word_and_points_elsewhere_is_no_hit() -> None:
    searcher = Searcher(ListEngine(PRINTERS, vectors={2: [-1.0, 0.1]}), Scoring(ANALYZER), FixedEncoder(1.0, 0.0))
    assert [hit.question.id for hit in hits_of(searcher, replace(ASKED, k=3))] == ["words", "both"]
    assert hits_of(searcher, replace(ASKED, k=3, ranker="meaning")) == ()


def test_an_unknown_ranker_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingError, match="expected one of probability, words, meaning, reranker"):
        printers().search([replace(ASKED, ranker="magic")])


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": 1.1},
        {"weight": -0.1},
        {"depth": 0},
        {"scored": 0},
    ],
)
def test_join_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="weight from 0 to 1"):
        JoinSettings(**wrong)  # type: ignore[arg-type]
