"""``askalike train``: a forum's texts and duplicate marks into a model of its own, taken where it is better."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from askalike.archive import Layout
from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import print_json, print_whole
from askalike.cli.progress import BarProgress
from askalike.cli.stopping import same_again, telling_how_to_go_on
from askalike.cli.train_plan import plan_lines, plan_object
from askalike.cli.train_report import RankerVerdict, Verdict, verdict
from askalike.data import DEFAULT_MODEL_LANGUAGE, default_model
from askalike.errors import MissingExtraError, SettingError
from askalike.experiments.finished_model import MODEL, is_finished, keep_finished
from askalike.experiments.forum_parts import keep_parts
from askalike.experiments.forum_training import ForumTraining, dev_score, forum_training, going_on
from askalike.experiments.learned_marks import keep_learned
from askalike.experiments.likeness import likeness
from askalike.experiments.ranker_score import ranker_score
from askalike.experiments.work_folder import clear_work, work_folder
from askalike.forum import Forum, ForumSettings
from askalike.forum.model_source import ModelSource, fingerprint, general_model, own_model, wanted_model
from askalike.forum.settings import stored_language
from askalike.models.encoders.model import Model
from askalike.models.siamese.model import SiameseModel
from askalike.rank.reranker import learned_with
from askalike.text.settings import TextSettings
from askalike.training.language import LanguageRecipe, learn_language_model
from askalike.training.recipe import AnyRecipe, Recipe, load_recipe, shipped_recipes
from askalike.training.siamese.recipe import SiameseRecipe

__all__ = ["train"]

DEFAULT = "default"
OF_NETWORKS = ("ramn",)
"""The rankers that look at the states of a network."""


@dataclass(frozen=True, slots=True)
class _Choices:
    """Where and how a training runs, as the command line says it."""

    seed: int
    device: str
    threads: int
    processes: int
    is_fresh: bool
    is_kept: bool


def train(
    forum: ForumArgument,
    recipe: Annotated[
        str, typer.Option("--recipe", help=f"A recipe that ships ({', '.join(shipped_recipes())}), or a TOML file.")
    ] = DEFAULT,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            help="general, own (the forum's), nothing, or a model's folder to go on from. If left out: the general "
            "model for the default recipe and a forum in English, where the package carries it; nothing for others.",
        ),
    ] = "",
    hold_out: Annotated[
        bool,
        typer.Option(
            "--hold-out-test",
            help="Leave the marks of the test part alone, so that askalike evaluate --split test is honest afterwards. "
            "If left out, they are learned from.",
        ),
    ] = False,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:N.")] = "cpu",
    seed: Annotated[int, typer.Option("--seed", help="Of everything that is drawn.", min=0)] = 0,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on where a stopped training was, or begin anew.")
    ] = True,
    threads: Annotated[
        int, typer.Option("--threads", help="Of each process; 0 takes torch's choice.", min=0, max=1024)
    ] = 0,
    processes: Annotated[
        int, typer.Option("--processes", help="That share the batches; with --device cuda one a GPU.", min=1)
    ] = 1,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Take the new model even if it is not better on dev or there is no dev part; one that was finished "
            "and not taken is taken without training again, unless more than new questions has changed.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model on a forum's own questions, answers and duplicate marks, and search with it if it is better.

    A fifth of the duplicates (the dev part of askalike evaluate --split) is kept apart: training stops by it, and by it
    the new model is compared with the one before. With fewer than 10 groups of duplicates there is no dev part: every
    mark is learned from, for as many epochs as the recipe says; where a model answered before, its own or the general
    one, the new one is then taken with --keep alone. askalike encode FORUM --model general leads back.

    A recipe of a ranker (ramn, scqa, dsqa, lmir, translation, translm, phrase, qatm, sqatm) leaves the model as it is:
    what it makes answers askalike search --ranker with its name; of scqa and dsqa also as t-scqa and t-dsqa. ramn, scqa
    and dsqa are networks; all others are counted and learned in minutes, without torch and on one core.
    """
    chosen = load_recipe(recipe)
    given = {
        "--from": bool(begin),
        "--processes": processes > 1,
        "--device": device != "cpu",
        "--threads": threads > 0,
    }
    if keep and chosen.ranker:
        raise SettingError(f"--keep with a recipe of {chosen.ranker}, whose model is taken in any case", "leave it out")
    if isinstance(chosen, LanguageRecipe):
        _refuse(given, chosen, "trains no network")
        chosen = chosen.seeded(seed) if seed else chosen
    else:
        _need_torch()
        _check_device(device)
    if isinstance(chosen, SiameseRecipe):
        _refuse({name: given[name] for name in ("--from", "--processes")}, chosen, "begins anew, in one process")
    if isinstance(chosen, Recipe) and chosen.ranker not in ("", *OF_NETWORKS):
        raise SettingError(
            f"the recipe trains a network for the ranker {chosen.ranker!r}",
            f"expected one of {', '.join(OF_NETWORKS)} where there is an encoder",
        )
    start = _start(forum, begin, recipe)
    if start is not None and recipe == DEFAULT and isinstance(chosen, Recipe):
        chosen = going_on(chosen, Model.load(start.folder))
    began = time.monotonic()
    choices = _Choices(seed, device, threads, processes, not resume, keep)
    place = Layout(forum).training(chosen.ranker)
    with telling_how_to_go_on(lambda: (f"what was done is kept in {place}", same_again())):
        found = _trained(forum, (recipe, chosen), start, hold_out, choices, as_json)
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        print_json({**found[0], **found[1].to_json(), "seconds": seconds})
    else:
        for line in found[1].lines(forum, seconds):
            print_whole(line)


