"""Questions that hang together by pairs and by marks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from askalike.forum.pair_store import Pair


@dataclass(frozen=True, slots=True)
class Cluster:
    """Questions each of which leads to every other over pairs and marks.

    Args:
        id: the least number among them; it stays while that question stays.
        nums: ascending.
        pairs: how many pairs are open between them.
        best: the greatest score of these.
    """

    id: int
    nums: tuple[int, ...]
    pairs: int
    best: float


def clusters(pairs: Iterable[Pair], marks: Iterable[tuple[int, int]]) -> list[Cluster]:
    """Return the clusters that have an open pair, largest first, of equals the one with the least number.

    >>> found = clusters([Pair(1, 2, 0.9), Pair(8, 9, 0.5)], [(2, 5), (3, 4)])
    >>> [(one.nums, one.pairs, one.best) for one in found]
    [((1, 2, 5), 1, 0.9), ((8, 9), 1, 0.5)]
    """
    listed = list(pairs)
    leader: dict[int, int] = {}
    for one, other in [*((pair.first, pair.second) for pair in listed), *marks]:
        first, second = sorted((_lead(leader, one), _lead(leader, other)))
        leader[second] = first
    members: dict[int, list[int]] = {}
    for num in leader:
        members.setdefault(_lead(leader, num), []).append(num)
    counts: dict[int, tuple[int, float]] = {}
    for pair in listed:
        lead = _lead(leader, pair.first)
        count, best = counts.get(lead, (0, 0.0))
        counts[lead] = (count + 1, max(best, pair.score))
    found = [Cluster(lead, tuple(sorted(members[lead])), count, best) for lead, (count, best) in counts.items()]
    return sorted(found, key=lambda one: (-len(one.nums), one.id))


def _lead(leader: dict[int, int], num: int) -> int:
    """Return the least number that is known to hang together with this one; ways are shortened as they are walked."""
    leader.setdefault(num, num)
    while leader[num] != num:
        leader[num] = leader[leader[num]]
        num = leader[num]
    return num
