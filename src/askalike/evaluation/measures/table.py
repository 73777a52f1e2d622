"""The table of measures and the parser of their names.

Enters: names such as ``map`` and ``ndcg@10``. Leaves: `Measure` values that score one `Ranked` list. May import:
askalike.errors and the measures beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from askalike.errors import EvaluationError
from askalike.evaluation.measures.average_precision import average_precision
from askalike.evaluation.measures.ndcg import ndcg_at
from askalike.evaluation.measures.precision import precision_at
from askalike.evaluation.measures.ranked import Ranked
from askalike.evaluation.measures.recall import recall_at
from askalike.evaluation.measures.reciprocal_rank import reciprocal_rank
from askalike.evaluation.measures.success import success_at

__all__ = ["MEASURES", "Measure", "measure_choices", "parse_measure"]

MEASURES: dict[str, Callable[[Ranked, int], float]] = {
    "map": lambda ranked, _: average_precision(ranked.gains, len(ranked.ideal)),
    "mrr": lambda ranked, _: reciprocal_rank(ranked.gains),
    "p@k": lambda ranked, k: precision_at(ranked.gains, k, ranked.candidates),
    "recall@k": lambda ranked, k: recall_at(ranked.gains, k, len(ranked.ideal)),
    "ndcg@k": lambda ranked, k: ndcg_at(ranked.gains, k, ranked.ideal),
    "success@k": lambda ranked, k: success_at(ranked.gains, k),
}
"""Pattern of the name → the value of one ranked list. A name that ends in ``@k`` takes a whole number there."""

_NAME = re.compile(r"(?P<kind>[a-z]+)(?:@(?P<k>[1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure, its k filled in.

    Args:
        name: as a report prints it: ``map``, ``p@5``.
        pattern: its key in `MEASURES`: ``map``, ``p@k``.
        k: how many documents from the top it looks at; 0 when it looks at all.
    """

    name: str
    pattern: str
    k: int = 0

    def score(self, ranked: Ranked) -> float:
        """Return the value of one ranked list, in [0, 1]."""
        return MEASURES[self.pattern](ranked, self.k)


def measure_choices() -> str:
    """Return the patterns of all measures as one line for messages: ``map, mrr, p@k, …``."""
    return ", ".join(MEASURES)


def parse_measure(name: str) -> Measure:
    """Return the measure of this name; capitals do not matter.

    Raises:
        EvaluationError: the name is not one of the table's, or its k is missing, superfluous or not 1, 2, 3, ….

    Example:
        >>> parse_measure("NDCG@10")
        Measure(name='ndcg@10', pattern='ndcg@k', k=10)
    """
    found = _NAME.fullmatch(name.strip().lower())
    if found:
        kind, k = found["kind"], found["k"]
        pattern = kind if k is None else f"{kind}@k"
        if pattern in MEASURES:
            return Measure(found[0], pattern, int(k or 0))
    raise EvaluationError(
        f"there is no measure {name!r}; expected one of {measure_choices()}",
        "write a whole number from 1 on for k, as in p@5",
    )
