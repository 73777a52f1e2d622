"""Ids as a message names them.

Enters: ids. Leaves: one short line. May import: nothing of askalike.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["named"]

_SHOWN = 5


def named(ids: Sequence[str]) -> str:
    """Return the first few ids and the number of the others.

    Example:
        >>> named(["a", "b", "c", "d", "e", "f", "g"])
        'a, b, c, d, e and 2 more'
    """
    more = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
