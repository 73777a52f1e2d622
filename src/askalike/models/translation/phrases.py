"""The phrase-based translation model: a query is made phrase by phrase from the phrases of a candidate.

::

    P(q|D)  = ⊕_{w_1 … w_K = q} Π_k P(w_k|D)                 over all ways to cut q into phrases of up to L terms
    α_0     = 1,    α_j = ⊕_l α_{j-l} · P(q_{j-l+1} … q_j|D),    P(q|D) = α_|q|

    P(w|D)  = (1 - s_D) · (1 - σ) · Σ_t P(w|t) · #(t, D) / |D|                                    of several terms
    P(w|D)  = (1 - s_D) · [σ · P_ml(w|D) + (1 - σ) · Σ_t P(w|t) · #(t, D) / |D|] + s_D · P(w|C)   of one

⊕ is the largest (``best``) or the sum (``sum``); #(t, D) is at how many places of D the phrase t starts. Without a
table, with σ = 1 or with phrases of one term only, it is a word model: with σ = 1 query likelihood.

Source: Zhou, Cai, Zhao and Liu 2011 (ACL), section 3: equations 7 and 8, where all ways to cut are equally likely and
the largest stands for the sum; the recursion over α, after Och's monotone search, is from memory.
Differs: the paper aligns a query with each candidate by words, and takes for each phrase of the query the one phrase of
the candidate that the links allow. Here each phrase w comes from any phrase of the candidate, as in the word models,
which needs no alignment of a thousand candidates while somebody waits. The paper finds that its model cannot be mixed
with a model of words inside the product, and adds up logarithms of several models (translation of phrases in both
directions, lexical weights, order and number of linked words, language model, translation of words) with weights tuned
for its measure; here terms that are not translated and the collection come in as further ways to make a phrase of one
term, as Xue et al. 2008 do for words, so that nothing has to be tuned to begin with.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.likelihood import QueryModel, Smoothing
from askalike.models.query_likelihood.terms import Collection, TermLists, row_sums, shares
from askalike.models.translation.translm import WORD_SMOOTHING

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


def reaches(owners: Ids, length: int) -> Flags:
    """Return whether a phrase of that length that starts at a place ends in the same text.  # (M,)

    Args:
        owners: of which text the term at each place is, as ``TermLists.owners`` has it.  # (M,)

    >>> reaches(np.array([0, 0, 1]), 2).tolist()
    [True, False, False]
    """
    inside = np.zeros(len(owners), np.bool_)
    count = len(owners) - length + 1
    if count > 0:
        inside[:count] = owners[:count] == owners[length - 1 :]
    return inside


@dataclass(frozen=True, slots=True, eq=False)
class PhraseBook:
    """P phrases of up to ``longest`` terms as numbers, by length and then by their terms; with each its beginnings.

    Every phrase is the phrase without its last term, and that term::

        key(t_1 … t_l) = (number(t_1 … t_{l-1}) + 1) · V + t_l,        number(nothing) = -1

    The number of a phrase is the place of its key in one sorted array, so that finding the phrases at all places of
    many texts is a few binary searches over arrays, and the whole book is stored as that array.

    Args:
        keys: one for each phrase, ascending.  # (P,) int64
        size: V, ids of the vocabulary with 0; what the vocabulary lacks is in no phrase.
        longest: L ≥ 1, terms of the longest phrase.
    """

    keys: Ids
    size: int
    longest: int

    def __len__(self) -> int:
        """Return P."""
        return len(self.keys)

    @classmethod
    def of(cls, texts: TermLists, wanted: Ids, size: int, longest: int) -> PhraseBook:
        """Number the phrases that start at the places of texts.

        Args:
            wanted: how long the longest phrase is that is wanted at each place, 0 for none.  # (M,)

        Example:
            Up to two terms from the first place of 5 7 9: the phrases 5 and 5 7, with V = 10.

            >>> PhraseBook.of(TermLists.of([[5, 7, 9]]), np.array([2, 0, 0]), 10, 2).keys.tolist()
            [5, 17]
        """
        book = cls(np.zeros(0, np.int64), size, longest)
        owners = texts.owners()
        before = np.full(len(owners), -1, np.int64)
        for length in range(1, longest + 1):
            starts = np.flatnonzero((wanted >= length) & book._can_start(texts.ids, owners, before, length))
            new = np.unique(book._keys(texts.ids, before, starts, length))
            book = cls(np.concatenate([book.keys, new]), size, longest)
            before = book._longer(texts.ids, owners, before, length)
        return book

    def numbers(self, texts: TermLists) -> Ids:
        """Return the number of the phrase of each length that starts at each place, -1 where the book lacks it.

        Returns:
            One row for each length from 1 to L.  # (L, M)

        >>> book = PhraseBook(np.array([5, 17]), 10, 2)  # 5 and 5 7
        >>> book.numbers(TermLists.of([[5, 7], [7, 5], [5]])).tolist()
        [[0, -1, -1, 0, 0], [1, -1, -1, -1, -1]]
        """
        owners = texts.owners()
        found = np.full((self.longest, len(owners)), -1, np.int64)
        before = found[0]  # of length 0: -1 everywhere
        for length in range(1, self.longest + 1):
            before = found[length - 1] = self._longer(texts.ids, owners, before, length)
        return found

    def occurrences(self, texts: TermLists, wanted: Ids) -> TermLists:
        """Return where some phrases start in texts: of each text the places of its phrases in ``wanted``.

        Only beginnings of these phrases are looked for, so that it takes a fraction of the time of ``numbers``.

        Args:
            wanted: numbers of phrases, ascending.  # (W,)

        Returns:
            N lists of places in [0, W), shorter phrases first.

        >>> book = PhraseBook(np.array([5, 7, 17]), 10, 2)  # 5, 7 and 5 7
        >>> found = book.occurrences(TermLists.of([[5, 7], [7, 5, 7]]), np.array([1, 2]))  # 7 and 5 7
        >>> found.ids.tolist(), found.starts.tolist()
        ([0, 1, 0, 0, 1], [0, 2, 5])
        """
        needed = self._with_beginnings(wanted)
        keys, place_of = self.keys[needed], np.full(len(needed), -1, np.int64)
        place_of[np.searchsorted(needed, wanted)] = np.arange(len(wanted))
        owners = texts.owners()
        singles = np.full(self.size, -1, np.int64)
        count = int(np.searchsorted(keys, self.size))
        singles[keys[:count]] = np.arange(count)
        found = singles.take(np.where(texts.ids < self.size, texts.ids, 0), mode="clip")  # no phrase begins with 0
        starts = np.flatnonzero(found >= 0)
        reached = found[starts]
        pieces = [(place_of[reached], owners[starts])]
        goes_on = np.zeros(len(needed), np.bool_)
        goes_on[np.searchsorted(needed, keys[count:] // self.size - 1)] = True
        for length in range(2, self.longest + 1):
            inside = goes_on[reached] & (starts + length <= len(owners))
            starts, reached = starts[inside], reached[inside]
            following = texts.ids[starts + length - 1]
            is_one = (owners[starts] == owners[starts + length - 1]) & (following > 0) & (following < self.size)
            starts, asked = starts[is_one], (needed[reached[is_one]] + 1) * self.size + following[is_one]
            near = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)  # keys are there: something goes on
            is_known = keys[near] == asked
            starts, reached = starts[is_known], near[is_known]
            pieces.append((place_of[reached], owners[starts]))
        places, of = (np.concatenate(part) for part in zip(*pieces, strict=True))
        is_wanted = places >= 0
        places, of = places[is_wanted], of[is_wanted]
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.bincount(of, minlength=len(texts)), out=bounds[1:])
        return TermLists(places[np.argsort(of, kind="stable")], bounds)

    def _with_beginnings(self, numbers: Ids) -> Ids:
        """Return phrases and what they begin with, ascending."""
        needed = [numbers]
        while len(needed[-1]):
            before = self.keys[needed[-1]] // self.size - 1
            needed.append(np.unique(before[before >= 0]))
        return np.unique(np.concatenate(needed))

    def restrict(self, wanted: Flags) -> tuple[PhraseBook, Ids]:
        """Return the book of some phrases with their beginnings, and the number that each of them has here.

        >>> book = PhraseBook(np.array([4, 5, 27]), 10, 2)  # 4, 5 and 5 7
        >>> smaller, old = book.restrict(np.array([False, False, True]))
        >>> smaller.keys.tolist(), old.tolist()  # 5 and 5 7
        ([5, 17], [1, 2])
        """
        parents = self.keys // self.size - 1  # (P,)
        kept = wanted.copy()
        for _ in range(self.longest - 1):
            kept[parents[kept & (parents >= 0)]] = True
        numbers = np.concatenate([np.cumsum(kept) - 1, [-1]])  # the last is that of nothing
        keys = (numbers[parents[kept]] + 1) * self.size + self.keys[kept] % self.size
        return PhraseBook(keys, self.size, self.longest), np.flatnonzero(kept)

    def terms(self, number: int) -> list[int]:
        """Return the terms of a phrase.

        >>> PhraseBook(np.array([5, 17]), 10, 2).terms(1)
        [5, 7]
        """
        found: list[int] = []
        while number >= 0:
            before, last = divmod(int(self.keys[number]), self.size)
            found.append(last)
            number = before - 1
        return found[::-1]

    def _can_start(self, ids: Ids, owners: Ids, before: Ids, length: int) -> Flags:
        """Return where a phrase of a length can start: the one before it is known, and so is its last term."""
        inside = reaches(owners, length)
        if length > 1:
            inside &= before >= 0
        count = max(0, len(ids) - length + 1)
        inside[:count] &= (ids[length - 1 :] > 0) & (ids[length - 1 :] < self.size)
        return inside

    def _keys(self, ids: Ids, before: Ids, starts: Ids, length: int) -> Ids:
        return np.asarray((before[starts] + 1) * self.size + ids[starts + length - 1])

    def _longer(self, ids: Ids, owners: Ids, before: Ids, length: int) -> Ids:
        """Return the phrases of a length at all places, given those that are one term shorter.  # (M,)"""
        found = np.full(len(ids), -1, np.int64)
        if len(self.keys):
            starts = np.flatnonzero(self._can_start(ids, owners, before, length))
            keys = self._keys(ids, before, starts, length)
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            found[starts] = np.where(self.keys[places] == keys, places, -1)
        return found


