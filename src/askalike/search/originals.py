"""What stands for a question that is marked a duplicate: its original, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from askalike.search.engine import DuplicateLinks
from askalike.types import Question

Originals = Callable[[str], Sequence[str]]
"""A question's id → the ids of what it is marked a duplicate of, in the order of their ids."""


def original_of(identifier: str, originals: Originals, seniority: Callable[[str], tuple[float, str]]) -> str:
    """Return the question that stands for another: the nearest that is no duplicate itself, of equals the first by id.

    Where marks lead into a circle, every question of it is a duplicate of every other: the most senior one stands
    for all of them, from whichever the way began.

    Args:
        seniority: of an id; the least is the most senior.

    >>> marks = {"c": ["b"], "b": ["a"], "x": ["y"], "y": ["x"]}
    >>> [original_of(one, lambda one: marks.get(one, []), lambda one: (0.0, one)) for one in "acxy"]
    ['a', 'a', 'x', 'x']
    """
    if not originals(identifier):
        return identifier
    found = reached(identifier, originals)
    for one in found:
        if not originals(one):
            return one
    circle = [one for one in found if one in reached(one, originals)]
    return min(circle, key=seniority)


def reached(identifier: str, originals: Originals) -> list[str]:
    """Return all that is reached over marks, nearest first; a question itself only where it is part of a circle.

    >>> reached("c", lambda one: {"c": ["b"], "b": ["a"]}.get(one, []))
    ['b', 'a']
    """
    seen: dict[str, None] = {}
    layer = [identifier]
    while layer:
        following = sorted({target for one in layer for target in originals(one)} - seen.keys())
        seen.update(dict.fromkeys(following))
        layer = following
    return list(seen)


def canonical(
    found: Sequence[Question], links: DuplicateLinks, is_admitted: Callable[[Question], bool], k: int
) -> list[tuple[int, Question]]:
    """Return the first ``k`` places of what was found, with the question that is shown there, each question once.

    An original has the place of its best duplicate unless it was found before itself, and has to satisfy the filters
    too.
    """

    def seniority(identifier: str) -> tuple[float, str]:
        question = links.questions.get(identifier)
        is_dated = question is not None and question.created is not None
        return (question.created.timestamp() if is_dated else inf, identifier)  # type: ignore[union-attr]

    shown: dict[str, tuple[int, Question]] = {}
    for place, question in enumerate(found):
        identifier = original_of(question.id, lambda name: links.targets.get(name, ()), seniority)
        original = question if identifier == question.id else links.questions.get(identifier)  # it may be gone by now
        if original is not None and original.id not in shown and is_admitted(original):
            shown[original.id] = (place, original)
            if len(shown) == k:
                break
    return list(shown.values())