def _trained(
    path: Path,
    named: tuple[str, AnyRecipe],
    start: ModelSource | None,
    is_test_held_out: bool,
    choices: _Choices,
    is_quiet: bool,
) -> tuple[dict[str, object], Verdict | RankerVerdict]:
    """Read, train, compare, and take the model where it is better; return the plan and what came of it.

    What a ranker has learned is taken in any case: it answers where it is asked for by its name.
    """
    name, recipe = named
    with BarProgress() as progress, Forum.open(path, settings=ForumSettings(has_vectors=False)) as opened:
        progress.start("reading the forum", 0, "")
        hard_negatives = recipe.hard_negatives() if isinstance(recipe, Recipe) else 0
        answers = recipe.options.most_answers if isinstance(recipe, LanguageRecipe) else 1
        training = forum_training(
            opened, is_test_held_out=is_test_held_out, answers=answers, hard_negatives=hard_negatives
        )
        text = opened.analyzer.settings
    recipe = replace(recipe, text=text) if isinstance(recipe, SiameseRecipe) else recipe
    asked: dict[str, str | int] = {
        "recipe": recipe.to_json(),
        "start": start.fingerprint if start else "",
        "seed": choices.seed,
        "processes": choices.processes,
    }
    dev = "" if training.dev is None else repr(sorted(training.dev.qrels.items()))
    plan = {**asked, "data": training.data.digest(), "dev": dev}
    folder = Layout(path).training(recipe.ranker)
    with work_folder(folder, plan, is_fresh=choices.is_fresh) as beginning:
        has_ended = is_finished(folder, asked, training.data)
        if has_ended and (choices.is_kept or _is_own(path, folder / MODEL)):
            beginning = "finished"
        keep_parts(path, training.parts)
        told = plan_object(path, (name, recipe), start.name if start else "", training, (folder, beginning))
        told["is_taken_with_keep_alone"] = not (
            recipe.ranker or training.dev or choices.is_kept or wanted_model(Layout(path), text.language) is None
        )
        if not is_quiet:
            for line in plan_lines(told):
                print_whole(line)
        if beginning != "finished":
            _make(recipe, training, start, folder, choices, text)
            keep_finished(folder, asked, training.data)
        if recipe.ranker:
            return told, _take_ranker(path, recipe.ranker, training)
        result = _compared(path, training, Model.load(folder / MODEL), choices.is_kept)
        if result.is_taken:
            _take(path, training, start)
    return told, result


def _take(path: Path, training: ForumTraining, start: ModelSource | None) -> None:
    """Let the finished model answer; the same again goes on where this was stopped."""
    folder = Layout(path).training()
    learned = {one for pair in training.data.pairs for one in pair}
    keep_learned(path, fingerprint(folder / MODEL), learned, start.fingerprint if start else "")
    if not _is_own(path, folder / MODEL):
        with Forum.open(path, settings=ForumSettings(has_vectors=False)) as opened:
            opened.use_model(folder / MODEL)
    with BarProgress() as progress, Forum.open(path, progress=progress) as opened:
        opened.encode(progress=progress)
    clear_work(folder)


def _take_ranker(path: Path, name: str, training: ForumTraining) -> RankerVerdict:
    """Let the ranker answer with what it has learned, and return how good it is on dev."""
    folder = Layout(path).training(name)
    with Forum.open(path, settings=ForumSettings(has_vectors=False)) as opened:
        opened.use_ranker(name, folder / MODEL)
        scores = {one: ranker_score(training.dev, opened, one) for one in learned_with(name)} if training.dev else {}
    alike = likeness(Model.load(folder / MODEL), training.data.questions) if name in OF_NETWORKS else None
    clear_work(folder)
    return RankerVerdict(name, dev_score(training.dev, None, 0).search if training.dev else None, scores, alike)


