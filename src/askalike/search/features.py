"""What is alike in two texts and what differs, as numbers from which a scorer says whether both ask the same.

Words count by how rare they are in the forum, idf(t); of those that only the candidate has, a typical rarity is taken,
so that no frequency is asked for after the candidates are known. w(t) is 1 for a word of the title and ½ for one of the
body's beginning alone. With S the words of both texts, Q and C those of each::

    cosine                              of the query and the candidate, each a whole question
    title in text                       Σ_{t ∈ title(Q) ∩ C} idf / Σ_{t ∈ title(Q)} idf
    candidate's title in text           Σ_{t ∈ title(C) ∩ Q} idf / Σ_{t ∈ title(C)} idf
    texts                               √ of the cosine of both, in weights w idf
    same title, same text               1 where they are, less where that is of few informative words
    title in answers                    Σ_{t ∈ title(Q) ∩ A} idf / Σ_{t ∈ title(Q)} idf, A being the words of the
                                        candidate's best answers that are not in C
    numbers, negation, opposites,       1 where the titles differ in one, times how near they are otherwise:
    names, direction                    see ``differences``

Each is a property of the pair and the forum: who else was found, and in what order anything was stored, does not
change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.models.term_weighting import inverse_document_frequency
from askalike.search.differences import DIFFERENCES, differences
from askalike.search.engine import Floats
from askalike.search.texts import HASH_BYTES, Text
from askalike.text.analyzer import Analyzer

Places = NDArray[np.intp]

IN_BODY: Final = 0.5
TYPICAL: Final = 0.6
"""The rarity of a candidate's word, as a share of that of a word which one question has."""

ENOUGH: Final = 1.5
"""A text whose words are together as rare as so many of the rarest is the same by no chance: words that met by chance
would be as rare as one. Two people's questions under one such title were read as the same in five of six."""

LEAST_QUESTIONS: Final = 3_000
"""A smaller forum counts as one of so many: that twenty of its forty questions have a word, since all were asked in one
outage, does not make it a word that says nothing."""

COSINE: Final = "cosine"
WORD_FEATURES: Final = ("title in text", "candidate's title in text", "texts", "same title", "same text")
ANSWERS: Final = "title in answers"
FEATURES: Final = (COSINE, *WORD_FEATURES, ANSWERS, *DIFFERENCES)

_LEAST: Final = 1e-300


def rarity(frequency: int, questions: int) -> float:
    """Return idf of a word that ``frequency`` of a forum's questions have.

    >>> rarity(0, 40) > rarity(20, 40) > 0.5 * rarity(0, 40)
    True
    """
    return inverse_document_frequency(max(questions, LEAST_QUESTIONS, frequency), frequency)


class ReadQuery(NamedTuple):
    """A query as it is compared.

    Args:
        frequencies: in how many questions each of its distinct terms is, those of its title first.  # (T,)
        questions: how many questions the forum has.
    """

    text: Text
    frequencies: Sequence[int]
    questions: int


def features(
    queries: Sequence[ReadQuery],
    candidates: Sequence[Text],
    pairs: tuple[Places, Places],
    analyzers: Sequence[Analyzer],
    cosines: Floats,
) -> Floats:
    """Return the features of each pair of a query and a candidate.  # (P, len(FEATURES))

    Args:
        pairs: the places of the queries, ascending, and of the candidates that each is compared with.  # (P,), (P,)
        analyzers: what reads each candidate's title.  # (N,)
        cosines: of the pairs; 0 where there is no vector.  # (P,)
    """
    query_at, text_at = pairs
    if not len(query_at):
        return np.zeros((0, len(FEATURES)))
    by_words, shares = _by_words(queries, candidates, query_at, text_at)
    differing = np.zeros((len(query_at), len(DIFFERENCES)))
    for place in np.flatnonzero(shares).tolist():
        query, candidate = queries[query_at[place]].text, candidates[text_at[place]]
        differing[place] = differences(query, candidate, analyzers[text_at[place]], float(shares[place]))
    answered = np.zeros((len(query_at), 1))
    for place in np.flatnonzero([bool(candidates[at].answers) for at in text_at]).tolist():
        answered[place] = _in_answers(queries[query_at[place]], candidates[text_at[place]].answers)
    return np.concatenate([cosines[:, None], by_words, answered, differing], axis=1)


def _in_answers(query: ReadQuery, answers: bytes) -> float:
    """Return the share of a query's title that a candidate's answers have, and the candidate has not."""
    title = query.text.title
    terms = [title[start : start + HASH_BYTES] for start in range(0, len(title), HASH_BYTES)]
    rarities = [rarity(frequency, query.questions) for frequency in query.frequencies[: len(terms)]]
    shared = sum(value for term, value in zip(terms, rarities, strict=True) if term in answers)
    return shared / sum(rarities) if shared else 0.0


