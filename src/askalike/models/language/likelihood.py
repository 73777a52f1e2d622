"""The likelihood of a query under a model of each candidate, and the simplest such model, query likelihood (LMIR).

::

    P(q|D) = Π_{w ∈ q} P(w|D)^tf(w, q)

    P(w|D) = (1 - s_D) · P_ml(w|D) + s_D · P(w|C)
    s_D    = λ                    Jelinek-Mercer
    s_D    = μ / (|D| + μ)        Dirichlet: long texts are trusted more

What P(w|D) is makes the difference between most of the models. Texts are lists of term ids in one array: an id above 0
is a term of a vocabulary, one below 0 a term that the vocabulary lacks; 0 is no term.

Source: Zhai and Lafferty 2004 (ACM TOIS 22:2), sections 2 and 3, table I.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.vocabulary import Vocabulary
from askalike.settings import check_settings

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermLists:
    """N texts of M terms in all.

    Args:
        ids: of all texts, in order and with repetitions.  # (M,) int64
        starts: where each text begins in ``ids``, and M.  # (N + 1,) int64
    """

    ids: Ids
    starts: Ids

    @classmethod
    def of(cls, texts: Iterable[Sequence[int] | Ids]) -> TermLists:
        """Return texts given one by one.

        >>> made = TermLists.of([[5, 7], [], [5]])
        >>> made.ids.tolist(), made.starts.tolist(), made.lengths().tolist()
        ([5, 7, 5], [0, 2, 2, 3], [2, 0, 1])
        """
        held = [np.asarray(text, np.int64) for text in texts]
        starts = np.zeros(len(held) + 1, np.int64)
        np.cumsum([len(text) for text in held], out=starts[1:])
        return cls(np.concatenate(held) if held else np.zeros(0, np.int64), starts)

    def __len__(self) -> int:
        """Return N."""
        return len(self.starts) - 1

    def lengths(self) -> Ids:
        """Return how many terms each text has.  # (N,)"""
        return np.diff(self.starts)

    def owners(self) -> Ids:
        """Return of which text each term is.  # (M,)"""
        return np.repeat(np.arange(len(self)), self.lengths())

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each text's terms, 0 for a text without.  # (N,)

        Args:
            values: one for each term.  # (M,)
        """
        found = np.zeros(len(self))
        has_terms = self.lengths() > 0
        if has_terms.any():
            found[has_terms] = np.add.reduceat(values, self.starts[:-1][has_terms])
        return found


def frequencies(words: Ids, texts: TermLists) -> Floats:
    """Return tf(w, D), how often each word occurs in each text.  # (T, N)

    Args:
        words: distinct and ascending.  # (T,)

    >>> frequencies(np.array([5, 7]), TermLists.of([[5, 7, 5], [8], []])).tolist()
    [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    shape = (len(words), len(texts))
    if not len(words):
        return np.zeros(shape)
    places = _places(words, texts.ids)
    is_found = places >= 0
    cells = places[is_found] * len(texts) + texts.owners()[is_found]
    return np.bincount(cells, minlength=len(words) * len(texts)).reshape(shape).astype(np.float64)


def _places(words: Ids, ids: Ids) -> Ids:
    """Return where among the words each id is, -1 where it is not.  # (M,)

    Ids of a vocabulary are looked up in a table, which is faster than to search for them; the others, below 0, are as
    large as any number.
    """
    first = int(np.searchsorted(words, 1))  # of those above 0
    table = np.full(max(1, int(words[-1])) + 2, -1, np.int64)  # the last is that of all larger ids
    table[words[first:]] = np.arange(first, len(words))
    found = table.take(ids, mode="clip")
    if first:
        is_new = ids < 0
        new = ids[is_new]
        near = np.minimum(np.searchsorted(words[:first], new), first - 1)
        found[is_new] = np.where(words[near] == new, near, -1)
    return np.asarray(found)


def shares(words: Ids, texts: TermLists) -> Floats:
    """Return the maximum-likelihood estimate ``P_ml(w|D) = tf(w, D) / |D|``, 0 for a text without terms.  # (T, N)

    >>> shares(np.array([5]), TermLists.of([[5, 7, 5, 9], []])).tolist()
    [[0.5, 0.0]]
    """
    return frequencies(words, texts) / np.maximum(texts.lengths(), 1)


Row = tuple[NDArray[Any], NDArray[Any]]
"""Distinct ids, and the number of each.  # (K,) integers, (K,) floats"""

_FEW: Final = 1000


def row_sums(rows: Sequence[Row], texts: TermLists, size: int) -> Floats:
    """Return ``S[w, D] = Σ_{u ∈ D} tf(u, D) · t(w|u)``, the inner loop of the models that translate.  # (R, N)

    A row is sparse: the u from which w can come. One with many is laid over all places of the texts; of those with few,
    the places that any of them reaches are found first, and each is laid over these alone. Which of the two a row goes
    depends on the row alone, so that a text has the same sums among others as alone.

    Args:
        rows: R rows of ids in [0, size).
        texts: N texts of ids in [0, size).
        size: how many ids there are.

    >>> rows = [(np.array([1, 2]), np.array([0.5, 0.25])), (np.array([], int), np.array([]))]
    >>> row_sums(rows, TermLists.of([[1, 1, 2], [3], []]), 4).tolist()
    [[1.25, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    found = np.zeros((len(rows), len(texts)))
    laid = np.zeros(size)
    few = []
    for place, (ids, values) in enumerate(rows):
        if 0 < len(ids) < _FEW:
            few.append(place)
        elif len(ids):
            laid[ids] = values
            found[place] = texts.sums(laid[texts.ids])
            laid[:] = 0
    if few:
        is_reached = np.zeros(size, np.bool_)
        for place in few:
            is_reached[rows[place][0]] = True
        places = np.flatnonzero(is_reached[texts.ids])
        reached = TermLists(texts.ids[places], np.searchsorted(places, texts.starts))
        for place in few:
            ids, values = rows[place]
            laid[ids] = values
            found[place] = reached.sums(laid[reached.ids])
            laid[ids] = 0
    return found


def term_ids(vocabulary: Vocabulary, terms: Sequence[str]) -> NDArray[np.int64]:
    """Return the id of each term, in order; a term that the vocabulary lacks has one below 0, made of its letters.

    So a term that was never learned still matches itself; two of them share an id once in 4,000 million times.

    >>> term_ids(Vocabulary(["router", "modem"]), ["modem", "router"]).tolist()
    [2, 1]
    >>> first, second, again = term_ids(Vocabulary(["router"]), ["wlan", "wifi", "wlan"]).tolist()
    >>> first == again, first == second, first < 0
    (True, False, True)
    """
    known = vocabulary.ids(terms)
    return np.array(
        [
            number or -1 - zlib.crc32(term.encode(errors="surrogatepass"))
            for number, term in zip(known, terms, strict=True)
        ],
        np.int64,
    )


@dataclass(frozen=True, slots=True)
class Collection:
    """How often each term occurs in a collection C: what every language model is smoothed with.

    Args:
        counts: how often each term occurs; at 0 all together that the vocabulary lacks.  # (V,) int64
    """

    counts: NDArray[np.int64]

    @classmethod
    def count(cls, texts: TermLists, size: int) -> Collection:
        """Count texts.

        Args:
            size: V, ids of the vocabulary with 0.

        >>> Collection.count(TermLists.of([[1, 2, 1], [2, -9]]), 4).counts.tolist()
        [1, 2, 2, 0]
        """
        return cls(np.bincount(np.maximum(texts.ids, 0), minlength=size).astype(np.int64))

    @classmethod
    def none(cls) -> Collection:
        """Return the counts of no text over no term."""
        return cls(np.zeros(1, np.int64))

    def probabilities(self, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ``P(w|C) = tf(w, C) / |C|``, where a term that the collection lacks counts as one.  # (T,)

        Differs: a term that was never seen would have the probability 0, and every text that lacks it the score -inf.

        >>> Collection(np.array([1, 2, 2, 0])).probabilities(np.array([-9, 1, 3])).tolist()
        [0.2, 0.4, 0.2]
        """
        held = np.where(words > 0, self.counts[np.maximum(words, 0)], 1)
        return np.asarray(np.maximum(held, 1) / max(1, int(self.counts.sum())))


@dataclass(frozen=True, slots=True)
class Parallel:
    """P pairs of texts that translate into each other, text i of the sources into text i of the targets; none is empty.

    Args:
        sources: their terms u.
        targets: their terms w.
    """

    sources: TermLists
    targets: TermLists

    @classmethod
    def of(cls, pairs: Iterable[tuple[Sequence[int] | Ids, Sequence[int] | Ids]], most: int | None = None) -> Parallel:
        """Return pairs without the terms that no vocabulary has, and without pairs of which nothing is left then.

        Args:
            most: of each text only so many terms are taken, the first, ≥ 1; None takes all.

        >>> made = Parallel.of([([1, -7, 2], [3, 1]), ([-7], [3])], most=1)
        >>> made.sources.ids.tolist(), made.targets.ids.tolist()
        ([1], [3])
        """
        known = [(_known(source, most), _known(target, most)) for source, target in pairs]
        kept = [(source, target) for source, target in known if len(source) and len(target)]
        return cls(TermLists.of(source for source, _ in kept), TermLists.of(target for _, target in kept))

    def __len__(self) -> int:
        """Return P."""
        return len(self.sources)

    def both_ways(self) -> Parallel:
        """Return every pair and the same turned round, 2P in all.

        Source: Xue, Jeon and Croft 2008 (SIGIR), P_pool: questions with answers and answers with questions are one set.

        >>> made = Parallel.of([([1], [2, 3])]).both_ways()
        >>> made.sources.ids.tolist(), made.targets.ids.tolist(), made.targets.starts.tolist()
        ([1, 2, 3], [2, 3, 1], [0, 2, 3])
        """
        return Parallel(_joined(self.sources, self.targets), _joined(self.targets, self.sources))


def _known(text: Sequence[int] | Ids, most: int | None) -> NDArray[np.int64]:
    ids = np.asarray(text, np.int64)
    return ids[ids > 0][:most]


def _joined(first: TermLists, second: TermLists) -> TermLists:
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return TermLists(np.concatenate([first.ids, second.ids]), starts)


Method = Literal["dirichlet", "jelinek-mercer"]


class QueryModel:
    """A language model of candidates, by what it has learned; any number of threads may ask it.

    A model says what P(w|D) and P(w|C) are; one without a P(w|D) of single words says what P(q|D) is.
    """

    __slots__ = ()

    def word_probabilities(
        self, words: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return P(w|D) of each word under each candidate, > 0.  # (T, N)

        Args:
            words: distinct and ascending.  # (T,)
            candidates: N texts.
            answers: one to each candidate, empty where there is none; models that read no answers ignore them.
            mixtures: θ of each candidate where it is known before; models without topics ignore it.  # (N, K)
        """
        raise NotImplementedError

    def background(self, words: Ids) -> Floats:
        """Return P(w|C), > 0.  # (T,)"""
        raise NotImplementedError

    def log_likelihoods(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return log P(q|D) of each candidate; 0 for a query without terms.  # (N,)

        Args:
            query: its terms in order, with repetitions.  # (L,)
            candidates, answers, mixtures: as in ``word_probabilities``.
        """
        words, times = np.unique(query, return_counts=True)
        return np.asarray(times @ np.log(self.word_probabilities(words, candidates, answers, mixtures)))

    def mean_ratios(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return how much likelier a word of the query is under each candidate than in the collection.  # (N,)

        ::

            (P(q|D) / P(q|C))^(1/|q|)

        It orders the candidates of a query as P(q|D) does, and is a number that can be shown: > 0, and above 1 where
        the candidate makes the query likelier. It is 1 for a query without terms.
        """
        words, times = np.unique(query, return_counts=True)
        found = self.log_likelihoods(query, candidates, answers, mixtures) - times @ np.log(self.background(words))
        return np.asarray(np.exp(found / max(1, len(query))))


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How much of the collection is in a text's model.

    Args:
        method: ``dirichlet`` or ``jelinek-mercer``.
        weight: μ > 0, in terms, of Dirichlet; λ in (0, 1] of Jelinek-Mercer.
    """

    method: Method = "dirichlet"
    weight: float = 100.0

    def __post_init__(self) -> None:
        check_settings(self, "smoothing ")
        if self.method == "jelinek-mercer" and self.weight > 1:
            raise SettingError(f"the weight of {self.method} is {self.weight}, but expected at most 1", "set weight")

    def shares(self, lengths: Ids) -> Floats:
        """Return s_D, the collection's share in texts of these lengths.  # (N,)

        >>> Smoothing("dirichlet", 100.0).shares(np.array([0, 100, 300])).tolist()
        [1.0, 0.5, 0.25]
        >>> Smoothing("jelinek-mercer", 0.2).shares(np.array([0, 100])).tolist()
        [0.2, 0.2]
        """
        if self.method == "jelinek-mercer":
            return np.full(len(lengths), self.weight)
        return np.asarray(self.weight / (lengths + self.weight))

    def mixed(self, own: Floats, background: Floats, lengths: Ids) -> Floats:
        """Return ``(1 - s_D) · own + s_D · P(w|C)``.  # (T, N)

        Args:
            own: what the text itself makes of each word.  # (T, N)
            background: P(w|C).  # (T,)
            lengths: |D|.  # (N,)
        """
        share = self.shares(lengths)
        return np.asarray((1 - share) * own + share * background[:, None])


@dataclass(frozen=True, slots=True)
class QueryLikelihood(QueryModel):
    """The words of candidates alone; answers are not read.

    Example:
        A text of the words 1, 1, 2 and a collection of 10 words, 4 of them 1; μ = 1, so that s_D = 1/4:
        P(1|D) = 3/4 · 2/3 + 1/4 · 4/10 = 0.6.

        >>> model = QueryLikelihood(Collection(np.array([0, 4, 6])), Smoothing("dirichlet", 1.0))
        >>> model.word_probabilities(np.array([1]), TermLists.of([[1, 1, 2]])).round(3).tolist()
        [[0.6]]
    """

    collection: Collection
    smoothing: Smoothing = field(default_factory=Smoothing)

    def word_probabilities(
        self, words: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return P(w|D).  # (T, N)"""
        return self.smoothing.mixed(shares(words, candidates), self.background(words), candidates.lengths())

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)
