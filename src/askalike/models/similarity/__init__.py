"""Measures of how alike two texts are, and a ranking SVM over them: the baseline SVM of Lei et al. 2016.

Enters: questions. Leaves: similarities, scores. May import: types, errors, text, lexical. rapidfuzz and scikit-learn
are loaded when they are first needed.
"""

from askalike.models.similarity.features import MEASURES, Measure, SimilarityFeatures
from askalike.models.similarity.pair_scorer import LabelledCandidates, SimilaritySvm, ranking_groups
from askalike.models.similarity.ranking_svm import COSTS, RankingGroup, RankingSvm, choose_cost

__all__ = [
    "COSTS",
    "MEASURES",
    "LabelledCandidates",
    "Measure",
    "RankingGroup",
    "RankingSvm",
    "SimilarityFeatures",
    "SimilaritySvm",
    "choose_cost",
    "ranking_groups",
]
