"""What ``askalike train`` says before it begins.

Enters: a plan. Leaves: lines and JSON objects. May import: experiments, train's recipe, cli.display.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from askalike.cli.display import safe
from askalike.experiments.forum_training import ForumTraining
from askalike.experiments.work_folder import Beginning
from askalike.training.language import LanguageRecipe
from askalike.training.recipe import AnyRecipe, Recipe
from askalike.training.siamese.recipe import SiameseRecipe

__all__ = ["plan_lines", "plan_object"]

_BEGINNINGS: Mapping[Beginning, str] = {
    "anew": "begins",
    "goes on": "goes on from what is there",
    "finished": "holds the finished model; nothing is to be trained",
    "changed": "begins anew, since forum, recipe, seed or model have changed since the last training",
}


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
        if plan.get("is_taken_with_keep_alone"):
            yield "taken      with --keep alone: nothing will tell whether it is better than the model that answers now"
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
