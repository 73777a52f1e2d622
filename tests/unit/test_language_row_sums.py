"""Sums of rows over texts, and the phrases that occur in texts, beside loops that say the same."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.models.language.likelihood import TermLists, frequencies, row_sums
from askalike.models.language.phrases import PhraseBook, PhraseTable


def texts_of(chance: np.random.Generator, size: int, count: int = 12) -> TermLists:
    return TermLists.of(chance.integers(0, size, int(chance.integers(0, 9))) for _ in range(count))


@pytest.mark.parametrize("few", [0, 3, 1000])
def test_rows_with_many_and_with_few_ids_are_summed_alike(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.models.language.likelihood._FEW", few)
    chance = np.random.default_rng(0)
    texts = texts_of(chance, 20)
    rows = []
    for count in (0, 1, 2, 5, 20):
        rows.append((chance.permutation(20)[:count], chance.random(count)))
    expected = [
        [
            sum(dict(zip(ids.tolist(), values.tolist(), strict=True)).get(term, 0.0) for term in text.tolist())
            for text in np.split(texts.ids, texts.starts[1:-1])
        ]
        for ids, values in rows
    ]
    np.testing.assert_allclose(row_sums(rows, texts, 20), expected, rtol=1e-12)
    assert row_sums(rows, TermLists.of([]), 20).shape == (5, 0)


def test_a_text_has_the_same_sums_alone_and_among_others() -> None:
    chance = np.random.default_rng(1)
    texts = texts_of(chance, 50)
    rows = [(chance.permutation(50)[:count], chance.random(count)) for count in (3, 40)]
    whole = row_sums(rows, texts, 50)
    for place, text in enumerate(np.split(texts.ids, texts.starts[1:-1])):
        np.testing.assert_array_equal(row_sums(rows, TermLists.of([text]), 50)[:, 0], whole[:, place])


def test_terms_that_no_vocabulary_has_are_counted_as_the_others() -> None:
    words = np.array([-9, -2, 3, 7])
    texts = TermLists.of([[3, -2, -2, 8], [7, 7, -3, -9, 1000], [], [-10, 0, 2]])
    assert frequencies(words, texts).tolist() == [[0, 1, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0], [0, 2, 0, 0]]
    assert frequencies(words[:2], texts).tolist() == [[0, 1, 0, 0], [2, 0, 0, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_occurrences_are_the_places_of_the_wanted_phrases(seed: int) -> None:
    chance = np.random.default_rng(seed)
    size = 6
    learned, texts = texts_of(chance, size), texts_of(chance, size)
    book = PhraseBook.of(learned, chance.integers(0, 4, len(learned.ids)), size, 3)
    with_unknown = TermLists(np.where(chance.random(len(texts.ids)) < 0.1, -7, texts.ids), texts.starts)
    numbers = book.numbers(with_unknown)
    wanted = np.flatnonzero(chance.random(len(book)) < 0.4)
    found = book.occurrences(with_unknown, wanted)
    for place in range(len(texts)):
        span = slice(texts.starts[place], texts.starts[place + 1])
        expected = sorted(np.searchsorted(wanted, [one for one in numbers[:, span].ravel() if one in wanted]).tolist())
        assert sorted(found.ids[found.starts[place] : found.starts[place + 1]].tolist()) == expected


def test_shares_of_phrases_are_those_of_their_probabilities() -> None:
    chance = np.random.default_rng(3)
    size, learned = 5, texts_of(np.random.default_rng(4), 5, 30)
    book = PhraseBook.of(learned, np.full(len(learned.ids), 2), size, 2)
    matrix = np.where(chance.random((len(book), len(book))) < 0.3, chance.random((len(book), len(book))), 0)
    rows, columns = np.nonzero(matrix)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(book)))])
    table = PhraseTable(book, starts, columns, matrix[rows, columns].astype(np.float32))
    query, texts = np.array([1, 2, 1, 4]), texts_of(chance, size)
    found = table.shares(query, texts)
    asked, held = book.numbers(TermLists.of([query])), book.numbers(texts)
    owners, lengths = texts.owners(), np.maximum(texts.lengths(), 1)
    for length, place in np.ndindex(asked.shape):
        expected = np.zeros(len(texts))
        if asked[length, place] >= 0:
            for row in held:
                for number, owner in zip(row.tolist(), owners.tolist(), strict=True):
                    expected[owner] += np.float32(matrix[asked[length, place], number]) if number >= 0 else 0
        np.testing.assert_allclose(found[length, place], expected / lengths, rtol=1e-6, atol=1e-12)
