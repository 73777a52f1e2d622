"""``askalike train``: a forum's texts and duplicate links into a model of its own, taken where it is better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from askalike.cli.arguments import ForumArgument, JsonOption, command, interruptible, same_again
from askalike.cli.display import print_facts, print_whole
from askalike.cli.messages import BarProgress, messages, print_json
from askalike.evaluation import Comparison
from askalike.forum import Forum, ForumSettings
from askalike.forum.forum import size_bytes
from askalike.store import ForumLayout
from askalike.training.recipe import Adaptation, Recipe, shipped_recipes
from askalike.training.session import (
    DEFAULT,
    DevScore,
    TrainingOptions,
    TrainingPlan,
    TrainingResult,
    TrainingSession,
    checked_recipe,
)
from askalike.training.work_folder import Beginning

CHANCE: Final = 0.05
"""From which p-value on a difference is said to be perhaps chance."""

LEAST_TELLING: Final = 6
"""Queries of dev that two searches must order differently: with fewer, no difference has a p-value below ``CHANCE``."""


def train(
    forum: ForumArgument,
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            help=f"A bundled recipe ({', '.join(shipped_recipes())}), or a TOML file.",
            autocompletion=lambda incomplete: [name for name in shipped_recipes() if name.startswith(incomplete)],
        ),
    ] = DEFAULT,
    hold_out: Annotated[
        bool,
        typer.Option(
            "--hold-out-test",
            help="Leave the links of the test split alone, so that askalike evaluate --split test is honest "
            "afterwards. If left out, they are learned from.",
        ),
    ] = False,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:N.")] = "cpu",
    seed: Annotated[int, typer.Option("--seed", help="Random seed.", min=0)] = 0,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Continue a stopped training, or start again.")
    ] = True,
    threads: Annotated[
        int, typer.Option("--threads", help="Threads of torch; 0: torch's default.", min=0, max=1024)
    ] = 0,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Take the new model even if it is not better on dev beyond chance or there is no dev split; one that "
            "was finished and not taken is taken without training again, unless more than new questions has changed.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Adapt the encoder to a forum's own questions and answers.

    With --recipe a network of its own is trained. Both learn from answers and duplicate links too. A fifth of the
    duplicates (the dev split of askalike evaluate --split) is kept apart: by it the new model is compared with the
    one before, and taken where it is better by more than chance brings. With fewer than 10 groups of duplicates there
    is no dev split: every link is learned from, and an adapted encoder is compared by how well titles find their own
    bodies among those of questions that were left out; a network is then taken with --keep alone. askalike encode
    FORUM --model general leads back.
    """
    options = TrainingOptions(hold_out, seed, device, threads, is_fresh=not resume, is_kept=keep)
    checked_recipe(recipe, options)  # an error before the forum is read
    place = ForumLayout(forum).training
    with (
        interruptible(lambda: (f"the work so far is kept in {place}", same_again())),
        Forum.open(forum, settings=ForumSettings()) as opened,
        TrainingSession(opened, recipe, options) as session,
    ):
        with BarProgress() as progress:
            plan = session.plan(progress)
        if not as_json:
            facts = {**plan_object(plan), "training": STARTS[plan.beginning]}
            print_facts({name: fact for name, fact in facts.items() if name not in ("beginning", KEEP)})
            if facts[KEEP]:
                messages.note("nothing can show whether the new model is better: it is taken with --keep alone")
        if plan.beginning != "finished":
            data = plan.training.data
            texts = f"{len(data.questions):,} questions and {len(data.answers):,} answers"
            messages.note(f"training on {texts}; what is done is kept when it is stopped")
        with BarProgress(says_start=True) as progress:
            result = session.run(progress)
    if as_json:
        print_json({**plan_object(plan), **result_object(result), "seconds": result.seconds})
    else:
        for line in result_lines(result, forum):
            print_whole(line)


KEEP: Final = "is_taken_with_keep_alone"
STARTS: Final[Mapping[Beginning, str]] = {
    "anew": "from the start",
    "goes on": "where the last training was stopped",
    "changed": "from the start, since recipe, texts or links have changed",
    "finished": "nothing to train: it was finished before",
}


