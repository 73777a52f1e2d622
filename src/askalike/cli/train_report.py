"""What ``askalike train`` says when it is done.

Enters: dev scores. Leaves: lines and JSON objects. May import: archive's layout, evaluate, experiments, forum's sizes,
rank's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from askalike.archive import Layout
from askalike.cli.calling import command
from askalike.evaluation import Comparison, compare
from askalike.experiments.forum_training import DevScore
from askalike.experiments.likeness import COLLAPSED
from askalike.forum.info import size_bytes
from askalike.rank import learned_with

__all__ = ["RankerVerdict", "Verdict", "verdict"]

CHANCE: Final = 0.05
"""From which p-value on a difference is said to be perhaps chance."""

LEAST_TELLING: Final = 6
"""Queries of dev that two searches must order differently: with fewer, no difference has a p-value below ``CHANCE``."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a training.

    Args:
        before, after: dev scores; None where there is no dev part.
        present: what answered before: "own", "general", or "" for words alone.
        is_taken: whether the new model answers from now on.
        is_better: on dev; None where there is none, or nothing was compared.
        was_taken_before: a training that was stopped while its model encoded had taken it; nothing was compared.
        search: what the search orders by after and before, query by query; None where nothing was compared.
    """

    before: DevScore | None
    after: DevScore | None
    present: str
    is_taken: bool
    is_better: bool | None
    was_taken_before: bool = False
    search: Comparison | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what came of it as JSON."""
        return {
            "dev_before": _score_object(self.before),
            "dev_after": _score_object(self.after),
            "dev_difference": _difference_object(self.search),
            "before": self.present or None,
            "is_better": self.is_better,
            "is_taken": self.is_taken,
            "was_taken_before": self.was_taken_before,
        }

    def lines(self, forum: Path, seconds: float) -> Iterator[str]:
        """Yield what came of it as lines."""
        if self.before and self.after:
            yield f"dev MRR    {'search':>8s} {'cosine':>8s}"
            before = f"{self.before.cosine:8.4f}" if self.present else " " * 8
            yield f"  before   {self.before.search:8.4f} {before}  {_name(self.present)}"
            yield f"  after    {self.after.search:8.4f} {self.after.cosine:8.4f}  the new model"
        if self.search:
            found = self.search.difference
            yield (
                f"  search   {found.mean:+8.4f} ({found.low:+.4f} to {found.high:+.4f}), p = {self.search.p_value:.4f}"
                + (f" over {self.search.queries:,} queries{_reading(self.search)}")
            )
        yield from self._outcome(seconds)
        if not self.is_taken:
            place = Layout(forum).training()
            yield "  say the same with --keep to take the new model anyhow; it is not trained again for that"
            yield f"  until then it lies in {place} ({size_bytes(place) / 1e6:,.0f} MB), which may be deleted"
        else:
            yield f'  {command("search", forum)} "your question"'

    def _outcome(self, seconds: float) -> Iterator[str]:
        if self.was_taken_before:
            yield f"the forum had taken this model before; it is encoded to the end and answers ({seconds:.1f} s)"
        elif self.is_better is None and self.is_taken:
            yield f"the new model answers ({seconds:.1f} s); without a dev part nothing says that it is better"
        elif self.is_better is None:
            yield f"without a dev part nothing says that the new model is better: {_name(self.present)} stays" + (
                f" ({seconds:.1f} s)"
            )
        elif self.is_better:
            yield f"the new model is better on dev and answers from now on ({seconds:.1f} s)"
        elif self.is_taken:
            yield f"the new model is not better on dev; it answers from now on, since --keep was said ({seconds:.1f} s)"
        elif self.search and (ordered := self.search.better + self.search.worse) < LEAST_TELLING:
            yield f"dev cannot tell whether it is better: {_name(self.present)} stays ({seconds:.1f} s)"
            yield f"  the two order {ordered:,} of its queries differently, and it takes {LEAST_TELLING} to tell"
        else:
            yield f"training did not help: {_name(self.present)} stays ({seconds:.1f} s)"


@dataclass(frozen=True, slots=True)
class RankerVerdict:
    """What came of the training of a ranker, which answers where it is asked for by its name.

    Args:
        search: MRR of dev queries by the search for words; None where there is no dev part.
        rankers: the same by the ranker, and by others that use what it has learned; empty where there is no dev part.
        likeness: of the states of its words, where it compares these; see ``experiments.likeness``.
    """

    name: str
    search: float | None
    rankers: Mapping[str, float]
    likeness: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what came of it as JSON."""
        found = {"ranker": self.name, "dev_search": self.search, "dev_ranker": self.rankers.get(self.name)}
        found |= {} if self.likeness is None else {"likeness": self.likeness}
        return {**found, "dev_rankers": dict(self.rankers), "is_taken": True}

    def lines(self, forum: Path, seconds: float) -> Iterator[str]:
        """Yield what came of it as lines."""
        if self.search is not None and self.rankers:
            by = ", ".join(f"{score:.4f} by {name}" for name, score in self.rankers.items())
            yield f"dev MRR    {by}, {self.search:.4f} by the search for words alone"
            if max(self.rankers.values()) < self.search:
                yield "on dev the search orders candidates better than what was learned; it stays the default"
        if self.likeness is not None and self.likeness > COLLAPSED:
            yield (
                f"note: all words are nearly alike to it (mean cosine {self.likeness:.2f}): so few questions teach it"
                " the words themselves, and next to nothing of their meaning"
            )
        others = [name for name in learned_with(self.name) if name != self.name]
        also = f", as does {', '.join(others)}" if others else ""
        yield f"the ranker {self.name} answers where it is asked for{also} ({seconds:.1f} s)"
        yield f'  {command("search", forum)} "your question" --ranker {self.name}'


def verdict(before: DevScore | None, after: DevScore | None, present: str, *, is_kept: bool) -> Verdict:
    """Return whether a new model is taken: where it is better on dev, where it is to be, or, without dev, where no
    model was there before.

    >>> verdict(DevScore(0.5, 0.3), DevScore(0.5, 0.4), "own", is_kept=False).is_taken
    True
    >>> verdict(DevScore(0.5, 0.0), DevScore(0.5, 0.4), "", is_kept=False).is_taken  # words alone do as well
    False
    >>> verdict(None, None, "general", is_kept=False).is_taken
    False
    """
    is_better = None
    if before is not None and after is not None:
        is_better = after > before if present else after.search > before.search
    is_taken = is_kept or (is_better if is_better is not None else not present)
    search = (
        compare(after.report, before.report, "mrr") if before and before.report and after and after.report else None
    )
    return Verdict(before, after, present, is_taken, is_better, search=search)


def _score_object(score: DevScore | None) -> dict[str, float] | None:
    return {"search": score.search, "cosine": score.cosine} if score else None


def _difference_object(found: Comparison | None) -> dict[str, Any] | None:
    if found is None:
        return None
    interval = [found.difference.low, found.difference.high]
    return {"search": found.difference.mean, "interval95": interval, "p_value": found.p_value, "queries": found.queries}


def _reading(found: Comparison) -> str:
    """Return what is to be thought of a difference, "" where it is hardly chance."""
    return "; it may be chance" if found.p_value >= CHANCE and found.difference.mean else ""


def _name(present: str) -> str:
    return {"": "the search by words alone", "own": "the forum's model before"}.get(present, f"the {present} model")
