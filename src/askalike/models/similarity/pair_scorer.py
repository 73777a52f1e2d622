"""The SVM baseline: similarity measures as features of a linear ranking SVM, for pairs of questions.

Enters: queries with labelled candidates. Leaves: ``SimilaritySvm``, which scores candidates. May import: types, and of
its own folder features and ranking_svm.

Source: Lei et al. 2016, section 5, baseline SVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.similarity.features import SimilarityFeatures
from askalike.models.similarity.ranking_svm import RankingGroup, RankingSvm
from askalike.types import Question

__all__ = ["LabelledCandidates", "SimilaritySvm", "ranking_groups"]


@dataclass(frozen=True, slots=True)
class LabelledCandidates:
    """One query, its candidates, and a label for each: the higher, the more similar."""

    query: Question
    candidates: Sequence[Question]
    labels: Sequence[int]


def ranking_groups(features: SimilarityFeatures, examples: Sequence[LabelledCandidates]) -> list[RankingGroup]:
    """Return the examples as groups of features and labels.

    Raises:
        SettingError: an example has not as many labels as candidates.
    """
    return [RankingGroup.of(features.matrix(example.query, example.candidates), example.labels) for example in examples]


@dataclass(frozen=True, slots=True, eq=False)
class SimilaritySvm:
    """Scores pairs of questions by a learned mixture of similarity measures.

    Differs: Lei et al. train SVM-Light with its default C on train and dev together; here C is chosen by the caller.
    """

    features: SimilarityFeatures
    model: RankingSvm

    @classmethod
    def fit(cls, features: SimilarityFeatures, examples: Sequence[LabelledCandidates], cost: float) -> SimilaritySvm:
        """Return the scorer learned from examples.

        Args:
            features: measures with the statistics of the collection.
            examples: at least one with two different labels.
            cost: C > 0 of ``RankingSvm.fit``.

        Raises:
            SettingError: as ``RankingSvm.fit`` and ``ranking_groups``.
            MissingExtraError: rapidfuzz or scikit-learn is not installed.
        """
        return cls(features, RankingSvm.fit(ranking_groups(features, examples), cost))

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return one score for each of the N candidates, higher is better.  # (N,)"""
        return self.model.scores(self.features.matrix(query, candidates))

    def weights(self) -> dict[str, float]:
        """Return feature → its weight after standardisation, the strongest first."""
        named = zip(self.features.names, self.model.weights.tolist(), strict=True)
        return dict(sorted(named, key=lambda entry: (-abs(entry[1]), entry[0])))
