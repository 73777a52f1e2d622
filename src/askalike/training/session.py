"""A training of a forum's own model: planned, run, compared, taken.

::

    with TrainingSession(forum) as session:
        plan = session.plan()      # reads the forum, and holds the folder that the training works in
        result = session.run()     # trains what is not finished, compares, and takes the model where it is better

A model is better where the dev split says so by more than chance brings. Without one, an adapted encoder is better
where titles find their own bodies better among those of questions that were left out of the training: that says that
it tells texts of the forum apart, not that duplicates are found. A network is then taken where nothing but words
answered before, or where it is to be kept.

What is learned from, what training stops by and what is left alone, in this one place:

- Duplicate links are split by connected component as ``askalike evaluate --split`` does; what was in a split stays
  in it, and what is learned from because there is no dev counts as train from then on.
- *dev* stops the training and decides whether the new model is better: the dev split, where the forum has at least
  ``LEAST_COMPONENTS`` components; otherwise there is none, and every link is learned from.
- *test* is learned from too, unless it is to be held out for a measurement afterwards.
- Texts of all questions are learned from, those of dev and test too: a text says nothing of what it is linked with.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from askalike.data import GENERAL_LANGUAGE, general_folder
from askalike.errors import EvaluationError, MissingExtraError, SettingError
from askalike.evaluation import Comparison, Report, compare, components
from askalike.evaluation.forum.links import (
    DuplicateLinks,
    duplicate_task,
    keep_learned,
    keep_splits,
    kept_splits,
    read_duplicate_links,
    split_links,
)
from askalike.evaluation.forum.tasks import (
    RerankTask,
    VectorScorer,
    candidate_task,
    cosine_run,
    forum_rerank_task,
    judge,
    rerank,
)
from askalike.forum import Forum
from askalike.index.model_source import ModelSource, fingerprint, name_of, own_model, wanted_model
from askalike.models.adapted import load_model
from askalike.models.text_questions import QuestionEncoder, TextQuestions, loaded
from askalike.progress import Progress, SilentProgress
from askalike.store import ForumLayout
from askalike.training.corpus import TrainingData
from askalike.training.recipe import Adaptation, Recipe, read_recipe
from askalike.training.work_folder import MODEL, Beginning, clear_work, is_finished, keep_finished, work_folder
from askalike.types import Answer, Question

LEAST_COMPONENTS: Final = 10
"""Duplicate components from which on a fifth of them is kept as dev."""


@dataclass(frozen=True, slots=True)
class ForumTraining:
    """What is learned from a forum.

    Args:
        data: for ``train_encoder``.
        dev: dev queries with the twenty best of the search by words, or None.
        links: duplicate links in all, those of dev and test too.
        components: groups of questions that they join.
        held_out: links of the test split, where it is held out.
        why_no_dev: the reason where there is no dev, else "".
        splits: question → split, to be kept with the forum.
    """

    data: TrainingData
    dev: RerankTask | None
    links: int
    components: int
    held_out: int
    why_no_dev: str
    splits: Mapping[str, str]

    @property
    def dev_queries_that_count(self) -> int:
        """Return how many dev queries have a relevant candidate: the others are in no mean."""
        return sum(any(grades.values()) for grades in self.dev.qrels.values()) if self.dev else 0


def forum_training(forum: Forum, *, is_test_held_out: bool = False) -> ForumTraining:
    """Return what can be learned from a forum.

    Args:
        is_test_held_out: leave out the links of the split that ``askalike evaluate --split test`` scores.
    """
    links = read_duplicate_links(forum)
    questions, pairs = list(links.questions.values()), sorted(set(links.pairs))
    groups = components(pairs)
    dev, why_no_dev = _dev(forum, links, len(groups))
    splits = split_links(forum.path, pairs)
    left = {"dev"} if dev else set()
    left |= {"test"} if is_test_held_out else set()
    learned = {identifier for split, members in splits.items() if split not in left for identifier in members}
    kept = [pair for pair in pairs if pair[0] in learned]
    dev_sets = {"dev": candidate_task(dev)} if dev else {}
    data = TrainingData(questions, kept, _best_answers(forum, questions), dev_sets)
    test = set(splits["test"]) if is_test_held_out else set()
    held_out = sum(pair[0] in test for pair in pairs)
    return ForumTraining(data, dev, len(pairs), len(groups), held_out, why_no_dev, _splits_of_model(forum, splits, dev))


def _dev(forum: Forum, links: DuplicateLinks, count: int) -> tuple[RerankTask | None, str]:
    if count < LEAST_COMPONENTS:
        return None, f"{count} groups of duplicates, and a dev split is kept from {LEAST_COMPONENTS} on"
    try:
        dev = forum_rerank_task("dev", forum, duplicate_task(forum, "dev", links=links))
    except EvaluationError as error:
        return None, error.message
    if not any(any(grades.values()) for grades in dev.qrels.values()):
        return None, "the search by words finds no linked question of the dev split among its twenty best"
    return dev, ""


def _splits_of_model(forum: Forum, splits: Mapping[str, Collection[str]], dev: RerankTask | None) -> dict[str, str]:
    split_of = {
        **kept_splits(forum.path),
        **{question_id: split for split, members in splits.items() for question_id in members},
    }
    return (
        split_of
        if dev
        else {question_id: "train" if split == "dev" else split for question_id, split in split_of.items()}
    )


def _best_answers(forum: Forum, questions: Sequence[Question]) -> list[Answer]:
    """Return the best answer of each question that has one: accepted, then most voted."""
    return [answer for question in questions for answer in forum.answers(question.id)[:1]]


DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Where and how a training runs, beside its recipe.

    Args:
        is_test_held_out: leave the links of the test split alone, for an evaluation afterwards.
        device: cpu, cuda or cuda:N.
        threads: of torch; 0 takes torch's choice.
        is_fresh: begin anew where a stopped training could go on.
        is_kept: take the new model even if it is not better, or cannot be compared.
    """

    is_test_held_out: bool = False
    seed: int = 0
    device: str = "cpu"
    threads: int = 0
    is_fresh: bool = False
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What is going to be done.

    Args:
        is_taken_with_keep_alone: nothing will show whether the new model is better than the one that answers now.
    """

    forum: Path
    name: str
    recipe: Recipe | Adaptation
    training: ForumTraining
    folder: Path
    beginning: Beginning
    is_taken_with_keep_alone: bool


@dataclass(frozen=True, slots=True)
class DevScore:
    """How well the dev queries' candidates are ordered; the search decides.

    Args:
        search: MRR by the probability that both ask the same, as the default search orders; by words alone where
            there is no model.
        cosine: MRR by vectors alone; 0 where there is no model.
        report: the search query by query, to be compared with another's; None is better than nothing.
    """

    search: float
    cosine: float
    report: Report | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What came of a training.

    Args:
        folder: where the new model lies: in the forum where it was taken, else in the training's folder.
        is_taken: whether it answers from now on.
        present: what answered before: "own", "adapted", an encoder's name, or "" for words alone.
        before, after: dev scores; None where there is nothing to compare by.
        is_better: on dev, by more than chance brings; None where there is none, or nothing was compared.
        comparison: of the search after and before, query by query, with interval and p; None where there is none.
        was_taken_before: a training that was stopped while its model encoded had taken it; nothing was compared.
        left_out: questions whose titles and bodies the scores are of; 0 where they are of dev.
        seconds: from the beginning of the session.
    """

    folder: Path
    is_taken: bool
    present: str = ""
    before: DevScore | None = None
    after: DevScore | None = None
    is_better: bool | None = None
    comparison: Comparison | None = None
    was_taken_before: bool = False
    left_out: int = 0
    seconds: float = 0.0


