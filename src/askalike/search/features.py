"""What is alike in two texts, as numbers in [-1, 1] from which a scorer says whether both ask the same.

Words count by how rare they are in the forum, idf(t); of those that only the candidate has, a typical rarity is taken,
so that no frequency is asked for after the candidates are known. w(t) is 1 for a word of the title and ½ for one of the
body's beginning alone. With S the words of both texts, Q and C those of each::

    title in text                 Σ_{t ∈ title(Q) ∩ C} idf / Σ_{t ∈ title(Q)} idf
    text in text                  Σ_{t ∈ S} w_Q idf / Σ_{t ∈ Q} w_Q idf
    candidate's title in text     Σ_{t ∈ title(C) ∩ Q} idf / Σ_{t ∈ title(C)} idf
    texts, titles                 √ of the cosine of both, in weights w idf
    texts by words' vectors       cosine of the means of the words' vectors, in weights u
    title by words' vectors       Σ_i u_i max_j cos(v_i, v_j) / Σ_i u_i         i in title(Q), j in C; and the other way
    cosine                        (cos - m) / (1 - m), raised to a power: see ``Cosines``
    commonness                    cos of the query and the mean of the forum's vectors
    size of the forum             log10 of its questions by 3,000, no less than of 250, no more than of 250,000
    margin of the forum           how far its questions stand out from one another: see ``margin``
    same title, same text         1 where they are, less where that is of few informative words

A query that is a title alone says nothing of a body, so that bodies of candidates with that title count neither way:
there texts, texts by words' vectors and cosine are no less than same title, which a title has with itself.

Each is a property of the pair and the forum: who else was found does not change it. u is ``interaction.rarities``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from math import log, log10
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.search.texts import HASH_BYTES, MOST_WORDS, Text

Floats = NDArray[np.float64]

IN_BODY: Final = 0.5
TYPICAL: Final = 0.6
"""The rarity of a candidate's word, as a share of that of a word which one question has."""

ENOUGH: Final = 1.5
"""A text whose words are together as rare as so many of the rarest is the same by no chance: words that met by chance
would be as rare as one. Two people's questions under one such title were read as the same in five of six."""

SMALLEST: Final = 250
MIDDLING: Final = 3_000
LARGEST: Final = 250_000
"""The scorer learned in forums between the smallest and the largest; others count as these."""

FEATURES: Final = (
    "title in text",
    "text in text",
    "candidate's title in text",
    "titles",
    "texts",
    "same title",
    "same text",
    "texts by words' vectors",
    "title by words' vectors",
    "candidate's title by words' vectors",
    "cosine",
    "commonness",
    "size of the forum",
    "margin of the forum",
)

_OF_WORDS: Final = 7
_OF_BODIES: Final = ("texts", "texts by words' vectors", "cosine")
_LEAST: Final = 1e-300
_NO_WORDS: Final = blake2b(digest_size=8).digest()


