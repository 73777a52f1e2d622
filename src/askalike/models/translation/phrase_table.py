"""The phrase translation table: which phrase becomes which, and how often, counted over aligned pairs.

::

    (t, w) is consistent with the links of a pair     a link joins the two, and no link joins one of them with a word
                                                      outside of the other
    P(w|t) = N(t, w) / N(t),    N(t) = Σ_w N(t, w)

N(t, w) counts the places of the pairs at which the phrases t and w are consistent; a phrase is of 1 to L terms.

All places of all pairs are looked at in one pass over arrays: for each length l of a phrase of the source the least and
the largest place that its words are linked with, from those for l - 1, and the same of the target. It is linear in the
number of terms, and quadratic only in L.

Enters: ``WordLinks``. Leaves: ``PhraseTable``. May import: errors, its neighbours in language.

Source: Och and Ney 2004 (Computational Linguistics 30:4), section 3.1, and Koehn, Och and Marcu 2003 (NAACL), for
consistency; Zhou et al. 2011 (ACL), equation 17, for P(w|t).
Reading: words without links may stand at the edges of a phrase, as in the two papers of translation. With ``is_pooled``
a pair counts in both directions, as Zhou et al. pool (q, a) and (a, q); phrases of both sides are then of one language.
Differs: pairs of phrases that were seen fewer than ``least`` times are left out after N(t) has been counted: one that
was seen once has P(w|t) = 1 with a t that was. The paper has no such limit in the parts that could be read.
NLTK's extraction (release 3.10.4) was weighed: of 2,648 pairs of up to three terms from 1,997 questions and answers,
144 are not consistent, since it cuts a span of the target that is too long in place of leaving it out; the other 2,504
are those found here. It would be a new dependency, and takes 15 times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.lists import TermLists
from askalike.models.query_likelihood.row_sums import row_sums
from askalike.models.translation.phrase_book import PhraseBook, reaches
from askalike.models.translation.word_links import WordLinks

if TYPE_CHECKING:  # SciPy takes long to import, and no search needs it
    from scipy.sparse import csr_array

__all__ = ["PhraseTable", "Spans", "consistent_spans"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_NONE: Final = np.zeros(0, np.int64)


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

        >>> from askalike.models.query_likelihood.parallel import Parallel
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
    def learn(
        cls, links: WordLinks, size: int, *, longest: int = 3, least: int = 2, is_pooled: bool = True
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

            >>> from askalike.models.query_likelihood.parallel import Parallel
            >>> pairs = Parallel.of([([1], [2]), ([1], [2]), ([1], [2]), ([1], [3])])
            >>> table = PhraseTable.learn(WordLinks(pairs, np.arange(4), np.arange(4)), 4, is_pooled=False)
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
        return cls._of(smaller, numbers[rows], numbers[columns], entries.data[kept] / totals[columns])

    @classmethod
    def _of(cls, book: PhraseBook, rows: Ids, columns: Ids, values: NDArray[np.float64]) -> PhraseTable:
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
