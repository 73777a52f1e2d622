"""One probability that two texts ask the same: what it is made of, its laws, and the file that it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from askalike import Forum, Question
from askalike.data import bundled_forum, general_folder
from askalike.errors import DamagedModelError
from askalike.search.features import (
    ENOUGH,
    FEATURES,
    LARGEST,
    MIDDLING,
    SMALLEST,
    SPREAD,
    TYPICAL,
    Asked,
    Cosines,
    features,
)
from askalike.search.scorer import FREE, SENTENCES, WORDS, digest, probability, read_scorers, scorers
from askalike.search.texts import BODY_CHARACTERS, HASH_BYTES, Text, reader_of, unpacked
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.types import Markup

ANALYZER = Analyzer(TextSettings())
RAREST = 4.0
MARKUPS: list[Markup] = ["plain", "html", "markdown"]
needs_model = pytest.mark.skipif(general_folder() is None, reason="the package carries no encoder")


READ = reader_of(ANALYZER).read


def alike(
    query: Text,
    rarity: NDArray[np.float64],
    texts: Sequence[Text],
    cosines: NDArray[np.float64] | None = None,
    size: int = MIDDLING,
    margin: float = 0.0,
) -> NDArray[np.float64]:
    """Return the features of one query."""
    pairs = np.zeros(len(texts), np.intp), np.arange(len(texts))
    return features([Asked(query, rarity, RAREST, size=size, margin=margin)], texts, pairs, cosines)


def compared(query: str, candidate: str, body: str = "") -> dict[str, float]:
    asked, terms, _ = READ(query, "", "plain")
    found = alike(asked, np.full(len(terms), 2.0), [READ(candidate, body, "plain")[0]])
    return dict(zip(FEATURES, found[0].tolist(), strict=True))


def test_shares_of_words_worked_by_hand() -> None:
    found = compared("router drops wifi", "wifi drops", "router is old")
    assert found["title in text"] == pytest.approx(1.0)  # all three words, the third in the body
    assert found["candidate's title in text"] == pytest.approx(1.0)
    # titles: shared 2² + 2², norms √(3 · 2²) and √(2 · 2²), and the root of it
    assert found["titles"] == pytest.approx((8 / (12**0.5 * 8**0.5)) ** 0.5)
    assert found["same title"] == 0.0


def test_a_word_that_only_the_candidate_has_counts_as_a_typical_one() -> None:
    found = compared("wifi", "wifi kitchen")
    assert found["candidate's title in text"] == pytest.approx(2.0 / (2.0 + 0.6 * RAREST))


def test_a_title_of_one_common_word_is_the_same_by_chance() -> None:
    assert compared("help", "help")["same title"] == pytest.approx(2.0 / (1.5 * RAREST))
    assert compared("router drops wifi daily", "router drops wifi daily")["same title"] == 1.0


def test_a_body_counts_neither_way_for_a_query_that_is_its_title_alone() -> None:
    title, body = "router drops wifi daily", "printer prints blank pages and costs too much for what it does"
    with_body = READ(title, body, "plain")[0]
    asked, terms, _ = READ(title, "", "plain")
    rarity, near, parts = np.full(len(terms), 2.0), np.array([0.3]), ("texts", "cosine")
    found = alike(asked, rarity, [with_body], near)[0]
    assert [found[FEATURES.index(name)] for name in parts] == [1.0, 1.0]
    by_words = alike(asked, rarity, [with_body])[0]
    assert [by_words[FEATURES.index(name)] for name in parts] == [1.0, 0.0]
    common = alike(asked, np.full(len(terms), 0.3), [with_body], near)[0]
    assert common[FEATURES.index("cosine")] == pytest.approx(0.3)  # of few informative words: as the vectors say
    another = alike(READ(title, "on channel six", "plain")[0], rarity, [with_body], near)[0]
    assert another[FEATURES.index("cosine")] == 0.3


def test_a_forum_counts_as_no_smaller_and_no_larger_than_those_that_were_learned_by() -> None:
    asked, terms, _ = READ("router drops wifi", "", "plain")

    def size_of(questions: int) -> float:
        found = alike(asked, np.full(len(terms), 2.0), [asked], size=questions)
        return float(found[0, FEATURES.index("size of the forum")])

    assert size_of(MIDDLING) == 0.0
    assert size_of(30_000) == pytest.approx(1.0)
    assert size_of(0) == size_of(SMALLEST) < 0
    assert size_of(10**9) == size_of(LARGEST) < 2


def test_the_same_likeness_says_less_in_a_larger_forum() -> None:
    place = FEATURES.index("size of the forum")
    alike = np.full((1, len(FEATURES)), 0.5)
    small, large = alike.copy(), alike.copy()
    small[0, place], large[0, place] = -1.0, 1.9
    assert scorers()[SENTENCES].logits(small)[0] > scorers()[SENTENCES].logits(large)[0]
    assert scorers()[WORDS].logits(small)[0] == scorers()[WORDS].logits(large)[0]


def test_the_same_likeness_says_more_in_a_forum_whose_questions_stand_out_by_sentences_alone() -> None:
    place = FEATURES.index("margin of the forum")
    near, far = np.full((1, len(FEATURES)), 0.5), np.full((1, len(FEATURES)), 0.5)
    near[0, place], far[0, place] = -1.0, 1.0
    assert scorers()[SENTENCES].logits(near)[0] < scorers()[SENTENCES].logits(far)[0]
    assert scorers()[WORDS].logits(near)[0] == scorers()[WORDS].logits(far)[0]
    asked, terms, _ = READ("router drops wifi", "", "plain")
    found = alike(asked, np.full(len(terms), 2.0), [asked], margin=0.7)
    assert found[0, place] == 0.7


def test_texts_without_words_have_nothing_alike() -> None:
    assert not any(compared("", "").values())
    assert alike(READ("", "", "plain")[0], np.zeros(0), []).shape == (0, len(FEATURES))


def test_queries_compared_together_have_what_each_has_alone() -> None:
    texts = [
        READ(title, body, "plain")[0]
        for title, body in (
            ("wifi printer", "wireless"),
            ("", ""),
            ("printer printer wifi", ""),
            ("nothing known", "at all"),
            ("Wireless", "printer and wifi"),
            ("wifi printer", "wireless"),
        )
    ]
    rarity = [np.linspace(0.5, 3.0, (len(one.title) + len(one.body)) // HASH_BYTES) for one in texts]
    chosen: list[list[int]] = [[5, 0, 2], [0, 3], [], [1, 3, 4], [2, 0, 5, 3, 4, 1], [0]]
    near = [np.linspace(0.1, 0.9, len(some)) for some in chosen]
    asked = [
        Asked(text, rare, RAREST, 0.1 * place, 300 + place, 0.2 * place)
        for place, (text, rare) in enumerate(zip(texts, rarity, strict=True))
    ]
    pairs = np.repeat(np.arange(6), list(map(len, chosen))), np.concatenate([np.array(some, int) for some in chosen])
    together = features(asked, texts, pairs, np.concatenate(near))
    alone = [
        features([one], [texts[at] for at in some], (np.zeros(len(some), np.intp), np.arange(len(some))), own)
        for one, some, own in zip(asked, chosen, near, strict=True)
    ]
    assert together.any(axis=0).all()
    assert together == pytest.approx(np.concatenate(alone), abs=1e-6)


def idf(term: str) -> float:
    """Give each term a rarity of its own, up to that of the rarest."""
    return RAREST * (1 + sum(map(ord, term)) % 7) / 7


def by_the_formula(query: tuple[str, str], candidate: tuple[str, str], markup: Markup) -> list[float]:
    """Return the seven features of words as the module's formulas say, term by term."""
    (title_q, body_q), (title_c, body_c) = (
        [ANALYZER.terms(one[0]), begun(one[1], markup)] for one in (query, candidate)
    )
    weights_q = dict.fromkeys(body_q, 0.5) | dict.fromkeys(title_q, 1.0)
    weights_c = dict.fromkeys(body_c, 0.5) | dict.fromkeys(title_c, 1.0)
    rarity = {term: idf(term) if term in weights_q else TYPICAL * RAREST for term in {*weights_q, *weights_c}}
    shared = weights_q.keys() & weights_c.keys()

    def share(part: Iterable[float], whole: Iterable[float]) -> float:
        total = sum(whole)
        return sum(part) / total if total else 0.0

    def likeness(first: dict[str, float], second: dict[str, float]) -> float:
        both = sum(first[term] * second[term] * rarity[term] ** 2 for term in first.keys() & second.keys())
        norms = [sum((weight * rarity[term]) ** 2 for term, weight in one.items()) for one in (first, second)]
        return (both / (norms[0] * norms[1]) ** 0.5) ** 0.5 if all(norms) else 0.0

    of_title = sum(rarity[term] for term in set(title_q))
    of_text = sum(weight * rarity[term] for term, weight in weights_q.items())
    is_titled = bool(title_q) and title_q == title_c
    same_title = min(1.0, of_title / (ENOUGH * RAREST)) if is_titled else 0.0
    titled = [dict.fromkeys(title_q, 1.0), dict.fromkeys(title_c, 1.0)]
    return [
        share((rarity[one] for one in set(title_q) & shared), (rarity[one] for one in set(title_q))),
        share((weights_q[one] * rarity[one] for one in shared), (w * rarity[one] for one, w in weights_q.items())),
        share((rarity[one] for one in set(title_c) & shared), (rarity[one] for one in set(title_c))),
        likeness(*titled),
        max(likeness(weights_q, weights_c), 0.0 if body_q else same_title),
        same_title,
        min(1.0, of_text / (ENOUGH * RAREST)) if is_titled and body_q == body_c else 0.0,
    ]