_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PhraseTable:
    """P(w|t), the probability that the phrase t becomes the phrase w; a row w holds every t that can.

    Args:
        book: the numbers of the phrases of both sides.
        starts: where each row begins, and K.  # (P + 1,) int64
        sources: the t of each row, ascending.  # (K,) int64
        values: P(w|t) > 0.  # (K,) float32
    """

    book: PhraseBook
    starts: Ids
    sources: Ids
    values: NDArray[np.float32]

    def __len__(self) -> int:
        """Return K, how many probabilities are held."""
        return len(self.values)

    @classmethod
    def none(cls, size: int = 1) -> PhraseTable:
        """Return a table of no phrase of V terms."""
        book = PhraseBook(np.zeros(0, np.int64), size, 1)
        return cls(book, np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))

    @classmethod
    def of(cls, book: PhraseBook, rows: Ids, columns: Ids, values: NDArray[np.float64]) -> PhraseTable:
        """Return entries in any order: the phrases w and t by their numbers, and P(w|t).  # (K,) each"""
        order = np.lexsort((columns, rows))
        starts = np.zeros(len(book) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(book)), out=starts[1:])
        return cls(book, starts, columns[order], np.asarray(values[order], np.float32))

    def probability(self, source: list[int], target: list[int]) -> float:
        """Return P(w|t) of two phrases, 0 where the table lacks them."""
        found = []
        for phrase in (source, target):
            if not 0 < len(phrase) <= self.book.longest:
                return 0.0
            found.append(int(self.book.numbers(TermLists.of([phrase]))[len(phrase) - 1, 0]))
        before, after = found
        if before < 0 or after < 0:
            return 0.0
        row = slice(int(self.starts[after]), int(self.starts[after + 1]))
        return float(self.values[row][self.sources[row] == before].sum())

    def shares(self, query: Ids, texts: TermLists) -> Floats:
        """Return ``Σ_t P(w|t) · #(t, D) / |D|`` of the phrase w of each length at each place of a query.  # (L, T, N)

        Args:
            query: its terms in order.  # (T,)
            texts: N texts D; 0 for one without terms.

        Example:
            P(1 2|3) = 0.5 and a text of the words 3, 4: at the first place, of two terms, 0.5 · 1 / 2.

            >>> book = PhraseBook(np.array([1, 3, 1 * 5 + 2]), 5, 2)  # 1, 3 and 1 2
            >>> table = PhraseTable(book, np.array([0, 0, 0, 1]), np.array([1]), np.array([0.5], np.float32))
            >>> table.shares(np.array([1, 2]), TermLists.of([[3, 4]])).tolist()
            [[[0.0], [0.0]], [[0.25], [0.0]]]
        """
        asked = self.book.numbers(TermLists.of([query]))  # (L, T)
        found = np.zeros((*asked.shape, len(texts)))
        numbers = np.unique(asked[asked >= 0])
        held = [self.row(number) for number in numbers.tolist()]
        sources, places = np.unique(np.concatenate([_NONE, *(row for row, _ in held)]), return_inverse=True)
        if len(sources):
            parts = np.split(places, np.cumsum([len(row) for row, _ in held[:-1]]))
            rows = list(zip(parts, (values for _, values in held), strict=True))
            sums = row_sums(rows, self.book.occurrences(texts, sources), len(sources))  # (R, N)
            is_asked = asked >= 0
            found[is_asked] = sums[np.searchsorted(numbers, asked[is_asked])]
            found /= np.maximum(texts.lengths(), 1)
        return found

    def row(self, number: int) -> tuple[Ids, NDArray[np.float32]]:
        """Return every t that can become the phrase of that number, and P(w|t).  # (R,) each"""
        places = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return self.sources[places], self.values[places]


