"""The entries nearest to a query: the codes propose some hundreds, and the vectors themselves decide.

Small segments have no codes: all their rows are candidates, and so are all that a filter leaves where it leaves few. A
block of candidates is turned into float32 in the processor's cache and multiplied there. These products may differ in
their last bits with the place of a row in its block, so they only make a shortlist, wide enough that none of the best
candidates can be missing. The shortlist is scored in double precision, row by row in one fixed order, which makes equal
vectors equal and every answer independent of blocks and threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.index.vector_segments import VectorCommit, VectorPart

Neighbour = tuple[int, float]
"""An entry's number and its cosine."""

BLOCK = 512
"""Rows that fit the second cache as float32 (512 × 384 × 4 bytes = 0.8 MB)."""
QUERIES_AT_ONCE = 16
SCANNED_AT_ONCE = 128
"""Of queries near each other, which look into the same cells, codes are read for so many at once in a tenth less time
than for 16."""
UNCODED = 1_024
"""Segments up to this size have no codes: all their vectors are scored, in 0.15 ms."""
FEW = 4_096
"""Where a filter leaves no more, all that it leaves are scored."""
MOST_TAKEN = 0.1
"""Above this share of the codes, sorting what is taken costs more than scoring what a filter leaves."""
GROUP = 64
SPARE = 1.25
"""So much more than its share of the candidates is taken of a segment: of 600, less than one is missed by it."""


