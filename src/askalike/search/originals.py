"""What stands for a question that is marked a duplicate: its original, once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf, prod

import numpy as np

from askalike.search.engine import DuplicateLinks
from askalike.types import Filters, Question

Originals = Callable[[str], Sequence[str]]
"""A question's id → the ids of what it is marked a duplicate of, in the order of their ids."""


def originals_of(targets: Mapping[str, Sequence[str]], seniority: Callable[[str], tuple[float, str]]) -> dict[str, str]:
    """Return what stands for each duplicate: the nearest that is no duplicate itself, of equals the first by id.

    Where marks lead into a circle, every question of it is a duplicate of every other: the most senior one stands
    for all of them, from whichever the way began. Each mark is looked at once or twice, however long the ways are.

    Args:
        targets: id → the ids of what it is marked a duplicate of.
        seniority: of an id; the least is the most senior.

    >>> marks = {"c": ["b"], "b": ["a"], "x": ["y"], "y": ["x"]}
    >>> sorted(originals_of(marks, lambda key: (0.0, key)).items())
    [('a', 'a'), ('b', 'a'), ('c', 'a'), ('x', 'x'), ('y', 'x')]
    """
    sources: dict[str, list[str]] = {}
    for source, marked in targets.items():
        for target in marked:
            sources.setdefault(target, []).append(source)
    originals: dict[str, str] = {}

    def lead_back(layer: dict[str, str]) -> None:
        """Give originals to all that leads to them, the nearest first."""
        while layer:
            originals.update(layer)
            before: dict[str, str] = {}
            for name, original in layer.items():
                for source in sources.get(name, ()):
                    if source not in originals:
                        before[source] = min(before.get(source, original), original)
            layer = before

    lead_back({name: name for name in sources if not targets.get(name)})
    left = {name: marked for name, marked in targets.items() if marked and name not in originals}
    for name in sorted(_in_circles(left), key=seniority):
        if name not in originals:
            lead_back({name: name})
    return originals


def _in_circles(targets: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the questions that lead to themselves, where each leads to others of these alone."""
    if not targets:
        return []
    from scipy.sparse import coo_array  # here: hardly any forum has a circle
    from scipy.sparse.csgraph import connected_components

    places = {name: place for place, name in enumerate(targets)}
    ends = np.array([(places[source], places[name]) for source, marked in targets.items() for name in marked]).T
    graph = coo_array((np.ones(ends.shape[1], np.int8), (ends[0], ends[1])), shape=(len(places), len(places)))
    parts = connected_components(graph, connection="strong")[1]
    sizes = np.bincount(parts)
    return [name for name, part in zip(places, parts, strict=True) if sizes[part] > 1 or name in targets[name]]


def reached(identifiers: Iterable[str], originals: Originals) -> list[str]:
    """Return all that is reached over marks, nearest first; one of these questions only where a way leads to it.

    >>> reached(["c"], lambda key: {"c": ["b"], "b": ["a"]}.get(key, []))
    ['b', 'a']
    """
    seen: dict[str, None] = {}
    layer = list(identifiers)
    while layer:
        following = sorted({target for name in layer for target in originals(name)} - seen.keys())
        seen.update(dict.fromkeys(following))
        layer = following
    return list(seen)


def combined(probabilities: Sequence[float], damping: float) -> float:
    """Return the probability that one of several duplicates asks the same, the likeliest first: a damped noisy-or. ::

        1 - (1 - p_1) · Π_{i > 1} (1 - d · p_i)

    Duplicates of one question resemble each other, so that each tells less than if it stood alone.

    Source: Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988, section 4.3 (noisy-or).

    >>> round(combined([0.6, 0.4, 0.2], 0.5), 3), combined([0.6], 0.5)
    (0.712, 0.6)
    """
    best, *others = probabilities
    return 1 - (1 - best) * prod(1 - damping * other for other in others)


def by_original(
    questions: Sequence[Question], links: DuplicateLinks, filters: Filters, answered: Collection[str]
) -> list[tuple[Question, list[int]]]:
    """Return each question that is shown, with the places where it or a duplicate of it was found, best first.

    An original has to satisfy the filters too.

    Args:
        answered: ids of the questions with an answer, where filters ask for that.
    """

    def seniority(identifier: str) -> tuple[float, str]:
        question = links.questions.get(identifier)
        is_dated = question is not None and question.created is not None
        return (question.created.timestamp() if is_dated else inf, identifier)  # type: ignore[union-attr]

    originals = originals_of(links.targets, seniority)
    shown: dict[str, tuple[Question, list[int]]] = {}
    for place, question in enumerate(questions):
        identifier = originals.get(question.id, question.id)
        original = question if identifier == question.id else links.questions.get(identifier)  # it may be gone by now
        if original is None:
            continue
        if original.id in shown or filters.admits(original, is_answered=original.id in answered):
            shown.setdefault(original.id, (original, []))[1].append(place)
    return list(shown.values())
