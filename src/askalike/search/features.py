"""What is alike in two texts, as numbers in [-1, 1] from which a scorer says whether both ask the same.

Words count by how rare they are in the forum, idf(t); of those that only the candidate has, a typical rarity is taken,
so that no frequency is asked for after the candidates are known. w(t) is 1 for a word of the title and ½ for one of the
body alone. With S the words of both texts, Q and C those of each::

    title in text                 Σ_{t ∈ title(Q) ∩ C} idf / Σ_{t ∈ title(Q)} idf
    text in text                  Σ_{t ∈ S} w_Q idf / Σ_{t ∈ Q} w_Q idf
    candidate's title in text     Σ_{t ∈ title(C) ∩ Q} idf / Σ_{t ∈ title(C)} idf
    texts, titles                 √ of the cosine of both, in weights w idf
    texts by words' vectors       cosine of the means of the words' vectors, in weights u
    title by words' vectors       Σ_i u_i max_j cos(v_i, v_j) / Σ_i u_i         i in title(Q), j in C; and the other way
    cosine                        (cos - m) / (1 - m), raised to a power: see ``Cosines``
    commonness                    cos of the query and the mean of the forum's vectors
    same title, same text         1 where they are, less where that is of few informative words

Each is a property of the pair: who else was found does not change it. u is ``interaction.rarities``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import log
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.search.interaction import rarities
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.tokens import words
from askalike.types import Markup

Floats = NDArray[np.float64]

BODY_CHARACTERS: Final = 600
"""Only so much of a body is compared."""

BODY_WORDS: Final = 40
"""Only so many words of it by their vectors."""

IN_BODY: Final = 0.5
TYPICAL: Final = 0.6
"""The rarity of a candidate's word, as a share of that of a word which one question has."""

ENOUGH: Final = 2.0
"""A text whose words are together as rare as so many of the rarest is the same by no chance."""

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
)

_OF_WORDS: Final = 7
_MOST_PIECES: Final = 1 << 16
_AROUND: Final = "(\"'[*.,;:!?)]"