Segmentation = Literal["best", "sum"]


def best_or_sum(probabilities: list[Floats], segmentation: Segmentation) -> Floats:
    """Return log α_|q| over all ways to cut a query into phrases.  # (N,)

    Args:
        probabilities: log P of the phrases of 1, 2, … L terms, one array each: row j is that of the phrase that starts
            at term j; a length l of a query of T terms has T - l + 1 rows, or none.  # (T - l + 1, N)

    Example:
        Two terms with 0.5 and 0.4, together with 0.3: the best is 0.3 in one piece, the sum is 0.5 · 0.4 + 0.3.

        >>> made = [np.log([[0.5], [0.4]]), np.log([[0.3]])]
        >>> [round(float(np.exp(best_or_sum(made, name)[0])), 4) for name in ("best", "sum")]
        [0.3, 0.5]
    """
    joined = np.maximum if segmentation == "best" else np.logaddexp
    ways = [np.zeros(probabilities[0].shape[1])]  # log α_0, log α_1, …
    for end in range(1, len(probabilities[0]) + 1):
        found = ways[end - 1] + probabilities[0][end - 1]
        for length in range(2, min(end, len(probabilities)) + 1):
            found = joined(found, ways[end - length] + probabilities[length - 1][end - length])
        ways.append(found)
    return ways[-1]


