"""Translation of phrases: a query is made phrase by phrase from the phrases of a candidate.

**Ranking.** ::

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

**Learning.** Words are aligned in both directions, then consistent phrases counted.

::

    forward    for each w_j of the target, the u_i with the largest t(w_j|u_i) > 0
    backward   for each u_i of the source, the w_j with the largest t(u_i|w_j) > 0

    intersection      the links of both
    grow-diag         from the intersection, again and again: a neighbour of a link, also across a corner, is added
                      where one direction has it and one of its two words has no link yet
    grow-diag-final   and then every link of one direction, one of whose two words has no link yet
    union             the links of either

    (t, w) is consistent with the links of a pair     a link joins the two, and no link joins one of them with a word
                                                      outside of the other
    P(w|t) = N(t, w) / N(t),    N(t) = Σ_w N(t, w)

N(t, w) counts the places of the pairs at which the phrases t and w are consistent; a phrase is of 1 to L terms. All
places of all pairs are looked at in one pass over arrays: for each length l of a phrase of the source the least and the
largest place that its words are linked with, from those for l - 1, and the same of the target. It is linear in the
number of terms, and quadratic only in L.

Source: Zhou, Cai, Zhao and Liu 2011 (ACL), section 3.2 and equation 17: pairs (q, a) and (a, q) together, words linked
in both directions, links joined by heuristics, consistent phrases counted; Brown et al. 1993, the most probable
alignment under model 1; Och and Ney 2003 (Computational Linguistics 29:1), and Koehn, Och and Marcu 2003 (NAACL), for
the heuristics; Och and Ney 2004 (Computational Linguistics 30:4), section 3.1, for consistency.
Reading: the heuristics are from memory. A word whose t(w|u) are all 0, or too small to have been kept, has no
link; NULL links nothing else. Of equally probable words the first is linked. Growing goes in rounds; in each, links are
looked at in the order of their positions. The last step takes the forward links before the backward. Words without
links may stand at the edges of a phrase, as in the two papers of translation. With ``is_pooled`` a pair counts in both
directions, as Zhou et al. pool (q, a) and (a, q); phrases of both sides are then of one language.
Differs: pairs of phrases that were seen fewer than ``least`` times are left out after N(t) has been counted: one that
was seen once has P(w|t) = 1 with a t that was. The paper has no such limit in the parts that could be read.
NLTK (release 3.10.4) was weighed. Its ``grow_diag_final_and`` gave the union of both directions for every one of 300
random pairs, since what it looks up is never in the dictionary that it asks. Of 2,648 pairs of up to three terms that
its extraction found in 1,997 questions and answers, 144 are not consistent, since it cuts a span of the target that is
too long in place of leaving it out; the other 2,504 are those found here. It takes 15 times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.language.likelihood import Collection, Parallel, QueryModel, Smoothing, TermLists, row_sums, shares
from askalike.models.language.translation import WORD_SMOOTHING, Translations
from askalike.settings import check_settings

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
        check_settings(self)

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


if TYPE_CHECKING:  # of the extra train; no search needs it
    from scipy.sparse import csr_array


Heuristic = Literal["intersection", "grow-diag", "grow-diag-final", "union"]
Link = tuple[int, int]
"""Place in the source, place in the target."""

_NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
_MOST_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class WordLinks:
    """Which words of pairs of texts belong together; places count through all texts of a side.

    Args:
        from_place: place in the ids of the sources of each link.  # (K,)
        to_place: place in the ids of the targets of each link.  # (K,)
    """

    pairs: Parallel
    from_place: Ids
    to_place: Ids


def best_links(probabilities: NDArray[np.float64]) -> list[Link]:
    """Return for each column the row of its largest number, in order of columns; none where all are 0.

    Args:
        probabilities: t(w_j|u_i) of one pair.  # (I, J)

    >>> best_links(np.array([[0.2, 0.9, 0.0], [0.3, 0.1, 0.0]]))
    [(1, 0), (0, 1)]
    """
    if not probabilities.size:
        return []
    best, is_linked = probabilities.argmax(axis=0).tolist(), (probabilities.max(axis=0) > 0).tolist()
    return [(row, column) for column, row in enumerate(best) if is_linked[column]]


def symmetrise(forward: Sequence[Link], backward: Sequence[Link], heuristic: Heuristic) -> list[Link]:
    """Return the links of a pair by one of the heuristics, ordered by their places.

    Example:
        Both directions have (0, 0). Its neighbour (0, 1) is grown; (2, 3) touches nothing and comes in at the end.

        >>> forward, backward = [(0, 0), (0, 1), (2, 3)], [(0, 0)]
        >>> symmetrise(forward, backward, "intersection")
        [(0, 0)]
        >>> symmetrise(forward, backward, "grow-diag")
        [(0, 0), (0, 1)]
        >>> symmetrise(forward, backward, "grow-diag-final")
        [(0, 0), (0, 1), (2, 3)]
    """
    either = {*forward, *backward}
    if heuristic == "union":
        return sorted(either)
    links = set(forward).intersection(backward)
    if heuristic == "intersection":
        return sorted(links)
    rows, columns = {row for row, _ in links}, {column for _, column in links}

    def added(candidates: Iterable[Link]) -> list[Link]:
        new = []
        for row, column in candidates:
            if row not in rows or column not in columns:
                rows.add(row)
                columns.add(column)
                new.append((row, column))
        return new

    fresh = sorted(links)
    while fresh:  # a link that was looked at has no more to give: words without links only get fewer
        around = ((row + down, column + right) for row, column in fresh for down, right in _NEIGHBOURS)
        fresh = sorted(added(link for link in around if link in either))
        links.update(fresh)
    if heuristic == "grow-diag-final":
        links.update(added(forward))
        links.update(added(backward))
    return sorted(links)


def align(
    pairs: Parallel, forward: Translations, backward: Translations, heuristic: Heuristic = "grow-diag-final"
) -> WordLinks:
    """Return the links of pairs of texts.

    Args:
        forward: t(w|u), u of the sources and w of the targets.
        backward: t(u|w); where both were learned from pairs in both directions, the same.

    Example:
        >>> there = Translations.of(np.array([3, 4]), np.array([1, 2]), np.array([1.0, 0.5]), 5)  # 1 → 3 and 2 → 4
        >>> back = Translations.of(np.array([1, 2]), np.array([3, 4]), np.array([1.0, 0.5]), 5)
        >>> made = align(Parallel.of([([1], [3]), ([1, 2], [4, 3])]), there, back)
        >>> list(zip(made.from_place.tolist(), made.to_place.tolist()))
        [(0, 0), (1, 2), (2, 1)]
    """
    sources, targets = pairs.sources, pairs.targets
    there, back = forward.matrix(), backward.matrix()
    found: list[Link] = []
    heights, widths = sources.lengths(), targets.lengths()
    for first, last in _batches(heights * widths):
        rows, columns, ends = _cells(sources, targets, first, last)
        source_ids, target_ids = sources.ids[rows], targets.ids[columns]
        ahead = np.split(_values(there, target_ids, source_ids), ends)
        behind = np.split(_values(back, source_ids, target_ids), ends)
        for pair, to_target, to_source in zip(range(first, last), ahead, behind, strict=True):
            shape = int(heights[pair]), int(widths[pair])
            one_way = best_links(to_target.reshape(shape))
            other_way = [(row, column) for column, row in best_links(to_source.reshape(shape).T)]
            down, right = int(sources.starts[pair]), int(targets.starts[pair])
            found.extend((down + row, right + column) for row, column in symmetrise(one_way, other_way, heuristic))
    links = np.array(found, np.int64).reshape(-1, 2)
    return WordLinks(pairs, links[:, 0], links[:, 1])


def _batches(cells: Ids) -> Iterator[tuple[int, int]]:
    """Yield first and last + 1 of so many pairs as have about ``_MOST_CELLS`` cells together."""
    first, total = 0, 0
    for pair, count in enumerate(cells.tolist(), 1):
        total += count
        if total >= _MOST_CELLS or pair == len(cells):
            yield first, pair
            first, total = pair, 0


def _cells(sources: TermLists, targets: TermLists, first: int, last: int) -> tuple[Ids, Ids, Ids]:
    """Return both places of every cell of some pairs, row by row, and where each pair but the last ends."""
    places = slice(int(sources.starts[first]), int(sources.starts[last]))
    heights, widths = sources.lengths()[first:last], targets.lengths()[first:last]
    width = np.repeat(widths, heights)  # of the pair of each row
    rows = np.repeat(np.arange(places.start, places.stop), width)
    starts = np.cumsum(width) - width  # of each row, in cells
    within = np.arange(len(rows)) - np.repeat(starts, width)
    columns = np.repeat(np.repeat(targets.starts[first:last], heights), width) + within
    return rows, columns, np.cumsum(heights * widths)[:-1]


def _values(matrix: csr_array, rows: Ids, columns: Ids) -> NDArray[np.float64]:
    """Return the numbers at some places, 0 for terms that the vocabulary lacks.  # (C,)"""
    values = np.zeros(len(rows))
    is_known = (rows > 0) & (columns > 0)
    if is_known.any():
        values[is_known] = np.asarray(matrix[rows[is_known], columns[is_known]]).ravel()
    return values


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Pairs of spans of texts; places count through all texts of a side.

    Args:
        source, source_length: first place in the sources, number of terms.  # (K,)
        target, target_length: first place in the targets, number of terms.  # (K,)
    """

    source: Ids
    source_length: Ids
    target: Ids
    target_length: Ids


def consistent_spans(links: WordLinks, longest: int) -> Spans:
    """Return every pair of phrases, of 1 to ``longest`` terms each, that is consistent with the links.

    Example:
        The words a b and x y with the links a-x and b-y: a-x, b-y and ab-xy.

        >>> places = np.array([0, 1])
        >>> found = consistent_spans(WordLinks(Parallel.of([([1, 2], [3, 4])]), places, places), 2)
        >>> list(zip(found.source.tolist(), found.source_length.tolist(), found.target.tolist()))
        [(0, 1, 0), (1, 1, 1), (0, 2, 0)]
    """
    source_owners, target_owners = links.pairs.sources.owners(), links.pairs.targets.owners()
    first, last = _linked(links.from_place, links.to_place, len(source_owners), longest)  # (L, M) each
    least, most = _linked(links.to_place, links.from_place, len(target_owners), longest)
    left, right = _free(least[0] > most[0], target_owners, longest)
    pieces: list[tuple[Ids, Ids, Ids, Ids]] = []
    for length in range(1, longest + 1):
        low, high = first[length - 1], last[length - 1]
        starts = np.flatnonzero(reaches(source_owners, length) & (low <= high) & (high - low < longest))
        low, high = low[starts], high[starts]
        width = high - low  # of the target's span, less one
        is_consistent = (least[width, low] >= starts) & (most[width, low] < starts + length)
        starts, low, high, width = (part[is_consistent] for part in (starts, low, high, width))
        for before in range(longest):
            for after in range(longest - before):
                fits = (left[low] >= before) & (right[high] >= after) & (width + before + after < longest)
                chosen = starts[fits]
                spread = width[fits] + 1 + before + after
                pieces.append((chosen, np.full(len(chosen), length), low[fits] - before, spread))
    source, source_length, target, target_length = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return Spans(source, source_length, target, target_length)


def count_phrases(
    links: WordLinks, size: int, *, longest: int = 3, least: int = 2, is_pooled: bool = True
) -> PhraseTable:
    """Count the phrases of aligned pairs.

    Args:
        size: V, ids of the vocabulary with 0.
        longest: L ≥ 1, terms of the longest phrase.
        least: how often a pair of phrases must have been seen, ≥ 1.
        is_pooled: whether each pair counts in both directions.

    Raises:
        SettingError: ``longest`` or ``least`` is below 1.

    Example:
        Of 1 linked with 2 three times and with 3 once: P(2|1) = 3/4, and seen once is left out.

        >>> pairs = Parallel.of([([1], [2]), ([1], [2]), ([1], [2]), ([1], [3])])
        >>> table = count_phrases(WordLinks(pairs, np.arange(4), np.arange(4)), 4, is_pooled=False)
        >>> len(table), table.probability([1], [2]), table.probability([1], [3])
        (1, 0.75, 0.0)
    """
    if longest < 1 or least < 1:
        raise SettingError(f"longest is {longest} and least {least}", "expected numbers of at least 1")
    spans = consistent_spans(links, longest)
    book, source, target = _numbered(links, spans, size, longest)
    known = (source >= 0) & (target >= 0)  # a word that the vocabulary lacks is in no phrase
    counts = _counts(source[known], target[known], len(book), is_pooled=is_pooled)  # rows w, columns t
    totals = np.asarray(counts.sum(axis=0)).ravel()  # N(t)
    entries = counts.tocoo()
    kept = entries.data >= least
    rows, columns = entries.row[kept].astype(np.int64), entries.col[kept].astype(np.int64)
    wanted = np.zeros(len(book), np.bool_)
    wanted[rows] = wanted[columns] = True
    smaller, old = book.restrict(wanted)
    numbers = np.zeros(len(book), np.int64)
    numbers[old] = np.arange(len(old))
    return PhraseTable.of(smaller, numbers[rows], numbers[columns], entries.data[kept] / totals[columns])


def _linked(places: Ids, linked: Ids, count: int, longest: int) -> tuple[Ids, Ids]:
    """Return the least and the largest place that a phrase of each length at each place is linked with.  # (L, M)

    Where nothing is linked, the least is above the largest.
    """
    far = np.iinfo(np.int64).max // 2
    least, most = np.full((longest, count), far), np.full((longest, count), -1)
    np.minimum.at(least[0], places, linked)
    np.maximum.at(most[0], places, linked)
    for length in range(1, min(longest, count)):
        least[length, :-length] = np.minimum(least[length - 1, :-length], least[0, length:])
        most[length, :-length] = np.maximum(most[length - 1, :-length], most[0, length:])
    return least, most


def _free(is_free: NDArray[np.bool_], owners: Ids, longest: int) -> tuple[Ids, Ids]:
    """Return how many words without links stand right before and right after each place, at most L - 1.  # (M,)"""
    left, right = np.zeros(len(owners), np.int64), np.zeros(len(owners), np.int64)
    for away in range(1, min(longest, len(owners))):
        same = owners[:-away] == owners[away:]
        left[away:] += same & is_free[:-away] & (left[away:] == away - 1)
        right[:-away] += same & is_free[away:] & (right[:-away] == away - 1)
    return left, right