def begun(body: str, markup: Markup) -> list[str]:
    cut = body if len(body) <= BODY_CHARACTERS else body[:BODY_CHARACTERS].rsplit(None, 1)[0]
    return ANALYZER.terms(readable(cut, markup, with_code=ANALYZER.settings.with_code))


def agrees_with_the_formula(query: tuple[str, str], candidates: Sequence[tuple[str, str]], markup: Markup) -> None:
    asked, terms, _ = READ(*query, markup)
    packed = [READ(*one, markup)[0].packed() for one in candidates]
    texts = [one for one in map(unpacked, packed) if one is not None]
    found = alike(asked, np.array([idf(term) for term in terms]), texts)[:, :7]
    expected = [by_the_formula(query, one, markup) for one in candidates]
    assert found.tolist() == [pytest.approx(row, abs=1e-12) for row in expected]


@given(
    st.lists(st.tuples(*[st.text("ab é'.-<p>&; 1", max_size=60)] * 2), min_size=2, max_size=5), st.sampled_from(MARKUPS)
)
def test_words_are_compared_as_the_formulas_say_in_any_text(texts: list[tuple[str, str]], markup: Markup) -> None:
    agrees_with_the_formula(texts[0], texts, markup)


def test_an_encoder_that_puts_all_questions_near_each_other_is_brought_to_the_same_scale() -> None:
    chance = np.random.default_rng(0)
    apart = chance.normal(0, 1, (400, 50))
    near = chance.normal(0, 0.4, (400, 50)) + 1
    for one in (apart, near):
        vectors = (one / np.linalg.norm(one, axis=1, keepdims=True)).astype(np.float32)
        usual = Cosines.among(vectors)
        others = usual.of(vectors[0], (vectors[1:] @ vectors[0]).astype(float))
        assert usual.of(vectors[0], np.array([1.0]))[0] == pytest.approx(1.0)
        assert abs(others.mean()) < 0.1
        assert others.std() == pytest.approx(SPREAD, rel=0.35)