def plan_object(plan: TrainingPlan) -> dict[str, Any]:
    """Return what is going to be done as JSON has it."""
    training = plan.training
    return {
        "forum": str(plan.forum),
        "questions": len(training.data.questions),
        "answers": len(training.data.answers),
        "links": training.links,
        "groups": training.components,
        "learned_links": len(training.data.pairs),
        "dev_queries": len(training.dev.queries) if training.dev else 0,
        "dev_queries_that_count": training.dev_queries_that_count,
        "why_no_dev": training.why_no_dev or None,
        "held_out_links": training.held_out,
        "recipe": plan.name,
        "stages": [
            {"objective": stage.objective, "epochs": stage.loop.epochs, "needs": stage.needs or None}
            for stage in plan.recipe.stages
        ],
        "encoder": _encoder(plan.recipe),
        "folder": str(plan.folder),
        "beginning": plan.beginning,
        KEEP: plan.is_taken_with_keep_alone,
    }


def _encoder(recipe: Recipe | Adaptation) -> str:
    if isinstance(recipe, Adaptation):
        return "the bundled one, adapted"
    encoder = recipe.encoder
    return f"{encoder.kind}, {encoder.hidden_size} dimensions, {encoder.parameter_count():,} parameters"


def result_object(result: TrainingResult) -> dict[str, Any]:
    """Return what came of a training as JSON has it."""
    return {
        "dev_before": _score_object(result.before),
        "dev_after": _score_object(result.after),
        "dev_difference": _difference_object(result.comparison),
        "before": result.present or None,
        "is_better": result.is_better,
        "is_taken": result.is_taken,
        "was_taken_before": result.was_taken_before,
    }


def _score_object(score: DevScore | None) -> dict[str, float] | None:
    return {"search": score.search, "cosine": score.cosine} if score else None


def _difference_object(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    interval = [comparison.difference.low, comparison.difference.high]
    return {
        "search": comparison.difference.mean,
        "interval95": interval,
        "p_value": comparison.p_value,
        "queries": comparison.queries,
    }


def result_lines(result: TrainingResult, forum: Path) -> Iterator[str]:
    """Yield what came of a training as lines."""
    if result.before and result.after:
        before = f"{result.before.cosine:8.4f}" if result.present else " " * 8
        if result.left_out:
            yield f"MRR of a title's own body among those of {result.left_out:,} questions; duplicates are not in it"
        yield f"{'MRR' if result.left_out else 'dev MRR':<10s} {'search':>8s} {'cosine':>8s}"
        yield f"  before   {result.before.search:8.4f} {before}  {_name(result.present)}"
        yield f"  after    {result.after.search:8.4f} {result.after.cosine:8.4f}  the new model"
    if comparison := result.comparison:
        difference = comparison.difference
        chance = "; it may be chance" if comparison.p_value >= CHANCE and difference.mean else ""
        yield (
            f"  search   {difference.mean:+8.4f} ({difference.low:+.4f} to {difference.high:+.4f}), p ="
            f" {comparison.p_value:.4f} over {comparison.queries:,} queries{chance}"
        )
    yield from _outcome(result)
    if result.is_taken:
        yield f'  {command("search", forum)} "your question"'
    else:
        place = ForumLayout(forum).training
        yield "  run again with --keep to use it anyway (nothing is retrained)"
        yield f"  until then it is kept in {place} ({size_bytes(place) / 1e6:,.0f} MB), which may be deleted"


def _outcome(result: TrainingResult) -> Iterator[str]:
    present, took = _name(result.present), f"({result.seconds:.1f} s)"
    if result.was_taken_before:
        yield f"the forum already uses this model; its encoding is complete {took}"
    elif result.is_better is None and result.is_taken:
        yield f"the new model is in use {took}; not compared: the forum has no labelled dev split"
    elif result.is_better is None:
        yield f"not compared, because the forum has no labelled dev split: {present} stays {took}"
    elif result.is_better:
        yield f"the new model is better on dev and is in use from now on {took}"
    elif result.is_taken:
        yield f"the new model is not better on dev beyond chance; it is in use from now on because of --keep {took}"
    elif (comparison := result.comparison) and (ordered := comparison.better + comparison.worse) < LEAST_TELLING:
        yield f"too few dev queries differ to decide: {present} stays {took}"
        yield f"  the two models order {ordered:,} queries differently; at least {LEAST_TELLING} are needed"
    elif comparison and comparison.difference.mean > 0:
        yield f"the new model is better on dev by no more than chance may bring: {present} stays {took}"
    else:
        yield f"training did not help: {present} stays {took}"


def _name(present: str) -> str:
    own = {"own": "the forum's model before", "adapted": "the forum's adapted encoder before"}
    return {"": "the search by words alone", **own}.get(present, f"the encoder {present}")
