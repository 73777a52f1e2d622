"""How likely a pair of a forum asks the same: what was judged elsewhere, moved by the forum's own verdicts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

import numpy as np

from askalike.index.vector_set import VectorSet
from askalike.processes import one_blas_thread
from askalike.search.calibration import Calibration, fits, posterior
from askalike.search.joining import joining_of
from askalike.store import Store

MOST_VERDICTS: Final = 2000
"""The newest so many count."""
SAMPLE: Final = 300


class Calibrations:
    """The calibration of a forum; any thread may ask. It is worked out when a verdict has come, or another model."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._known: tuple[object, Calibration | None] = (None, None)
        self._fits: tuple[object, bool] = (None, False)
        self._judged_at: tuple[int, tuple[int, int]] = (-1, (0, 0))

    def of(self, vectors: VectorSet) -> Calibration | None:
        """Return the calibration of a set's cosines, None where nobody measured what they say."""
        state = (vectors.fingerprint, min(vectors.index.entries, SAMPLE), self._feedback_version())
        known = self._known
        if known[0] != state:
            with self._guard:
                if self._known[0] != state:
                    self._known = (state, self._made(vectors))
                known = self._known
        return known[1]

    def _feedback_version(self) -> tuple[int, int]:
        """Return which verdicts there are; counted anew only when the store has changed."""
        last = self._store.last_change()
        known, version = self._judged_at
        if known != last:
            version = self._store.judgement_version()
            self._judged_at = (last, version)
        return version

    def _made(self, vectors: VectorSet) -> Calibration | None:
        prior = joining_of(vectors.name).prior
        if prior is None or (vectors.settings is None and not self._is_fitting(vectors)):
            return None
        judged = list(self._judged(vectors))
        return posterior(prior, *zip(*judged, strict=True)) if judged else prior

    def _judged(self, vectors: VectorSet) -> Iterator[tuple[float, bool]]:
        """Yield cosine and verdict of the pairs that have vectors; one of zeros is none."""
        verdicts = self._store.judgements()[-MOST_VERDICTS:]
        numbers = self._store.nums_by_id([one for it in verdicts for one in (it.question_id, it.candidate_id)])
        held, matrix = vectors.index.vectors(sorted(numbers.values()))
        known = {int(number): vector for number, vector in zip(held, matrix, strict=True) if vector.any()}
        for one in verdicts:
            first, second = (known.get(numbers.get(name, 0)) for name in (one.question_id, one.candidate_id))
            if first is not None and second is not None:
                yield float(first @ second), one.verdict == "duplicate"

    def _is_fitting(self, vectors: VectorSet) -> bool:
        """Return whether the cosines can be read; looked at anew while a forum grows to what is sampled."""
        looked_at = (vectors.fingerprint, min(vectors.index.entries, SAMPLE))
        if self._fits[0] != looked_at:
            numbers = vectors.index.numbers()
            chosen = np.random.default_rng(0).choice(numbers, min(SAMPLE, len(numbers)), replace=False)
            _, sample = vectors.index.vectors(chosen)
            with one_blas_thread():
                self._fits = (looked_at, fits(sample))
        return self._fits[1]