def checked_recipe(name: str | Path, options: TrainingOptions) -> Recipe | Adaptation:
    """Return a recipe that can be run here; nothing of a forum is read for that.

    Raises:
        SettingError: there is none, or the device is not there.
        MissingExtraError: torch is not installed.
    """
    recipe = read_recipe(name)
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("training needs torch, which is not installed", "train")
    from askalike.training.encoder import device_named  # within functions, since importing this must not load torch

    device_named(options.device)
    return recipe


class TrainingSession:
    """One training of an open forum; a context manager, which holds the training's folder from ``plan`` on.

    Args:
        forum: read, and given the model. Its questions are encoded where it was opened with vectors.
        recipe: the name of one that ships, or a file.

    Raises:
        SettingError: there is no such recipe or device, or the recipe does not fit the forum's language.
        MissingExtraError: torch is not installed.
    """

    def __init__(self, forum: Forum, recipe: str | Path = DEFAULT, options: TrainingOptions | None = None) -> None:
        self._began = time.monotonic()
        self._forum, self._name, self._options = forum, str(recipe), options or TrainingOptions()
        self._layout = ForumLayout(forum.path)
        self._locks = ExitStack()
        self._recipe = checked_recipe(recipe, self._options)
        self._check_language()
        self._folder = self._layout.training
        self._plan: TrainingPlan | None = None

    def __enter__(self) -> TrainingSession:
        return self

    def __exit__(self, *_: object) -> None:
        self._locks.close()

    def plan(self, progress: Progress | None = None) -> TrainingPlan:
        """Read the forum, and return what is going to be done.

        Raises:
            BusyForumError: another training of this forum runs.
        """
        if self._plan is None:
            (progress or SilentProgress()).start("reading the forum", 0, "")
            training = self._read()
            dev = "" if training.dev is None else repr(sorted(training.dev.qrels.items()))
            plan = {**self._recipe_and_seed(), "data": training.data.digest(), "dev": dev}
            beginning = self._locks.enter_context(work_folder(self._folder, plan, is_fresh=self._options.is_fresh))
            if is_finished(self._folder, self._recipe_and_seed(), training.data) and (
                self._options.is_kept or self._is_taken()
            ):
                beginning = "finished"
            keep_splits(self._forum.path, training.splits)
            is_uncompared = not (training.dev or training.data.held_out or self._options.is_kept)
            self._plan = TrainingPlan(
                self._forum.path,
                self._name,
                self._recipe,
                training,
                self._folder,
                beginning,
                is_uncompared and self._present() is not None,
            )
        return self._plan

    def run(self, progress: Progress | None = None) -> TrainingResult:
        """Train what is not finished, compare it on dev, and take it where it is better.

        It can be interrupted; the same session again goes on where it was.

        Raises:
            SettingError, InputError: data and recipe do not fit each other, or a file that it names cannot be read.
            ModelError: the training failed, or a model cannot be read.
        """
        shown = progress or SilentProgress()
        plan = self.plan(shown)
        if plan.beginning != "finished":
            if plan.training.dev is not None:
                _encoder_of(self._present())  # what it will be compared with: better said before than afterwards
            self._make(plan.training, shown)
            keep_finished(self._folder, self._recipe_and_seed(), plan.training.data)
        result = self._compare(plan.training)
        if result.is_taken:
            self._take(plan.training, shown)
        return replace(result, seconds=round(time.monotonic() - self._began, 1))

    # -- what is learned from --------------------------------------------------------------------------------------

    def _recipe_and_seed(self) -> dict[str, str | int]:
        """Return what decides the model beside its data."""
        return {"recipe": self._recipe.to_json(), "seed": self._options.seed}

    def _read(self) -> ForumTraining:
        recipe = self._recipe
        training = forum_training(self._forum, is_test_held_out=self._options.is_test_held_out)
        if isinstance(recipe, Recipe) or training.dev is not None:
            return training
        from askalike.training.adaptation import left_out

        held_out = [question.id for question in left_out(training.data.questions)]
        return replace(training, data=replace(training.data, held_out=held_out))

    def _check_language(self) -> None:
        """Refuse to adapt the bundled encoder to a forum that it does not read."""
        language = self._forum.analyzer.settings.model_language
        if isinstance(self._recipe, Adaptation) and (language != GENERAL_LANGUAGE or general_folder() is None):
            raise SettingError(
                f"the bundled encoder reads {GENERAL_LANGUAGE}, and the forum's language is {language}",
                "train a network: --recipe lei2016",
            )

    # -- training ------------------------------------------------------------------------------------------------

    def _make(self, training: ForumTraining, progress: Progress) -> None:
        """Put what the recipe makes of the forum into the work folder."""
        recipe, data, folder = self._recipe, training.data, self._folder / MODEL
        import torch

        from askalike.training.adaptation import adapt_encoder
        from askalike.training.encoder import TrainingRun, train_encoder

        options = self._options
        run = TrainingRun(self._folder, options.seed, options.device, progress=progress)
        if options.threads:
            torch.set_num_threads(options.threads)
        if isinstance(recipe, Adaptation):
            adapt_encoder(recipe, data, run).save(folder)
        else:
            train_encoder(recipe, data, run).save(folder)

    # -- comparing and taking ------------------------------------------------------------------------------------

    def _present(self) -> ModelSource | None:
        """Return the model that is to answer now."""
        return wanted_model(self._layout, self._forum.analyzer.settings.model_language)

    def _is_taken(self) -> bool:
        """Return whether the forum's own model is the finished one."""
        present = own_model(self._layout)
        is_named = self._layout.encoder.exists()  # a text encoder, in place of any model
        return present is not None and not is_named and present.fingerprint == fingerprint(self._folder / MODEL)

    def _compare(self, training: ForumTraining) -> TrainingResult:
        """Return whether the new model is better on dev than what answers now; nothing is compared where it is that."""
        if self._is_taken():
            return TrainingResult(
                self._layout.model, is_taken=True, present=name_of(self._layout.model), was_taken_before=True
            )
        answering, new = self._present(), self._folder / MODEL
        before = after = None
        if training.dev is not None:
            before = dev_score(training.dev, _encoder_of(answering), self._forum)
            after = dev_score(training.dev, load_model(new), self._forum)
        elif training.data.held_out:
            encoder = _encoder_of(answering)
            before = None if encoder is None else self._own_bodies(training.data, encoder)
            after = self._own_bodies(training.data, load_model(new))
        comparison = compared(before, after, answering.name if answering else "", is_kept=self._options.is_kept)
        folder = self._layout.model if comparison.is_taken else new
        return replace(comparison, folder=folder, left_out=len(training.data.held_out))

    def _own_bodies(self, data: TrainingData, model: QuestionEncoder) -> DevScore:
        """Return how well titles find their own bodies among those of the questions that were left out."""
        from askalike.training.adaptation import own_bodies

        ids = set(data.held_out)
        questions = [question for question in data.questions if question.id in ids]
        report = own_bodies(questions, lambda texts: model.encode([Question("", text) for text in texts]))
        return DevScore(report.means["mrr"], report.means["mrr"], report)

    def _take(self, training: ForumTraining, progress: Progress) -> None:
        """Let the finished model answer; a session after one that was stopped here goes on."""
        learned = {question_id for pair in training.data.pairs for question_id in pair}
        keep_learned(self._forum.path, fingerprint(self._folder / MODEL), learned)
        if not self._is_taken():
            self._forum.models.use_model(self._folder / MODEL)
        self._forum.encode(progress=progress)
        clear_work(self._folder)


