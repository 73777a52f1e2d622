"""One probability that two texts ask the same: what it is made of, its laws, and the file that it comes from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from askalike import Forum, Question
from askalike.data import general_folder
from askalike.errors import DamagedModelError
from askalike.search.differences import DIFFERENCES, closeness
from askalike.search.features import ENOUGH, FEATURES, TYPICAL, WORD_FEATURES, ReadQuery, features, rarity
from askalike.search.scorer import (
    BY_VECTORS,
    BY_WORDS,
    ComparedQuery,
    Scoring,
    cosines_of,
    digest,
    probability,
    read_scorers,
    scorers,
)
from askalike.search.texts import BODY_CHARACTERS, HASH_BYTES, Text, reader_of, unpacked
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.types import Markup, Query

ANALYZER = Analyzer(TextSettings())
QUESTIONS = 10_000
RAREST = rarity(0, QUESTIONS)
MARKUPS: list[Markup] = ["plain", "html", "markdown"]
needs_model = pytest.mark.skipif(general_folder() is None, reason="the package carries no encoder")


READ = reader_of(ANALYZER).read


def features_of(
    query: Text, frequencies: Sequence[int], candidates: Sequence[Text], cosines: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the features of one query."""
    pairs = np.zeros(len(candidates), np.intp), np.arange(len(candidates))
    shown_cosines = np.zeros(len(candidates)) if cosines is None else cosines
    read = ReadQuery(query, frequencies, QUESTIONS)
    return features([read], candidates, pairs, [ANALYZER] * len(candidates), shown_cosines)


def compared(query: str, candidate: str, body: str = "") -> dict[str, float]:
    text, terms, _ = READ(query, "", "plain")
    rows = features_of(text, [9] * len(terms), [READ(candidate, body, "plain")[0]])
    return dict(zip(FEATURES, rows[0].tolist(), strict=True))


def test_shares_of_words_worked_by_hand() -> None:
    values = compared("router drops wifi", "wifi drops", "router is old")
    assert values["title in text"] == pytest.approx(1.0)  # all three words, the third in the body
    assert values["candidate's title in text"] == pytest.approx(1.0)
    known, typical = rarity(9, QUESTIONS), TYPICAL * RAREST  # "old" is a word that only the candidate has
    norms = 3 * known**2 * (2.25 * known**2 + 0.25 * typical**2)
    assert values["texts"] == pytest.approx((2.5 * known**2 / norms**0.5) ** 0.5)
    assert values["same title"] == 0.0


def test_a_word_that_only_the_candidate_has_counts_as_a_typical_one() -> None:
    known = rarity(9, QUESTIONS)
    values = compared("wifi", "wifi kitchen")
    assert values["candidate's title in text"] == pytest.approx(known / (known + TYPICAL * RAREST))


def test_a_title_of_one_common_word_is_the_same_by_chance() -> None:
    assert compared("help", "help")["same title"] == pytest.approx(rarity(9, QUESTIONS) / (ENOUGH * RAREST))
    assert compared("router drops wifi daily", "router drops wifi daily")["same title"] == 1.0


def test_in_a_small_forum_a_word_of_half_of_the_questions_still_says_something() -> None:
    assert rarity(20, 40) > 0.5 * rarity(0, 40)
    assert rarity(20_000, 40_000) < 0.1 * rarity(0, 40_000)


def test_a_difference_counts_the_more_the_more_the_titles_share() -> None:
    near = compared("disable updates in windows 10", "disable updates in windows 11")
    known, typical = rarity(9, QUESTIONS), TYPICAL * RAREST
    share = 3 * known / max(4 * known, 3 * known + typical)
    assert near["numbers"] == pytest.approx(closeness(share))
    assert compared("disable updates in windows 10", "graphics driver 11 crashes")["numbers"] == 0.0


def test_texts_without_words_have_nothing_alike() -> None:
    assert not any(compared("", "").values())
    assert features_of(READ("", "", "plain")[0], [], []).shape == (0, len(FEATURES))