class WordTable(Protocol):
    """The words of a model with a vector each."""

    def ids(self, words: Sequence[str]) -> NDArray[np.intp]:
        """Return the id of each word, 1 for the most frequent, 0 for one without a vector.  # (N,)"""

    def rows(self, ids: NDArray[np.intp]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors of these words at length 1, and u of each.  # (N, D), (N,)"""


def features(
    query: Text,
    rarities_of_query: Floats,
    candidates: Sequence[Text],
    rarest: float,
    table: WordTable | None = None,
    cosines: Floats | None = None,
    commonness: float = 0.0,
    size: int = MIDDLING,
    margin: float = 0.0,
) -> Floats:
    """Return what is alike in a query and each candidate; 0 for what no vectors tell.  # (N, len(FEATURES))

    Args:
        rarities_of_query: idf > 0 of the query's distinct terms, those of its title first.  # (T,)
        rarest: idf of a word that no question has.
        cosines: as ``Cosines.of`` gives them.  # (N,)
        size: how many questions the forum has.
        margin: as ``margin.standing`` gives it.
    """
    found = np.zeros((len(candidates), len(FEATURES)))
    if not candidates:
        return found
    found[:, :_OF_WORDS] = _by_words(query, rarities_of_query, candidates, rarest)
    if table is not None:
        found[:, _OF_WORDS : _OF_WORDS + 3] = _by_vectors(query, candidates, table)
    if cosines is not None:
        found[:, -4], found[:, -3] = cosines, commonness
    found[:, -2], found[:, -1] = log10(min(max(size, SMALLEST), LARGEST) / MIDDLING), margin
    parts = (True, table is not None, cosines is not None)
    regard_title_alone(query, found, [name for name, is_known in zip(_OF_BODIES, parts, strict=True) if is_known])
    return found


def regard_title_alone(query: Text, found: Floats, names: Iterable[str]) -> None:
    """Raise these features to ``same title`` where a query without a body has a candidate's title.  # (N, F)"""
    if query.body_order == _NO_WORDS:
        same = found[:, FEATURES.index("same title")]
        for place in map(FEATURES.index, names):
            found[:, place] = np.where(same > 0, np.maximum(found[:, place], same), found[:, place])


def _by_words(query: Text, rarity: Floats, candidates: Sequence[Text], rarest: float) -> Floats:
    count = len(candidates)
    titled = np.arange(len(rarity)) < len(query.title) // HASH_BYTES
    weighed = np.where(titled, 1.0, IN_BODY) * rarity
    of_title, of_text = float(rarity[titled].sum()), float(weighed.sum())
    # how many terms each has, those of the title and those of the body alone
    sizes = np.array([(len(one.title), len(one.body)) for one in candidates]) // HASH_BYTES  # (N, 2)
    sums = np.zeros((9, count))
    if len(rarity):
        hashes = np.frombuffer(b"".join(chain.from_iterable(one[:2] for one in (query, *candidates))), dtype=np.uint8)
        wide = np.zeros((len(hashes) // HASH_BYTES, 8), dtype=np.uint8)
        wide[:, :HASH_BYTES] = hashes.reshape(-1, HASH_BYTES)
        asked, theirs = np.split(wide.view("<u8")[:, 0], [len(rarity)])
        order = np.argsort(asked)
        places = order[np.minimum(np.searchsorted(asked, theirs, sorter=order), len(order) - 1)]
        shared = np.flatnonzero(asked[places] == theirs)
        place = places[shared]
        field = np.repeat(np.arange(2 * count), sizes.ravel())[shared]  # of candidate n: 2n its title, 2n + 1 its body
        value, is_titled, in_title = rarity[place], field % 2 == 0, titled[place]
        weight = np.where(is_titled, 1.0, IN_BODY) * value
        parts = (
            in_title * value,
            weighed[place],
            weighed[place] * weight,
            weight**2,
            (in_title & is_titled) * value**2,
            is_titled * value,
            is_titled * value**2,
            np.ones(len(place)),
            is_titled.astype(float),
        )
        for row, part in zip(sums, parts, strict=True):
            row[:] = np.bincount(field // 2, part, count)
    title_in, text_in, texts, theirs_square, titles, theirs_in, shared_square, both, titles_shared = sums
    typical = TYPICAL * rarest
    alone_titled = sizes[:, 0] - titles_shared
    alone_body = sizes[:, 1] - (both - titles_shared)
    norm_title = (rarity[titled] ** 2).sum() * (shared_square + typical**2 * alone_titled)
    alone_square = typical**2 * (alone_titled + IN_BODY**2 * alone_body)
    norm_text = (weighed**2).sum() * (theirs_square + alone_square)
    is_same_title = np.array([one.title_order == query.title_order for one in candidates]) & (len(query.title) > 0)
    is_same = is_same_title & np.array([one.body_order == query.body_order for one in candidates])
    return np.stack(
        [
            title_in / (of_title or 1.0),
            text_in / (of_text or 1.0),
            theirs_in / np.maximum(theirs_in + typical * alone_titled, _LEAST),  # of nothing, 0
            (titles / np.maximum(norm_title**0.5, _LEAST)) ** 0.5,
            (texts / np.maximum(norm_text**0.5, _LEAST)) ** 0.5,
            is_same_title * min(1.0, of_title / (ENOUGH * rarest)),
            is_same * min(1.0, of_text / (ENOUGH * rarest)),
        ],
        axis=1,
    )


def _by_vectors(query: Text, candidates: Sequence[Text], table: WordTable) -> Floats:
    """Return the cosine of means, and the share of each title that the other text has by its likest words.  # (N, 3)"""
    found = np.zeros((len(candidates), 3))
    ids, field = _ids([query, *candidates], table)
    titled, asked = np.searchsorted(field, (1, 2)).tolist()  # of the query's title, and of it all
    if asked in (0, len(ids)):
        return found
    distinct, places = np.unique(ids, return_inverse=True)
    rows, weights = table.rows(distinct)
    asked_at, theirs_at = places[:asked], places[asked:]
    count, size = len(candidates), len(distinct)
    text, is_titled = (field[asked:] - 2) // 2, field[asked:] % 2 == 0
    counts = np.bincount(text * size + theirs_at, minlength=count * size).reshape(count, size)  # (N, U)
    mean = weights[asked_at] @ rows[asked_at]
    sums = (counts * weights).astype(np.float32) @ rows  # (N, D)
    norms = np.linalg.norm(sums, axis=1) * np.linalg.norm(mean)
    found[:, 0] = np.divide(sums @ mean, norms, out=np.zeros(count), where=norms > 0)
    asked_rows = rows[asked_at]
    if titled:
        held, starts = np.unique(text, return_index=True)
        near = np.maximum(rows @ asked_rows[:titled].T, 0)  # (U, T), four times as fast as the other way round
        best = np.maximum.reduceat(near[theirs_at], starts)  # (H, T)
        share = weights[asked_at[:titled]]
        found[held, 1] = best @ share / share.sum()
    in_titles, place = np.unique(theirs_at[is_titled], return_inverse=True)  # (V,)
    if len(in_titles):
        nearest = np.maximum((rows[in_titles] @ asked_rows.T).max(axis=1), 0)  # (V,)
        of_title, text = weights[theirs_at[is_titled]], text[is_titled]
        shared = np.bincount(text, of_title * nearest[place], count)
        found[:, 2] = shared / np.maximum(np.bincount(text, of_title, count), _LEAST)
    return found


def _ids(texts: Sequence[Text], table: WordTable) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ids of the first ``MOST_WORDS`` words with a vector of each title and each body, one after another,
    and which field each is of: 2n the title of text n, 2n + 1 its body.  # (M,), (M,)
    """
    fields = [words for one in texts for words in (one.title_words, one.body_words)]
    ids = table.ids(" ".join(filter(None, fields)).split())
    field = np.repeat(np.arange(len(fields)), [words.count(" ") + 1 if words else 0 for words in fields])
    known = ids > 0
    ids, field = ids[known], field[known]
    counts = np.bincount(field, minlength=len(fields))
    is_first = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts) < MOST_WORDS
    return ids[is_first], field[is_first]


SPREAD: Final = 0.14
"""How far cosines of questions at random spread, by the encoder that the scorer learned by."""


@dataclass(frozen=True, slots=True)
class Cosines:
    """What is usual among the cosines of a forum's questions, found from its vectors without a label.

    An encoder may put all questions near each other, or far apart. A cosine is taken from the mean of the query with
    every question to 1, the cosine with itself::

        m = (q · μ̂) · |μ|                        μ the mean of the forum's vectors, μ̂ = μ / |μ|
        cosine = s^(ln SPREAD / ln spread)      s = (cos - m) / (1 - m), with the sign of s

    so that a question with itself has 1 and questions at random differ by ``SPREAD``, whatever the encoder.

    Args:
        mean: μ.  # (D,)
        spread: the standard deviation of s of questions at random, in (0, 1).
    """

    mean: NDArray[np.float32]
    spread: float

    @classmethod
    def among(cls, vectors: NDArray[np.float32]) -> Cosines:
        """Return what is usual among vectors of length 1; of fewer than 20, nothing is.  # (N, D)"""
        if len(vectors) < 20:
            return cls(np.zeros(vectors.shape[1], dtype=np.float32), SPREAD)
        mean = vectors.mean(axis=0)
        usual = vectors @ mean  # (N,)
        shifted = (vectors @ vectors.T - usual[:, None]) / np.maximum(1 - usual[:, None], 0.05)
        spread = float(shifted[~np.eye(len(vectors), dtype=bool)].std())
        return cls(mean, min(max(spread, 0.01), 0.9))

    def commonness(self, query: NDArray[np.float32]) -> float:
        """Return the mean of the query's cosines with all questions, about; in [-1, 1]."""
        return float(query @ self.mean)

    def of(self, query: NDArray[np.float32], cosines: Floats) -> Floats:
        """Return cosines with a query on the scale above.  # (N,)"""
        usual = min(self.commonness(query), 0.95)
        shifted = (cosines - usual) / (1 - usual)
        return np.sign(shifted) * np.abs(shifted) ** (log(SPREAD) / log(self.spread))