def directions(queries: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return each query (Q, D) at length 1; a query of zeros stays zeros.

    >>> directions(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    whole = queries.astype(np.float64)
    top = np.abs(whole).max(axis=1, keepdims=True)
    whole /= np.where(top > 0, top, 1)  # squares of very large and very small numbers stay finite
    norms = np.sqrt((whole * whole).sum(axis=1, keepdims=True))
    whole /= np.where(norms > 0, norms, 1)
    return whole


def is_large(part: VectorPart) -> bool:
    """Return whether a segment is one that has codes."""
    return part.open > UNCODED


def breadth(limit: int) -> int:
    """Return how many candidates the codes propose for so many hits.

    Of the ten nearest among 224,741 real vectors, 280 hold .998; of the hundred nearest, 1,000 hold .993.
    """
    return 200 + 8 * limit


def search(
    commit: VectorCommit,
    aims: NDArray[np.float64],
    limit: int,
    rows: NDArray[np.int64] | None,
    excluded: NDArray[np.int64],
) -> list[list[Neighbour]]:
    """Return near entries: as ``search_exactly``, but for what the codes did not propose.

    Raises:
        DamagedForumError: codes are not what was written.
    """
    coded = [part for part in commit.parts if part.codes is not None]
    if not coded or (rows is not None and len(rows) <= FEW):
        return search_exactly(commit, aims, limit, rows, excluded)
    openings = [_opening(part, rows, excluded) for part in commit.parts]
    neighbours: list[list[Neighbour]] = []
    none = np.zeros(0, np.int64)
    for start in range(0, len(aims), SCANNED_AT_ONCE):
        chunk = aims[start : start + SCANNED_AT_ONCE]
        proposed, beside = _proposed(openings, chunk, breadth(limit))
        also = shortlists(commit, chunk, limit, beside, none) if len(beside) > BLOCK else [beside] * len(chunk)
        for aim, near, more in zip(chunk, proposed, also, strict=True):
            neighbours.append(_decided(commit, np.sort(np.concatenate((near, more))), aim, limit))
    return neighbours


def _decided(commit: VectorCommit, rows: NDArray[np.int64], aim: NDArray[np.float64], limit: int) -> list[Neighbour]:
    """Return the nearest of some hundred rows that may be found, ascending."""
    if not aim.any():
        return []
    codes, factors = commit.codes(rows), commit.factors(rows)
    margin = (commit.dimensions + 4) * 2.0**-23
    chosen = shortlist((codes.astype(np.float32) @ aim.astype(np.float32)) * factors, limit, margin)
    return best(commit.nums(rows[chosen]), codes[chosen], aim, limit)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Which rows of a part may be found: a mask (size,), and how many these are."""

    part: VectorPart
    mask: NDArray[np.bool_]
    count: int


def _opening(part: VectorPart, rows: NDArray[np.int64] | None, excluded: NDArray[np.int64]) -> _Opening:
    if rows is None and not len(excluded):
        return _Opening(part, part.is_found, part.open)
    mask = part.is_found.copy() if rows is None else np.zeros(part.size, np.bool_)
    if rows is not None:
        low, high = np.searchsorted(rows, (part.start, part.start + part.size))
        mask[rows[low:high] - part.start] = True
        mask &= part.is_found
    here = excluded[(excluded >= part.start) & (excluded < part.start + part.size)]
    mask[here - part.start] = False
    return _Opening(part, mask, int(np.count_nonzero(mask)))


def _proposed(
    openings: Sequence[_Opening], aims: NDArray[np.float64], count: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return for each query the rows that seem nearest by their codes, and the rows to be scored for all, ascending."""
    exactly: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    seen: list[list[tuple[NDArray[np.float32], NDArray[np.int64]]]] = [[] for _ in aims]
    total = sum(opening.count for opening in openings)
    for opening in openings:
        share = math.ceil(SPARE * count * opening.count / total) + GROUP if total else 0
        is_few = opening.part.codes is None or opening.count <= UNCODED
        scanned = None if is_few else _scanned(opening, aims, min(count, share))
        if scanned is None:
            exactly.append(np.flatnonzero(opening.mask) + opening.part.start)
        else:
            for of_query, more in zip(seen, scanned, strict=True):
                of_query.append(more)
    proposed = []
    for of_query in seen:
        distances = np.concatenate([np.zeros(0, np.float32), *(distance for distance, _ in of_query)])
        rows = np.concatenate([np.zeros(0, np.int64), *(row for _, row in of_query)])
        proposed.append(rows if len(rows) <= count else rows[np.argsort(distances, kind="stable")[:count]])
    return proposed, np.concatenate(exactly)


def _scanned(
    opening: _Opening, aims: NDArray[np.float64], count: int
) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]] | None:
    """Return distances and rows of the nearest that may be found, by their codes, for each query.

    The codes know no filter: as many more are taken as it drops on average, then four times as many where that was not
    enough. None where what it leaves lies so far away that scoring all of it is faster.
    """
    part, size = opening.part, opening.part.size
    assert part.codes is not None
    wanted = min(count, opening.count)
    taken = min(wanted + size - opening.count, math.ceil(1.2 * wanted * size / opening.count) + 10)
    while taken <= MOST_TAKEN * size or taken == wanted:
        distances, positions = part.codes.near(aims, min(taken, size))
        is_open = opening.mask[positions] & (positions >= 0)
        if is_open.sum(axis=1).min() >= wanted:
            return [
                (distance[kept][:wanted], position[kept][:wanted] + part.start)
                for distance, position, kept in zip(distances, positions, is_open, strict=True)
            ]
        taken *= 4
    return None


def search_exactly(
    commit: VectorCommit,
    aims: NDArray[np.float64],
    limit: int,
    rows: NDArray[np.int64] | None,
    excluded: NDArray[np.int64],
) -> list[list[Neighbour]]:
    """Return the entries with the greatest cosine, for each query.

    Args:
        aims: (Q, D) directions.
        rows: (n,) ascending rows to look at, None for all.
        excluded: (m,) rows that are not found, besides those of zeros.
    """
    chosen = zip(aims, shortlists(commit, aims, limit, rows, excluded), strict=True)
    return [best(commit.nums(near), commit.codes(near), aim, limit) for aim, near in chosen]


