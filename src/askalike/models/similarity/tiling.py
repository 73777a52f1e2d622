"""Greedy string tiling: how much of two texts can be covered with runs that both have, in whatever order.

Enters: lists of word numbers of one query and N candidates. Leaves: similarities in [0, 1]. May import: errors.

Source: Wise 1993, "String similarity via greedy string tiling and running Karp-Rabin matching"; the similarity is that
of Prechelt, Malpohl and Philippsen 2002, "Finding plagiarisms among a set of programs with JPlag", section 3.3.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError

__all__ = ["MINIMUM_MATCH", "Tile", "greedy_string_tiling", "tiles"]

MINIMUM_MATCH = 3
"""The shortest run that is a tile, in words."""

Tile = tuple[int, int, int]
"""(length, first place in a, first place in b)"""

_Grams = dict[tuple[Hashable, ...], list[int]]


def greedy_string_tiling(
    query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]], minimum_match: int = MINIMUM_MATCH
) -> NDArray[np.float64]:
    """Return ``2 · covered / (|a| + |b|)``, covered = the sum of the tiles' lengths.  # (N,)

    Two texts that are equal but shorter than ``minimum_match`` have no tile, so 0. Which of several runs of the same
    length is taken decides what is left, so that the other way round may give another similarity.

    >>> greedy_string_tiling("abcxdef", ["defabc"]).round(4).tolist()  # def and abc: 2 · 6 / 13
    [0.9231]
    >>> [greedy_string_tiling(*pair).round(4).tolist() for pair in (("abbaabb", ["bbababb"]), ("bbababb", ["abbaabb"]))]
    [[0.4286], [0.8571]]

    Raises:
        SettingError: ``minimum_match`` is below 1.
    """
    grams = _positions(query, minimum_match)
    found = np.zeros(len(candidates))
    for place, candidate in enumerate(candidates):
        covered = sum(length for length, _, _ in _tile(query, candidate, grams, minimum_match))
        if covered:
            found[place] = 2.0 * covered / (len(query) + len(candidate))
    return found


def tiles(a: Sequence[Hashable], b: Sequence[Hashable], minimum_match: int = MINIMUM_MATCH) -> list[Tile]:
    """Return the tiles, longest first; of equal ones the first in ``a``, then the first in ``b``.

    Again and again the longest run of uncovered words that both texts have is covered in both.

    >>> tiles("abcxdef", "defabc")
    [(3, 0, 3), (3, 4, 0)]

    Raises:
        SettingError: ``minimum_match`` is below 1.
    """
    return list(_tile(a, b, _positions(a, minimum_match), minimum_match))


def _positions(sequence: Sequence[Hashable], size: int) -> _Grams:
    if size < 1:
        raise SettingError(f"the shortest tile is {size}", "expected at least 1")
    found: _Grams = {}
    for start in range(len(sequence) - size + 1):
        found.setdefault(tuple(sequence[start : start + size]), []).append(start)
    return found


def _tile(a: Sequence[Hashable], b: Sequence[Hashable], grams: _Grams, shortest: int) -> Iterator[Tile]:
    """Yield tiles greedily: a run is cut where others have covered it since, and what is left of it waits again."""
    waiting = [(-length, i, j) for length, i, j in _runs(a, b, grams, shortest)]
    heapq.heapify(waiting)
    covered_a, covered_b = bytearray(len(a)), bytearray(len(b))
    while waiting:
        negative, i, j = heapq.heappop(waiting)
        length = -negative
        if any(covered_a[i : i + length]) or any(covered_b[j : j + length]):
            for left, offset in _uncovered(covered_a[i : i + length], covered_b[j : j + length]):
                if left >= shortest:
                    heapq.heappush(waiting, (-left, i + offset, j + offset))
            continue
        covered_a[i : i + length] = covered_b[j : j + length] = b"\1" * length
        yield length, i, j


def _runs(a: Sequence[Hashable], b: Sequence[Hashable], grams: _Grams, shortest: int) -> Iterator[Tile]:
    """Yield every run of at least ``shortest`` that can be made no longer."""
    ends: dict[int, int] = {}  # diagonal j - i → where in b its last run ended
    for j in range(len(b) - shortest + 1):
        for i in grams.get(tuple(b[j : j + shortest]), ()):
            if ends.get(j - i, -1) > j:
                continue
            length = shortest
            while i + length < len(a) and j + length < len(b) and a[i + length] == b[j + length]:
                length += 1
            ends[j - i] = j + length
            yield length, i, j


def _uncovered(covered_a: bytearray, covered_b: bytearray) -> Iterator[tuple[int, int]]:
    """Yield (length, offset) of the stretches that neither text has covered."""
    start = 0
    for place, (in_a, in_b) in enumerate(zip(covered_a, covered_b, strict=True)):
        if in_a or in_b:
            if place > start:
                yield place - start, start
            start = place + 1
    if len(covered_a) > start:
        yield len(covered_a) - start, start
