"""What is alike in two texts, as numbers in [-1, 1] from which a scorer says whether both ask the same.

Words count by how rare they are in the forum, idf(t); of those that only the candidate has, a typical rarity is taken,
so that no frequency is asked for after the candidates are known. w(t) is 1 for a word of the title and ½ for one of the
body's beginning alone. With S the words of both texts, Q and C those of each::

    title in text                 Σ_{t ∈ title(Q) ∩ C} idf / Σ_{t ∈ title(Q)} idf
    text in text                  Σ_{t ∈ S} w_Q idf / Σ_{t ∈ Q} w_Q idf
    candidate's title in text     Σ_{t ∈ title(C) ∩ Q} idf / Σ_{t ∈ title(C)} idf
    texts, titles                 √ of the cosine of both, in weights w idf
    cosine                        (cos - m) / (1 - m), raised to a power: see ``Cosines``
    commonness                    cos of the query and the mean of the forum's vectors
    size of the forum             log10 of its questions by 3,000, no less than of 250, no more than of 250,000
    margin of the forum           how far its questions stand out from one another: see ``margin``
    same title, same text         1 where they are, less where that is of few informative words

A query that is a title alone says nothing of a body, so that bodies of candidates with that title count neither way:
there texts and cosine are no less than same title, which a title has with itself.

Each is a property of the pair and the forum: who else was found does not change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, pairwise
from math import log, log10
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.search.texts import HASH_BYTES, Text

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

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
    "cosine",
    "commonness",
    "size of the forum",
    "margin of the forum",
)

_OF_WORDS: Final = 7
_OF_BODIES: Final = ("texts", "cosine")
_LEAST: Final = 1e-300
_NO_WORDS: Final = blake2b(digest_size=8).digest()


class Asked(NamedTuple):
    """A query, and what is the same for all texts that it is compared with.

    Args:
        rarities: idf > 0 of its distinct terms, those of its title first.  # (T,)
        rarest: idf of a word that no question has.
        commonness: of the query; see ``Cosines``.
        size: how many questions the forum has.
        margin: as ``margin.standing`` gives it.
    """

    text: Text
    rarities: Floats
    rarest: float
    commonness: float = 0.0
    size: int = MIDDLING
    margin: float = 0.0


def features(
    asked: Sequence[Asked],
    texts: Sequence[Text],
    pairs: tuple[Places, Places],
    cosines: Floats | None = None,
) -> Floats:
    """Return what is alike in each pair of a query and a text; 0 for what no vectors tell.  # (P, len(FEATURES))

    A text that several queries are compared with is read once.

    Args:
        pairs: the places of the queries, ascending, and of the texts that each is compared with.  # (P,), (P,)
        cosines: of the pairs, as ``Cosines.of`` gives them.  # (P,)
    """
    found = np.zeros((len(pairs[0]), len(FEATURES)))
    if not len(found):
        return found
    bounds = np.searchsorted(pairs[0], np.arange(len(asked) + 1)).tolist()
    found[:, :_OF_WORDS] = _by_words(asked, texts, *pairs, bounds)
    if cosines is not None:
        found[:, -4], found[:, -3] = cosines, np.array([one.commonness for one in asked])[pairs[0]]
    sizes = [log10(min(max(one.size, SMALLEST), LARGEST) / MIDDLING) for one in asked]
    found[:, -2], found[:, -1] = np.array(sizes)[pairs[0]], np.array([one.margin for one in asked])[pairs[0]]
    names = _OF_BODIES if cosines is not None else _OF_BODIES[:1]
    for one, (start, stop) in zip(asked, pairwise(bounds), strict=True):
        regard_title_alone(one.text, found[start:stop], names)
    return found


def regard_title_alone(query: Text, found: Floats, names: Iterable[str]) -> None:
    """Raise these features to ``same title`` where a query without a body has a candidate's title.  # (N, F)"""
    if query.body_order == _NO_WORDS:
        same = found[:, FEATURES.index("same title")]
        for place in map(FEATURES.index, names):
            found[:, place] = np.where(same > 0, np.maximum(found[:, place], same), found[:, place])


