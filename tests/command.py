"""Commands of ``askalike`` as a test calls them; the fixture ``run`` is in ``integration/conftest.py``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Done", "Run"]


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return its output as JSON."""
        return json.loads(self.out)


Run = Callable[..., Done]
"""``run("search", forum, "a question", "--json")``; ``stdin`` is what it reads."""
