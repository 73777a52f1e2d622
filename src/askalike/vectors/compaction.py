"""Which segments a commit writes anew, so that they stay few and hold little that is dead.

A segment is taken up when more than a quarter of it is dead. Then, the smallest first, every segment less than twice as
large as what is being written: sizes fall by half from segment to segment, so there are about log₂ N, and each entry
is written about log₂ N times in all.
"""

from __future__ import annotations

from collections.abc import Sequence

SMALL = 512
"""Below this, writing anew costs no more than the file does."""


def segments_to_merge(sizes: Sequence[tuple[int, int]], arriving: int) -> list[int]:
    """Return the positions of the segments to write anew, ascending.

    Args:
        sizes: (rows alive, rows dead) of each segment.
        arriving: new rows of this commit.

    >>> segments_to_merge([(100_000, 0), (50_000, 0)], arriving=30_000)  # 50,000 < 2 · 30,000; 100,000 < 2 · 80,000
    [0, 1]
    >>> segments_to_merge([(100_000, 0), (300, 0)], arriving=1)
    [1]
    >>> segments_to_merge([(70, 30), (5_000, 0)], arriving=0)
    [0]
    """
    chosen = {position for position, (alive, dead) in enumerate(sizes) if 4 * dead > alive + dead}
    total = arriving + sum(sizes[position][0] for position in chosen)
    if total == 0:
        return sorted(chosen)
    rest = sorted((alive, position) for position, (alive, _) in enumerate(sizes) if position not in chosen)
    for alive, position in rest:
        if alive >= 2 * max(total, SMALL):
            break
        chosen.add(position)
        total += alive
    if arriving == 0 and len(chosen) == 1 and sizes[next(iter(chosen))][1] == 0:
        return []
    return sorted(chosen)