def _by_words(
    queries: Sequence[ReadQuery], candidates: Sequence[Text], query_at: Places, text_at: Places
) -> tuple[Floats, Floats]:
    """Return the ``WORD_FEATURES`` of each pair, and the share that both titles have in common.  # (P, 5), (P,)

    What is summed over the terms that both texts of a pair have is summed for all pairs at once: each such term is a
    row, and ``total`` adds up the rows of each pair.
    """
    # the terms of all queries, one query after another
    rarities = np.array([rarity(frequency, query.questions) for query in queries for frequency in query.frequencies])
    query_of = np.repeat(np.arange(len(queries)), [len(query.frequencies) for query in queries])
    query_starts = np.searchsorted(query_of, np.arange(len(queries) + 1))
    title_sizes = np.array([len(query.text.title) // HASH_BYTES for query in queries])
    is_of_title = np.arange(len(rarities)) - query_starts[query_of] < title_sizes[query_of]
    query_weights = np.where(is_of_title, 1.0, IN_BODY) * rarities
    query_title, query_text, query_square = (
        np.bincount(query_of, values, len(queries))[query_at]
        for values in (is_of_title * rarities, query_weights, query_weights**2)
    )
    # how many terms each candidate has in its title, and how many in its body alone
    sizes = np.array([(len(text.title), len(text.body)) for text in candidates]) // HASH_BYTES  # (N, 2)
    title_size, body_size = sizes[text_at].T
    pair, query_term, text_term = _shared_terms(queries, candidates, query_starts, sizes.sum(axis=1), query_at, text_at)
    rarities_shared = rarities[query_term]
    in_query_title, in_text_title = is_of_title[query_term], text_term < title_size[pair]
    in_both_titles = in_query_title & in_text_title
    text_weights = np.where(in_text_title, 1.0, IN_BODY) * rarities_shared

    def total(values: NDArray[Any]) -> Floats:
        return np.asarray(np.bincount(pair, values, len(text_at)), np.float64)

    query_title_shared = total(in_query_title * rarities_shared)
    text_title_shared = total(in_text_title * rarities_shared)
    both_titles = total(in_both_titles * rarities_shared)
    text_title_count, shared_count = total(in_text_title), total(np.ones(len(pair)))
    # of the terms that the candidate alone has no rarity is known, but for a typical one
    rarest = np.array([rarity(0, query.questions) for query in queries])[query_at]
    typical = TYPICAL * rarest
    title_alone = title_size - text_title_count
    body_alone = body_size - (shared_count - text_title_count)
    text_square = total(text_weights**2) + typical**2 * (title_alone + IN_BODY**2 * body_alone)
    text_title = both_titles + typical * (title_size - total(in_both_titles))
    orders = np.array([text[2:4] for text in chain((query.text for query in queries), candidates)])  # (Q + N, 2)
    same_order = orders[query_at] == orders[text_at + len(queries)]
    is_same_title = same_order[:, 0] & (title_sizes[query_at] > 0)
    is_same_text = is_same_title & same_order[:, 1]
    by_words = np.stack(
        [
            query_title_shared / np.where(query_title > 0, query_title, 1.0),
            text_title_shared / np.maximum(text_title_shared + typical * title_alone, _LEAST),  # of nothing, 0
            (total(query_weights[query_term] * text_weights) / np.maximum((query_square * text_square) ** 0.5, _LEAST))
            ** 0.5,
            is_same_title * np.minimum(1.0, query_title / (ENOUGH * rarest)),
            is_same_text * np.minimum(1.0, query_text / (ENOUGH * rarest)),
        ],
        axis=1,
    )
    return by_words, both_titles / np.maximum(np.maximum(query_title, text_title), _LEAST)


def _shared_terms(
    queries: Sequence[ReadQuery],
    candidates: Sequence[Text],
    query_starts: Places,
    text_sizes: Places,
    query_at: Places,
    text_at: Places,
) -> tuple[Places, Places, Places]:
    """Return a row for each term that both texts of a pair have, pair by pair.  # (S,) each

    It has the place of the pair, of the term among those of all queries, and among those of its candidate.

    Args:
        query_starts: where each query's terms begin, and where the last one's end.  # (Q + 1,)
        text_sizes: how many terms each candidate has.  # (N,)
    """
    query_hashes, text_hashes = _hashes([query.text for query in queries]), _hashes(candidates)
    text_starts = text_sizes.cumsum() - text_sizes
    pair_starts = np.searchsorted(query_at, np.arange(len(queries) + 1))
    none = np.zeros(0, np.intp)
    rows: list[tuple[Places, Places, Places]] = [(none, none, none)]
    for (term, terms_end), (pair, pairs_end) in zip(
        pairwise(query_starts.tolist()), pairwise(pair_starts.tolist()), strict=True
    ):
        hashes, texts = query_hashes[term:terms_end], text_at[pair:pairs_end]
        if not len(hashes) or not len(texts):
            continue
        # the terms of this query's candidates, one candidate after another
        ends = text_sizes[texts].cumsum()
        places = np.arange(ends[-1]) + np.repeat(text_starts[texts] - ends + text_sizes[texts], text_sizes[texts])
        order = np.argsort(hashes)
        nearest = order[np.minimum(np.searchsorted(hashes, text_hashes[places], sorter=order), len(hashes) - 1)]
        shared = np.flatnonzero(hashes[nearest] == text_hashes[places])
        of_pair = np.searchsorted(ends, shared, side="right")
        rows.append((of_pair + pair, nearest[shared] + term, places[shared] - text_starts[texts][of_pair]))
    pairs, query_terms, text_terms = map(np.concatenate, zip(*rows, strict=True))
    return pairs, query_terms, text_terms


def _hashes(texts: Sequence[Text]) -> NDArray[np.uint64]:
    """Return the hashes of the terms of all texts, one after another, as numbers.  # (M,)"""
    joined = np.frombuffer(b"".join(chain.from_iterable(text[:2] for text in texts)), dtype=np.uint8)
    wide = np.zeros((len(joined) // HASH_BYTES, 8), dtype=np.uint8)
    wide[:, :HASH_BYTES] = joined.reshape(-1, HASH_BYTES)
    hashes: NDArray[np.uint64] = wide.view("<u8")[:, 0]
    return hashes
