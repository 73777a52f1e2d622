"""The baseline SVM of Lei et al. 2016: similarity measures as features of a linear ranking SVM.

It learns from groups of labelled candidates which direction in feature space is "more similar".

Source: Joachims 2002, "Optimizing search engines using clickthrough data", section 4, optimisation problem 1; Lei et
al. 2016, section 5, baseline SVM.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import MissingExtraError, SettingError
from askalike.models.similarity import SimilarityFeatures
from askalike.types import Question

COSTS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""The grid that C is chosen from."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingGroup:
    """The candidates of one query.

    Args:
        features: one row a candidate.  # (N, F)
        labels: a higher label is to be ranked higher; labels of different groups are not compared.  # (N,)

    Raises:
        SettingError: there are not as many labels as rows.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
            raise SettingError(
                f"features of shape {self.features.shape} with labels of shape {self.labels.shape}",
                "give one row and one label for each candidate",
            )

    @classmethod
    def of(cls, features: ArrayLike, labels: ArrayLike) -> RankingGroup:
        """Return a group of whatever NumPy can make arrays of."""
        return cls(np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.int64))


def preference_differences(group: RankingGroup) -> NDArray[np.float64]:
    """Return ``x_i - x_j`` for every pair of the group with ``label_i > label_j``, ordered by (i, j).  # (P, F)

    >>> preference_differences(RankingGroup.of([[1.0], [4.0], [9.0]], [0, 1, 0])).ravel().tolist()  # 4 - 1, 4 - 9
    [3.0, -5.0]
    """
    better, worse = np.nonzero(group.labels[:, None] > group.labels[None, :])
    return np.asarray(group.features[better] - group.features[worse])


@dataclass(frozen=True, slots=True, eq=False)
class RankingSvm:
    """A direction in feature space: ``score(x) = w · (x - mean) / scale``.

    Args:
        mean: of each feature over the rows that it was learned from.  # (F,)
        scale: standard deviation of each feature over those rows, 1 where it never varies.  # (F,)
        weights: w.  # (F,)
        cost: C.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]
    cost: float

    @classmethod
    def fit(cls, groups: Sequence[RankingGroup], cost: float) -> RankingSvm:
        """Return the w that minimises ``½ ‖w‖² + C Σ_q 1/P_q Σ max(0, 1 - w · (z_i - z_j))²``.

        The inner sum runs over the P_q pairs of query q with label_i > label_j; z is x after standardisation. The
        problem has one solution and its solver draws no random numbers: the same groups give the same model.

        Differs: the hinge is squared, so that the solver is exact and fast without random steps. Every query weighs
        the same, as in the author's later SVM-rank; with every pair weighing the same, the few queries of many
        positives decide, and it came out below BM25 on the dev split of the travel duplicates.

        Args:
            groups: one a query; those with one label only teach nothing but the scale.
            cost: C > 0; a large one fits the training pairs closely.

        Raises:
            SettingError: C is not above 0, no pair differs in label, or the groups' features do not fit each other.
            MissingExtraError: scikit-learn is not installed.
        """
        if not cost > 0:
            raise SettingError(f"the cost is {cost}", "expected a number above 0")
        widths = {group.features.shape[1] for group in groups}
        if len(widths) != 1:
            raise SettingError(f"groups have features of {sorted(widths)} columns", "expected one number for all")
        rows = np.concatenate([group.features for group in groups])  # (ΣN, F)
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(deviation > 1e-12 * (1.0 + np.abs(mean)), deviation, 1.0)
        by_query = [preference_differences(group) / scale for group in groups]
        pairs = np.concatenate(by_query)  # (P, F)
        if not len(pairs):
            raise SettingError("no group has candidates with different labels", "give groups with both kinds")
        shares = np.concatenate([np.full(len(own), 1.0 / max(len(own), 1)) for own in by_query])  # (P,)
        # the solver wants two classes: each pair is given both ways round, at half the cost
        solver = _linear_svc()(C=cost / 2, dual=False, fit_intercept=False, tol=1e-6, max_iter=10_000)
        solver.fit(np.vstack([pairs, -pairs]), np.repeat([1, -1], len(pairs)), np.tile(shares, 2))
        return cls(mean, scale, np.asarray(solver.coef_[0], dtype=np.float64), cost)

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one score for each row, higher is better.  # (N, F) → (N,)"""
        return np.asarray((features - self.mean) / self.scale @ self.weights, dtype=np.float64)


def choose_cost(
    groups: Sequence[RankingGroup], judge: Callable[[RankingSvm], float], costs: Sequence[float] = COSTS
) -> tuple[RankingSvm, dict[float, float]]:
    """Return the best of the models fitted with each cost, and cost → what the judge said of it.

    Args:
        judge: a fitted model → how good it is on development data, higher is better; of equals the smaller cost wins.
        costs: the values of C to try, at least one.

    Raises:
        SettingError: as ``RankingSvm.fit``, or no cost was given.
    """
    if not costs:
        raise SettingError("no cost to choose from", "give at least one")
    models = {cost: RankingSvm.fit(groups, cost) for cost in sorted(costs)}
    judged = {cost: judge(model) for cost, model in models.items()}
    best = max(judged, key=lambda cost: (judged[cost], -cost))
    return models[best], judged


def _linear_svc() -> Any:
    try:
        return importlib.import_module("sklearn.svm").LinearSVC
    except ImportError as error:
        raise MissingExtraError("training a ranking SVM needs scikit-learn, which is not installed", "train") from error


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