def _is_own(path: Path, model: Path) -> bool:
    """Return whether the forum's own model is this one."""
    present = own_model(Layout(path))
    return present is not None and present.fingerprint == fingerprint(model)


def _make(
    recipe: AnyRecipe,
    training: ForumTraining,
    start: ModelSource | None,
    folder: Path,
    choices: _Choices,
    text: TextSettings,
) -> None:
    """Put what a recipe makes of a forum into the work folder."""
    if isinstance(recipe, Recipe):
        _fit(recipe, training, start, folder, choices).save(folder / MODEL)
    elif isinstance(recipe, SiameseRecipe):
        _fit_siamese(recipe, training, folder, choices).save(folder / MODEL)
    else:
        with BarProgress() as progress:
            learn_language_model(recipe, training.data, text, progress).save(folder / MODEL)


def _fit_siamese(recipe: SiameseRecipe, training: ForumTraining, folder: Path, choices: _Choices) -> SiameseModel:
    import torch  # here and below, since importing this module must not load torch

    from askalike.training.encoder import TrainingRun
    from askalike.training.siamese.fit import fit_siamese

    if choices.threads:
        torch.set_num_threads(choices.threads)
    with BarProgress() as progress:
        return fit_siamese(recipe, training.data, TrainingRun(folder, choices.seed, choices.device, progress=progress))


def _fit(recipe: Recipe, training: ForumTraining, start: ModelSource | None, folder: Path, choices: _Choices) -> Model:
    import torch

    from askalike.cli.processes import fit_together
    from askalike.training.encoder import TrainingRun, train_encoder

    run = TrainingRun(folder, choices.seed, choices.device)
    if choices.processes > 1:
        shape = (choices.processes, choices.threads)
        return fit_together(recipe, training.data, run, start.folder if start else None, shape)
    if choices.threads:
        torch.set_num_threads(choices.threads)
    with BarProgress() as progress:
        model = Model.load(start.folder) if start else None
        return train_encoder(recipe, training.data, TrainingRun(folder, choices.seed, choices.device, model, progress))


def _compared(path: Path, training: ForumTraining, model: Model, is_kept: bool) -> Verdict:
    """Return whether the new model is better on dev than what answers now; nothing is compared where it is that."""
    present = wanted_model(Layout(path), stored_language(Layout(path)))
    if _is_own(path, Layout(path).training() / MODEL):
        return Verdict(None, None, "own", is_taken=True, is_better=None, was_taken_before=True)
    if training.dev is None:
        return verdict(None, None, present.name if present else "", is_kept=is_kept)
    weight = ForumSettings().search.join.weight
    before = dev_score(training.dev, Model.load(present.folder) if present else None, weight)
    after = dev_score(training.dev, model, weight)
    return verdict(before, after, present.name if present else "", is_kept=is_kept)


def _start(forum: Path, begin: str, recipe: str) -> ModelSource | None:
    """Return the model to go on from.

    Raises:
        SettingError: the general model was asked for and the package carries none for the forum's language, or the
            forum's own and it has none.
        ModelError: there is no model in the folder.
    """
    if begin == "nothing" or (not begin and recipe != DEFAULT):
        return None
    language = stored_language(Layout(forum))
    if not begin and (default_model() is None or language != DEFAULT_MODEL_LANGUAGE):
        return None
    if begin in ("", "general"):
        return general_model(language)
    if begin == "own":
        found = own_model(Layout(forum))
        if found is None:
            raise SettingError(
                f"the forum at {forum} has no model of its own", "say --from general or nothing, or a model's folder"
            )
        return found
    Model.load(begin)
    return ModelSource(Path(begin), begin, fingerprint(Path(begin)))


def _refuse(given: Mapping[str, bool], recipe: LanguageRecipe | SiameseRecipe, why: str) -> None:
    """Raise SettingError where options were given that a recipe has no use for."""
    if wrong := [option for option, is_given in given.items() if is_given]:
        raise SettingError(f"{wrong[0]} with a recipe of {recipe.ranker}, which {why}", "leave it out")


def _check_device(name: str) -> None:
    """Raise SettingError where there is no such device, before anything is read or written."""
    from askalike.training.encoder import device_named

    device_named(name)


def _need_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("training needs torch, which is not installed", "train")
