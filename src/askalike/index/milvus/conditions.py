"""What filters ask of a question, as Milvus keeps it and as it is asked: never more than digits in an expression."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final

from askalike.store.rows import to_microseconds
from askalike.types import Filters, Question

UNDATED: Final = -(1 << 62)
MOST_TAGS: Final = 3_000
"""Of one question; more do not fit into a field."""


def conditions_of(question: Question) -> dict[str, Any]:
    """Return a question's fields that filters ask for."""
    return fields_of(question.tags, to_microseconds(question.created))


def fields_of(tags: Iterable[str], created_us: int | None) -> dict[str, Any]:
    """Return the fields of exact tags and a moment.

    >>> fields_of((), None)
    {'tags': ',', 'created_us': -4611686018427387904}
    """
    keys = list(dict.fromkeys(map(tag_key, tags)))[:MOST_TAGS]
    return {
        "tags": "".join([",", *(f"{key}," for key in keys)]),
        "created_us": UNDATED if created_us is None else created_us,
    }


def tag_key(tag: str) -> str:
    """Return a tag, upper case or lower, as 16 digits: what anybody wrote is never part of an expression."""
    return hashlib.blake2b(tag.casefold().encode(errors="surrogatepass"), digest_size=8).hexdigest()


def condition(filters: Filters) -> str:
    """Return what tags and dates ask for; tags that must not be there are looked at in what was found."""
    parts = [f'tags like "%,{tag_key(tag)},%"' for tag in filters.tags]
    if filters.after is not None:
        parts.append(f"created_us >= {_microseconds(filters.after)}")
    if filters.before is not None:
        parts.extend((f"created_us > {UNDATED}", f"created_us < {_microseconds(filters.before)}"))
    return " and ".join(parts)


def listed(what: str, nums: Collection[int]) -> str:
    """Return an expression over numbers.

    >>> listed("num in", [3, 1])
    'num in [3,1]'
    """
    return f"{what} [{','.join(str(int(num)) for num in nums)}]"


def has_one(tags: str, keys: Collection[str]) -> bool:
    """Return whether a row has one of these tags."""
    return any(f",{key}," in tags for key in keys)


def _microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)