@given(st.integers(0, len(FEATURES) - 1), st.lists(st.floats(0, 1), min_size=len(FEATURES), max_size=len(FEATURES)))
def test_more_that_is_alike_never_lowers_a_probability(place: int, given_features: list[float]) -> None:
    if FEATURES[place] in FREE:
        return
    less, more = np.array([given_features]), np.array([given_features])
    more[0, place] += 0.1
    for scorer in scorers().values():
        assert scorer.logits(more)[0] >= scorer.logits(less)[0]
        assert scorer.same <= scorer.related


@pytest.mark.parametrize(
    "change",
    [
        lambda held: held.update(format=2),
        lambda held: held["versions"].pop(WORDS),
        lambda held: held["versions"][WORDS]["weights"].update({"texts": -1.0}),
        lambda held: held["versions"][SENTENCES]["weights"].update({"surprise": 1.0}),
        lambda held: held["versions"][SENTENCES].update(same=99.0),
        lambda held: held["versions"][SENTENCES].update(related=float("nan")),
    ],
)
def test_a_changed_file_is_refused(change: object) -> None:
    held = json.loads((files("askalike.data") / "scorer.json").read_bytes())
    change(held)  # type: ignore[operator]
    with pytest.raises(DamagedModelError, match="scorer of the package"):
        read_scorers(json.dumps(held).encode())
    with pytest.raises(DamagedModelError, match="scorer of the package"):
        read_scorers(b"[" * 100_000)
    assert len(digest()) == 12


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("scored") / "f") as made:
        made.load(bundled_forum())
        yield made


@needs_model
def test_the_same_text_is_certain_and_what_nobody_asked_is_not(forum: Forum) -> None:
    for one in list(forum.questions())[:20]:
        best = forum.similar(one.title, one.body, 1, markup=one.markup)[0]
        assert best.question.id == one.id
        assert best.score >= 0.97
    for asked in ("asdf qwer", "How do I sort a Python list?", "Do I need a visa for Iceland?"):
        assert all(hit.score < 0.15 for hit in forum.similar(asked))


@needs_model
def test_hits_are_ordered_by_the_probability_that_they_show(forum: Forum) -> None:
    hits = forum.similar("Wifi drops every evening", "The laptop loses the wireless connection.")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.likelihood == hit.score and 0 < hit.components["same"] <= hit.score < 1 for hit in hits)
    assert all(hit.likelihood is None for hit in forum.similar("Wifi drops every evening", ranker="meaning"))


def test_a_forum_without_vectors_has_probabilities_too(tmp_path: Path) -> None:
    from askalike.forum import ForumSettings

    with Forum.create(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as made:
        made.add([Question("a", "wifi drops every evening"), Question("b", "printer prints blank pages")])
        (hit,) = made.similar("wifi drops every evening")
        assert hit.likelihood == hit.score > 0.9
        assert probability(np.array([0.0])).tolist() == [0.5]
