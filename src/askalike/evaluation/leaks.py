"""Duplicates that lie in two parts of a split.

Enters: links as pairs of ids; the parts. Leaves: the leaks, or an error that names them. May import: askalike.errors
and the components of the split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from askalike.errors import EvaluationError
from askalike.evaluation.named import named
from askalike.evaluation.split import components

__all__ = ["Leak", "check_leaks", "find_leaks"]


@dataclass(frozen=True, slots=True)
class Leak:
    """One connected component that lies in more than one part.

    Args:
        parts: name of the part → ids of the component in it, sorted; at least two parts, none empty.
    """

    parts: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return "; ".join(f"{name}: {named(ids)}" for name, ids in self.parts.items())


def find_leaks(links: Iterable[tuple[str, str]], parts: Mapping[str, Iterable[str]]) -> list[Leak]:
    """Return each component of linked ids that lies in more than one part; none means that the split is sound.

    Two ids that are linked only through others, even through ids that are in no part, are of one component. An id
    that is itself in two parts is a leak too.

    Example:
        >>> [str(leak) for leak in find_leaks([("a", "m"), ("m", "b")], {"train": ["a", "x"], "test": ["b"]})]
        ['train: a; test: b']
    """
    held = {name: set(ids) for name, ids in parts.items()}
    where: dict[str, list[str]] = {}
    for name, ids in held.items():
        for member in ids:
            where.setdefault(member, []).append(name)
    leaks = []
    for group in components(links, where):
        touched = {name for member in group for name in where.get(member, ())}
        if len(touched) > 1:
            inside = {name: tuple(member for member in group if member in held[name]) for name in held}
            leaks.append(Leak({name: inside[name] for name in held if name in touched}))
    return leaks


def check_leaks(links: Iterable[tuple[str, str]], parts: Mapping[str, Iterable[str]]) -> None:
    """Do nothing when no component lies in two parts.

    Raises:
        EvaluationError: some do; the message names the ids of the first few, part by part.
    """
    leaks = find_leaks(links, parts)
    if leaks:
        shown = " | ".join(str(leak) for leak in leaks[:3])
        more = f" | and {len(leaks) - 3} more" if len(leaks) > 3 else ""
        raise EvaluationError(
            f"{len(leaks)} groups of duplicates lie in more than one part: {shown}{more}",
            "split by connected component, as split_components does",
        )