def _by_words(
    asked: Sequence[Asked], texts: Sequence[Text], query_at: Places, text_at: Places, bounds: Sequence[int]
) -> Floats:
    count = len(text_at)
    # how many terms each has, those of the title and those of the body alone
    sizes = np.array([(len(one.title), len(one.body)) for one in texts]) // HASH_BYTES  # (N, 2)
    each = sizes.sum(axis=1)
    starts = each.cumsum() - each
    hashes = _hashes(texts)
    rarity = np.concatenate([one.rarities for one in asked])
    owner = np.repeat(np.arange(len(asked)), [len(one.rarities) for one in asked])
    titled_of = np.array([len(one.text.title) // HASH_BYTES for one in asked])
    first = np.searchsorted(owner, np.arange(len(asked) + 1)).tolist()
    titled = np.arange(len(rarity)) - np.array(first)[owner] < titled_of[owner]
    weighed = np.where(titled, 1.0, IN_BODY) * rarity
    of_title, of_text, title_square, text_square = (
        np.bincount(owner, part, len(asked))[query_at]
        for part in (titled * rarity, weighed, titled * rarity**2, weighed**2)
    )
    terms = _hashes([one.text for one in asked])
    shared_at: list[tuple[Places, Places, Places]] = []  # the pair, the query's term, the text's one
    for (begin, end), (start, stop) in zip(pairwise(first), pairwise(bounds), strict=True):
        own, mine = terms[begin:end], text_at[start:stop]
        if not len(own) or not len(mine):
            continue
        ends = each[mine].cumsum()
        theirs = np.arange(ends[-1]) + np.repeat(starts[mine] - ends + each[mine], each[mine])
        asked_for = hashes[theirs]
        order = np.argsort(own)
        places = order[np.minimum(np.searchsorted(own, asked_for, sorter=order), len(own) - 1)]
        shared = np.flatnonzero(own[places] == asked_for)
        pair = np.searchsorted(ends, shared, side="right")
        shared_at.append((pair + start, places[shared] + begin, theirs[shared] - starts[mine][pair]))
    none = np.zeros(0, np.intp)
    pair, place, within = map(np.concatenate, zip((none, none, none), *shared_at, strict=True))
    is_titled, in_title = within < sizes[text_at[pair], 0], titled[place]
    value = rarity[place]
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
    sums = [np.bincount(pair, part, count) for part in parts]
    title_in, text_in, both_texts, theirs_square, both_titles, theirs_in, shared_square, both, titles_shared = sums
    rarest = np.array([one.rarest for one in asked])[query_at]
    typical = TYPICAL * rarest
    alone_titled = sizes[text_at, 0] - titles_shared
    alone_body = sizes[text_at, 1] - (both - titles_shared)
    norm_title = title_square * (shared_square + typical**2 * alone_titled)
    alone_square = typical**2 * (alone_titled + IN_BODY**2 * alone_body)
    norm_text = text_square * (theirs_square + alone_square)
    orders = np.array([one[2:4] for one in chain((one.text for one in asked), texts)])  # (Q + N, 2)
    same = orders[query_at] == orders[text_at + len(asked)]
    is_same_title = same[:, 0] & (titled_of[query_at] > 0)
    is_same = is_same_title & same[:, 1]
    return np.stack(
        [
            title_in / np.where(of_title > 0, of_title, 1.0),
            text_in / np.where(of_text > 0, of_text, 1.0),
            theirs_in / np.maximum(theirs_in + typical * alone_titled, _LEAST),  # of nothing, 0
            (both_titles / np.maximum(norm_title**0.5, _LEAST)) ** 0.5,
            (both_texts / np.maximum(norm_text**0.5, _LEAST)) ** 0.5,
            is_same_title * np.minimum(1.0, of_title / (ENOUGH * rarest)),
            is_same * np.minimum(1.0, of_text / (ENOUGH * rarest)),
        ],
        axis=1,
    )


def _hashes(texts: Sequence[Text]) -> NDArray[np.uint64]:
    """Return the hashes of the terms of all texts, one after another, as numbers.  # (M,)"""
    joined = np.frombuffer(b"".join(chain.from_iterable(one[:2] for one in texts)), dtype=np.uint8)
    wide = np.zeros((len(joined) // HASH_BYTES, 8), dtype=np.uint8)
    wide[:, :HASH_BYTES] = joined.reshape(-1, HASH_BYTES)
    found: NDArray[np.uint64] = wide.view("<u8")[:, 0]
    return found


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
