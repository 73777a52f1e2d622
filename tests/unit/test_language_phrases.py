"""Phrase translation: links, consistent phrases, the table and the score, beside plain enumerations of each."""

from __future__ import annotations

from itertools import product
from math import exp, log
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.language.likelihood import Collection, Parallel, QueryLikelihood, Smoothing, TermLists
from askalike.models.language.phrases import (
    Heuristic,
    Link,
    PhraseBook,
    PhraseModel,
    PhraseTable,
    Segmentation,
    WordLinks,
    align,
    best_or_sum,
    consistent_spans,
    count_phrases,
    symmetrise,
)
from askalike.models.language.translation import Translations, word_translation

V = 8


def random_links(pairs: Parallel, share: float, seed: int) -> list[set[Link]]:
    """Return links of each pair, by places within it."""
    draw = np.random.default_rng(seed)
    shapes = zip(pairs.sources.lengths().tolist(), pairs.targets.lengths().tolist(), strict=True)
    return [
        {(i, j) for i, j in product(range(height), range(width)) if draw.random() < share} for height, width in shapes
    ]


def joined(pairs: Parallel, links: list[set[Link]]) -> WordLinks:
    rows = [
        (int(pairs.sources.starts[number]) + i, int(pairs.targets.starts[number]) + j)
        for number, own in enumerate(links)
        for i, j in sorted(own)
    ]
    places = np.array(rows, np.int64).reshape(-1, 2)
    return WordLinks(pairs, places[:, 0], places[:, 1])


def random_pairs(count: int, seed: int) -> Parallel:
    draw = np.random.default_rng(seed)
    return Parallel.of(
        (draw.integers(1, V, draw.integers(1, 7)), draw.integers(1, V, draw.integers(1, 9))) for _ in range(count)
    )


def by_definition(pairs: Parallel, links: list[set[Link]], longest: int) -> list[tuple[int, int, int, int]]:
    """Return all consistent pairs of spans, by trying every pair of spans."""
    found = []
    for number, own in enumerate(links):
        height, width = int(pairs.sources.lengths()[number]), int(pairs.targets.lengths()[number])
        for i, length, j, spread in product(range(height), range(1, longest + 1), range(width), range(1, longest + 1)):
            if i + length > height or j + spread > width:
                continue
            inside = [(i <= a < i + length, j <= b < j + spread) for a, b in own]
            if any(a and b for a, b in inside) and all(a == b for a, b in inside):
                starts = int(pairs.sources.starts[number]), int(pairs.targets.starts[number])
                found.append((starts[0] + i, length, starts[1] + j, spread))
    return sorted(found)


@pytest.mark.parametrize("longest", [1, 2, 3, 5])
@pytest.mark.parametrize("share", [0.0, 0.08, 0.2, 0.5])
def test_consistent_phrases_are_those_of_the_definition(longest: int, share: float) -> None:
    pairs = random_pairs(40, seed=longest)
    links = random_links(pairs, share, seed=7)
    spans = consistent_spans(joined(pairs, links), longest)
    parts = (spans.source, spans.source_length, spans.target, spans.target_length)
    found = zip(*(part.tolist() for part in parts), strict=True)
    assert sorted(found) == by_definition(pairs, links, longest)


@pytest.mark.parametrize("is_pooled", [False, True])
def test_the_table_holds_relative_frequencies(is_pooled: bool) -> None:
    pairs = random_pairs(60, seed=3)
    links = random_links(pairs, 0.15, seed=4)
    counts: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for i, length, j, spread in by_definition(pairs, links, 2):
        source = tuple(pairs.sources.ids[i : i + length].tolist())
        target = tuple(pairs.targets.ids[j : j + spread].tolist())
        for one, other in ((source, target), (target, source))[: 1 + is_pooled]:
            counts[one, other] = counts.get((one, other), 0) + 1
    totals: dict[tuple[int, ...], int] = {}
    for (source, _), count in counts.items():
        totals[source] = totals.get(source, 0) + count
    whole = count_phrases(joined(pairs, links), V, longest=2, least=1, is_pooled=is_pooled)
    assert len(whole) == len(counts)
    often = count_phrases(joined(pairs, links), V, longest=2, least=3, is_pooled=is_pooled)
    assert 0 < len(often) == sum(count >= 3 for count in counts.values()) < len(whole)
    for (source, target), count in counts.items():
        expected = count / totals[source]
        assert whole.probability(list(source), list(target)) == pytest.approx(expected)
        kept = expected if count >= 3 else 0.0
        assert often.probability(list(source), list(target)) == pytest.approx(kept)


