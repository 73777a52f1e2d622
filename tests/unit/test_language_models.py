"""The language models' formulas: worked by hand, and against loops over words."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from tests.naive_language import background, dirichlet, log_likelihood, ml, translated

from askalike.errors import SettingError
from askalike.models.language.kinds import TranslationOptions, options_of
from askalike.models.language.likelihood import Collection, QueryLikelihood, Smoothing, TermLists
from askalike.models.language.translation import Mixture, Translations, TransLM, word_translation

COUNTS = [2, 4, 1, 3, 0, 5, 6, 9]
TABLE = {(1, 1): 0.4, (2, 1): 0.3, (3, 2): 0.5, (1, 3): 0.25, (5, 6): 1.0, (4, 2): 0.1, (7, 7): 0.2, (6, 6): 0.05}
CANDIDATES = [[1, 2, 2, 3], [], [6], [-4, 7, 7], [1, 1, 1, 5, 6, 3, -9]]
ANSWERS = [[5, 5, 1], [7], [], [-4, 2], [3, 4]]
QUERY = [1, 3, 1, -4, 5, 4]


def collection() -> Collection:
    return Collection(np.array(COUNTS, np.int64))


def translations() -> Translations:
    words, sources = np.array(list(TABLE)).T
    return Translations.of(words, sources, np.array(list(TABLE.values())), len(COUNTS))


def query() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(QUERY, np.int64)


def test_query_likelihood_by_hand() -> None:
    # μ = 4 and |D| = 4: a half each. P(1|D) = ½ · 1/4 + ½ · 4/30 = 23/120, P(2|D) = ½ · 2/4 + ½ · 1/30 = 4/15
    model = QueryLikelihood(collection(), Smoothing("dirichlet", 4.0))
    (found,) = model.log_likelihoods(np.array([1, 2, 1]), TermLists.of([[1, 2, 2, 3]]))
    assert found == pytest.approx(2 * log(23 / 120) + log(4 / 15))
    # λ = ½: the same of this text; per word, over P(q|C) = (4/30)² · 1/30
    model = QueryLikelihood(collection(), Smoothing("jelinek-mercer", 0.5))
    (shown,) = model.mean_ratios(np.array([1, 2, 1]), TermLists.of([[1, 2, 2, 3]]))
    assert shown == pytest.approx(((23 / 120) ** 2 * (4 / 15) / ((4 / 30) ** 2 / 30)) ** (1 / 3))


@pytest.mark.parametrize("weight", [0.5, 100.0])
def test_query_likelihood_is_that_of_plain_loops(weight: float) -> None:
    model = QueryLikelihood(collection(), Smoothing("dirichlet", weight))
    expected = [
        log_likelihood({w: dirichlet(ml(w, text), background(w, COUNTS), len(text), weight) for w in QUERY}, QUERY)
        for text in CANDIDATES
    ]
    assert model.log_likelihoods(query(), TermLists.of(CANDIDATES)) == pytest.approx(expected)


@pytest.mark.parametrize("kept", [0.0, 0.3])
def test_the_translation_model_is_that_of_plain_loops(kept: float) -> None:
    model = word_translation(collection(), translations(), Smoothing("jelinek-mercer", 0.2), kept)
    expected = [
        log_likelihood(
            {
                w: 0.8 * (kept * ml(w, text) + (1 - kept) * translated(w, text, TABLE)) + 0.2 * background(w, COUNTS)
                for w in QUERY
            },
            QUERY,
        )
        for text in CANDIDATES
    ]
    assert model.log_likelihoods(query(), TermLists.of(CANDIDATES)) == pytest.approx(expected, rel=1e-6)


def test_translm_is_that_of_plain_loops() -> None:
    weights = Mixture(0.5, 0.3, 0.2)
    model = TransLM(collection(), translations(), Smoothing("dirichlet", 10.0), weights)
    expected = []
    for text, answer in zip(CANDIDATES, ANSWERS, strict=True):
        there = (0.8 if text else 0.0) + (0.2 if answer else 0.0)
        probabilities = {}
        for word in QUERY:
            own = 0.5 * ml(word, text) + 0.3 * translated(word, text, TABLE) + 0.2 * ml(word, answer)
            length = len(text) + len(answer)
            probabilities[word] = dirichlet(own / there, background(word, COUNTS), length, 10.0)
        expected.append(log_likelihood(probabilities, QUERY))
    found = model.log_likelihoods(query(), TermLists.of(CANDIDATES), TermLists.of(ANSWERS))
    assert found == pytest.approx(expected, rel=1e-6)


def test_translm_without_translations_and_answers_is_query_likelihood() -> None:
    asked = TermLists.of(CANDIDATES)
    plain = QueryLikelihood(collection(), Smoothing("dirichlet", 10.0))
    model = TransLM(collection(), translations(), Smoothing("dirichlet", 10.0), Mixture(1.0, 0.0, 0.0))
    assert model.log_likelihoods(query(), asked, TermLists.of(ANSWERS)) == pytest.approx(
        plain.log_likelihoods(query(), asked)
    )


def test_a_table_of_translations_is_that_of_single_ones() -> None:
    words, sources = np.array([1, 3, 5, -4, 0]), np.array([1, 2, 3, 6, -9])
    expected = [[TABLE.get((w, u), 0.0) for u in sources.tolist()] for w in words.tolist()]
    np.testing.assert_allclose(translations().table(words, sources), expected, rtol=1e-6)
    assert translations().matrix().nnz == len(TABLE)


def test_values_out_of_range_are_refused() -> None:
    for method, weight in (("dirichlet", 0.0), ("jelinek-mercer", 1.5), ("jelinek-mercer", 0.0), ("laplace", 1.0)):
        with pytest.raises(SettingError, match="expected"):
            Smoothing(method, weight)  # type: ignore[arg-type]
    for weights in ((0.0, 0.0, 1.0), (-1.0, 2.0, 0.0), (float("nan"), 1.0, 0.0)):
        with pytest.raises(SettingError, match="weights"):
            Mixture(*weights)


def test_a_word_that_translates_into_itself_for_certain_counts_as_in_the_text_itself() -> None:
    """The word 2 once among two words, t(2|2) = 1, beside what 3 gives: 0.8 · (1/2 + t(2|3)/2) + 0.2 · P(2|C)."""
    learned = Translations.of(np.array([2, 2]), np.array([2, 3]), np.array([0.1, 0.4]), 4)
    counted = Collection(np.array([0, 1, 4, 5]))
    words, text = np.array([2]), TermLists.of([[2, 3]])
    found = {
        how: word_translation(counted, learned, self_translation=how).word_probabilities(words, text).item()
        for how in ("learned", "certain")
    }
    assert found["learned"] == pytest.approx(0.8 * (0.1 / 2 + 0.4 / 2) + 0.2 * 0.4)
    assert found["certain"] == pytest.approx(0.8 * (1 / 2 + 0.4 / 2) + 0.2 * 0.4)
    for wrong in ({"self_translation": "sure"}, {"kept": 1.0}):
        with pytest.raises(SettingError, match=r"is .*, but expected"):
            TranslationOptions(**wrong)  # type: ignore[arg-type]


def test_options_of_an_earlier_version_have_translations_as_they_were_learned() -> None:
    stored = {"smoothing": "jelinek-mercer", "weight": 0.2, "kept": 0.5}
    options = options_of("translation", stored)
    assert (options.self_translation, options.kept) == ("learned", 0.5)  # type: ignore[attr-defined]
