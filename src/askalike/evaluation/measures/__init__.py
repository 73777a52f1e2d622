"""The measures, one file each: pure functions of one ranked list and what is relevant.

Enters: gains in rank order. Leaves: numbers in [0, 1]. May import: askalike.errors.
"""

from askalike.evaluation.measures.average_precision import average_precision
from askalike.evaluation.measures.ndcg import ndcg_at
from askalike.evaluation.measures.precision import precision_at
from askalike.evaluation.measures.ranked import Ranked
from askalike.evaluation.measures.recall import recall_at
from askalike.evaluation.measures.reciprocal_rank import reciprocal_rank
from askalike.evaluation.measures.success import success_at
from askalike.evaluation.measures.table import MEASURES, Measure, measure_choices, parse_measure

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
