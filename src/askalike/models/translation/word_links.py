"""Word alignments of pairs of texts, from a word translation model in each direction, joined into one.

::

    forward    for each w_j of the target, the u_i with the largest t(w_j|u_i) > 0
    backward   for each u_i of the source, the w_j with the largest t(u_i|w_j) > 0

    intersection      the links of both
    grow-diag         from the intersection, again and again: a neighbour of a link, also across a corner, is added
                      where one direction has it and one of its two words has no link yet
    grow-diag-final   and then every link of one direction, one of whose two words has no link yet
    union             the links of either

Enters: pairs of texts, t(w|u) and t(u|w). Leaves: ``WordLinks``. May import: its neighbours in language.

Source: Brown et al. 1993, the most probable alignment under model 1; Och and Ney 2003 (Computational Linguistics 29:1),
and Koehn, Och and Marcu 2003 (NAACL), for the heuristics. Zhou et al. 2011 (ACL) join both directions so.
Reading: the heuristics are told from memory. A word whose t(w|u) are all 0, or too small to have been kept, has no
link; NULL links nothing else. Of equally probable words the first is linked. Growing goes in rounds; in
each, links are looked at in the order of their positions. The last step takes the forward links before the backward.
NLTK was weighed: its ``grow_diag_final_and`` (release 3.10.4) gave the union of both directions for every one of 300
random pairs, since what it looks up is never in the dictionary that it asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists
from askalike.models.query_likelihood.parallel import Parallel
from askalike.models.translation.translations import Translations

if TYPE_CHECKING:  # SciPy takes long to import, and no search needs it
    from scipy.sparse import csr_array

__all__ = ["Heuristic", "WordLinks", "align", "best_links", "symmetrise"]

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
