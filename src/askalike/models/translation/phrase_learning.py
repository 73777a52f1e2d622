"""Learning phrases from pairs of texts: words aligned in both directions, then consistent phrases counted.

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
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.terms import Parallel, TermLists
from askalike.models.translation.ibm1 import Translations
from askalike.models.translation.phrases import PhraseBook, PhraseTable, reaches

if TYPE_CHECKING:  # of the extra train; no search needs it
    from scipy.sparse import csr_array


Ids = NDArray[np.int64]
Heuristic = Literal["intersection", "grow-diag", "grow-diag-final", "union"]
Link = tuple[int, int]
"""Place in the source, place in the target."""

_NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
_MOST_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class WordLinks:
    """Which words of pairs of texts belong together; places count through all texts of a side.

    Args:
        pairs: sources and targets.
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

    Raises:
        SettingError: a value that is not listed or out of range.
    """

    heuristic: Heuristic = "grow-diag-final"
    longest: int = 3
    least: int = 2

    def __post_init__(self) -> None:
        if self.heuristic not in get_args(Heuristic):
            choices = ", ".join(get_args(Heuristic))
            raise SettingError(f"heuristic is {self.heuristic!r}, but expected one of: {choices}", "set heuristic")
        if not (1 <= self.longest <= MOST_TERMS and self.least >= 1):
            raise SettingError(
                f"longest is {self.longest} and least {self.least}",
                f"expected 1 ≤ longest ≤ {MOST_TERMS} and least ≥ 1",
            )

    def learned(self, pairs: Parallel, translations: Translations, size: int) -> PhraseTable:
        """Return the phrases of pairs, each counted in both directions; the same from the same.

        Args:
            pairs: questions with their answers, each once.
            translations: t(w|u), learned from these pairs in both directions.
            size: V, ids of the vocabulary with 0.
        """
        links = align(pairs, translations, translations, self.heuristic)
        return count_phrases(links, size, longest=self.longest, least=self.least)
