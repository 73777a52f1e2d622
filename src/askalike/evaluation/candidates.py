"""A re-ranking task in numbers: how good vectors are, after every epoch of a training.

The policy is that of the protocol ``askubuntu``: queries with no positive candidate are left out of every mean,
average precision divides by the query's positive candidates, the first 20 of the ranking are looked at, and equal
cosines keep the order of the candidates.

Source: Lei et al., "Semi-supervised Question Retrieval with Gated Convolutions", NAACL 2016, "Baselines and Evaluation
Metrics".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EvaluationError
from askalike.evaluation.measures import PROTOCOLS, average_precision, reciprocal_rank
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

        >>> questions = [Question("q", "slow wifi"), Question("a", "wifi is slow"), Question("b", "slow disk")]
        >>> task = CandidateTask(questions, queries=[0], candidates=[[1, 2]], labels=[[1, 0]])
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
        self._rows: Final = [
            (query, np.array(places), np.array(own) > 0)
            for query, places, own in zip(queries, candidates, labels, strict=True)
        ]
        if not any(is_positive.any() for _, _, is_positive in self._rows):
            raise EvaluationError(
                f"none of the {len(self._rows)} queries has a positive candidate", "give labels > 0 to positives"
            )

    def mrr(self, vectors: NDArray[np.floating[Any]]) -> float:
        """Return the mean over queries of ``1 / rank of the first positive candidate``, 0 where it is after the cut.

        Args:
            vectors: (N, D), one row a question, of any length; a row of zeros has the cosine 0 with everything.

        Raises:
            EvaluationError: another number of rows, or a number that is not finite.
        """
        return self._mean(vectors, lambda gains, _: reciprocal_rank(gains))

    def map(self, vectors: NDArray[np.floating[Any]]) -> float:
        """Return the mean over queries of the average precision; ``vectors`` and what is raised are as in `mrr`."""
        return self._mean(vectors, average_precision)

    def cosines(self, vectors: NDArray[np.floating[Any]]) -> list[NDArray[np.float64]]:
        """Return each query's cosines with its candidates, in the candidates' order."""
        unit = self._unit(vectors)
        return [unit[places] @ unit[query] for query, places, _ in self._rows]

    def _mean(self, vectors: NDArray[np.floating[Any]], measure: Callable[[list[int], int], float]) -> float:
        values = []
        for (_, _, is_positive), cosines in zip(self._rows, self.cosines(vectors), strict=True):
            if relevant := int(is_positive.sum()):
                gains = is_positive[np.argsort(-cosines, kind="stable")][:_CUT]
                values.append(measure(gains.tolist(), relevant))
        return fmean(values)

    def _unit(self, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        if vectors.ndim != 2 or len(vectors) != len(self.questions):
            raise EvaluationError(
                f"vectors of shape {vectors.shape} for {len(self.questions)} questions",
                "give one row for each of the task's questions, in their order",
            )
        unit = np.array(vectors, dtype=np.float64)
        norms = np.sqrt(np.einsum("nd,nd->n", unit, unit))[:, None]
        if not np.isfinite(norms).all():
            raise EvaluationError("a vector holds a number that is not finite", "find out which question has it")
        np.divide(unit, norms, out=unit, where=norms > 0)
        return unit


def _check(
    count: int, queries: Sequence[int], candidates: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
) -> None:
    if not len(queries) or not len(queries) == len(candidates) == len(labels):
        raise EvaluationError(
            f"{len(queries)} queries, {len(candidates)} lists of candidates and {len(labels)} of labels",
            "give one list of each for every query, and at least one query",
        )
    for number, (query, documents, own) in enumerate(zip(queries, candidates, labels, strict=True)):
        fault = ""
        if not len(documents):
            fault = "has no candidates"
        elif len(documents) != len(own):
            fault = "has not one label for each candidate"
        elif len(set(documents)) != len(documents):
            fault = "names a candidate twice"
        elif not all(0 <= place < count for place in (query, *documents)):
            fault = f"names a position outside 0 … {count - 1}"
        if fault:
            raise EvaluationError(f"query number {number} {fault}", "positions count from 0 in the list of questions")
