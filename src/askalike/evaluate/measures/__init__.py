"""The measures, one file each: pure functions of one ranked list and what is relevant.

Enters: gains in rank order. Leaves: numbers in [0, 1]. May import: askalike.errors.
"""

from askalike.evaluate.measures.average_precision import average_precision
from askalike.evaluate.measures.ndcg import ndcg_at
from askalike.evaluate.measures.precision import precision_at
from askalike.evaluate.measures.ranked import Ranked
from askalike.evaluate.measures.recall import recall_at
from askalike.evaluate.measures.reciprocal_rank import reciprocal_rank
from askalike.evaluate.measures.success import success_at
from askalike.evaluate.measures.table import MEASURES, Measure, measure_choices, parse_measure

__all__ = [
    "MEASURES",
    "Measure",
    "Ranked",
    "average_precision",
    "measure_choices",
    "ndcg_at",
    "parse_measure",
    "precision_at",
    "recall_at",
    "reciprocal_rank",
    "success_at",
]
