"""What stands for a question that is marked a duplicate: its original, once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import inf, prod

from askalike.search.engine import DuplicateLinks
from askalike.types import Filters, Question

Originals = Callable[[str], Sequence[str]]
"""A question's id → the ids of what it is marked a duplicate of, in the order of their ids."""


def original_of(identifier: str, originals: Originals, seniority: Callable[[str], tuple[float, str]]) -> str:
    """Return the question that stands for another: the nearest that is no duplicate itself, of equals the first by id.

    Where marks lead into a circle, every question of it is a duplicate of every other: the most senior one stands
    for all of them, from whichever the way began.

    Args:
        seniority: of an id; the least is the most senior.

    >>> marks = {"c": ["b"], "b": ["a"], "x": ["y"], "y": ["x"]}
    >>> [original_of(name, lambda key: marks.get(key, []), lambda key: (0.0, key)) for name in "acxy"]
    ['a', 'a', 'x', 'x']
    """
    if not originals(identifier):
        return identifier
    nearest = reached(identifier, originals)
    for name in nearest:
        if not originals(name):
            return name
    circle = [name for name in nearest if name in reached(name, originals)]
    return min(circle, key=seniority)


def reached(identifier: str, originals: Originals) -> list[str]:
    """Return all that is reached over marks, nearest first; a question itself only where it is part of a circle.

    >>> reached("c", lambda key: {"c": ["b"], "b": ["a"]}.get(key, []))
    ['b', 'a']
    """
    seen: dict[str, None] = {}
    layer = [identifier]
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

    shown: dict[str, tuple[Question, list[int]]] = {}
    for place, question in enumerate(questions):
        identifier = original_of(question.id, lambda name: links.targets.get(name, ()), seniority)
        original = question if identifier == question.id else links.questions.get(identifier)  # it may be gone by now
        if original is None:
            continue
        if original.id in shown or filters.admits(original, is_answered=original.id in answered):
            shown.setdefault(original.id, (original, []))[1].append(place)
    return list(shown.values())
