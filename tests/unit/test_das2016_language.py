"""The language models of Das et al.: each equation beside plain loops over words, places, cuts and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from math import exp, log
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln
from tests.naive_language import NaiveModelOne, background, ml, translated

from askalike.models.vocabulary import Vocabulary
from askalike.papers.das2016.language import Evidence, Knowledge, LanguageModel, LanguageSettings
from askalike.papers.das2016.phrases import (
    Link,
    PhraseTable,
    Segmentation,
    WordLinks,
    align,
    best_or_sum,
    consistent_spans,
    count_phrases,
    grow_diag_final,
)
from askalike.papers.das2016.terms import Parallel, TermLists
from askalike.papers.das2016.topics import Topics, TopicTraining, learn_topics, pair_counts, vote_weights
from askalike.papers.das2016.translation import ModelOne, learn_translations
from askalike.types import Answer, Question

Floats = NDArray[np.float64]

# -- IBM's model 1 -------------------------------------------------------------------------------------------------

DAS, HAUS, BUCH, EIN, THE, HOUSE, BOOK, A = range(1, 9)
CORPUS = [([DAS, HAUS], [THE, HOUSE]), ([DAS, BUCH], [THE, BOOK]), ([EIN, BUCH], [A, BOOK])]


def drawn(seed: int, pairs: int = 40, size: int = 30) -> list[tuple[list[int], list[int]]]:
    """Return pairs with repeated words, of many lengths."""
    chance = np.random.default_rng(seed)
    return [
        (
            chance.integers(1, size, chance.integers(1, 9)).tolist(),
            chance.integers(1, size, chance.integers(1, 14)).tolist(),
        )
        for _ in range(pairs)
    ]


def test_two_steps_give_what_they_give_by_hand() -> None:
    model = ModelOne(Parallel.of(CORPUS), 9)
    assert model.step() == pytest.approx(6 * np.log(1 / 4)), "every target word is one of four, all alike"
    learned = model.translations().toarray()
    first = {(THE, DAS): 1 / 2, (HOUSE, DAS): 1 / 4, (THE, HAUS): 1 / 2, (A, BUCH): 1 / 4, (A, DAS): 0.0}
    assert [learned[pair] for pair in first] == pytest.approx(list(first.values()))
    # c(the|das) = ½/(½+½) + ½/(½+¼) = 7/6, c(house|das) = ¼/(¼+½) = 1/3 = c(book|das); c(the|das) / 11/6 = 7/11
    model.step()
    learned = model.translations().toarray()
    second = {(THE, DAS): 7 / 11, (HOUSE, DAS): 2 / 11, (HOUSE, HAUS): 4 / 7, (BOOK, BUCH): 7 / 11, (A, EIN): 4 / 7}
    assert [learned[pair] for pair in second] == pytest.approx(list(second.values()))


@pytest.mark.parametrize(("null", "cells"), [(None, 7), (30, 1 << 21)])
def test_every_step_is_that_of_plain_loops(null: int | None, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.papers.das2016.translation._CELLS_AT_ONCE", cells)  # many blocks, or one
    pairs = drawn(1)
    model, naive = ModelOne(Parallel.of(pairs), 30, has_null=null is not None), NaiveModelOne(pairs, null)
    likelihoods = []
    for _ in range(4):
        likelihoods.append(model.step())
        assert likelihoods[-1] == pytest.approx(naive.step(), rel=1e-12)
        learned = model.translations().toarray()
        for (word, source), expected in naive.table.items():
            if source != null:
                assert learned[word, source] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert all(after >= before - 1e-9 for before, after in pairwise(likelihoods)), "it never falls"
    if null is None:
        assert learned.sum(axis=0)[learned.any(axis=0)] == pytest.approx(1.0, rel=1e-5)


def test_small_probabilities_are_left_out_and_the_others_stay() -> None:
    pairs, reported = Parallel.of(drawn(4)), []
    every = learn_translations(pairs, 30, 3, 0.0).toarray()
    kept = learn_translations(pairs, 30, 3, 0.1, lambda done, value: reported.append((done, value)))
    np.testing.assert_allclose(kept.toarray(), np.where(every >= 0.1, every, 0), rtol=1e-6)
    assert [done for done, _ in reported] == [1, 2, 3]
    assert reported[0][1] < reported[2][1] < 0
    assert learn_translations(Parallel.of([]), 5).nnz == learn_translations(Parallel.of([([1], [])]), 5).nnz == 0


# -- phrases -------------------------------------------------------------------------------------------------------

V = 8


def random_pairs(count: int, seed: int) -> Parallel:
    draw = np.random.default_rng(seed)
    return Parallel.of(
        (draw.integers(1, V, draw.integers(1, 7)), draw.integers(1, V, draw.integers(1, 9))) for _ in range(count)
    )


def random_links(pairs: Parallel, share: float, seed: int) -> tuple[list[set[Link]], WordLinks]:
    """Return links of each pair by places within it, and the same by places in all texts."""
    draw = np.random.default_rng(seed)
    shapes = zip(pairs.sources.lengths().tolist(), pairs.targets.lengths().tolist(), strict=True)
    links = [
        {place for place in product(range(rows), range(columns)) if draw.random() < share} for rows, columns in shapes
    ]
    places = np.array(
        [
            (int(pairs.sources.starts[number]) + i, int(pairs.targets.starts[number]) + j)
            for number, own in enumerate(links)
            for i, j in sorted(own)
        ],
        np.int64,
    ).reshape(-1, 2)
    return links, WordLinks(pairs, places[:, 0], places[:, 1])


def spans_by_definition(pairs: Parallel, links: list[set[Link]], longest: int) -> list[tuple[int, int, int, int]]:
    """Return all consistent pairs of spans, by trying every pair of spans."""
    spans = []
    for number, own in enumerate(links):
        height, width = len(pairs.sources[number]), len(pairs.targets[number])
        for i, length, j, spread in product(range(height), range(1, longest + 1), range(width), range(1, longest + 1)):
            if i + length > height or j + spread > width:
                continue
            inside = [(i <= a < i + length, j <= b < j + spread) for a, b in own]
            if any(a and b for a, b in inside) and all(a == b for a, b in inside):
                first, second = int(pairs.sources.starts[number]), int(pairs.targets.starts[number])
                spans.append((first + i, length, second + j, spread))
    return sorted(spans)


@pytest.mark.parametrize(("longest", "share"), [(1, 0.2), (2, 0.5), (3, 0.08), (3, 0.0), (5, 0.2)])
def test_consistent_phrases_are_those_of_the_definition(longest: int, share: float) -> None:
    pairs = random_pairs(40, seed=longest)
    links, joined = random_links(pairs, share, seed=7)
    spans = consistent_spans(joined, longest)
    parts = (spans.source, spans.source_length, spans.target, spans.target_length)
    assert sorted(zip(*(part.tolist() for part in parts), strict=True)) == spans_by_definition(pairs, links, longest)


def test_the_table_holds_relative_frequencies() -> None:
    pairs = random_pairs(60, seed=3)
    links, joined = random_links(pairs, 0.15, seed=4)
    counts: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for i, length, j, spread in spans_by_definition(pairs, links, 2):
        source, target = (
            tuple(pairs.sources.ids[i : i + length].tolist()),
            tuple(pairs.targets.ids[j : j + spread].tolist()),
        )
        for phrases in ((source, target), (target, source)):
            counts[phrases] = counts.get(phrases, 0) + 1
    totals: dict[tuple[int, ...], int] = {}
    for (source, _), count in counts.items():
        totals[source] = totals.get(source, 0) + count
    whole, often = count_phrases(joined, 2, least=1), count_phrases(joined, 2, least=3)
    assert whole.matrix.nnz == len(counts)
    assert 0 < often.matrix.nnz == sum(count >= 3 for count in counts.values()) < len(counts)
    for (source, target), count in counts.items():
        assert whole.probability(source, target) == pytest.approx(count / totals[source])
        assert often.probability(source, target) == pytest.approx(count / totals[source] if count >= 3 else 0.0)
    assert whole.probability([7, 7], [1]) == 0, "never seen"
    nothing = count_phrases(random_links(random_pairs(3, seed=1), 0.0, 1)[1], 3)
    assert nothing.numbers(TermLists.of([[1, 2]])).tolist() == [[-1, -1]] * 3


def test_words_are_linked_with_their_most_probable_translation_in_both_directions() -> None:
    # source 1 2, target 3 4 4; t(3|1) = .9, t(3|2) = .1, t(4|2) = .5; back t(1|3) = 1, t(2|4) = 1
    words, sources, values = [3, 3, 4, 1, 2], [1, 2, 2, 3, 4], [0.9, 0.1, 0.5, 1.0, 1.0]
    links = align(Parallel.of([([1, 2], [3, 4, 4])]), csr_array((values, (words, sources)), shape=(V, V)))
    assert list(zip(links.from_place.tolist(), links.to_place.tolist(), strict=True)) == [(0, 0), (1, 1), (1, 2)]
    assert align(Parallel.of([]), csr_array((V, V))).from_place.tolist() == []
    assert align(Parallel.of([([1], [2])]), csr_array((V, V))).from_place.tolist() == []


def test_links_that_touch_nothing_come_in_last() -> None:
    forward, backward = [(0, 0), (3, 3), (3, 4)], [(0, 0), (2, 4)]
    assert grow_diag_final(forward, backward) == [(0, 0), (2, 4), (3, 3), (3, 4)]
    # (2, 4) comes after (3, 4) but 2 has no link yet; of two links of words that both have one, none is added
    assert grow_diag_final([(0, 0), (1, 2)], [(0, 0), (2, 2), (1, 3), (2, 3)]) == [(0, 0), (1, 2), (1, 3), (2, 2)]
    draw = np.random.default_rng(5)
    for _ in range(200):
        forward = [(int(draw.integers(0, 6)), column) for column in range(7) if draw.random() < 0.8]
        backward = [(row, int(draw.integers(0, 7))) for row in range(6) if draw.random() < 0.8]
        links, either = set(grow_diag_final(forward, backward)), {*forward, *backward}
        assert set(forward) & set(backward) <= links <= either
        for side in (0, 1):  # every word that can be linked is
            assert {link[side] for link in links} == {link[side] for link in either}


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
    rows = [draw.random((6 - length + 1, 2)) for length in range(1, min(longest, 6) + 1)]
    products = [np.prod([rows[length - 1][place] for place, length in ways], axis=0) for ways in cuts(6, longest)]
    assert len(products) == {1: 1, 2: 13, 3: 24, 9: 32}[longest]
    logs = [np.log(row) for row in rows]
    np.testing.assert_allclose(np.exp(best_or_sum(logs, "best")), np.max(products, axis=0))
    np.testing.assert_allclose(np.exp(best_or_sum(logs, "sum")), np.sum(products, axis=0))


# -- topics --------------------------------------------------------------------------------------------------------

COOKING, NETWORKS = [1, 2, 3, 4], [5, 6, 7, 8]
"""Words of two topics; their answers have the words in turn."""
W = 9


def two_topics(count: int, seed: int) -> csr_array:
    """Return counts of questions about the first and the second topic in turn, with longer answers."""
    draw = np.random.default_rng(seed)
    about = [COOKING if number % 2 == 0 else NETWORKS for number in range(count)]
    questions = TermLists.of(draw.choice(words[:2], 4) for words in about)
    answers = TermLists.of(draw.choice(words[2:], 12) for words in about)
    return pair_counts(questions, answers, np.arange(count), np.zeros(count, int), W)


def random_topics(seed: int, count: int = 3) -> Topics:
    words = np.random.default_rng(seed).random((W, count))
    words[0] = 0
    return Topics((words / words.sum(axis=0)).astype(np.float32), alpha=0.3)


def mixture_by_loops(topics: Topics, text: list[int]) -> list[float]:
    """Return θ of one text, word by word."""
    words = [topics.words[word].astype(float).tolist() for word in text if 0 < word < W]
    count = topics.words.shape[1]
    gamma = [topics.alpha + len(words) / count] * count
    for _ in range(20):
        factors = [exp(float(digamma(value))) for value in gamma]
        gamma = [topics.alpha] * count
        for own in words:
            shares = [factor * value for factor, value in zip(factors, own, strict=True)]
            gamma = [old + share / sum(shares) for old, share in zip(gamma, shares, strict=True)]
    return [value / sum(gamma) for value in gamma]


def test_a_texts_topics_are_those_of_the_equations_and_the_same_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    topics, texts = random_topics(1), [[1, 2, 1], [], [5, -4, 7, 7], [3], [8, 1, 2, 6, 6]]
    together = topics.mixtures(TermLists.of(texts))
    np.testing.assert_allclose(together, [mixture_by_loops(topics, text) for text in texts])
    assert together[1].tolist() == [pytest.approx(1 / 3)] * 3, "nothing to go by"
    monkeypatch.setattr("askalike.papers.das2016.topics._COUNTS_AT_ONCE", 3)
    np.testing.assert_array_equal(topics.mixtures(TermLists.of(texts)), together)
    np.testing.assert_allclose(topics.mixtures(TermLists.of(texts[2:3])), together[2:3], rtol=1e-12)
    assert topics.mixtures(TermLists.of([])).shape == (0, 3)
    probabilities = topics.probabilities(np.array([-7, 2]), np.array([[1, 0, 0], [0.5, 0.25, 0.25]]))
    own = topics.words[2].astype(float)
    assert probabilities.tolist() == [[0, 0], pytest.approx([own[0], own @ [0.5, 0.25, 0.25]])]


def step_by_loops(counts: Floats, words: Floats, gamma: Floats, eta: float, alpha: float) -> tuple[Floats, Floats]:
    """Return φ over ψ and γ after one step, count by count."""
    learned, mixtures = np.full(words.shape, eta), np.full(gamma.shape, alpha)
    learned[[0, W]] = 0
    for text, word in np.argwhere(counts):
        shares = np.exp(digamma(gamma[text])) * words[word]
        shares *= counts[text, word] / shares.sum()
        learned[word] += shares
        mixtures[text] += shares
    learned[:W] /= learned[:W].sum(axis=0)
    learned[W:] /= learned[W:].sum(axis=0)
    return learned, mixtures


def bound_by_loops(counts: Floats, words: Floats, gamma: Floats, eta: float, alpha: float) -> float:
    """Return the bound at φ, ψ and γ, with the best responsibilities for them."""
    total = 0.0
    for text, own in enumerate(gamma):
        expected = digamma(own) - digamma(own.sum())
        for word in np.flatnonzero(counts[text]):
            total += counts[text, word] * log(float(np.exp(expected) @ words[word]))
        total += gammaln(alpha * len(own)) - len(own) * gammaln(alpha) + (alpha - 1) * expected.sum()
        total -= gammaln(own.sum()) - gammaln(own).sum() + ((own - 1) * expected).sum()
    return float(total + eta * np.log(np.delete(words, [0, W], axis=0)).sum())


def test_a_step_is_that_of_the_equations_and_none_makes_the_bound_smaller() -> None:
    counts = two_topics(6, seed=1)
    training, bounds = TopicTraining(counts, 3, 5, alpha=0.3, eta=0.05), []
    for _ in range(8):
        words, gamma = training.words.copy(), training.gamma.copy()
        bounds.append(bound_by_loops(counts.toarray(), words, gamma, 0.05, 0.3))
        training.step()
        expected = step_by_loops(counts.toarray(), words, gamma, 0.05, 0.3)
        np.testing.assert_allclose(training.words, expected[0])
        np.testing.assert_allclose(training.gamma, expected[1])
    assert all(after >= before - 1e-9 for before, after in pairwise(bounds))


def test_two_obvious_topics_are_found_and_a_seed_gives_one_model() -> None:
    short, again, other = (learn_topics(two_topics(20, 3), 3, seed, 5) for seed in (0, 0, 1))
    np.testing.assert_array_equal(short.words, again.words)
    assert not np.array_equal(short.words, other.words)
    first = learn_topics(two_topics(60, 0), 2, 0, 60)
    cooking = int(first.words[1].argmax())
    assert first.words[COOKING[:2], cooking].sum() > 0.99
    assert first.words[NETWORKS[:2], 1 - cooking].sum() > 0.99
    assert first.mixtures(TermLists.of([[1, 2]]))[0, cooking] > 0.9
    empty = pair_counts(TermLists.of([]), TermLists.of([]), np.zeros(0, int), np.zeros(0, int), W)
    assert learn_topics(empty, 2, 0, 2).mixtures(TermLists.of([[1]])).tolist() == [[pytest.approx(0.5)] * 2]


def test_words_that_never_meet_in_a_question_share_a_topic_through_answers_that_were_voted_for() -> None:
    # 1 and 2 are asked apart, and answered with the same words; so are 5 and 6; each has one bad answer too
    questions = TermLists.of([[1], [2], [5], [6]] * 15)
    answers = TermLists.of([[3, 4], [7, 8], [4, 3], [8, 7], [7, 8], [3, 4], [8, 7], [4, 3]] * 15)
    answered, votes = np.repeat(np.arange(60), 2), np.array([30, 0] * 60)
    words = learn_topics(pair_counts(questions, answers, answered, votes, W), 2, 0, 100).words
    assert words[1].argmax() == words[2].argmax() != words[5].argmax() == words[6].argmax()
    assert vote_weights(np.array([3, 0, 0, -9]), np.array([2, 0, 2, 0])).tolist() == pytest.approx([0.8, 0.5, 0.2, 0.5])


# -- the models ----------------------------------------------------------------------------------------------------

COUNTS = [2, 4, 1, 3, 0, 5, 6, 9, 0]
TABLE = {(1, 1): 0.4, (2, 1): 0.3, (3, 2): 0.5, (1, 3): 0.25, (5, 6): 1.0, (4, 2): 0.1, (7, 7): 0.2, (6, 6): 0.05}
CANDIDATES = [[1, 2, 2, 3], [], [6], [-4, 7, 7], [1, 1, 1, 5, 6, 3, -9], [-5, -5]]
QUERIES = [[1, 3, 1, -4, 5, 4], [2], [-9, 7, 1], []]
TOPICS = random_topics(7)


@pytest.fixture(scope="module")
def phrases() -> PhraseTable:
    return count_phrases(random_links(random_pairs(80, seed=13), 0.15, seed=14)[1], 3, least=1)


@pytest.fixture(scope="module")
def knowledge(phrases: PhraseTable) -> Knowledge:
    words, sources = np.array(list(TABLE)).T
    learned = csr_array((list(TABLE.values()), (words, sources)), shape=(W, W))
    return Knowledge(Vocabulary([f"w{number}" for number in range(1, W)]), learned, phrases, TOPICS)


def collection_share(settings: LanguageSettings, length: int) -> float:
    return settings.weight if settings.smoothing == "jelinek-mercer" else settings.weight / (length + settings.weight)


def word_by_loops(settings: LanguageSettings, word: int, text: Sequence[int], table: Mapping[Any, float]) -> float:
    """Return P(w|D) of a model of words."""
    share, behind = collection_share(settings, len(text)), background(word, COUNTS)
    from_others = translated(word, text, table)
    if settings.is_self_certain:
        from_others += (1 - table.get((word, word), 0.0)) * ml(word, text)
    own = settings.own * ml(word, text) + (1 - settings.own) * from_others
    mixed = (1 - share) * own + share * behind
    about = behind
    if any(0 < term < W for term in text):
        about = float(TOPICS.words[word] @ mixture_by_loops(TOPICS, list(text))) if word > 0 else 0.0
    return settings.share * mixed + (1 - settings.share) * about


SETTINGS = {
    "lmir": LanguageSettings("dirichlet", 4.0),
    "translation": LanguageSettings("jelinek-mercer", 0.2, own=0.0),
    "translation, certain of itself": LanguageSettings("dirichlet", 5.0, own=0.0, is_self_certain=True),
    "translm": LanguageSettings("dirichlet", 10.0, own=0.6),
    "qatm": LanguageSettings("jelinek-mercer", 0.3, topics=3, share=0.6),
    "sqatm": LanguageSettings("dirichlet", 3.0, own=0.5, topics=3, share=0.7, is_voted=True),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_model_of_words_is_that_of_plain_loops(name: str, knowledge: Knowledge) -> None:
    settings = SETTINGS[name]
    for query in QUERIES:
        evidence = Evidence.of(np.array(query, np.int64), TermLists.of(CANDIDATES), np.array(COUNTS), knowledge)
        expected = [sum(log(word_by_loops(settings, word, text, TABLE)) for word in query) for text in CANDIDATES]
        assert evidence.log_likelihoods(settings).tolist() == pytest.approx(expected, rel=1e-6)


def phrases_by_loops(settings: LanguageSettings, query: list[int], text: list[int], table: PhraseTable) -> float:
    """Return log P(q|D), phrase by phrase and cut by cut."""
    share, length = collection_share(settings, len(text)), max(1, len(text))

    def phrase(terms: list[int]) -> float:
        spans = [text[i : i + n] for i in range(len(text)) for n in (1, 2, 3) if i + n <= len(text)]
        own = (1 - settings.own) * sum(table.probability(span, terms) for span in spans) / length
        if len(terms) > 1:
            return (1 - share) * own
        own += settings.own * text.count(terms[0]) / length
        return (1 - share) * own + share * background(terms[0], COUNTS)

    ways = []
    for cut in cuts(len(query), 3):
        ways.append(float(np.prod([phrase(query[place : place + count]) for place, count in cut])))
    return log(max(ways) if settings.segmentation == "best" else sum(ways))


@pytest.mark.parametrize("segmentation", get_args(Segmentation))
@pytest.mark.parametrize("smoothing", [("jelinek-mercer", 0.3), ("dirichlet", 2.0)])
def test_the_model_of_phrases_is_that_of_plain_loops(
    segmentation: Segmentation, smoothing: tuple[Any, float], knowledge: Knowledge, phrases: PhraseTable
) -> None:
    settings = LanguageSettings(*smoothing, own=0.4, longest=3, segmentation=segmentation)
    texts = [[1, 2, 3], [], [3, 1, 2, 2, 6], [-5, 1], [4]]
    for query in ([2], [1, 2], [3, 1, 2, 2, 5], [-5, 7, 1], []):
        evidence = Evidence.of(np.array(query, np.int64), TermLists.of(texts), np.array(COUNTS), knowledge)
        expected = [phrases_by_loops(settings, query, text, phrases) for text in texts]
        assert evidence.log_likelihoods(settings).tolist() == pytest.approx(expected)


TROUBLES = (("wifi", "router"), ("pain", "doctor"), ("cake", "oven"))
ASKED = [Question(str(number), f"trouble with {TROUBLES[number % 3][0]}") for number in range(30)]
REPLIES = [Answer(f"a{number}", str(number), f"ask {TROUBLES[number % 3][1]}") for number in range(30)]


@pytest.mark.parametrize(
    "settings",
    [
        LanguageSettings(),
        LanguageSettings("jelinek-mercer", 0.2, own=0.5),
        LanguageSettings("jelinek-mercer", 0.2, own=0.3, longest=2),
        LanguageSettings("jelinek-mercer", 0.5, own=0.5, topics=3, share=0.6, is_voted=True),
    ],
    ids=["lmir", "translm", "phrases", "sqatm"],
)
def test_a_model_that_was_fitted_scores_questions_as_a_reranker_does(settings: LanguageSettings) -> None:
    model = LanguageModel.fit(settings, ASKED, REPLIES)
    query = Question("q", "my wifi")
    questions = [
        Question("x", "doctor of trouble"),
        Question("y", "router of trouble"),
        Question("z", "wifi"),
        Question("", ""),
    ]
    scores = model.score(query, questions)
    assert scores[2] > max(scores[0], scores[3])
    assert np.isfinite(scores).all()
    assert (scores[1] > scores[0]) == (settings.own < 1), "only answers say that a router is about wifi"
    order = [3, 1, 0, 2]
    np.testing.assert_allclose(model.score(query, [questions[place] for place in order]), scores[order])
    np.testing.assert_array_equal(LanguageModel.fit(settings, ASKED, REPLIES).score(query, questions), scores)
    assert model.score(Question("", ""), questions).tolist() == [0] * 4
    assert model.score(query, []).shape == (0,)
