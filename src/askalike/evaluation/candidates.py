"""A re-ranking task in numbers: how good vectors are, fast enough to be asked after every epoch of a training.

The policy is that of the protocol ``askubuntu``: queries with no positive candidate are left out of every mean,
average precision divides by the query's positive candidates, the first 20 of the ranking are looked at, and equal
cosines keep the order of the candidates. A test holds the figures to those of ``evaluate``.

Source: Lei et al., "Semi-supervised Question Retrieval with Gated Convolutions", NAACL 2016, "Baselines and Evaluation
Metrics".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EvaluationError
from askalike.evaluation.measures import PROTOCOLS
from askalike.types import Question

_CUT: Final = PROTOCOLS["askubuntu"].cut


class CandidateTask:
    """Queries with candidates, over one list of distinct questions, so that each is encoded once.

    Args:
        questions: N distinct questions; the positions below count in this list, from 0.
        queries: Q positions, one a query.
        candidates: for each query the positions of its candidates, in the order of the search that found them.
        labels: for each query one label a candidate, positive when > 0.

    Raises:
        EvaluationError: lengths that differ, a position outside the list, a query without candidates, a candidate given
            twice to a query, or no query with a positive candidate.

    Example:
        The first question asks; by their angles the third is nearer than the second, which is the positive one: rank 2.

        >>> asked = [Question("q", "slow wifi"), Question("a", "wifi is slow"), Question("b", "slow disk")]
        >>> task = CandidateTask(asked, queries=[0], candidates=[[1, 2]], labels=[[1, 0]])
        >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> task.mrr(vectors), task.map(vectors)
        (0.5, 0.5)
    """

    def __init__(
        self,
        questions: Sequence[Question],
        queries: Sequence[int],
        candidates: Sequence[Sequence[int]],
        labels: Sequence[Sequence[int]],
    ) -> None:
        _check(len(questions), queries, candidates, labels)
        self.questions: Final = tuple(questions)
        self.queries: Final = np.array(queries, dtype=np.intp)  # (Q,)
        sizes = np.array([len(found) for found in candidates], dtype=np.intp)  # (Q,)
        self._is_candidate = np.arange(sizes.max()) < sizes[:, None]  # (Q, C): C candidates at most, the rest is empty
        self._places = np.zeros(self._is_candidate.shape, dtype=np.intp)
        self._places[self._is_candidate] = np.concatenate([np.asarray(found, dtype=np.intp) for found in candidates])
        self._is_positive = np.zeros(self._is_candidate.shape, dtype=bool)
        self._is_positive[self._is_candidate] = np.concatenate([np.asarray(found) > 0 for found in labels])
        self._counts = self._is_positive.any(axis=1)
        if not self._counts.any():
            raise EvaluationError(
                f"none of the {len(self.queries)} queries has a positive candidate", "give labels > 0 to positives"
            )

    def mrr(self, vectors: NDArray[np.floating[Any]]) -> float:
        """Return the mean over queries of ``1 / rank of the first positive candidate``, 0 where it is after the cut.

        Args:
            vectors: (N, D), one row a question, of any length; a row of zeros has the cosine 0 with everything.

        Raises:
            EvaluationError: another number of rows, or a number that is not finite.
        """
        gains = self._ranked(vectors)
        return float((gains / np.arange(1, gains.shape[1] + 1)).max(axis=1).mean())

    def map(self, vectors: NDArray[np.floating[Any]]) -> float:
        """Return the mean over queries of the average precision ``Σ_{i positive} (positives among first i) / i / R``.

        R is the number of the query's positive candidates; ``vectors`` and what is raised are as in `mrr`.
        """
        gains = self._ranked(vectors)
        precision = gains.cumsum(axis=1) / np.arange(1, gains.shape[1] + 1)
        return float(((gains * precision).sum(axis=1) / self._is_positive[self._counts].sum(axis=1)).mean())

    def cosines(self, vectors: NDArray[np.floating[Any]]) -> list[NDArray[np.float64]]:
        """Return each query's cosines with its candidates, in the candidates' order."""
        return [row[known] for row, known in zip(self._cosines(_unit(vectors, self)), self._is_candidate, strict=True)]

    def _ranked(self, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return 1 for a positive candidate and 0 for others, by rank, of the queries that count.  # (Q', ≤ cut)"""
        cosines = self._cosines(_unit(vectors, self))[self._counts]
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :_CUT]
        return np.take_along_axis(self._is_positive[self._counts], order, axis=1).astype(np.float64)

    def _cosines(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.full(self._places.shape, -np.inf)  # (Q, C): an empty place comes last
        for row, (query, places, known) in enumerate(zip(self.queries, self._places, self._is_candidate, strict=True)):
            found[row, known] = unit[places[known]] @ unit[query]
        return found


def _unit(vectors: NDArray[np.floating[Any]], task: CandidateTask) -> NDArray[np.float64]:
    if vectors.ndim != 2 or len(vectors) != len(task.questions):
        raise EvaluationError(
            f"vectors of shape {vectors.shape} for {len(task.questions)} questions",
            "give one row for each of the task's questions, in their order",
        )
    wide = np.array(vectors, dtype=np.float64)
    norms = np.sqrt(np.einsum("nd,nd->n", wide, wide))[:, None]
    if not np.isfinite(norms).all():
        raise EvaluationError("a vector holds a number that is not finite", "find out which question has it")
    np.divide(wide, norms, out=wide, where=norms > 0)
    return wide


def _check(
    count: int, queries: Sequence[int], candidates: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
) -> None:
    if not len(queries) or not len(queries) == len(candidates) == len(labels):
        raise EvaluationError(
            f"{len(queries)} queries, {len(candidates)} lists of candidates and {len(labels)} of labels",
            "give one list of each for every query, and at least one query",
        )
    for number, (query, found, own) in enumerate(zip(queries, candidates, labels, strict=True)):
        fault = ""
        if not len(found):
            fault = "has no candidates"
        elif len(found) != len(own):
            fault = "has not one label for each candidate"
        elif len(set(found)) != len(found):
            fault = "names a candidate twice"
        elif not all(0 <= place < count for place in (query, *found)):
            fault = f"names a position outside 0 … {count - 1}"
        if fault:
            raise EvaluationError(f"query number {number} {fault}", "positions count from 0 in the list of questions")
