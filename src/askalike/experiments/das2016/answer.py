"""What a row answers: runs by task, the settings that dev chose, and what was tried.

Enters: nothing. Leaves: ``Answered``. May import: types.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from askalike.types import Run

__all__ = ["Answered"]


@dataclass
class Answered:
    """A row with one seed.

    Args:
        runs: task → candidates with their scores.
        settings: set → what its dev part chose.
        tried: set → every choice with its "dev_map", in the order of trying.
    """

    runs: dict[str, Run] = field(default_factory=dict)
    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    tried: dict[str, list[dict[str, object]]] = field(default_factory=dict)
