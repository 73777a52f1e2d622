"""What ``askalike train`` says before it begins and when it is done.

Enters: a plan, dev scores. Leaves: lines and JSON objects. May import: evaluate, experiments, rank's names, train's
recipe, cli.display.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from askalike.cli.display import safe
from askalike.evaluate import Comparison, compare
from askalike.experiments.forum_training import DevScore, ForumTraining
from askalike.experiments.likeness import COLLAPSED
from askalike.experiments.work_folder import Beginning
from askalike.rank import learned_with
from askalike.train.recipe import AnyRecipe, LanguageRecipe, Recipe, SiameseRecipe

__all__ = ["RankerVerdict", "Verdict", "plan_lines", "plan_object", "verdict"]

CHANCE: Final = 0.05
"""From which p-value on a difference is said to be perhaps chance."""

_BEGINNINGS: Mapping[Beginning, str] = {
    "anew": "begins",
    "goes on": "goes on from what is there",
    "finished": "holds the finished model; nothing is to be trained",
    "changed": "begins anew, since forum, recipe, seed or model have changed since the last training",
}


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
        path = shlex.quote(str(forum))
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
            yield "  say the same with --keep to take the new model anyhow; it is not trained again for that"
        else:
            yield f'  askalike search {path} "your question"'

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
        yield f'  askalike search {shlex.quote(str(forum))} "your question" --ranker {self.name}'


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


def plan_object(
    forum: Path,
    named: tuple[str, AnyRecipe],
    start: str,
    training: ForumTraining,
    place: tuple[Path, Beginning],
) -> dict[str, Any]:
    """Return what is going to be done as JSON."""
    data, (name, recipe), (folder, beginning) = training.data, named, place
    return {
        "forum": str(forum),
        "questions": len(data.questions),
        "answers": len(data.answers),
        "marks": training.marks,
        "groups": training.components,
        "learned_marks": len(data.pairs),
        "dev_queries": len(training.dev.queries) if training.dev else 0,
        "dev_queries_that_count": training.dev_queries_that_count,
        "why_no_dev": training.why_no_dev or None,
        "held_out_marks": training.held_out,
        "recipe": name,
        **_recipe_object(recipe),
        "goes_on_from": start or None,
        "folder": str(folder),
        "beginning": beginning,
    }


def _recipe_object(recipe: AnyRecipe) -> dict[str, Any]:
    if isinstance(recipe, LanguageRecipe):
        return _language_object(recipe)
    return _siamese_object(recipe) if isinstance(recipe, SiameseRecipe) else _network_object(recipe)


def _siamese_object(recipe: SiameseRecipe) -> dict[str, Any]:
    sizes = ("kernel_width", "channels", "poolings", "output_size")
    return {
        "learned_marks": 0,
        "siamese": {"ranker": recipe.ranker, **{name: asdict(recipe)[name] for name in sizes}},
        "epochs": recipe.loop.epochs,
    }


def _network_object(recipe: Recipe) -> dict[str, Any]:
    encoder = recipe.encoder
    return {
        "stages": [
            {"objective": stage.objective, "epochs": stage.loop.epochs, "needs": stage.needs or None}
            for stage in recipe.stages
        ],
        "encoder": f"{encoder.kind}, {encoder.hidden_size} dimensions, {encoder.parameter_count():,} parameters",
    }


def _language_object(recipe: LanguageRecipe) -> dict[str, Any]:
    topics = recipe.options.topic_learning
    return {
        "learned_marks": 0,
        "language_model": {"ranker": recipe.ranker, **asdict(recipe.options)},
        "iterations": recipe.alignment.iterations if recipe.alignment else 0,
        "topic_iterations": topics.iterations if topics else 0,
    }


def plan_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield the plan as lines."""
    yield f"forum      {plan['forum']}: {plan['questions']:,} questions, {plan['marks']:,} duplicate marks in" + (
        f" {plan['groups']:,} groups"
    )
    if "siamese" in plan:
        yield from _siamese_lines(plan)
    else:
        yield from _language_lines(plan) if "language_model" in plan else _network_lines(plan)
    yield f"work       {plan['folder']}: {_BEGINNINGS[plan['beginning']]}"


def _network_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    yield f"learns     from all texts, {plan['answers']:,} best answers, {plan['learned_marks']:,} marks"
    if plan["why_no_dev"]:
        yield f"dev        none: {safe(plan['why_no_dev'])}; training runs all its epochs and is not compared"
    else:
        yield f"dev        {plan['dev_queries']:,} queries of the dev part: training stops, and is compared, by the" + (
            f" {plan['dev_queries_that_count']:,} that have a marked question among their candidates"
        )
    if plan["held_out_marks"]:
        yield f"test       {plan['held_out_marks']:,} marks are left alone, for askalike evaluate --split test"
    elif plan["marks"]:
        yield "test       learned from too; --hold-out-test leaves it alone for askalike evaluate --split test"
    stages = " then ".join(
        f"{stage['objective']} (at most {stage['epochs']} epochs)"
        for stage in plan["stages"]
        if not (stage["needs"] == "pairs" and not plan["learned_marks"])
    )
    yield f"recipe     {safe(plan['recipe'])}: {stages}"
    yield f"encoder    {plan['encoder']}; goes on from {safe(plan['goes_on_from'] or 'nothing')}"


def _language_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    best = "" if plan["language_model"].get("most_answers", 1) > 1 else "best "
    read = f"all questions and {plan['answers']:,} {best}answers"
    aligned = f", both ways, by {plan['iterations']} iterations of IBM's model 1" if plan["iterations"] else ""
    topics = f", topics by {plan['topic_iterations']} iterations" if plan["topic_iterations"] else ""
    yield f"learns     from {read if aligned or topics else 'all questions'}{aligned}{topics}; from no marks"
    yield _compared_line(plan)
    chosen = ", ".join(f"{name} {value}" for name, value in plan["language_model"].items() if name != "ranker")
    yield f"recipe     {safe(plan['recipe'])}: {plan['language_model']['ranker']}; {chosen}"


def _siamese_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    yield f"learns     from {plan['answers']:,} best answers beside answers to other questions; from no marks"
    yield _compared_line(plan)
    chosen = dict(plan["siamese"])
    ranker = chosen.pop("ranker")
    sizes = ", ".join(f"{name} {value}" for name, value in chosen.items())
    yield f"recipe     {safe(plan['recipe'])}: {ranker} (at most {plan['epochs']} epochs); {sizes}"


def _compared_line(plan: Mapping[str, Any]) -> str:
    if plan["why_no_dev"]:
        return f"dev        none: {safe(plan['why_no_dev'])}; the ranker is not compared"
    return f"dev        {plan['dev_queries']:,} queries of the dev part: the ranker is compared by the" + (
        f" {plan['dev_queries_that_count']:,} that have a marked question among their candidates"
    )


def _name(present: str) -> str:
    return {"": "the search by words alone", "own": "the forum's model before"}.get(present, f"the {present} model")