def _numbered(links: WordLinks, spans: Spans, size: int, longest: int) -> tuple[PhraseBook, Ids, Ids]:
    """Return a book of the phrases of both sides, and the number of each span's, -1 where it has an unknown word."""
    sources, targets = links.pairs.sources, links.pairs.targets
    starts = np.concatenate([sources.starts, targets.starts[1:] + len(sources.ids)])
    both = TermLists(np.concatenate([sources.ids, targets.ids]), starts)
    shifted = spans.target + len(sources.ids)
    wanted = np.zeros(len(both.ids), np.int64)
    np.maximum.at(wanted, spans.source, spans.source_length)
    np.maximum.at(wanted, shifted, spans.target_length)
    book = PhraseBook.of(both, wanted, size, longest)
    numbers = book.numbers(both)
    return book, numbers[spans.source_length - 1, spans.source], numbers[spans.target_length - 1, shifted]


def _counts(sources: Ids, targets: Ids, count: int, *, is_pooled: bool) -> csr_array:
    """Return N(t, w), rows w and columns t.  # (P, P)"""
    from scipy.sparse import coo_array, csr_array

    made = csr_array(coo_array((np.ones(len(sources)), (targets, sources)), shape=(count, count)))
    return csr_array(made + made.T) if is_pooled else made


MOST_TERMS: Final = 10
"""Of the longest phrase that can be asked for."""


@dataclass(frozen=True, slots=True)
class PhraseLearning:
    """How phrases are learned.

    Args:
        heuristic: how the links of both directions are joined: ``intersection``, ``grow-diag``, ``grow-diag-final`` or
            ``union``.
        longest: L, terms of the longest phrase, from 1 to ``MOST_TERMS``.
        least: how often a pair of phrases must have been seen, ≥ 1.
    """

    heuristic: Heuristic = "grow-diag-final"
    longest: int = 3
    least: int = 2

    def __post_init__(self) -> None:
        check_settings(self)

    def learned(self, pairs: Parallel, translations: Translations, size: int) -> PhraseTable:
        """Return the phrases of pairs, each counted in both directions; the same from the same.

        Args:
            pairs: questions with their answers, each once.
            translations: t(w|u), learned from these pairs in both directions.
            size: V, ids of the vocabulary with 0.
        """
        links = align(pairs, translations, translations, self.heuristic)
        return count_phrases(links, size, longest=self.longest, least=self.least)
