"""Exact search: every entry's cosine, a block of rows at a time, then the best ones again in double precision.

A block of codes is turned into float32 in the processor's cache and multiplied there, so the matrix is read once, at
two bytes a number. These products may differ in their last bits with the place of a row in its block, so they only make
a shortlist, wide enough that no row of the true answer can be missing. The shortlist is scored in double precision, row
by row in one fixed order, which makes equal vectors equal and every answer independent of blocks and threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from askalike.index.vectors.snapshot import Snapshot

Neighbour = tuple[int, float]
"""An entry's number and its cosine."""

BLOCK = 512
"""Rows that fit the second cache as float32 (512 × 384 × 4 bytes = 0.8 MB)."""
QUERIES_AT_ONCE = 16
SCAN_SHARE = 0.3
"""Above this share of the rows, reading all in a row is faster than gathering those that are allowed."""
GROUP = 64


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


def search_exactly(
    snapshot: Snapshot,
    aims: NDArray[np.float64],
    limit: int,
    rows: NDArray[np.int64] | None,
    excluded: NDArray[np.int64],
) -> list[list[Neighbour]]:
    """Return the entries with the greatest cosine, for each query.

    Args:
        aims: (Q, D) directions.
        rows: (n,) ascending rows to look at, None for all.
        excluded: (m,) rows that are not found, besides the hidden ones.
    """
    found: list[list[Neighbour]] = []
    for start in range(0, len(aims), QUERIES_AT_ONCE):
        chunk = aims[start : start + QUERIES_AT_ONCE]
        for aim, near in zip(chunk, shortlists(snapshot, chunk, limit, rows, excluded), strict=True):
            found.append(best(snapshot, near, aim, limit))
    return found


def shortlists(
    snapshot: Snapshot,
    aims: NDArray[np.float64],
    limit: int,
    rows: NDArray[np.int64] | None,
    excluded: NDArray[np.int64],
) -> list[NDArray[np.int64]]:
    """Return for each query rows that hold its ``limit`` best ones; arguments as in ``search_exactly``."""
    if rows is not None and len(rows) > SCAN_SHARE * snapshot.size:
        others = np.ones(snapshot.size, np.bool_)
        others[rows] = False
        rows, excluded = None, np.concatenate((np.flatnonzero(others), excluded))
    scores = _products(snapshot, aims, rows)  # (n, Q) float32
    if rows is None:
        scores[snapshot.hidden] = -np.inf
        scores[excluded] = -np.inf
    else:
        scores[~snapshot.is_found[rows] | np.isin(rows, excluded)] = -np.inf
    margin = (snapshot.dimensions + 4) * 2.0**-23
    by_query = np.ascontiguousarray(scores.T)
    chosen = [shortlist(by_query[number], limit, margin) for number in range(len(aims))]
    for number, aim in enumerate(aims):
        if not aim.any():
            chosen[number] = chosen[number][:0]  # a query of zeros has no direction: nothing is like it
    return chosen if rows is None else [rows[near] for near in chosen]


def _products(snapshot: Snapshot, aims: NDArray[np.float64], rows: NDArray[np.int64] | None) -> NDArray[np.float32]:
    """Return the cosines (n, Q), each within ``(D + 4) · 2⁻²⁴`` of the true one."""
    count = snapshot.size if rows is None else len(rows)
    scores = np.empty((count, len(aims)), np.float32)
    turned = np.ascontiguousarray(aims.T, np.float32)  # (D, Q)
    buffer = np.empty((BLOCK, snapshot.dimensions), np.float32)
    for where, codes in snapshot.blocks(BLOCK, rows):
        block = buffer[: len(codes)]
        np.copyto(block, codes)
        if len(aims) == 1:  # a matrix times a vector has a kernel of its own
            np.dot(block, turned[:, 0], out=scores[where, 0])
        else:
            np.dot(block, turned, out=scores[where])
    factors = snapshot.factors if rows is None else snapshot.factors[rows]
    scores *= factors[:, None]
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


def best(snapshot: Snapshot, rows: NDArray[np.int64], aim: NDArray[np.float64], limit: int) -> list[Neighbour]:
    """Return the ``limit`` rows with the greatest cosine to ``aim`` (D,), by score descending, then number.

    ``cos = aim · codes / ‖codes‖`` in double precision.
    """
    cosines = np.empty(len(rows))
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        codes = snapshot.codes(rows[part]).astype(np.float64)
        # sums of products row by row: a matrix product may round equal rows differently
        cosines[part] = (codes * aim).sum(axis=1) / np.sqrt((codes * codes).sum(axis=1))
    nums = snapshot.nums[rows]
    order = np.lexsort((nums, -cosines))[:limit]
    return [(int(nums[at]), min(1.0, max(-1.0, float(cosines[at])))) for at in order]
