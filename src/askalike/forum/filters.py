"""Filters as a search wants them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

from askalike.types import Filters


def with_zone(filters: Filters | None) -> Filters:
    """Return the filters, none for None, with ``before`` in a time zone: UTC where it names none."""
    if filters is None:
        return Filters()
    if filters.before is not None and filters.before.tzinfo is None:
        return replace(filters, before=filters.before.replace(tzinfo=UTC))
    return filters