def shortlists(
    commit: VectorCommit,
    aims: NDArray[np.float64],
    limit: int,
    rows: NDArray[np.int64] | None,
    excluded: NDArray[np.int64],
) -> list[NDArray[np.int64]]:
    """Return for each query rows that hold its ``limit`` best ones; arguments as in ``search_exactly``."""
    if len(aims) > QUERIES_AT_ONCE:
        parts = (aims[start : start + QUERIES_AT_ONCE] for start in range(0, len(aims), QUERIES_AT_ONCE))
        return [rows_of_query for part in parts for rows_of_query in shortlists(commit, part, limit, rows, excluded)]
    scores = _products(commit, aims, rows)  # (n, Q) float32
    if rows is None:
        scores[excluded] = -np.inf
    elif len(excluded):
        scores[np.isin(rows, excluded)] = -np.inf
    margin = (commit.dimensions + 4) * 2.0**-23
    by_query = np.ascontiguousarray(scores.T)
    chosen = [shortlist(by_query[number], limit, margin) for number in range(len(aims))]
    for number, aim in enumerate(aims):
        if not aim.any():
            chosen[number] = chosen[number][:0]  # a query of zeros has no direction: nothing is like it
    return chosen if rows is None else [rows[near] for near in chosen]


def _products(commit: VectorCommit, aims: NDArray[np.float64], rows: NDArray[np.int64] | None) -> NDArray[np.float32]:
    """Return the cosines (n, Q), each within ``(D + 4) · 2⁻²⁴`` of the true one; -inf for what is not found."""
    count = commit.size if rows is None else len(rows)
    scores = np.empty((count, len(aims)), np.float32)
    turned = np.ascontiguousarray(aims.T, np.float32)  # (D, Q)
    buffer = np.empty((min(BLOCK, count), commit.dimensions), np.float32)
    for where, part, taken in commit.blocks(BLOCK, rows):
        block, cosines = buffer[: where.stop - where.start], scores[where]
        np.copyto(block, part.segment.rows.codes[taken])
        if len(aims) == 1:  # a matrix times a vector has a kernel of its own
            np.dot(block, turned[:, 0], out=cosines[:, 0])
        else:
            np.dot(block, turned, out=cosines)
        cosines *= part.segment.factors[taken, None]
        cosines[~part.is_found[taken]] = -np.inf
    return scores


def shortlist(scores: NDArray[np.float32], limit: int, margin: float) -> NDArray[np.int64]:
    """Return the positions of the ``limit`` greatest scores and of all within ``margin`` of the least of them.

    The greatest of every 64 scores are sorted first: ``limit`` of them are ``limit`` different rows, so the least of
    these is not above the score that is sought. ``-inf`` is never chosen.

    >>> shortlist(np.array([0.5, 0.9, -np.inf, 0.9, 0.1], np.float32), 1, 0.0).tolist()
    [1, 3]
    """
    count = len(scores)
    if count > limit:
        pool = scores
        if count >= 4 * GROUP * limit:
            whole = count - count % GROUP
            pool = np.append(scores[:whole].reshape(-1, GROUP).max(axis=1), scores[whole:])
        least = np.partition(pool, len(pool) - limit)[len(pool) - limit]
        is_near = scores >= least - np.float32(margin)
        is_near &= scores > -np.inf
        return np.flatnonzero(is_near)
    return np.flatnonzero(scores > -np.inf)


def best(nums: NDArray[np.int64], stored: NDArray[np.int16], aim: NDArray[np.float64], limit: int) -> list[Neighbour]:
    """Return the ``limit`` numbers whose codes (n, D) have the greatest cosine to ``aim`` (D,), then by number.

    ``cos = aim · codes / ‖codes‖`` in double precision.
    """
    cosines = np.empty(len(nums))
    for start in range(0, len(nums), BLOCK):
        part = slice(start, start + BLOCK)
        codes = stored[part].astype(np.float64)
        # sums of products row by row: a matrix product may round equal rows differently
        norms = np.sqrt(np.einsum("nd,nd->n", codes, codes))
        cosines[part] = np.einsum("nd,d->n", codes, aim) / norms
    np.clip(cosines, -1.0, 1.0, out=cosines)
    order = np.lexsort((nums, -cosines))[:limit]
    return list(zip(nums[order].tolist(), cosines[order].tolist(), strict=True))
