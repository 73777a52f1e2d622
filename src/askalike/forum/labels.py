"""Labels that somebody has of pairs of questions: stored as judgements, and what they say of a forum's probabilities.

A label names two questions by their ids, their titles, or other texts, and says whether they ask the same. Pairs of the
forum's questions become judgements, which move probabilities (``search.calibration``), settle pairs, and prove
thresholds for pairs like them; a pair that a person has judged keeps that judgement. Pairs of other texts are measured,
and move nothing.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import FormatError, SettingError
from askalike.forum.exchange import archive_of
from askalike.forum.indexes import Indexes
from askalike.readers.frame import ReadContext
from askalike.readers.table import Row, Table, open_table
from askalike.readers.values import plain_name
from askalike.search.engine import Floats
from askalike.search.scorer import probability
from askalike.search.thresholds import (
    Promise,
    Threshold,
    bins,
    calibration_error,
    components,
    labelled_threshold,
    share_at,
)
from askalike.store import Store
from askalike.types import Draw, Feedback, ReliabilityBin, Verdict

COLUMNS: Final = (
    (("question1", "qid1", "id1", "question", "id", "title1"), "question1"),
    (("question2", "qid2", "id2", "candidate", "originalid", "title2"), "question2"),
    (("isduplicate", "duplicate", "verdict", "label", "same"), "is_duplicate"),
)
"""Names that a column may have, the likeliest first, compared by lower case letters and digits; and what we call it."""

SAME: Final = frozenset({"1", "1.0", "true", "yes", "y", "duplicate", "same"})
DIFFERENT: Final = frozenset({"0", "0.0", "false", "no", "n", "different"})
GRID: Final = (*(round(step / 20, 2) for step in range(20)), 0.99)
"""Probabilities at which the curve is told."""


class Label(NamedTuple):
    """A row of labels, 0 the first."""

    row: int
    first: str
    second: str
    is_same: bool


@dataclass(frozen=True, slots=True)
class UnusedLabel:
    """A row that was left out, and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What is so of the labelled pairs from a probability on.

    Args:
        shown: how many there are.
        precision: the share of them that asks the same.
        low: of the 90 % interval of the precision; ``high`` its upper end.
        recall: the share of the pairs that ask the same.
    """

    minimum: float
    shown: int
    precision: float
    low: float
    high: float
    recall: float


@dataclass(frozen=True, slots=True)
class LabelReport:
    """What labels say of a forum's probabilities.

    Args:
        pairs: how many were measured; ``same`` of them ask the same.
        in_forum: how many are pairs of the forum's questions.
        stored: how many judgements are new.
        left_out: rows that were not measured.
        curve: by the probabilities that the forum says from now on.
        before, after: how right the package's probabilities are for these pairs, and those that the forum says from now
            on, which these labels have moved.
        likely, is_same, clusters: of each pair, what ``threshold`` is proved with.  # (N,)
    """

    pairs: int
    same: int
    in_forum: int
    stored: int
    left_out: tuple[UnusedLabel, ...]
    curve: tuple[CurvePoint, ...]
    before: tuple[ReliabilityBin, ...]
    after: tuple[ReliabilityBin, ...]
    likely: Floats = field(repr=False)
    is_same: NDArray[np.bool_] = field(repr=False)
    clusters: NDArray[np.int64] = field(repr=False)

    def threshold(self, promise: Promise) -> Threshold:
        """Return the least probability by which these labels prove a promise for pairs like them.

        Its interval is that of Clopper and Pearson, with as many pairs as there would be if none shared a question.
        """
        return labelled_threshold(promise, self.likely, self.is_same, self.clusters)


def take_labels(store: Store, indexes: Indexes, labels: Any) -> LabelReport:
    """Store labels as judgements, and measure; see ``Thresholds.label``."""
    rows, left_out = _read(labels)
    named = _names(store, {end for label in rows for end in (label.first, label.second)})
    pairs = [(named.get(label.first, label.first), named.get(label.second, label.second)) for label in rows]
    verdicts: dict[frozenset[str], set[bool]] = {}
    for label, pair in zip(rows, pairs, strict=True):
        verdicts.setdefault(frozenset(pair), set()).add(label.is_same)
    has_ids = any(end == identifier for end, identifier in named.items())
    usable, ends = list[Label](), list[tuple[str, str]]()
    for label, pair in zip(rows, pairs, strict=True):
        unknown = [end for end in (label.first, label.second) if end not in named and has_ids and len(end.split()) == 1]
        reason = f"{unknown[0][:40]!r} is no id of the forum, as those of other rows are" if unknown else ""
        if pair[0] == pair[1]:
            reason = "both are one question"
        elif len(verdicts[frozenset(pair)]) > 1:
            reason = "another row says the opposite of this pair"
        if reason:
            left_out.append(UnusedLabel(label.row, reason))
        else:
            usable.append(label)
            ends.append((named.get(label.first, ""), named.get(label.second, "")))
    known = [(label, pair) for label, pair in zip(usable, ends, strict=True) if all(pair)]
    stored = _store(store, known)
    logits = _logits(store, indexes, usable, ends)
    is_same = np.array([label.is_same for label in usable], dtype=np.bool_)
    clusters = components(
        [(first or label.first, second or label.second) for label, (first, second) in zip(usable, ends, strict=True)]
    )
    likely = probability(indexes.update().moved(logits))
    before = bins(list(zip(probability(logits).tolist(), is_same.tolist(), strict=True)))
    after = bins(list(zip(likely.tolist(), is_same.tolist(), strict=True)))
    return LabelReport(
        len(usable),
        int(is_same.sum()),
        len(known),
        stored,
        tuple(sorted(left_out, key=lambda unused: unused.row)),
        tuple(_curve(likely, is_same, clusters)),
        before,
        after,
        likely,
        is_same,
        clusters,
    )


def _read(labels: Any) -> tuple[list[Label], list[UnusedLabel]]:
    """Return labels, and the rows that are none, of a file, a data frame, or an iterable of triples."""
    context = ReadContext()
    if isinstance(labels, str | os.PathLike):
        path = Path(labels)
        return _labels_of(open_table(path, path.name, context), path.name)
    if hasattr(labels, "__arrow_c_stream__") or hasattr(labels, "__dataframe__"):
        with tempfile.TemporaryDirectory(prefix="askalike-") as folder:
            path = archive_of(labels, Path(folder))
            return _labels_of(open_table(path, "the labels", context), "the labels")
    if not isinstance(labels, Iterable) or isinstance(labels, Mapping | bytes):
        raise SettingError(
            f"a {type(labels).__name__} was given as labels",
            "expected a table's path, a data frame, or triples (question, question, is_duplicate)",
        )
    rows = (Row(number, _triple(number, label)) for number, label in enumerate(labels))
    return _labels_of(Table([name for _, name in COLUMNS], rows), "the labels")


def _triple(number: int, label: Any) -> list[object]:
    cells = list(label) if isinstance(label, Iterable) and not isinstance(label, str | bytes | Mapping) else []
    if len(cells) != len(COLUMNS):
        raise SettingError(f"label {number} is {label!r:.80}", "expected a triple (question, question, is_duplicate)")
    return cells


def _labels_of(table: Table, name: str) -> tuple[list[Label], list[UnusedLabel]]:
    header = [plain_name(str(column)) for column in table.header]
    places: list[int] = []
    for names, field_name in COLUMNS:
        place = next((header.index(known) for known in names if known in header), None)
        if place is None:
            raise FormatError(
                f"{name} has no column {field_name}; its columns are {', '.join(map(repr, table.header))[:200]}",
                "expected question1, question2 (ids or texts) and is_duplicate (1 or 0)",
            )
        places.append(place)
    labels, left_out = [], []
    for number, row in enumerate(table.rows):
        cells = [] if row.problem else [_cell(row.cells[place]) for place in places]
        reason = row.problem
        if cells and not all(cells[:2]):
            reason = "a question is empty"
        elif cells and cells[2].lower() not in SAME | DIFFERENT:
            reason = f"is_duplicate is {cells[2][:40]!r}, expected 1 or 0"
        if reason:
            left_out.append(UnusedLabel(number, reason))
        else:
            labels.append(Label(number, cells[0], cells[1], cells[2].lower() in SAME))
    return labels, left_out


def _cell(value: object) -> str:
    is_gap = value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas
    if is_gap or (isinstance(value, Real) and value != value):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column with gaps
    return str(value).strip()


def _names(store: Store, ends: set[str]) -> dict[str, str]:
    """Return which question of the forum is meant by each id or title that it has; of equal titles the first."""
    known = {end: end for end in store.nums_by_id(ends)}
    titles = {_folded(end): end for end in ends - known.keys()}
    if titles:
        for _, question in store.all_questions():
            end = titles.pop(_folded(question.title), None)
            if end is not None:
                known[end] = question.id
    folded = {_folded(end): identifier for end, identifier in known.items() if end != identifier}
    return known | {end: folded[_folded(end)] for end in ends - known.keys() if _folded(end) in folded}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _store(store: Store, known: Sequence[tuple[Label, tuple[str, str]]]) -> int:
    """Store the labels of pairs that no person has judged, in a drawn order; return how many were new.

    Of many judgements the newest move probabilities: a file that is sorted by what it says would move them wrongly.
    """
    existing = {frozenset((said.question_id, said.candidate_id)): said for said in store.judgements()}
    new: dict[frozenset[str], Feedback] = {}
    for label, pair in known:
        verdict: Verdict = "duplicate" if label.is_same else "different"
        before = existing.get(frozenset(pair))
        if before is None or (before.draw.by == "label" and before.verdict != verdict):
            new[frozenset(pair)] = Feedback(*pair, verdict, draw=Draw("label"))
    judgements = list(new.values())
    random.Random(0).shuffle(judgements)
    if judgements:
        store.add_judgements(judgements)
    return len(judgements)


def _logits(store: Store, indexes: Indexes, labels: Sequence[Label], ends: Sequence[tuple[str, str]]) -> Floats:
    """Return the logit of each pair before the forum's judgements, the first as the query."""
    numbers = store.nums_by_id({end for pair in ends for end in pair if end})
    pairs = [(numbers.get(first, 0), numbers.get(second, 0)) for first, second in ends]
    known = indexes.logits([pair for pair in pairs if all(pair)])
    texts = store.questions_by_id(sorted(numbers))
    values = []
    for label, pair, (first, second) in zip(labels, pairs, ends, strict=True):
        if pair in known:
            values.append(known[pair])
            continue
        query = texts[first].title if first else label.first
        other = texts[second].title if second else label.second
        values += indexes.text_logits(query, [other])
    return np.array(values, dtype=np.float64)