def test_phrases_that_were_never_seen_have_no_probability() -> None:
    pairs = Parallel.of([([1, 2], [3])])
    table = count_phrases(joined(pairs, [{(0, 0)}]), V, longest=2, least=1)
    assert table.probability([1], [3]) == table.probability([1, 2], [3]) == 1
    assert table.probability([3], [1]) == 1 / 2  # the 2 without links may stand beside the 1, or not
    assert table.probability([2], [3]) == table.probability([7], [3]) == table.probability([1, 2, 3], [3]) == 0


def test_a_corpus_without_links_gives_an_empty_table() -> None:
    table = count_phrases(joined(random_pairs(3, seed=1), [set(), set(), set()]), V)
    assert (len(table), len(table.book)) == (0, 0)
    assert table.book.numbers(TermLists.of([[1, 2]])).tolist() == [[-1, -1]] * 3


@pytest.mark.parametrize("wrong", [{"longest": 0}, {"least": 0}])
def test_limits_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        count_phrases(joined(random_pairs(1, seed=1), [set()]), V, **wrong)


def test_a_book_knows_its_phrases_by_number() -> None:
    texts = TermLists.of([[3, 1, 3, 1], [3, 1, 2], []])
    book = PhraseBook.of(texts, np.array([3, 0, 0, 0, 0, 1, 0]), V, 3)
    assert [book.terms(number) for number in range(len(book))] == [[1], [3], [3, 1], [3, 1, 3]]
    assert book.numbers(texts).tolist() == [
        [1, 0, 1, 0, 1, 0, -1],
        [2, -1, 2, -1, 2, -1, -1],
        [3, -1, -1, -1, -1, -1, -1],
    ]
    assert book.numbers(TermLists.of([[-3, 1], [0], [V, 3]])).tolist() == [[-1, 0, -1, -1, 1]] + [[-1] * 5] * 2


# -- links ---------------------------------------------------------------------------------------------------------


def test_words_are_linked_with_their_most_probable_translation() -> None:
    # source 1 2, target 3 4 4; t(3|1) = .9, t(3|2) = .1, t(4|2) = .5; back t(1|3) = 1, t(2|4) = 1
    forward = Translations.of(np.array([3, 3, 4]), np.array([1, 2, 2]), np.array([0.9, 0.1, 0.5]), V)
    backward = Translations.of(np.array([1, 2]), np.array([3, 4]), np.array([1.0, 1.0]), V)
    pairs = Parallel.of([([1, 2], [3, 4, 4])])

    def found(heuristic: Heuristic) -> list[tuple[int, int]]:
        made = align(pairs, forward, backward, heuristic)
        return list(zip(made.from_place.tolist(), made.to_place.tolist(), strict=True))

    assert found("intersection") == [(0, 0), (1, 1)]  # the first 4 is the one that 2 goes to
    assert found("grow-diag") == found("grow-diag-final") == found("union") == [(0, 0), (1, 1), (1, 2)]


def test_links_that_touch_nothing_come_in_last() -> None:
    forward, backward = [(0, 0), (3, 3), (3, 4)], [(0, 0), (2, 4)]
    assert symmetrise(forward, backward, "grow-diag") == [(0, 0)]
    assert symmetrise(forward, backward, "grow-diag-final") == [(0, 0), (2, 4), (3, 3), (3, 4)]
    # (2, 4) comes after (3, 4) but 2 has no link yet; of two links of words that both have one, none is added
    assert symmetrise([(0, 0), (1, 2)], [(0, 0), (2, 2), (1, 3), (2, 3)], "grow-diag-final") == [
        (0, 0),
        (1, 2),
        (1, 3),
        (2, 2),
    ]


def test_heuristics_lie_between_intersection_and_union() -> None:
    draw = np.random.default_rng(5)
    for _ in range(200):
        forward = [(int(draw.integers(0, 6)), column) for column in range(7) if draw.random() < 0.8]
        backward = [(row, int(draw.integers(0, 7))) for row in range(6) if draw.random() < 0.8]
        least, grown, final, most = (set(symmetrise(forward, backward, name)) for name in get_args(Heuristic))
        assert least <= grown <= final <= most
        assert {row for row, _ in final} == {row for row, _ in most}  # every word that can be linked is
        assert {column for _, column in final} == {column for _, column in most}


