"""Groups in which every question may ask the same as every other: complete linkage, with what people said of pairs.

::

    p(A, B) = min over a ∈ A, b ∈ B of p(a, b)          of two groups: the probability of their least likely pair

The two groups with the greatest ``p(A, B)`` are joined, again and again, while it is at least the minimum. A pair that
nobody compared has none, so that no group grows by a chain of neighbours. What a person judged a duplicate begins as
one group, so do questions with the same text; what a person judged different is never joined. Where people contradict
each other (a = b, b = c, a ≠ c), what is different stays so, and of the rest the first counts.

A duplicate link says that the original's answers help, and forums link much to few originals: it makes its own pair
likelier (``with_link``), and says nothing of two questions that have one original.

Source: Sørensen, "A method of establishing groups of equal amplitude in plant sociology", 1948 (complete linkage);
Wagstaff and Cardie, "Clustering with instance-level constraints", ICML 2000 (must-link and cannot-link).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from askalike.store.pairs import Pair

Ends = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of pairs of questions, by their numbers.

    Args:
        pairs: probabilities; of several for one pair the greatest counts. A pair that people linked as merely related
            has 0.
        same: must-links: judged duplicates; the first count most.
        different: cannot-links.
        texts: questions with the same text.
        linked: duplicate links; ``pairs`` have what these make of the probabilities.
    """

    pairs: list[Pair] = field(default_factory=list)
    same: list[Ends] = field(default_factory=list)
    different: list[Ends] = field(default_factory=list)
    texts: list[list[int]] = field(default_factory=list)
    linked: list[Ends] = field(default_factory=list)


OF_LINK: Final = 2.6
"""What a duplicate link adds to the logit of its pair: the lower end of the 95 % interval on 77 linked pairs of
travel.stackexchange.com that were read. From a probability of .25 on all 52 were the same, below it 18 of 25."""


def with_link(probability: float) -> float:
    """Return the probability of a pair that somebody linked as a duplicate.

    >>> [round(with_link(score), 2) for score in (0.05, 0.23, 0.8)]
    [0.41, 0.8, 0.98]
    """
    odds = math.exp(OF_LINK) * probability
    return odds / (odds + 1 - probability)


@dataclass(frozen=True, slots=True)
class Node:
    """A group, and the two that it was joined from.

    Args:
        nums: ascending.
        height: the probability of the least likely pair of it that nothing but its probability joins; 1 where none is.
        weakest: that pair, the lesser number first.
        parts: what it was joined from; () where that was at once.
    """

    nums: tuple[int, ...]
    height: float = 1.0
    weakest: Ends | None = None
    parts: tuple[Node, ...] = ()

    def cut(self, minimum: float) -> Iterator[Node]:
        """Yield the groups of two and more questions of which no pair is below a minimum."""
        if self.height >= minimum:
            if len(self.nums) > 1:
                yield self
            return
        for part in self.parts:
            yield from part.cut(minimum)


MOST_REFUSED: Final = 20
"""So many others of the same text are looked at for one from which a question was not judged different."""


class _Units:
    """Questions that are joined before any probability is looked at."""

    def __init__(self, different: Iterable[Ends]) -> None:
        self._of: dict[int, list[int]] = {}
        self._enemies: dict[int, set[int]] = {}  # of the questions of a unit, by the first of its list
        for first, other in different:
            for num, enemy in ((first, other), (other, first)):
                self._of.setdefault(num, [num])
                self._enemies.setdefault(num, set()).add(enemy)

    def of(self, num: int) -> list[int]:
        """Return the questions of a unit, one list for all of them."""
        return self._of.setdefault(num, [num])

    def are_apart(self, num: int, other: int) -> bool:
        """Return whether a question of one unit was judged different from one of the other."""
        first, second = self.of(num), self.of(other)
        few, many = sorted((first, second), key=lambda unit: len(self._enemies.get(unit[0], ())))
        return not self._enemies.get(few[0], set()).isdisjoint(many)

    def unite(self, left: int, other: int) -> None:
        """Join the units of two questions, unless they are apart."""
        first, second = sorted((self.of(left), self.of(other)), key=len, reverse=True)
        if first is second or self.are_apart(left, other):
            return
        enemies = self._enemies.pop(second[0], None)
        if enemies:
            self._enemies.setdefault(first[0], set()).update(enemies)
        first.extend(second)
        for num in second:
            self._of[num] = first

    def all(self) -> list[list[int]]:
        """Return all units, by their least number, ascending within."""
        units = {id(unit): unit for unit in self._of.values()}
        return sorted(sorted(unit) for unit in units.values())