def test_queries_compared_together_have_what_each_has_alone() -> None:
    texts = [
        READ(title, body, "plain")[0]
        for title, body in (
            ("wifi printer 7", "wireless"),
            ("", ""),
            ("printer printer wifi 9", ""),
            ("nothing known", "at all"),
            ("Wireless", "printer and wifi"),
            ("wifi printer 7", "wireless"),
        )
    ]
    counts = [(len(text.title) + len(text.body)) // HASH_BYTES for text in texts]
    queries = [
        ReadQuery(text, list(range(1, count + 1)), 3_000 + place)
        for place, (text, count) in enumerate(zip(texts, counts, strict=True))
    ]
    chosen: list[list[int]] = [[5, 0, 2], [0, 3], [], [1, 3, 4], [2, 0, 5, 3, 4, 1], [0]]
    near = [np.linspace(0.1, 0.9, len(places)) for places in chosen]
    pairs = (
        np.repeat(np.arange(6), list(map(len, chosen))),
        np.concatenate([np.array(places, int) for places in chosen]),
    )
    together = features(queries, texts, pairs, [ANALYZER] * 6, np.concatenate(near))
    alone = [
        features(
            [query],
            [texts[at] for at in places],
            (np.zeros(len(places), np.intp), np.arange(len(places))),
            [ANALYZER] * len(places),
            own,
        )
        for query, places, own in zip(queries, chosen, near, strict=True)
    ]
    assert together[:, FEATURES.index("numbers")].any()
    assert together == pytest.approx(np.concatenate(alone), abs=1e-12)


def frequency(term: str) -> int:
    """Give each term a frequency of its own."""
    return sum(map(ord, term)) % 700


def by_the_formula(query: tuple[str, str], candidate: tuple[str, str], markup: Markup) -> list[float]:
    """Return the features of words as the module's formulas say, term by term."""
    (title_q, body_q), (title_c, body_c) = (
        [ANALYZER.terms(text[0]), begun(text[1], markup)] for text in (query, candidate)
    )
    weights_q = dict.fromkeys(body_q, 0.5) | dict.fromkeys(title_q, 1.0)
    weights_c = dict.fromkeys(body_c, 0.5) | dict.fromkeys(title_c, 1.0)
    idf = {
        term: rarity(frequency(term), QUESTIONS) if term in weights_q else TYPICAL * RAREST
        for term in {*weights_q, *weights_c}
    }
    shared = weights_q.keys() & weights_c.keys()

    def share(part: Iterable[float], whole: Iterable[float]) -> float:
        total = sum(whole)
        return sum(part) / total if total else 0.0

    def likeness(first: dict[str, float], second: dict[str, float]) -> float:
        both = sum(first[term] * second[term] * idf[term] ** 2 for term in first.keys() & second.keys())
        norms = [sum((weight * idf[term]) ** 2 for term, weight in text.items()) for text in (first, second)]
        return float((both / (norms[0] * norms[1]) ** 0.5) ** 0.5) if all(norms) else 0.0

    of_title = sum(idf[term] for term in set(title_q))
    of_text = sum(weight * idf[term] for term, weight in weights_q.items())
    is_titled = bool(title_q) and title_q == title_c
    return [
        share((idf[term] for term in set(title_q) & shared), (idf[term] for term in set(title_q))),
        share((idf[term] for term in set(title_c) & shared), (idf[term] for term in set(title_c))),
        likeness(weights_q, weights_c),
        min(1.0, of_title / (ENOUGH * RAREST)) if is_titled else 0.0,
        min(1.0, of_text / (ENOUGH * RAREST)) if is_titled and body_q == body_c else 0.0,
    ]


def begun(body: str, markup: Markup) -> list[str]:
    cut = body if len(body) <= BODY_CHARACTERS else body[:BODY_CHARACTERS].rsplit(None, 1)[0]
    return ANALYZER.terms(readable(cut, markup, with_code=ANALYZER.settings.with_code))


def agrees_with_the_formula(query: tuple[str, str], candidates: Sequence[tuple[str, str]], markup: Markup) -> None:
    text, terms, _ = READ(*query, markup)
    packed = [READ(*candidate, markup)[0].packed() for candidate in candidates]
    texts = [candidate for candidate in map(unpacked, packed) if candidate is not None]
    rows = features_of(text, [frequency(term) for term in terms], texts)
    columns = [FEATURES.index(name) for name in WORD_FEATURES]
    expected = [by_the_formula(query, candidate, markup) for candidate in candidates]
    assert rows[:, columns].tolist() == [pytest.approx(row, abs=1e-12) for row in expected]
    assert ((rows[:, -len(DIFFERENCES) :] >= 0) & (rows[:, -len(DIFFERENCES) :] <= 1)).all()


@given(
    st.lists(st.tuples(*[st.text("ab é'.-<p>&; 1", max_size=60)] * 2), min_size=2, max_size=5), st.sampled_from(MARKUPS)
)
def test_words_are_compared_as_the_formulas_say_in_any_text(texts: list[tuple[str, str]], markup: Markup) -> None:
    agrees_with_the_formula(texts[0], texts, markup)


def test_a_question_without_a_vector_is_scored_by_its_words() -> None:
    cosines = cosines_of(np.zeros((2, 2), np.float32), np.array([1.0, 0.0], np.float32))
    read = ReadQuery(READ("router drops wifi", "", "plain").text, [9, 9, 9], QUESTIONS)
    candidates = [READ("wifi drops", "", "plain").text, READ("old router", "", "plain").text]
    logits = Scoring(ANALYZER, version=BY_VECTORS).logits([ComparedQuery(read, None, candidates, cosines)])
    assert logits.tolist() == Scoring(ANALYZER).logits([ComparedQuery(read, None, candidates)]).tolist()


@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=2), st.integers(0, 5), st.booleans())
def test_equal_texts_have_equal_probabilities_wherever_they_stand(
    vector: list[float], before: int, has_vectors: bool
) -> None:
    same = Question("a", "Reset the password of my account", "It is lost.")
    others = [Question(f"o{number}", f"Printer {number} prints blank pages", "") for number in range(before)]
    candidates = [same, *others, Question("b", same.title, same.body)]
    rows = np.array([vector, *[[0.6, 0.8]] * before, vector], np.float32)
    cosines = cosines_of(rows, np.array([0.8, 0.6], np.float32)) if has_vectors else None
    query = Query("How do I change my password?")
    read, terms, _ = READ(query.title, "", "plain")
    logits = Scoring(ANALYZER, version=BY_VECTORS).logits(
        [ComparedQuery(ReadQuery(read, [3] * len(terms), 100), None, candidates, cosines)]
    )
    assert logits[0] == logits[-1]