class WordTable(Protocol):
    """The words of a model with a vector each."""

    def ids(self, words: Iterable[str]) -> list[int]:
        """Return the id of each word, 1 for the most frequent, 0 for one without a vector."""

    def rows(self, ids: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the vectors of these words at length 1.  # (N, D)"""

    def __len__(self) -> int:
        """Return how many ids there are."""


class WordReader:
    """The informative words of texts as a model with word vectors knows them; what a piece of text has is remembered.

    Args:
        analyzer: a piece that it makes no term of is not informative.
    """

    def __init__(self, table: WordTable, analyzer: Analyzer) -> None:
        self.table = table
        self._analyzer = analyzer
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str, most: int) -> list[int]:
        """Return the ids of the first ``most`` words."""
        known = self._known
        if len(known) > _MOST_PIECES:
            self._known = known = {}
        pieces = text.lower().split()[: 2 * most]
        for piece in pieces:
            if piece not in known:
                known[piece] = self._of(piece)
        return list(chain.from_iterable(map(known.__getitem__, pieces)))[:most]

    def _of(self, piece: str) -> tuple[int, ...]:
        if not self._analyzer.terms(piece):
            return ()
        core = piece.strip(_AROUND)
        found = [core] if core.isascii() and core.isalpha() else words(piece)
        return tuple(one for one in self.table.ids(found) if one)


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text as it is compared.

    Args:
        terms: of the title, in their order.
        body: terms of the body.
        weights: term → w, of all its terms.
        title_ids: words of the title with a vector.
        body_ids: those of the body.
    """

    terms: Sequence[str]
    body: Sequence[str]
    weights: Mapping[str, float]
    title_ids: Sequence[int] = field(default_factory=tuple)
    body_ids: Sequence[int] = field(default_factory=tuple)


def read(analyzer: Analyzer, reader: WordReader | None, title: str, body: str, markup: Markup) -> Text:
    """Return a text as it is compared."""
    begun = body if len(body) <= BODY_CHARACTERS else body[:BODY_CHARACTERS].rsplit(None, 1)[0]  # no half word
    shown = readable(begun, markup, with_code=analyzer.settings.with_code) if body else ""
    terms, rest = analyzer.terms(title), analyzer.terms(shown)
    weights = dict.fromkeys(rest, IN_BODY)
    weights.update(dict.fromkeys(terms, 1.0))
    if reader is None:
        return Text(terms, rest, weights)
    return Text(terms, rest, weights, reader.ids(title, BODY_WORDS), reader.ids(shown, BODY_WORDS))


def features(
    query: Text,
    candidates: Sequence[Text],
    idf: Callable[[str], float],
    rarest: float,
    table: WordTable | None = None,
    cosines: Floats | None = None,
    commonness: float = 0.0,
) -> Floats:
    """Return what is alike in a query and each candidate; 0 for what no vectors tell.  # (N, len(FEATURES))

    Args:
        idf: of the query's terms, > 0.
        rarest: idf of a word that no question has.
        cosines: as ``Cosines.of`` gives them.  # (N,)
    """
    found = np.zeros((len(candidates), len(FEATURES)))
    if not candidates:
        return found
    found[:, :_OF_WORDS] = _by_words(query, candidates, idf, rarest)
    if table is not None:
        found[:, _OF_WORDS : _OF_WORDS + 3] = _by_vectors(query, candidates, table)
    if cosines is not None:
        found[:, -2], found[:, -1] = cosines, commonness
    return found


def _by_words(query: Text, candidates: Sequence[Text], idf: Callable[[str], float], rarest: float) -> list[list[float]]:
    rarity = {term: idf(term) for term in query.weights}
    titled = frozenset(query.terms)
    typical = TYPICAL * rarest
    of_title = sum(rarity[term] for term in titled)
    weighed = {term: weight * rarity[term] for term, weight in query.weights.items()}
    of_text = sum(weighed.values())
    square_title = sum(rarity[term] ** 2 for term in titled)
    square_text = sum(value * value for value in weighed.values())
    certain = min(1.0, of_title / (ENOUGH * rarest))
    certain_text = min(1.0, of_text / (ENOUGH * rarest))
    rows = []
    for one in candidates:
        title_in = text_in = theirs_in = texts = theirs_square = shared_square = titles = 0.0
        theirs, both = len(one.weights), 0
        their_titled = set(one.terms)
        titles_shared = 0
        for term in query.weights.keys() & one.weights.keys():
            value, weight = rarity[term], one.weights[term]
            both += 1
            text_in += weighed[term]
            texts += weighed[term] * weight * value
            theirs_square += (weight * value) ** 2
            if term in titled:
                title_in += value
                if term in their_titled:
                    titles += value * value
            if term in their_titled:
                theirs_in += value
                shared_square += value * value
                titles_shared += 1
        alone_titled = len(their_titled) - titles_shared
        alone_body = theirs - both - alone_titled
        alone_square = typical**2 * (alone_titled + IN_BODY**2 * alone_body)
        norm_title = (square_title * (shared_square + typical**2 * alone_titled)) ** 0.5
        norm_text = (square_text * (theirs_square + alone_square)) ** 0.5
        their_title = theirs_in + typical * alone_titled
        is_titled = bool(titled) and list(one.terms) == list(query.terms)
        is_same = is_titled and list(one.body) == list(query.body)
        rows.append(
            [
                title_in / of_title if of_title else 0.0,
                text_in / of_text if of_text else 0.0,
                theirs_in / their_title if their_title else 0.0,
                (titles / norm_title) ** 0.5 if norm_title else 0.0,
                (texts / norm_text) ** 0.5 if norm_text else 0.0,
                certain if is_titled else 0.0,
                certain_text if is_same else 0.0,
            ]
        )
    return rows


def _by_vectors(query: Text, candidates: Sequence[Text], table: WordTable) -> Floats:
    """Return the cosine of means, and the share of each title that the other text has by its likest words.  # (N, 3)"""
    found = np.zeros((len(candidates), 3))
    if not (query.title_ids or query.body_ids):
        return found
    texts = [(*one.title_ids, *one.body_ids) for one in candidates]
    held = [row for row, text in enumerate(texts) if text]
    if not held:
        return found
    asked = np.array([*query.title_ids, *query.body_ids], dtype=np.intp)
    ids = np.fromiter(chain.from_iterable(texts[row] for row in held), dtype=np.intp)
    distinct, places = np.unique(np.concatenate([asked, ids]), return_inverse=True)
    rows, weights = table.rows(distinct), rarities(distinct, len(table)).astype(np.float32)
    asked_at, theirs_at = places[: len(asked)], places[len(asked) :]
    lengths = np.array([len(texts[row]) for row in held])
    starts = np.cumsum(lengths) - lengths
    sums = np.add.reduceat((rows * weights[:, None])[theirs_at], starts, axis=0)  # (H, D)
    mean = weights[asked_at] @ rows[asked_at]
    norms = np.linalg.norm(sums, axis=1) * np.linalg.norm(mean)
    found[held, 0] = np.divide(sums @ mean, norms, out=np.zeros(len(held)), where=norms > 0)
    near = np.maximum(rows[asked_at] @ rows.T, 0)  # (A, U)
    titled = len(query.title_ids)
    if titled:
        best = np.maximum.reduceat(near[:titled][:, theirs_at], starts, axis=1)  # (T, H)
        share = weights[asked_at[:titled]]
        found[held, 1] = share @ best / share.sum()
    nearest = near.max(axis=0)  # (U,)
    for row, start in zip(held, starts, strict=True):
        of_title = theirs_at[start : start + len(candidates[row].title_ids)]
        if len(of_title):
            share = weights[of_title]
            found[row, 2] = share @ nearest[of_title] / share.sum()
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
