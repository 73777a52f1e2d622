"""Labelled pairs as a task, in two halves that share no question.

Enters: pairs as their reader gives them. Leaves: ``PairTask``. May import: types, errors, read, evaluate, its own
folder.

Policy: pairs that share a question's text are one component, and a component is in one half. "dev" may tune, "test" is
scored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from askalike.errors import EvaluationError
from askalike.evaluation import split_components
from askalike.experiments.tasks import PairTask
from askalike.read.labelled import Pair
from askalike.types import Question

__all__ = ["HALVES", "pair_task"]

HALVES: Final[Mapping[str, float]] = {"dev": 0.5, "test": 0.5}
SPLIT_SEED: Final = 0


def pair_task(name: str, pairs: Iterable[Pair], half: str) -> PairTask:
    """Return one half of labelled pairs; document frequencies are those of the questions of the half "dev".

    Raises:
        EvaluationError: there is no such half.
    """
    if half not in HALVES:
        raise EvaluationError(f"there is no half {half!r} of the pairs", f"expected one of {', '.join(HALVES)}")
    known = list(pairs)
    parts = split_components([(pair.first, pair.second) for pair in known], HALVES, SPLIT_SEED)
    members = {part: set(texts) for part, texts in parts.items()}
    mine = [pair for pair in known if pair.first in members[half]]
    return PairTask(
        name=f"{name} {half}",
        pairs=tuple((_question(pair.first), _question(pair.second)) for pair in mine),
        labels=tuple(int(pair.is_duplicate) for pair in mine),
        statistics=tuple(_question(text) for text in sorted(members["dev"])),
    )


def _question(text: str) -> Question:
    return Question(text, text)