@given(st.integers(0, len(FEATURES) - 1), st.lists(st.floats(0, 1), min_size=len(FEATURES), max_size=len(FEATURES)))
def test_what_is_more_alike_is_never_less_likely_and_what_differs_never_more(place: int, values: list[float]) -> None:
    less, more = np.array([values]), np.array([values])
    more[0, place] += 0.1
    for scorer in scorers().values():
        first, second = scorer.logits(less)[0], scorer.logits(more)[0]
        assert first >= second if FEATURES[place] in DIFFERENCES else first <= second
        assert scorer.same <= scorer.related


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(format=9),
        lambda content: content["versions"].pop(BY_WORDS),
        lambda content: content["versions"][BY_WORDS]["weights"].update({"texts": -1.0}),
        lambda content: content["versions"][BY_WORDS]["weights"].update({"negation": 1.0}),
        lambda content: content["versions"][BY_VECTORS]["weights"].update({"surprise": 1.0}),
        lambda content: content["versions"][BY_VECTORS].update(same=99.0),
        lambda content: content["versions"][BY_VECTORS].update(related=float("nan")),
    ],
)
def test_a_changed_file_is_refused(change: object) -> None:
    content = json.loads((files("askalike.data") / "scorer.json").read_bytes())
    change(content)  # type: ignore[operator]
    with pytest.raises(DamagedModelError, match="scorer of the package"):
        read_scorers(json.dumps(content).encode())
    with pytest.raises(DamagedModelError, match="scorer of the package"):
        read_scorers(b"[" * 100_000)
    assert len(digest()) == 12


@pytest.fixture(scope="module")
def forum(encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    path = shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("scored") / "f")
    with Forum.open(path) as forum:
        yield forum


@needs_model
def test_the_same_text_is_certain_and_what_nobody_asked_is_not(forum: Forum) -> None:
    for question in list(forum.questions())[:20]:
        best = forum.similar(question.title, question.body, 1, markup=question.markup)[0]
        assert best.question.id == question.id
        assert best.score >= 0.9
    for title in ("asdf qwer", "How do I sort a Python list?", "Do I need a visa for Iceland?"):
        assert all(hit.score < 0.15 for hit in forum.similar(title))


@needs_model
def test_hits_are_ordered_by_the_probability_that_they_show(forum: Forum) -> None:
    hits = forum.similar("Wifi drops every evening", "The laptop loses the wireless connection.")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.likelihood == hit.score and 0 < hit.components["same"] <= hit.score < 1 for hit in hits)
    assert all(hit.likelihood is None for hit in forum.similar("Wifi drops every evening", ranker="meaning"))


def test_a_forum_without_vectors_has_probabilities_too(tmp_path: Path) -> None:
    from askalike.forum import ForumSettings

    with Forum.create(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as forum:
        forum.add([Question("a", "wifi drops every evening"), Question("b", "printer prints blank pages")])
        (hit,) = forum.similar("wifi drops every evening")
        assert hit.likelihood == hit.score > 0.9
        assert probability(np.array([0.0])).tolist() == [0.5]


@pytest.mark.parametrize("copies", [2, 20, 200])
def test_a_title_asked_often_keeps_the_probability_of_an_exact_match(tmp_path: Path, copies: int) -> None:
    from askalike.forum import ForumSettings

    rooms = ("kitchen", "attic", "cellar", "garden", "garage")
    things = ("lamp flickers", "door sticks", "socket is loose", "paint peels off", "tap drips")
    others = [Question(f"{room} {thing}", f"The {room} {thing}") for room in rooms for thing in things]
    scores = []
    for count in (1, copies):
        with Forum.create(tmp_path / str(count), settings=ForumSettings(has_vectors=False)) as forum:
            forum.add(
                [*others, *(Question(f"f{number}", "Fridge compressor hums at night") for number in range(count))]
            )
            scores.append(forum.similar("Fridge compressor hums at night", k=1)[0].score)
            scores.append(forum.similar("Fridge compressor hums", k=1)[0].score)
    assert scores[2] == pytest.approx(scores[0], abs=0.05)
    assert scores[3] > scores[1] / 2