def _encoder_of(source: ModelSource | None) -> QuestionEncoder | None:
    """Return what encodes a forum's questions; None where nothing does."""
    if source is None:
        return None
    if source.encoder is None:
        return load_model(source.folder)
    return TextQuestions(loaded(source.encoder), source.encoder)


def dev_score(dev: RerankTask, model: QuestionEncoder | None, forum: Forum) -> DevScore:
    """Return how well the default search would order the dev candidates if a model answered in the forum.

    Args:
        model: None for the search by words alone.
    """
    vectors = None if model is None else VectorScorer(model)
    scorer = forum.indexes.pair_probabilities(
        vectors.vectors if vectors else None, model.encode_queries if model else None
    )
    search = judge(dev, rerank(dev.given, scorer, dev.queries, dev.documents))
    cosine = judge(dev, cosine_run(dev, vectors)).means["mrr"] if vectors else 0.0
    return DevScore(search.means["mrr"], cosine, search)


def compared(before: DevScore | None, after: DevScore | None, present: str, *, is_kept: bool) -> TrainingResult:
    """Return whether a new model is taken: where it is better on dev by more than chance brings, where it is to be, or,
    without dev, where no model was there before.

    >>> compared(DevScore(0.5, 0.3), DevScore(0.6, 0.4), "own", is_kept=False).is_taken  # nothing tells it from chance
    False
    >>> compared(None, None, "general", is_kept=False).is_taken
    False
    """
    is_better = comparison = None
    if before is not None and after is not None:
        if before.report and after.report:
            comparison = compare(after.report, before.report, "mrr")
        is_better = comparison is not None and comparison.is_beyond_chance
    is_taken = is_kept or (is_better if is_better is not None else not present)
    return TrainingResult(Path(), is_taken, present, before, after, is_better, comparison)
