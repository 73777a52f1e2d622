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
from typing import Final, NamedTuple

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
    """Return the ``WORD_FEATURES`` of each pair, and the share that both titles have in common.  # (P, 5), (P,)"""
    bounds = np.searchsorted(query_at, np.arange(len(queries) + 1)).tolist()
    count = len(text_at)
    # how many terms each has, those of the title and those of the body alone
    sizes = np.array([(len(text.title), len(text.body)) for text in candidates]) // HASH_BYTES  # (N, 2)
    each = sizes.sum(axis=1)
    starts = each.cumsum() - each
    hashes = _hashes(candidates)
    rarities = np.array([rarity(frequency, query.questions) for query in queries for frequency in query.frequencies])
    owner = np.repeat(np.arange(len(queries)), [len(query.frequencies) for query in queries])
    titled_of = np.array([len(query.text.title) // HASH_BYTES for query in queries])
    first = np.searchsorted(owner, np.arange(len(queries) + 1)).tolist()
    titled = np.arange(len(rarities)) - np.array(first)[owner] < titled_of[owner]
    weighed = np.where(titled, 1.0, IN_BODY) * rarities
    of_title, of_text, text_square = (
        np.bincount(owner, part, len(queries))[query_at] for part in (titled * rarities, weighed, weighed**2)
    )
    terms = _hashes([query.text for query in queries])
    shared_at: list[tuple[Places, Places, Places]] = []  # the pair, the query's term, the text's one
    for (begin, end), (start, stop) in zip(pairwise(first), pairwise(bounds), strict=True):
        own, mine = terms[begin:end], text_at[start:stop]
        if not len(own) or not len(mine):
            continue
        ends = each[mine].cumsum()
        theirs = np.arange(ends[-1]) + np.repeat(starts[mine] - ends + each[mine], each[mine])
        order = np.argsort(own)
        places = order[np.minimum(np.searchsorted(own, hashes[theirs], sorter=order), len(own) - 1)]
        shared = np.flatnonzero(own[places] == hashes[theirs])
        pair = np.searchsorted(ends, shared, side="right")
        shared_at.append((pair + start, places[shared] + begin, theirs[shared] - starts[mine][pair]))
    none = np.zeros(0, np.intp)
    pair, place, within = map(np.concatenate, zip((none, none, none), *shared_at, strict=True))
    is_titled, in_title = within < sizes[text_at[pair], 0], titled[place]
    value = rarities[place]
    weight = np.where(is_titled, 1.0, IN_BODY) * value
    parts = (
        in_title * value,
        weighed[place] * weight,
        weight**2,
        (in_title & is_titled) * value,
        (in_title & is_titled).astype(float),
        is_titled * value,
        is_titled.astype(float),
        np.ones(len(place)),
    )
    sums = [np.bincount(pair, part, count) for part in parts]
    title_in, both_texts, theirs_square, both_titles, in_both_titles, theirs_in, titles_shared, both = sums
    rarest = np.array([rarity(0, query.questions) for query in queries])[query_at]
    typical = TYPICAL * rarest
    alone_titled = sizes[text_at, 0] - titles_shared
    alone_body = sizes[text_at, 1] - (both - titles_shared)
    norm = text_square * (theirs_square + typical**2 * (alone_titled + IN_BODY**2 * alone_body))
    theirs_of_title = both_titles + typical * (sizes[text_at, 0] - in_both_titles)
    orders = np.array([text[2:4] for text in chain((query.text for query in queries), candidates)])  # (Q + N, 2)
    same = orders[query_at] == orders[text_at + len(queries)]
    is_same_title = same[:, 0] & (titled_of[query_at] > 0)
    is_same = is_same_title & same[:, 1]
    by_words = np.stack(
        [
            title_in / np.where(of_title > 0, of_title, 1.0),
            theirs_in / np.maximum(theirs_in + typical * alone_titled, _LEAST),  # of nothing, 0
            (both_texts / np.maximum(norm**0.5, _LEAST)) ** 0.5,
            is_same_title * np.minimum(1.0, of_title / (ENOUGH * rarest)),
            is_same * np.minimum(1.0, of_text / (ENOUGH * rarest)),
        ],
        axis=1,
    )
    return by_words, both_titles / np.maximum(np.maximum(of_title, theirs_of_title), _LEAST)


def _hashes(texts: Sequence[Text]) -> NDArray[np.uint64]:
    """Return the hashes of the terms of all texts, one after another, as numbers.  # (M,)"""
    joined = np.frombuffer(b"".join(chain.from_iterable(text[:2] for text in texts)), dtype=np.uint8)
    wide = np.zeros((len(joined) // HASH_BYTES, 8), dtype=np.uint8)
    wide[:, :HASH_BYTES] = joined.reshape(-1, HASH_BYTES)
    hashes: NDArray[np.uint64] = wide.view("<u8")[:, 0]
    return hashes
