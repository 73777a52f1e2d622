"""Splits that keep what was split before, so that what was learned on one part is not scored in another later.

Enters: links as pairs of ids, fractions, a seed, and the parts that ids have. Leaves: ids of each part. May import: its
own folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from askalike.evaluation.split import components, split_components

__all__ = ["kept_split"]


def kept_split(
    links: Iterable[tuple[str, str]], fractions: Mapping[str, float], seed: int, kept: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Split as `split_components` does, but leave what has a part there.

    A component with ids that have parts goes whole to the first of these, in the order of the fractions: name that
    which is learned from first. The others are taken in the same order as there, and each goes to the part that lacks
    most ids of its share.

    Args:
        links, fractions, seed: as in `split_components`; with nothing kept, the result is the same.
        kept: id → name of its part; ids without links are let be.

    Returns:
        Name of the part → its ids, sorted; every linked id in exactly one part.

    Raises:
        SettingError: as `split_components`.

    Example:
        >>> kept_split([("a", "b"), ("b", "c")], {"train": 0.5, "test": 0.5}, 0, {"a": "test", "c": "train"})
        {'train': ('a', 'b', 'c'), 'test': ()}
    """
    pairs = list(links)
    if not kept:
        return split_components(pairs, fractions, seed)
    groups = components(pairs)
    total = sum(len(group) for group in groups)
    parts: dict[str, list[str]] = {name: [] for name in fractions}
    free = []
    for group in groups:
        held = {kept[one] for one in group if one in kept}
        name = next((part for part in fractions if part in held), None)
        if name is None:
            free.append(group)
        else:
            parts[name].extend(group)
    for group in sorted(free, key=lambda group: (sha256(f"{seed}:{group[0]}".encode()).digest(), group[0])):
        name = max(sorted(fractions), key=lambda part: fractions[part] * total - len(parts[part]))
        parts[name].extend(group)
    return {name: tuple(sorted(members)) for name, members in parts.items()}