class Linkage:
    """Complete linkage over what is known.

    >>> a, b, c, d = 1, 2, 3, 4
    >>> chain = Evidence([Pair(a, b, 0.9), Pair(b, c, 0.8), Pair(a, c, 0.3), Pair(c, d, 0.7)])
    >>> [(node.nums, node.height) for node in Linkage(chain, 0.5).nodes]  # b and c do not join: a and c are not alike
    [((1, 2), 0.9), ((3, 4), 0.7)]
    """

    def __init__(self, evidence: Evidence, minimum: float) -> None:
        self._units = _Units(evidence.different)
        for left, other in evidence.same:
            self._units.unite(left, other)
        for text in evidence.texts:
            for place, other in enumerate(text[1:], start=1):
                fitting = (num for num in text[: min(place, MOST_REFUSED)] if not self._units.are_apart(num, other))
                self._units.unite(next(fitting, other), other)
        for pair in evidence.pairs:
            self._units.of(pair.first), self._units.of(pair.second)
        self._leaves = [Node(tuple(unit)) for unit in self._units.all()]
        self._at = {num: place for place, leaf in enumerate(self._leaves) for num in leaf.nums}
        first = {num: text[0] for text in evidence.texts for num in text}
        speakers: dict[Ends, int] = {}
        self.speaker = {num: speakers.setdefault((place, first.get(num, num)), num) for num, place in self._at.items()}
        """Question → the first with its text in its unit, by whose pairs both are known."""
        self._known = self._scores(evidence.pairs)
        self.nodes = [node for node in self._linked(minimum) if len(node.nums) > 1]
        """The groups of two and more questions, by their least number."""

    def _speakers(self, nums: Iterable[int]) -> set[int]:
        return {self.speaker[num] for num in nums}

    def _scores(self, pairs: Iterable[Pair]) -> dict[Ends, dict[Ends, float]]:
        """Return for each two units the greatest score of each pair of their texts."""
        scores_of: dict[Ends, dict[Ends, float]] = {}
        for pair in pairs:
            units = self._at[pair.first], self._at[pair.second]
            if units[0] == units[1]:
                continue
            scores = scores_of.setdefault((min(units), max(units)), {})
            ends = _ordered(self.speaker[pair.first], self.speaker[pair.second])
            scores[ends] = max(scores.get(ends, 0.0), pair.score)
        return scores_of

    def _linked(self, minimum: float) -> list[Node]:
        nodes = dict(enumerate(self._leaves))
        near: dict[int, dict[int, tuple[float, Ends]]] = {place: {} for place in nodes}
        heap: list[tuple[float, int, int, int, int]] = []

        def offer(left: int, other: int, weakest: tuple[float, Ends]) -> None:
            near[left][other] = near[other][left] = weakest
            low, high = sorted((left, other), key=lambda place: nodes[place].nums[0])
            heapq.heappush(heap, (-weakest[0], nodes[low].nums[0], nodes[high].nums[0], low, high))

        for (left, other), scores in self._known.items():
            whole = len(self._speakers(nodes[left].nums)) * len(self._speakers(nodes[other].nums))
            weakest = min((score, ends) for ends, score in scores.items())
            is_apart = self._units.are_apart(nodes[left].nums[0], nodes[other].nums[0])
            if len(scores) == whole and weakest[0] >= minimum and not is_apart:
                offer(left, other, weakest)
        while heap:
            least, _, _, left, other = heapq.heappop(heap)
            if left not in nodes or other not in nodes:
                continue
            place = len(near)
            parts = (nodes.pop(left), nodes.pop(other))
            nums = tuple(sorted((*parts[0].nums, *parts[1].nums)))
            nodes[place] = Node(nums, -least, near[left][other][1], parts)
            first, second = sorted((near[left], near[other]), key=len)
            near[place] = {}
            near[left], near[other] = {}, {}
            for third, weakest in first.items():
                if third in second and third in nodes:
                    offer(place, third, min(weakest, second[third]))
            for third in (*first, *second):
                near[third].pop(left, None), near[third].pop(other, None)
        return sorted(nodes.values(), key=lambda node: node.nums)


LARGEST_FILLED: Final = 200
"""So many pairs of two groups are compared, so that they may be joined, at most."""


def lacking(evidence: Evidence, minimum: float) -> list[Ends]:
    """Return pairs of texts that nobody compared, and that are linked or alone keep two groups from being joined.

    Args:
        evidence: with the pairs below the minimum too.

    >>> lacking(Evidence([Pair(1, 2, 0.9), Pair(2, 3, 0.8)]), 0.5)
    [(1, 3)]
    """
    linked = Linkage(evidence, minimum)
    nums = {node.nums[0]: node.nums for node in linked.nodes}
    group = {num: node.nums[0] for node in linked.nodes for num in node.nums}
    compared: dict[Ends, set[Ends]] = {}
    lost = {_ordered(group.get(first, first), group.get(other, other)) for first, other in evidence.different}
    for pair in evidence.pairs:
        groups = _ordered(group.get(pair.first, pair.first), group.get(pair.second, pair.second))
        if groups[0] != groups[1]:
            compared.setdefault(groups, set()).add(_ordered(linked.speaker[pair.first], linked.speaker[pair.second]))
            if pair.score < minimum:
                lost.add(groups)
    known_ends = {ends for known in compared.values() for ends in known}
    missing = [
        ends
        for first, other in evidence.linked
        if _ordered(group.get(first, first), group.get(other, other)) not in lost
        and group.get(first, first) != group.get(other, other)
        and (ends := _ordered(linked.speaker.get(first, first), linked.speaker.get(other, other))) not in known_ends
    ]
    for (first, other), known in compared.items():
        sides = [{linked.speaker[num] for num in nums.get(end, (end,))} for end in (first, other)]
        if (first, other) not in lost and len(sides[0]) * len(sides[1]) <= LARGEST_FILLED:
            missing.extend(sorted({_ordered(*ends) for ends in product(*sides)} - known))
    return missing


def _ordered(first: int, other: int) -> Ends:
    return (first, other) if first < other else (other, first)