def _curve(likely: Floats, is_same: NDArray[np.bool_], clusters: NDArray[np.int64]) -> Iterator[CurvePoint]:
    tell = partial(share_at, likely=likely, is_same=is_same, clusters=clusters)
    for minimum in GRID:
        shown = int((likely >= minimum).sum())
        if shown:
            precision, recall = tell("precision", minimum=minimum), tell("recall", minimum=minimum)
            yield CurvePoint(minimum, shown, precision.value, precision.low, precision.high, recall.value)


BAR: Final = 20


def curve_lines(report: LabelReport) -> Iterator[str]:
    """Yield the curve as a picture in text: a bar of precision, with its interval, for every probability."""
    yield f"{'from':>5} {'pairs':>7}  {'precision':<{BAR}}  {'':4} {'90 % interval':<13}  recall"
    for point in islice(report.curve, 0, None, 2):
        bar = "█" * round(BAR * point.precision)
        interval = f"{point.low:.2f} to {point.high:.2f}"
        yield (
            f"{point.minimum:>5.2f} {point.shown:>7,}  {bar:<{BAR}}  {point.precision:4.2f} {interval:<13} "
            f" {point.recall:6.2f}"
        )


def calibration_lines(report: LabelReport) -> Iterator[str]:
    """Yield how right probabilities are for the labelled pairs, before and with them, as a picture in text."""
    yield "how right probabilities are: what they say (░) and what the labels say (█)"
    for name, groups in (("before the labels", report.before), ("with the labels", report.after)):
        yield f"{name}, off by {100 * calibration_error(groups):.1f} % on average"
        for group in groups:
            share = group.same / group.judged
            yield f"  {group.least:.1f} to {group.below:.1f} {group.judged:>7,}  {_bar('░', group.mean)}"
            yield f"{'':22}{_bar('█', share)}"


def _bar(sign: str, share: float) -> str:
    return f"{sign * round(BAR * share):<{BAR}}  {share:4.2f}"