@dataclass(frozen=True, slots=True)
class PhraseModel(QueryModel):
    """The phrases of candidates; answers are not read.

    Args:
        collection: gives P(w|C).
        table: P(w|t).
        smoothing: s_D.
        kept: σ in [0, 1], the share of words that stay as they are.
        segmentation: ``best`` or ``sum``.

    Raises:
        SettingError: a value that is not listed or out of range.

    Example:
        The query 1 2, a candidate of the one word 3, and P(1 2|3) = 0.5; neither 1 nor 2 comes from 3 alone, and a
        collection of 10 words has each of them once. λ = 0.2 and σ = 0.5: together 0.8 · 0.5 · 0.5 = 0.2, one by one
        0.2 · 0.1 each.

        >>> book = PhraseBook(np.array([1, 3, 1 * 4 + 2]), 4, 2)  # 1, 3 and 1 2
        >>> table = PhraseTable(book, np.array([0, 0, 0, 1]), np.array([1]), np.array([0.5]))
        >>> counted, smoothing = Collection(np.array([0, 1, 1, 8])), Smoothing("jelinek-mercer", 0.2)
        >>> for name in ("best", "sum"):
        ...     model = PhraseModel(counted, table, smoothing, 0.5, name)
        ...     np.exp(model.log_likelihoods(np.array([1, 2]), TermLists.of([[3]]))).round(4).tolist()
        [0.2]
        [0.2004]
    """

    collection: Collection
    table: PhraseTable
    smoothing: Smoothing = WORD_SMOOTHING
    kept: float = 0.5
    segmentation: Segmentation = "best"

    def __post_init__(self) -> None:
        if self.segmentation not in get_args(Segmentation):
            choices = ", ".join(get_args(Segmentation))
            raise SettingError(f"segmentation is {self.segmentation!r}, but expected one of: {choices}")
        if not (isfinite(self.kept) and 0 <= self.kept <= 1):
            raise SettingError(f"kept is {self.kept}, but expected 0 ≤ kept ≤ 1", "set kept")

    def log_likelihoods(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return log P(q|D) of each candidate; 0 for a query without terms. Nothing else is read.  # (N,)

        Args:
            query: its terms in order.  # (T,)
        """
        if not len(query):
            return np.zeros(len(candidates))
        shares_of = self.table.shares(query, candidates)  # (L, T, N)
        made = (1 - self.kept) * (1 - self.smoothing.shares(candidates.lengths()))  # (N,)
        with np.errstate(divide="ignore"):  # a phrase that nothing makes has P = 0
            longer = [
                np.log(made * shares_of[length - 1, : len(query) - length + 1])
                for length in range(2, min(self.table.book.longest, len(query)) + 1)
            ]
        words, places = np.unique(query, return_inverse=True)
        own = self.kept * shares(words, candidates)[places] + (1 - self.kept) * shares_of[0]
        background = self.collection.probabilities(words)[places]
        single = self.smoothing.mixed(own, background, candidates.lengths())
        return best_or_sum([np.log(single), *longer], self.segmentation)

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)