def test_pairs_are_aligned_together_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = random_pairs(30, seed=8)
    draw = np.random.default_rng(9)
    words, sources = (part.ravel() for part in np.meshgrid(np.arange(1, V), np.arange(1, V)))
    forward = Translations.of(words, sources, draw.random(len(words)), V)
    backward = Translations.of(words, sources, draw.random(len(words)), V)
    together = align(pairs, forward, backward)
    monkeypatch.setattr("askalike.models.language.phrases._MOST_CELLS", 20)
    again = align(pairs, forward, backward)
    np.testing.assert_array_equal(together.from_place, again.from_place)
    np.testing.assert_array_equal(together.to_place, again.to_place)
    for place, own in zip(together.from_place.tolist(), together.to_place.tolist(), strict=True):
        pair = np.searchsorted(pairs.sources.starts, place, side="right")
        assert pair == np.searchsorted(pairs.targets.starts, own, side="right")


def test_no_pairs_have_no_links() -> None:
    nothing = Translations.of(np.zeros(0, int), np.zeros(0, int), np.zeros(0), V)
    assert align(Parallel.of([]), nothing, nothing).from_place.tolist() == []
    assert align(Parallel.of([([1], [2])]), nothing, nothing).from_place.tolist() == []


# -- the score -----------------------------------------------------------------------------------------------------


def cuts(count: int, longest: int) -> list[list[tuple[int, int]]]:
    """Return every way to cut so many terms, as places and lengths."""
    if not count:
        return [[]]
    return [
        [*before, (count - length, length)]
        for length in range(1, min(count, longest) + 1)
        for before in cuts(count - length, longest)
    ]


@pytest.mark.parametrize("longest", [1, 2, 3, 9])
def test_the_recursion_is_the_best_and_the_sum_of_all_ways_to_cut(longest: int) -> None:
    draw = np.random.default_rng(longest)
    made = [draw.random((6 - length + 1, 2)) for length in range(1, min(longest, 6) + 1)]
    products = [np.prod([made[length - 1][place] for place, length in ways], axis=0) for ways in cuts(6, longest)]
    assert len(products) == {1: 1, 2: 13, 3: 24, 9: 32}[longest]
    logs = [np.log(one) for one in made]
    np.testing.assert_allclose(np.exp(best_or_sum(logs, "best")), np.max(products, axis=0))
    np.testing.assert_allclose(np.exp(best_or_sum(logs, "sum")), np.sum(products, axis=0))


COLLECTION = Collection(np.array([2, 9, 7, 5, 4, 3, 2, 0]))
CANDIDATES = TermLists.of([[1, 2, 3], [], [3, 1, 2, 2, 6], [-5, 1], [4]])
SMOOTHINGS = [Smoothing("jelinek-mercer", 0.3), Smoothing("dirichlet", 2.0)]


@pytest.fixture
def table() -> PhraseTable:
    pairs = random_pairs(80, seed=13)
    return count_phrases(joined(pairs, random_links(pairs, 0.15, seed=14)), V, longest=3, least=1)


def by_the_equations(model: PhraseModel, query: list[int], document: list[int]) -> float:
    """Return log P(q|D), phrase by phrase and cut by cut."""

    def phrase(terms: list[int]) -> float:
        length = len(document)
        share = float(model.smoothing.shares(np.array([length]))[0])
        spans = [document[i : i + n] for i in range(length) for n in (1, 2, 3) if i + n <= length]
        found = (1 - model.kept) * sum(model.table.probability(span, terms) for span in spans) / max(1, length)
        if len(terms) > 1:
            return (1 - share) * found
        found += model.kept * document.count(terms[0]) / max(1, length)
        return (1 - share) * found + share * float(model.collection.probabilities(np.array(terms))[0])

    ways = []
    for cut in cuts(len(query), 3):
        product_ = 1.0
        for place, length in cut:
            product_ *= phrase(query[place : place + length])
        ways.append(product_)
    return log(max(ways) if model.segmentation == "best" else sum(ways))


