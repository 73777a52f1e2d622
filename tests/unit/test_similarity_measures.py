"""Each similarity measure against an example worked by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from askalike.errors import MissingExtraError, SettingError
from askalike.models.similarity import (
    Profile,
    SubstringAutomaton,
    character_symbols,
    containment,
    cosine,
    greedy_string_tiling,
    jaccard,
    jaro,
    jaro_winkler,
    known_vectors,
    length_ratio,
    levenshtein,
    longest_common_subsequence,
    longest_common_substring,
    mean_vector,
    monge_elkan,
    ngram_profile,
    product_sums,
    tiles,
    vector_cosine,
)


def characters(text: str, size: int) -> Profile:
    return ngram_profile(character_symbols(text), size)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def test_an_ngram_profile_counts_each_distinct_ngram() -> None:
    found = ngram_profile(numbers(1, 2, 1, 2, 3), 2)  # 12, 21, 12, 23
    assert sorted(found.weights.tolist()) == [1.0, 1.0, 2.0]
    assert (np.diff(found.codes.astype(object)) > 0).all()


def test_ngrams_tell_orders_apart() -> None:
    there, back = ngram_profile(numbers(1, 2, 3), 3), ngram_profile(numbers(3, 2, 1), 3)
    assert jaccard(there, [back, there]).tolist() == [0.0, 1.0]


def test_a_text_shorter_than_an_ngram_has_none() -> None:
    assert len(characters("ab", 3)) == 0


def test_half_a_surrogate_pair_is_a_symbol_like_any_other() -> None:
    assert character_symbols("\ud800").tolist() == [0xD800]


def test_jaccard_of_character_bigrams_is_what_a_hand_counts() -> None:
    # night: ni ig gh ht; nacht: na ac ch ht; shared ht: 1 of 7
    assert jaccard(characters("night", 2), [characters("nacht", 2)])[0] == pytest.approx(1 / 7)


def test_containment_divides_by_the_smaller_set() -> None:
    # words 1 2 3 4 and 2 3 9: bigrams {12 23 34} and {23 39}: 1 of 2
    assert containment(ngram_profile(numbers(1, 2, 3, 4), 2), [ngram_profile(numbers(2, 3, 9), 2)])[0] == 0.5


def test_cosine_weighs_ngrams_by_how_often_they_occur() -> None:
    # aaab: aa 2, ab 1; aab: aa 1, ab 1: (2 + 1) / (√5 √2)
    found = cosine(characters("aaab", 2), [characters("aab", 2)])[0]
    assert found == pytest.approx(3 / np.sqrt(10))


def test_product_sums_add_up_over_shared_ngrams_only() -> None:
    query = Profile(numbers(2, 5, 9), np.array([1.0, 2.0, 3.0]))
    candidate = Profile(numbers(1, 5, 9, 11), np.array([7.0, 10.0, 100.0, 7.0]))
    empty = Profile(numbers(), np.empty(0))
    assert product_sums(query, [empty, candidate, empty]).tolist() == [0.0, 320.0, 0.0]


def test_length_ratio_divides_the_shorter_by_the_longer() -> None:
    assert length_ratio(3, [12, 1]).tolist() == [0.25, pytest.approx(1 / 3)]


def test_longest_common_subsequence_allows_gaps() -> None:
    # the textbook's pair: BCAB (or BDAB, BCBA) of length 4, the longer has 7
    assert longest_common_subsequence("ABCBDAB", ["BDCABA"])[0] == pytest.approx(4 / 7)
    assert longest_common_subsequence([1, 2, 3, 4], [[1, 9, 3, 4]])[0] == 0.75


def test_longest_common_substring_allows_none() -> None:
    # "site:geek" and "site:geeks" share in "geeksforgeeks" / "geeksquiz": geeks, 5 of 13
    assert longest_common_substring("geeksforgeeks", ["geeksquiz"])[0] == pytest.approx(5 / 13)
    assert longest_common_substring([1, 2, 3, 4], [[1, 9, 3, 4]])[0] == 0.5


def test_the_automaton_divides_states_that_stand_for_runs_of_several_lengths() -> None:
    automaton = SubstringAutomaton("abbb")
    assert [automaton.longest_run(text) for text in ("bb", "bbbb", "abab", "xyz", "")] == [2, 3, 2, 0, 0]


def test_levenshtein_counts_the_fewest_changes() -> None:
    # flaw → lawn: delete f, add n: 1 - 2/4
    assert levenshtein("flaw", ["lawn"])[0] == 0.5


def test_jaro_and_jaro_winkler_are_those_of_winklers_table() -> None:
    # dwayne, duane: m = 4, t = 0: (4/6 + 4/5 + 1) / 3 = 0.8222; common prefix d: + 0.1 · 0.1778
    assert jaro("dwayne", ["duane"])[0] == pytest.approx(0.8222, abs=1e-4)
    assert jaro_winkler("dwayne", ["duane"])[0] == pytest.approx(0.8400, abs=1e-4)


def test_monge_elkan_takes_the_best_partner_of_each_word_in_both_directions() -> None:
    # martha-marhta .9611, xyz without partner: A → B (.9611 + 0)/2, B → A .9611
    found = monge_elkan(["martha", "xyz"], [["marhta"], [], ["martha", "xyz"]])
    assert found.tolist() == [pytest.approx((0.96111 / 2 + 0.96111) / 2, abs=1e-4), 0.0, 1.0]


def test_tiling_covers_runs_in_whatever_order() -> None:
    # a: 1 2 3 4 5 6 7, b: 5 6 7 0 1 2 3: tiles 123 and 567; 2 · 6 / 14
    a, b = [1, 2, 3, 4, 5, 6, 7], [5, 6, 7, 0, 1, 2, 3]
    assert tiles(a, b) == [(3, 0, 4), (3, 4, 0)]
    assert greedy_string_tiling(a, [b])[0] == pytest.approx(12 / 14)


def test_tiling_leaves_out_what_is_shorter_than_the_minimum() -> None:
    assert greedy_string_tiling([1, 2, 8, 3], [[1, 2, 9, 3]]).tolist() == [0.0]
    assert greedy_string_tiling([1, 2, 8, 3], [[1, 2, 9, 3]], minimum_match=2).tolist() == [0.5]


def test_a_word_is_covered_once_only() -> None:
    # b holds 1 2 3 twice, a once
    assert tiles([1, 2, 3], [1, 2, 3, 0, 1, 2, 3]) == [(3, 0, 0)]


def test_what_a_longer_tile_leaves_of_a_run_is_used() -> None:
    # 2345 9 … : the run 1 2 3 4 5 is longest; of 4 5 6 7 8 only 6 7 8 is left
    a = [1, 2, 3, 4, 5, 6, 7, 8]
    b = [1, 2, 3, 4, 5, 0, 4, 5, 6, 7, 8]
    assert tiles(a, b) == [(5, 0, 0), (3, 5, 8)]


def test_a_minimum_match_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="expected at least 1"):
        tiles([1], [1], minimum_match=0)


def test_a_mean_vector_leaves_out_words_without_one() -> None:
    vectors = {"a": np.array([2.0, 0.0], np.float32), "b": np.array([0.0, 4.0], np.float32)}
    known, rows = known_vectors(["a", "zebra", "b"], vectors)
    assert known == ["a", "b"]
    assert mean_vector(rows).tolist() == [1.0, 2.0]
    assert mean_vector(rows, [3.0, 1.0]).tolist() == [1.5, 1.0]
    assert mean_vector(rows, [0.0, 0.0]).shape == (0,)
    assert mean_vector(known_vectors(["zebra"], vectors)[1]).shape == (0,)


def test_cosines_of_vectors_are_what_a_hand_computes() -> None:
    query = np.array([3.0, 4.0], np.float32)
    others = [np.array([4.0, 3.0], np.float32), np.array([-3.0, -4.0], np.float32), np.zeros(2, np.float32)]
    assert vector_cosine(query, others).tolist() == [pytest.approx(24 / 25), pytest.approx(-1.0), 0.0]


def test_no_candidates_give_no_scores() -> None:
    profile, vector = characters("abc", 1), np.ones(2, np.float32)
    assert jaccard(profile, []).shape == cosine(profile, []).shape == length_ratio(1, []).shape == (0,)
    assert longest_common_substring("a", []).shape == levenshtein("a", []).shape == (0,)
    assert (
        monge_elkan(["a"], []).shape == greedy_string_tiling([1], []).shape == vector_cosine(vector, []).shape == (0,)
    )


def test_without_rapidfuzz_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz.process", None)
    with pytest.raises(MissingExtraError, match="rapidfuzz"):
        jaro("a", ["b"])
