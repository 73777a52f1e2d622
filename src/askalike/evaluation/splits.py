"""Splits of a set of questions that keep duplicates of each other together.

A question in training and its duplicate in test would let a model win by remembering, so whole connected components
of the links go to one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import isclose

from askalike.errors import SettingError


def components(links: Iterable[tuple[str, str]], ids: Iterable[str] = ()) -> list[tuple[str, ...]]:
    """Return the connected components of the links, whichever way each link points.

    Args:
        links: pairs of ids; a link of an id to itself, or given twice, changes nothing.
        ids: more ids; one that is in no link is a component on its own.

    Returns:
        Each component sorted, and the components sorted by their first id: the same for any order of the input.

    Example:
        >>> components([("b", "a"), ("c", "b"), ("x", "y")], ids=["z"])
        [('a', 'b', 'c'), ('x', 'y'), ('z',)]
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for source, target in links:
        first, second = sorted((root(source), root(target)))
        parent[second] = first
    for name in ids:
        root(name)
    members: dict[str, list[str]] = {}
    for name in sorted(parent):
        members.setdefault(root(name), []).append(name)
    return sorted(tuple(group) for group in members.values())


def split_components(
    links: Iterable[tuple[str, str]],
    fractions: Mapping[str, float],
    seed: int,
    ids: Iterable[str] = (),
    kept: Mapping[str, str] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Split all ids into named parts, no component in two of them.

    Components are taken in an order drawn by the seed; each goes to the part that lacks most ids of its share, the
    first by name where several lack the same. The order is that of ``sha256(seed:first id)``, so that a split can be
    made again on any machine and with any version of any library. Parts come out within one component's size of their
    shares; a component larger than a share cannot fit it.

    Args:
        links, ids: as in `components`.
        fractions: name of the part → share of the ids, each > 0, together 1.
        seed: any whole number.
        kept: id → name of its part. A component with ids that have parts goes whole to the first of these, in the order
            of the fractions: name that which is learned from first. Ids without links are let be.

    Returns:
        Name of the part → its ids, sorted; every id in exactly one part; a part may be empty when there are few
        components.

    Raises:
        SettingError: no part, a share ≤ 0, or shares that do not add up to 1.

    Example:
        >>> parts = split_components([("a", "b"), ("c", "d")], {"train": 0.5, "test": 0.5}, seed=1)
        >>> sorted(parts.values())
        [('a', 'b'), ('c', 'd')]
        >>> split_components([("a", "b"), ("b", "c")], {"train": 0.5, "test": 0.5}, 0, kept={"a": "test", "c": "train"})
        {'train': ('a', 'b', 'c'), 'test': ()}
    """
    _check_fractions(fractions)
    groups = sorted(
        components(links, ids), key=lambda group: (sha256(f"{seed}:{group[0]}".encode()).digest(), group[0])
    )
    total = sum(len(group) for group in groups)
    lacking = {name: fractions[name] * total for name in sorted(fractions)}
    parts: dict[str, list[str]] = {name: [] for name in fractions}

    def add(group: tuple[str, ...], name: str) -> None:
        parts[name].extend(group)
        lacking[name] -= len(group)

    free = []
    for group in groups:
        splits = {kept[member] for member in group if member in kept} if kept else set()
        earlier = next((name for name in fractions if name in splits), None)
        if earlier is None:
            free.append(group)
        else:
            add(group, earlier)
    for group in free:
        add(group, max(lacking, key=lambda part: lacking[part]))
    return {name: tuple(sorted(members)) for name, members in parts.items()}


def _check_fractions(fractions: Mapping[str, float]) -> None:
    shares = ", ".join(f"{name} {share}" for name, share in fractions.items()) or "no part"
    if not fractions or not all(share > 0 for share in fractions.values()):
        raise SettingError(f"a split into {shares}; expected parts with shares over 0", "name at least one part")
    if not isclose(sum(fractions.values()), 1.0, abs_tol=1e-9):
        raise SettingError(
            f"a split into {shares}, together {sum(fractions.values()):g}; expected shares that add up to 1"
        )
