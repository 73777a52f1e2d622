"""``Forum``: create or open one, fill it, change it, ask it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from askalike.errors import BusyForumError, EncoderError
from askalike.forum.asking import Asking
from askalike.forum.check import CheckReport, check_forum
from askalike.forum.creation import discard_if_empty, new_archive
from askalike.forum.encoders import AnyEncoder, take_encoder
from askalike.forum.importing import ImportOptions, ImportReport, import_archive
from askalike.forum.indexes import Indexes, remove_indexes
from askalike.forum.repair import clear_damage
from askalike.forum.rerankers import take_ranker
from askalike.forum.settings import ForumSettings, stored_text_settings
from askalike.index.model_source import forget_encoder, wanted_model
from askalike.models.encoders.model import Model
from askalike.progress import Progress, SilentProgress
from askalike.store import Archive, Layout, Operation, add_feedback, delete_answers, delete_links, put_answers
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Feedback, Link, Question, Verdict

if TYPE_CHECKING:
    from askalike.training.session import TrainingResult

__all__ = ["Forum", "ForumSettings"]


class Forum(Asking):
    """A forum on disk that finds its earlier questions that ask the same.

    ::

        forum = Forum.create("my.forum")
        forum.load("dump/")                          # or forum.add(Question(...))
        for hit in forum.similar("Wifi drops every evening"):
            print(hit.score, hit.question.title)

    Every change is on disk when its method returns, and is seen by the next search. Searching is safe from any thread;
    several processes may open the same forum: one of them keeps the indexes in step, all of them see the result.

    Questions are found by their words and, where there is a model (the forum's own, or the package's), by the nearness
    of their vectors. ``load`` and ``encode`` encode whatever waits; opening a forum and every other change encode up to
    2,000 questions and leave more to ``encode``: until then words alone find those, and ``info`` says how many.
    """

    def __init__(self, path: Path, archive: Archive, analyzer: Analyzer, settings: ForumSettings) -> None:
        self.settings = settings
        self._layout = Layout(path)
        super().__init__(path, archive, Indexes(self._layout, archive, analyzer, settings), analyzer)

    # -- making and opening ------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        text: TextSettings | None = None,
        settings: ForumSettings | None = None,
        encoder: AnyEncoder | None = None,
    ) -> Forum:
        """Make a new, empty forum in a folder that does not exist yet or is empty.

        Args:
            text: language and other text settings, stored with the forum.
            settings: how it is searched.
            encoder: as ``use_encoder`` takes it; None leaves the forum to the package's general model.

        Raises:
            ForumExistsError: the folder holds something already.
            EncoderError: the encoder cannot be had; the forum is there, without it.
        """
        layout, text = Layout(Path(path)), text or TextSettings()
        archive = new_archive(layout, text)
        try:
            forum = cls(layout.folder, archive, Analyzer(text), settings or ForumSettings())
            if encoder is not None:
                forum.use_encoder(encoder)
        except BaseException:
            archive.close()
            raise
        return forum

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: ForumSettings | None = None,
        progress: Progress | None = None,
        encoder: AnyEncoder | None = None,
    ) -> Forum:
        """Open a forum; an index that is behind the archive catches up first, vectors where that is soon done.

        Where the forum's encoder cannot be had, words answer, and hits and ``info`` say why.

        Args:
            encoder: as ``use_encoder`` takes it; None takes what the forum names.

        Raises:
            EncoderError: an encoder is given here, and cannot be had.
            ForumNotFoundError: there is none.
            ForumVersionError, DamagedForumError: it cannot be used; the message says what to do.
        """
        layout = Layout(Path(path))
        archive = Archive(layout.archive)
        try:
            text = stored_text_settings(archive, layout)
            forum = cls(layout.folder, archive, Analyzer(text), settings or ForumSettings())
            if encoder is not None:
                forum.use_encoder(encoder)
            forum.catch_up(progress=progress, is_waiting=False)
        except BaseException:
            archive.close()
            raise
        return forum

    def close(self) -> None:
        """Close the forum's files; everything is on disk already."""
        self.pairs.close()
        self._archive.close()

    def discard_if_empty(self) -> bool:
        """Close the forum and delete its folder, unless it holds a question or another process writes to it.

        Return whether the folder is gone.
        """
        return discard_if_empty(self._archive, self.path)

    def __enter__(self) -> Forum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- changes -----------------------------------------------------------------------------------------------

    def load(
        self, archive: str | Path, *, options: ImportOptions | None = None, progress: Progress | None = None
    ) -> ImportReport:
        """Read a forum's archive (a dump, an export, a table): adds what is new, updates, deletes what has gone.

        Then all that waits is encoded, where there is a model; another process that is encoding takes it over. Where a
        text encoder cannot be had, that is noted, and what it did not encode waits.

        Raises:
            InputError: it cannot be read; nothing was changed then.
            ModelError: the model cannot be read; the archive was, and words find its questions.
        """
        shown = progress or SilentProgress()
        report = import_archive(self._archive, Path(archive), options or ImportOptions(), self._layout.rejects, shown)
        self.catch_up(progress=shown)
        with contextlib.suppress(BusyForumError):
            self._encode_if_possible(shown)
        return report

    def add(self, questions: Question | Iterable[Question], *, links: Iterable[Link] = ()) -> None:
        """Add new questions, and what links them to others, in one transaction.

        Raises:
            InputError: an id is taken, or a value cannot be stored; nothing is stored then.
            UnknownIdError: an end of a link is not there; nothing is stored then.
        """
        self._archive.add_questions(_listed(questions), list(links))
        self.catch_up()

    def edit(self, questions: Question | Iterable[Question]) -> None:
        """Replace questions that the forum holds, by id.

        Raises:
            UnknownIdError: there is no such question; nothing is stored then.
        """
        self._archive.edit_questions(_listed(questions))
        self.catch_up()

    def put(self, questions: Question | Iterable[Question]) -> None:
        """Add questions, or replace those whose id the forum holds."""
        self._archive.put_questions(_listed(questions))
        self.catch_up()

    def store(self, questions: Question | Iterable[Question] = (), *, gone: Iterable[str] = ()) -> dict[str, Operation]:
        """Put and delete questions in one transaction, without indexing; ``catch_up`` makes them searchable.

        Return for each id that changed whether it was added or edited.

        Raises:
            UnknownIdError, InputError: as ``delete`` and ``put``; nothing is changed then.
        """
        return self._archive.put_questions(_listed(questions), list(gone))

    def delete(self, ids: str | Iterable[str]) -> None:
        """Delete questions with their answers, links and judgements.

        A load that no longer holds a question deletes it alone: what people said of it counts again when it is back.

        Raises:
            UnknownIdError: there is no such question; nothing is deleted then.
        """
        self._archive.delete_questions([ids] if isinstance(ids, str) else list(ids))
        self.catch_up()

    def add_answers(self, answers: Iterable[Answer]) -> None:
        """Add new answers.

        Raises:
            UnknownIdError: an answer's question is not there; nothing is stored then.
            InputError: an id is taken, or a value cannot be stored; nothing is stored then.
        """
        self._archive.add_answers(list(answers))

    def put_answers(self, answers: Iterable[Answer]) -> dict[str, Operation]:
        """Add answers, or replace those whose id the forum holds; return which of both for each that changed.

        Raises:
            UnknownIdError, InputError: as ``add_answers``.
        """
        return put_answers(self._archive, list(answers))

    def delete_answers(self, ids: Iterable[str]) -> None:
        """Delete answers.

        Raises:
            UnknownIdError: one of them is not there; nothing is deleted then.
        """
        delete_answers(self._archive, list(ids))

    def add_links(self, links: Iterable[Link]) -> int:
        """Mark questions as duplicates of, or related to, others; return how many marks were new.

        Raises:
            UnknownIdError: an end of a link is not there; nothing is stored then.
        """
        return self._archive.put_links(list(links))

    def remove_links(self, links: Iterable[Link]) -> int:
        """Take marks away; return how many there were."""
        return delete_links(self._archive, list(links))

    def judge(self, question_id: str, candidate_id: str, verdict: Verdict, by: str = "") -> Feedback:
        """Store a person's verdict on two questions: a label to train with; a pair that differs is proposed no more.

        Raises:
            UnknownIdError: one of them is not there.
            InputError: they are the same, or a value cannot be stored.
        """
        return add_feedback(self._archive, Feedback(question_id, candidate_id, verdict, by))

    # -- keeping the indexes in step ---------------------------------------------------------------------------

    def catch_up(self, *, progress: Progress | None = None, is_waiting: bool = True) -> None:
        """Bring the indexes in step with the archive; encoding that takes long is left to ``encode``.

        Args:
            is_waiting: wait for another process that is at it, as a writer must who wants to see its own change; a
                reader need not, since the other process will finish.

        Raises:
            BusyForumError: another process has been at it for too long; what was written is stored, and will be found.
        """
        self._indexes.catch_up(progress or SilentProgress(), is_waiting=is_waiting)

    def use_model(self, folder: str | Path) -> None:
        """Take a copy of a model as the forum's own; the one before answers until ``encode`` is done, or ModelError."""
        Model.load(folder).save(self._layout.model)
        forget_encoder(self._layout)

    def use_encoder(self, encoder: AnyEncoder) -> None:
        """Let a text encoder make the forum's vectors; what answered before does until ``encode`` is done.

        Args:
            encoder: "minilm", or one as ``askalike encode --model`` names it, such as "sentence-transformers:PATH" or
                "openai:URL#NAME"; ``EncoderSettings`` where prompts or sizes are to be given too; or an object with
                ``name``, ``dimensions``, ``encode_query`` and ``encode_document``, which has to be given again when the
                forum is opened.

        Raises:
            SettingError: there is no such encoder.
            EncoderError: it cannot be had, or gives no vectors.
        """
        take_encoder(self._layout, self._indexes, encoder)

    def use_ranker(self, name: str, folder: str | Path) -> None:
        """Take a copy of what a ranker of ``rank.RERANKERS`` has learned, or ModelError; it answers from now on."""
        take_ranker(name, Path(folder), self._layout)

    def train(
        self,
        recipe: str | Path = "default",
        *,
        start: str = "",
        is_test_held_out: bool = False,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 0,
        processes: int = 1,
        is_fresh: bool = False,
        is_kept: bool = False,
        progress: Progress | None = None,
    ) -> TrainingResult:
        """Train a model on the forum's questions, answers and duplicate links, and search with it if it is better.

        A training that was interrupted goes on where it was.

        Args:
            recipe: the name of one that ships, or a TOML file; that of a ranker makes what ``similar`` then takes as
                ``ranker``, and leaves the model as it is.
            start, …, is_kept: see ``training.session.TrainingOptions``.

        Returns:
            What was trained, the scores on the dev split before and after with interval and p, whether the model was
            taken, and where it lies.

        Raises:
            SettingError: there is no such recipe, or options do not fit it.
            MissingExtraError: torch is not installed, and the recipe trains a network.
            BusyForumError: another training of this forum runs.
            ModelError: the training failed, or a model cannot be read.
        """
        from askalike.training.session import TrainingOptions, TrainingSession  # here: it imports this module

        options = TrainingOptions(start, is_test_held_out, seed, device, threads, processes, is_fresh, is_kept)
        with TrainingSession(self, recipe, options) as session:
            return session.run(progress)

    def encode(self, *, progress: Progress | None = None) -> None:
        """Encode all questions that wait, and switch to a new model when its vectors are complete.

        It can be interrupted and goes on where it was. Others may search and write meanwhile.

        Raises:
            BusyForumError: another process is encoding.
            ModelError: there is no model, or it cannot be read.
        """
        self._indexes.encode(progress or SilentProgress())

    def _encode_if_possible(self, progress: Progress) -> None:
        """Encode what waits, where there is a model; that a text encoder cannot be had is noted.

        Raises:
            BusyForumError, ModelError: as ``encode``.
        """
        try:
            if self.settings.has_vectors and wanted_model(self._layout, self.analyzer.settings.language) is not None:
                self._indexes.encode(progress)
        except EncoderError as error:
            progress.notice(f"what waits to be encoded is found by words alone: {error}")

    @classmethod
    def check(cls, path: str | Path, *, progress: Progress | None = None) -> CheckReport:
        """Compare everything in a forum's folder with what was written, and its parts with each other; change nothing.

        Raises:
            ForumNotFoundError: there is no forum.
        """
        return check_forum(Path(path), progress or SilentProgress())

    @classmethod
    def repair(
        cls, path: str | Path, *, settings: ForumSettings | None = None, progress: Progress | None = None
    ) -> CheckReport:
        """Check a forum, make anew from its archive what is damaged, and return what a check finds then.

        The archive is never changed, nor what was learned: a ranker has to be trained again.

        Raises:
            ForumNotFoundError: there is no forum.
            BusyForumError: another process is writing.
            ForumError, ModelError: it cannot be made anew.
        """
        layout, settings, shown = Layout(Path(path)), settings or ForumSettings(), progress or SilentProgress()
        found = check_forum(layout.folder, shown)
        if found.is_sound or not layout.archive.is_file():
            return found
        done = clear_damage(layout, found, settings)
        with cls.open(path, settings=settings, progress=shown) as forum:
            if "vectors" in done:
                forum._encode_if_possible(shown)
        return replace(check_forum(layout.folder, shown), repaired=done)

    @classmethod
    def reindex(
        cls, path: str | Path, *, settings: ForumSettings | None = None, progress: Progress | None = None
    ) -> Forum:
        """Build the indexes anew from the archive, whatever their state; where settings have no vectors, those stay.

        Raises:
            BusyForumError: another process is indexing or encoding.
            ModelError: the model cannot be read.
        """
        layout, settings = Layout(Path(path)), settings or ForumSettings()
        Archive(layout.archive).close()
        remove_indexes(layout, settings)
        forum = cls.open(path, settings=settings, progress=progress)
        forum._encode_if_possible(progress or SilentProgress())
        return forum


def _listed(questions: Question | Iterable[Question]) -> Sequence[Question]:
    return [questions] if isinstance(questions, Question) else list(questions)
