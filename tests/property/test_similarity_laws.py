"""Laws of the similarity measures: symmetry, bounds, 1 for equal texts, 0 for texts with nothing in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askalike.models.similarity import (
    SubstringAutomaton,
    Tile,
    character_symbols,
    containment,
    cosine,
    greedy_string_tiling,
    jaccard,
    jaro,
    jaro_winkler,
    levenshtein,
    longest_common_subsequence,
    longest_common_substring,
    monge_elkan,
    ngram_profile,
    tiles,
)

LETTERS = st.text(alphabet="abc", max_size=30)
STRANGERS = st.text(alphabet="xyz", max_size=30)


def _of_ngrams(measure: Callable, size: int) -> Callable[[str, str], float]:
    def score(a: str, b: str) -> float:
        first, second = (ngram_profile(character_symbols(text), size) for text in (a, b))
        return float(measure(first, [second])[0])

    return score


MEASURES: dict[str, Callable[[str, str], float]] = {
    **{
        f"{measure.__name__}-{size}": _of_ngrams(measure, size)
        for measure in (jaccard, containment, cosine)
        for size in (1, 2, 3)
    },
    **{
        measure.__name__: lambda a, b, measure=measure: float(measure(a, [b])[0])
        for measure in (
            longest_common_subsequence,
            longest_common_substring,
            levenshtein,
            jaro,
            jaro_winkler,
            greedy_string_tiling,
        )
    },
    "monge_elkan": lambda a, b: float(monge_elkan(list(a), [list(b)])[0]),
}
SHORTEST = {
    "greedy_string_tiling": 3,
    **{f"{name}-{n}": n for name in ("jaccard", "containment", "cosine") for n in (2, 3)},
}
"""Measure → length from which on a text equals itself."""

ONE_WAY = {"greedy_string_tiling"}
"""Of runs of the same length the first in a is taken, which may leave less, or more, than the first in b."""

every_measure = pytest.mark.parametrize("name", MEASURES)
few = settings(max_examples=30, deadline=None)  # the first call of a measure loads rapidfuzz


@every_measure
@few
@given(a=LETTERS, b=LETTERS)
def test_a_similarity_is_between_0_and_1_and_the_same_both_ways(name: str, a: str, b: str) -> None:
    score = MEASURES[name](a, b)
    assert 0.0 <= score <= 1.0
    if name not in ONE_WAY:
        assert score == pytest.approx(MEASURES[name](b, a), abs=1e-12)


@every_measure
@few
@given(a=LETTERS)
def test_equal_texts_score_1_and_an_empty_one_0(name: str, a: str) -> None:
    assert MEASURES[name](a, a) == pytest.approx(1.0 if len(a) >= SHORTEST.get(name, 1) else 0.0)
    assert MEASURES[name](a, "") == MEASURES[name]("", a) == 0.0


@every_measure
@few
@given(a=LETTERS, b=STRANGERS)
def test_texts_with_nothing_in_common_score_0(name: str, a: str, b: str) -> None:
    assert MEASURES[name](a, b) == 0.0


@every_measure
@few
@given(query=LETTERS, candidates=st.lists(LETTERS, max_size=4))
def test_many_candidates_give_what_one_by_one_gives(name: str, query: str, candidates: list[str]) -> None:
    alone = [MEASURES[name](query, candidate) for candidate in candidates]
    np.testing.assert_allclose(_together(name, query, candidates), alone)


def _together(name: str, query: str, candidates: list[str]) -> np.ndarray:
    measure, _, size = name.partition("-")
    if size:
        profiles = [ngram_profile(character_symbols(text), int(size)) for text in candidates]
        return globals()[measure](ngram_profile(character_symbols(query), int(size)), profiles)
    if name == "monge_elkan":
        return monge_elkan(list(query), [list(text) for text in candidates])
    return globals()[measure](query, candidates)


@few
@given(a=LETTERS, b=LETTERS)
def test_the_automaton_finds_what_trying_every_run_finds(a: str, b: str) -> None:
    runs = {a[i:j] for i in range(len(a)) for j in range(i + 1, len(a) + 1)}
    longest = max((len(run) for run in runs if run in b), default=0)
    assert SubstringAutomaton(a).longest_run(b) == longest


@few
@given(a=LETTERS, b=LETTERS, shortest=st.integers(1, 4))
def test_tiling_with_a_queue_is_tiling_by_looking_for_the_longest_again_and_again(
    a: str, b: str, shortest: int
) -> None:
    assert tiles(a, b, shortest) == _tiles_again_and_again(a, b, shortest)


def _tiles_again_and_again(a: str, b: str, shortest: int) -> list[Tile]:
    free_a, free_b = [True] * len(a), [True] * len(b)
    found: list[Tile] = []
    while True:
        best = (shortest - 1, 0, 0)
        for i in range(len(a)):
            for j in range(len(b)):
                length = 0
                while (
                    i + length < len(a)
                    and j + length < len(b)
                    and a[i + length] == b[j + length]
                    and free_a[i + length]
                    and free_b[j + length]
                ):
                    length += 1
                if length > best[0]:
                    best = (length, i, j)
        if best[0] < shortest:
            return found
        length, i, j = best
        free_a[i : i + length] = free_b[j : j + length] = [False] * length
        found.append(best)
