"""What probabilities promise in a forum: the least that keeps a promise, and how right they were on judged pairs.

A pair's probability is that before the forum's judgements changed any, so that no judgement is measured by itself.
"""

from __future__ import annotations

import threading
import time
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.forum.calibrations import JudgedPair
from askalike.forum.indexes import Indexes
from askalike.forum.queue import Queue, stratum_of
from askalike.search.calibration import Update, moved_probabilities, unmoved_probabilities
from askalike.search.scorer import probability
from askalike.search.thresholds import (
    Promise,
    Share,
    Threshold,
    bins,
    check_minimum,
    components,
    drawn_threshold,
    expected_threshold,
    labelled_threshold,
    needed,
    parse_minimum,
)
from askalike.store import Store
from askalike.store.pairs import permanent_number
from askalike.types import ReliabilityBin

if TYPE_CHECKING:
    from askalike.forum.labels import LabelReport

FEW_PAIRS: Final = 200
COMPARING_S: Final = 5.0
"""Where fewer pairs are known than that, questions are compared for so long first."""

LOOKED_AT: Final = 2000
"""So many open pairs of each stratum stand for all of it."""

FRESH_S: Final = 60.0

MOST_SHOWN: Final = 500
"""The newest so many judgements show how right probabilities are."""


class Thresholds:
    """The thresholds of a forum; any thread may ask. They are worked out again when people have judged."""

    def __init__(self, store: Store, indexes: Indexes, queue: Queue) -> None:
        self._store = store
        self._indexes = indexes
        self._queue = queue
        self._guard = threading.Lock()
        self._known: dict[Promise, tuple[object, float, Threshold]] = {}

    def least_probability(self, minimum: float | str) -> float:
        """Return the least probability that a setting asks for: itself, by a promise, or the default of a widget.

        Where nothing keeps the promise, it is 1: texts that are the same alone are shown.

        Raises:
            SettingError: it is none of these.
        """
        wanted = parse_minimum(minimum)
        if wanted is None:
            return self._indexes.with_searcher(lambda searcher: searcher.scoring.threshold)
        if isinstance(wanted, float):
            return wanted
        threshold = self.of(wanted)
        return 1.0 if threshold.minimum is None else threshold.minimum

    def least_score(self, minimum: float | str) -> float:
        """Return the least score of likely pairs that a setting asks for; see ``least_probability``.

        A promise is kept by probabilities that judgements have moved; a number is that of scores before.

        Raises:
            SettingError: it is none of these, or above 1.
        """
        least = check_minimum(self.least_probability(minimum))
        return least if least == parse_minimum(minimum) else unmoved_probabilities(self._indexes.update(), [least])[0]

    def find(self, *, precision: float | None = None, recall: float | None = None, labels: Any = None) -> Threshold:
        """Return the least probability by which this share of what is shown is a duplicate, or of duplicates is shown.

        It rests on judged pairs that chance drew, where these are enough; else on labelled pairs. What chance drew
        holds for pairs of a question and the five that a search for it finds best, labels for pairs like them. Labels
        that are enough to prove a precision and do not leave it without a minimum. Where neither is enough, it is an
        estimate by the scorer's calibration on other forums, and ``judgements`` is 0.

        Args:
            labels: taken first, as ``label`` takes them; then the threshold rests on these alone.

        Raises:
            SettingError: not one of both is given, in (0, 1).
            AskalikeError: as ``label``.
        """
        shares: Any = {
            name: share for name, share in (("precision", precision), ("recall", recall)) if share is not None
        }
        if len(shares) != 1:
            raise SettingError(f"{len(shares)} promises", "give a precision or a recall, such as precision=0.9")
        ((kind, wanted),) = shares.items()
        if not isinstance(wanted, Real) or not 0 < (share := round(float(wanted), 6)) < 1:
            raise SettingError(f"the {kind} is {wanted}", "expected a share above 0 and below 1, such as 0.9")
        promise = Promise(kind, share)
        return self.of(promise) if labels is None else self.label(labels).threshold(promise)

    def label(self, labels: Any) -> LabelReport:
        """Take labels of pairs, and return what they say of the forum's probabilities.

        Pairs of the forum's questions are stored as judgements: probabilities follow, pairs are settled, and
        ``find`` rests on them. A pair that a person judged keeps that judgement. Pairs of other texts are measured
        alone. Label pairs as they come, not picked by what they say: what is proved holds for pairs like them.

        Args:
            labels: the path of a CSV, TSV, JSON Lines or Parquet file, or a data frame, with the columns question1,
                question2 (ids, titles or other texts) and is_duplicate (1 or 0); or triples of these.

        Raises:
            SettingError, FormatError, InputError: they cannot be read.
            ModelError, EncoderError: a model cannot be read, or the encoder cannot be had.
        """
        from askalike.forum.labels import take_labels  # with it, the readers of tables: a search needs none

        return take_labels(self._store, self._indexes, labels)

    def reliability(self) -> tuple[ReliabilityBin, ...]:
        """Return what the package's scorer said of the pairs that people judged, beside what they said, by bins of
        probability, ascending."""
        judged = self._indexes.judged()[-MOST_SHOWN:]
        return bins([(float(probability(np.array(pair.logit))), pair.is_same) for pair in judged])

    def of(self, promise: Promise) -> Threshold:
        """Return the threshold of a promise."""
        state = (self._store.judgement_version(), self._indexes.state().model)
        with self._guard:
            known = self._known.get(promise)
            if known is None or known[0] != state or time.monotonic() > known[1]:
                known = (state, time.monotonic() + FRESH_S, self._measure(promise))
                self._known[promise] = known
        return known[2]

    def _measure(self, promise: Promise) -> Threshold:
        pairs = self._queue.pairs
        if pairs.store.count() < FEW_PAIRS and pairs.waiting():
            pairs.advance(COMPARING_S)
        update = self._indexes.update()
        judged = self._indexes.judged()
        strata = np.array([stratum_of(float(probability(np.array(pair.logit)))) for pair in judged], dtype=np.int64)
        sizes = np.array([stratum.pairs / stratum.kept for stratum in self._queue.strata()])
        sizes += np.bincount(strata, minlength=len(sizes))
        chosen = self._of_sample(judged, strata)
        drawn = [judged[place] for place in chosen]
        count = len(drawn)
        if count:
            likely = probability(update.moved(np.array([pair.logit for pair in drawn])))
            is_same = np.array([float(pair.is_same) for pair in drawn])
            minimum, share = drawn_threshold(promise, likely, is_same, strata[chosen], sizes)
            missing = [stratum for stratum in range(len(sizes)) if sizes[stratum] and stratum not in strata[chosen]]
            if minimum is not None and all(
                stratum > stratum_of(minimum) for stratum in missing if promise.kind == "recall"
            ):
                about = f"rests on {count:,} judged pairs that were drawn by chance"
                return Threshold(promise, minimum, share, count, about)
        labels = ""
        labelled = [pair for pair in judged if pair.by == "label"]
        if labelled:
            likely = probability(update.moved(np.array([pair.logit for pair in labelled])))
            is_so = np.array([pair.is_same for pair in labelled])
            threshold = labelled_threshold(promise, likely, is_so, components([pair.pair for pair in labelled]))
            contradict = promise.kind == "precision" and len(labelled) >= 2 * needed(promise.share) and not is_so.all()
            if threshold.minimum is not None or contradict:
                return threshold
            labels = f"; {threshold.about}"
        minimum, share = self._expected(promise, judged, update)
        why = (
            f"of the judged pairs, chance drew {count:,}, too few to tell"
            if count
            else "no judged pair was drawn by chance"
        )
        least = 2 * needed(promise.share)
        kind = "likely pairs" if promise.kind == "precision" else "duplicates"
        about = (
            f"an estimate, not a promise: it rests on the scorer's calibration on other forums: {why} (it takes at"
            f" least {least:,} {kind} of the sample, which people judge on the page's Review){labels}"
        )
        if minimum is None:
            about = f"no probability promises that in this forum; {why}{labels}"
        return Threshold(promise, minimum, share, 0, about)

    def _of_sample(self, judged: list[JudgedPair], strata: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of the judged pairs that are of the sample: those that were drawn, and those of the queue
        that would have been drawn by now."""
        numbers = [permanent_number(min(pair.pair), max(pair.pair), self._queue.seed) for pair in judged]
        reached: dict[int, float] = {}
        for pair, number, stratum in zip(judged, numbers, strata.tolist(), strict=True):
            if pair.by == "sample":
                reached[stratum] = max(reached.get(stratum, 0.0), number)
        places = [
            place
            for place, (pair, number, stratum) in enumerate(zip(judged, numbers, strata.tolist(), strict=True))
            if pair.by in ("sample", "queue") and number <= reached.get(stratum, -1.0)
        ]
        return np.array(places, dtype=np.int64)

    def _expected(self, promise: Promise, judged: list[JudgedPair], update: Update) -> tuple[float | None, Share]:
        scores, weights = [float(probability(np.array(pair.logit))) for pair in judged], [1.0] * len(judged)
        store = self._queue.pairs.store
        for stratum in self._queue.strata():
            pairs = store.drawn(stratum.low, stratum.high, LOOKED_AT, self._queue.seed)
            scores += [pair.score for pair in pairs]
            weights += [stratum.pairs / stratum.kept / max(1, len(pairs))] * len(pairs)
        return expected_threshold(promise, np.array(moved_probabilities(update, scores)), np.array(weights))