@pytest.mark.parametrize("segmentation", get_args(Segmentation))
@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=["jelinek-mercer", "dirichlet"])
@pytest.mark.parametrize("query", [[2], [1, 2], [3, 1, 2, 2, 5], [-5, 7, 1]])
def test_the_score_is_that_of_the_equations(
    table: PhraseTable, segmentation: Segmentation, smoothing: Smoothing, query: list[int]
) -> None:
    model = PhraseModel(COLLECTION, table, smoothing, 0.4, segmentation)
    found = model.log_likelihoods(np.array(query), CANDIDATES)
    texts = np.split(CANDIDATES.ids, CANDIDATES.starts[1:-1])
    expected = [by_the_equations(model, query, text.tolist()) for text in texts]
    assert found.tolist() == pytest.approx(expected)
    ratios = model.mean_ratios(np.array(query), CANDIDATES)
    background = np.log(COLLECTION.probabilities(np.array(query))).sum()
    assert ratios.tolist() == pytest.approx([exp((one - background) / len(query)) for one in expected])


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=["jelinek-mercer", "dirichlet"])
def test_with_every_word_kept_it_is_query_likelihood(table: PhraseTable, smoothing: Smoothing) -> None:
    query = np.array([3, 1, 2, 2, -5])
    words = QueryLikelihood(COLLECTION, smoothing)
    for segmentation in get_args(Segmentation):
        model = PhraseModel(COLLECTION, table, smoothing, 1.0, segmentation)
        np.testing.assert_allclose(model.log_likelihoods(query, CANDIDATES), words.log_likelihoods(query, CANDIDATES))
        np.testing.assert_allclose(model.mean_ratios(query, CANDIDATES), words.mean_ratios(query, CANDIDATES))


def test_with_phrases_of_one_word_it_is_the_word_translation_model() -> None:
    pairs = random_pairs(80, seed=13)
    table = count_phrases(joined(pairs, random_links(pairs, 0.15, seed=14)), V, longest=1, least=1)
    entries = [(w, u, table.probability([u], [w])) for w, u in product(range(1, V), repeat=2)]
    words, sources, values = (np.array(part) for part in zip(*[entry for entry in entries if entry[2]], strict=True))
    translations = Translations.of(words, sources, values, V)
    query, smoothing = np.array([1, 4, 4, 2]), SMOOTHINGS[0]
    phrases = PhraseModel(COLLECTION, table, smoothing, 0.3)
    expected = word_translation(COLLECTION, translations, smoothing, 0.3)
    np.testing.assert_allclose(
        phrases.log_likelihoods(query, CANDIDATES), expected.log_likelihoods(query, CANDIDATES), rtol=1e-6
    )


def test_queries_and_candidates_without_terms(table: PhraseTable) -> None:
    model = PhraseModel(COLLECTION, table)
    empty = np.zeros(0, np.int64)
    assert model.log_likelihoods(empty, CANDIDATES).tolist() == [0] * 5
    assert model.mean_ratios(empty, CANDIDATES).tolist() == [1] * 5
    assert model.log_likelihoods(np.array([1, 2]), TermLists.of([])).tolist() == []
    assert np.isfinite(model.log_likelihoods(np.array([-9, -8]), CANDIDATES)).all()


def test_the_order_of_candidates_changes_no_score(table: PhraseTable) -> None:
    model, query = PhraseModel(COLLECTION, table), np.array([3, 1, 2, 2])
    texts = np.split(CANDIDATES.ids, CANDIDATES.starts[1:-1])
    order = [3, 0, 4, 2, 1]
    found = model.log_likelihoods(query, TermLists.of(texts[place] for place in order))
    np.testing.assert_allclose(found, model.log_likelihoods(query, CANDIDATES)[order])


def test_the_order_of_a_query_counts_where_phrases_do() -> None:
    pairs = Parallel.of([([1, 2], [3, 4])] * 3)
    table = count_phrases(joined(pairs, [{(0, 1), (1, 0)}] * 3), V, longest=2, least=1, is_pooled=False)
    model = PhraseModel(COLLECTION, table)
    candidates = TermLists.of([[1, 2]])
    forward, turned = (model.log_likelihoods(np.array(query), candidates)[0] for query in ([3, 4], [4, 3]))
    assert forward > turned


@pytest.mark.parametrize("wrong", [{"kept": -0.1}, {"kept": 1.1}, {"kept": float("nan")}, {"segmentation": "worst"}])
def test_settings_out_of_range_are_refused(table: PhraseTable, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        PhraseModel(COLLECTION, table, **wrong)


def test_the_table_is_the_same_from_the_same() -> None:
    pairs = random_pairs(50, seed=21)
    first, second = (count_phrases(joined(pairs, random_links(pairs, 0.2, seed=2)), V, least=1) for _ in range(2))
    parts: list[tuple[NDArray[Any], NDArray[Any]]] = [
        (first.book.keys, second.book.keys),
        (first.starts, second.starts),
        (first.sources, second.sources),
        (first.values, second.values),
    ]
    for one, other in parts:
        np.testing.assert_array_equal(one, other)
