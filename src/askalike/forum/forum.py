"""``Forum``: create or open one, fill it, change it, ask it.

Enters: a folder. Leaves: hits. May import: archive, lexical, rank, read, text; not cli or serve.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from types import TracebackType

import filelock

from askalike.archive import Archive, Layout, count
from askalike.errors import BusyForumError, ForumExistsError, ForumNotFoundError, ForumVersionError, SettingError
from askalike.forum.catchup import catch_up, fitting_index, open_index, remove_index
from askalike.forum.engine import LocalEngine
from askalike.forum.importing import ImportOptions, ImportReport, import_archive
from askalike.forum.info import Info, size_bytes
from askalike.forum.progress import Progress, SilentProgress
from askalike.lexical import FieldWeights, LexicalIndex
from askalike.rank import Query, SearchSettings, ranking, similar
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Filters, Hit, Link, Markup, Question

__all__ = ["Forum", "ForumSettings"]

LOCK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ForumSettings:
    """How a forum is searched; the text settings are stored with it, the rest may change from search to search."""

    fields: FieldWeights = field(default_factory=FieldWeights)
    search: SearchSettings = field(default_factory=SearchSettings)


class Forum:
    """A forum on disk that finds its earlier questions that ask the same.

    ::

        forum = Forum.create("my.forum")
        forum.load("dump/")                          # or forum.add(Question(...))
        for hit in forum.similar("Wifi drops every evening"):
            print(hit.score, hit.question.title)

    Every change is on disk when its method returns, and is seen by the next search. Searching is safe from any thread;
    several processes may open the same forum: one of them keeps the indexes in step, all of them see the result.
    """

    def __init__(self, path: Path, archive: Archive, analyzer: Analyzer, settings: ForumSettings) -> None:
        self.path = path
        self.settings = settings
        self.analyzer = analyzer
        self._layout = Layout(path)
        self._archive = archive
        self._guard = threading.RLock()
        self._lock = filelock.FileLock(self._layout.lock, thread_local=False)
        self._index: LexicalIndex = self._open_index()

    # -- making and opening ------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, path: str | Path, *, text: TextSettings | None = None, settings: ForumSettings | None = None
    ) -> Forum:
        """Make a new, empty forum in a folder that does not exist yet or is empty.

        Args:
            text: language and other text settings, stored with the forum.
            settings: how it is searched.

        Raises:
            ForumExistsError: the folder holds something already.
        """
        layout = Layout(Path(path))
        if layout.archive.exists():
            with contextlib.suppress(ForumNotFoundError):
                Archive(layout.archive).close()
                raise ForumExistsError(f"there is a forum at {path} already", "open it, or choose another folder")
        elif layout.folder.exists() and (not layout.folder.is_dir() or any(layout.folder.iterdir())):
            raise ForumExistsError(f"{path} exists and is not empty", "choose another folder for the forum")
        text = text or TextSettings()
        stored = {name: json.dumps(value) for name, value in text.to_json().items()}
        archive = Archive.create(layout.archive, stored)
        try:
            return cls(layout.folder, archive, Analyzer(text), settings or ForumSettings())
        except BaseException:
            archive.close()
            raise

    @classmethod
    def open(
        cls, path: str | Path, *, settings: ForumSettings | None = None, progress: Progress | None = None
    ) -> Forum:
        """Open a forum; an index that is behind the archive catches up first.

        Raises:
            ForumNotFoundError: there is none.
            ForumVersionError, DamagedForumError: it cannot be used; the message says what to do.
        """
        layout = Layout(Path(path))
        archive = Archive(layout.archive)
        try:
            forum = cls(layout.folder, archive, Analyzer(_text_settings(archive, layout)), settings or ForumSettings())
            forum.catch_up(progress=progress, is_waiting=False)
        except BaseException:
            archive.close()
            raise
        return forum

    def close(self) -> None:
        """Close the forum's files; everything is on disk already."""
        self._archive.close()

    def discard_if_empty(self) -> bool:
        """Close the forum and delete its folder, unless it holds a question or another process is writing to it.

        Returns:
            Whether the folder is gone.
        """
        self._archive.connection.execute("PRAGMA busy_timeout = 0")
        with contextlib.suppress(BusyForumError), self._archive.write():
            if next(self.questions(), None) is None:
                shutil.rmtree(self.path, ignore_errors=True)  # with the lock held: nobody can begin to fill it
        self.close()
        return not self.path.exists()

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

        Raises:
            InputError: it cannot be read; nothing was changed then.
        """
        shown = progress or SilentProgress()
        report = import_archive(self._archive, Path(archive), options or ImportOptions(), self._layout.rejects, shown)
        self.catch_up(progress=shown)
        return report

    def add(self, questions: Question | Iterable[Question]) -> None:
        """Add new questions.

        Raises:
            InputError: an id is taken, or a value cannot be stored; nothing is stored then.
        """
        self._archive.add_questions(_listed(questions))
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

    def delete(self, ids: str | Iterable[str]) -> None:
        """Delete questions with their answers and links.

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

    def add_links(self, links: Iterable[Link]) -> None:
        """Mark questions as duplicates of, or related to, others."""
        self._archive.put_links(list(links))

    # -- questions asked of it ---------------------------------------------------------------------------------

    def similar(
        self, title: str, body: str = "", k: int = 10, *, markup: Markup = "plain", filters: Filters | None = None
    ) -> list[Hit]:
        """Return the ``k`` earlier questions that are most similar to a new one, best first.

        Args:
            title: the new question's title.
            body: its body; more words find more, and cost little.
            markup: how the body is written.
            filters: tags that a hit must have, a moment that it must be older than, ids that it must not have.

        Raises:
            SettingError: k is out of range.
        """
        return similar(
            self._engine(), self.analyzer, Query(title, body, markup), k, _with_zone(filters), self.settings.search
        )

    def ranking(
        self, title: str, body: str = "", k: int = 10, *, markup: Markup = "plain", filters: Filters | None = None
    ) -> list[tuple[str, float]]:
        """Return (question id, score) as ``similar`` ranks them, without explanations and answers: for evaluation.

        Raises:
            SettingError: k is out of range.
        """
        query = Query(title, body, markup)
        found = ranking(self._engine(), self.analyzer, query, k, _with_zone(filters), self.settings.search).found
        return [(question.id, candidate.score) for candidate, question in found]

    def sources(self) -> tuple[str, ...]:
        """Return the names of the archives that were loaded, and "manual" where something was added by hand."""
        return self._archive.sources()

    def question(self, identifier: str) -> Question:
        """Return one question.

        Raises:
            UnknownIdError: there is no such question.
        """
        return self._archive.question(identifier)

    def questions(self) -> Iterator[Question]:
        """Yield every question in the order of its coming, without holding them all."""
        return (question for _, question in self._archive.all_questions())

    def answers(self, question_id: str) -> list[Answer]:
        """Return a question's answers, best first: accepted, then most voted, then oldest."""
        return self._archive.answers(question_id)

    def links(self) -> list[Link]:
        """Return all links between questions that the forum holds."""
        return self._archive.links()

    def info(self) -> Info:
        """Return what the forum holds and whether its index is in step."""
        self._index.refresh()
        mark = self._index.mark
        waiting = self._archive.count_question_changes(mark.applied)
        return Info(
            path=str(self.path),
            language=self.analyzer.settings.language,
            counts=count(self._archive),
            indexed=self._index.entries,
            behind=waiting if mark.is_complete else waiting + self._archive.count_questions(mark.scanned),
            size_bytes=size_bytes(self.path),
        )

    # -- keeping the indexes in step ---------------------------------------------------------------------------

    def catch_up(self, *, progress: Progress | None = None, is_waiting: bool = True) -> None:
        """Bring the indexes in step with the archive.

        Args:
            is_waiting: wait for another process that is at it, as a writer must who wants to see its own change; a
                reader need not, since the other process will finish.

        Raises:
            BusyForumError: another process has been at it for longer than the time-out. What was written is stored,
                and will be in the index when that process has finished.
        """
        try:
            with self._guard, self._lock.acquire(timeout=LOCK_TIMEOUT_S if is_waiting else 0):
                catch_up(self._archive, self._index, self.analyzer, progress or SilentProgress())
        except filelock.Timeout as error:
            if is_waiting:
                raise BusyForumError(
                    f"another process is indexing {self.path}",
                    "your change is stored; it will be found when that process has finished",
                ) from error

    @classmethod
    def reindex(cls, path: str | Path, *, progress: Progress | None = None) -> Forum:
        """Build the indexes of a forum anew from its archive, whatever state they are in.

        Raises:
            BusyForumError: another process is indexing.
        """
        layout = Layout(Path(path))
        Archive(layout.archive).close()
        try:
            with filelock.FileLock(layout.lock, thread_local=False).acquire(timeout=LOCK_TIMEOUT_S):
                remove_index(layout.lexical)
        except filelock.Timeout as error:
            raise BusyForumError(f"another process is indexing {path}", "wait until it has finished") from error
        return cls.open(path, progress=progress)

    def _engine(self) -> LocalEngine:
        self._index.refresh()
        return LocalEngine(self._archive, self._index, self.settings.fields)

    def _open_index(self) -> LexicalIndex:
        """Open the index; only one that has to be made first waits for another process that is making it."""
        index = fitting_index(self._layout.lexical, self._archive, self.analyzer)
        if index is not None:
            return index
        try:
            with self._lock.acquire(timeout=LOCK_TIMEOUT_S):
                return open_index(self._layout.lexical, self._archive, self.analyzer)
        except filelock.Timeout as error:
            raise BusyForumError(f"another process is indexing {self.path}", "wait until it has finished") from error


def _text_settings(archive: Archive, layout: Layout) -> TextSettings:
    try:
        return TextSettings.from_json({name: json.loads(value) for name, value in archive.settings().items()})
    except (SettingError, ValueError) as error:
        raise ForumVersionError(
            f"the settings stored in {layout.archive} are not understood: {error}", "use the version that wrote it"
        ) from error


def _listed(questions: Question | Iterable[Question]) -> Sequence[Question]:
    return [questions] if isinstance(questions, Question) else list(questions)


def _with_zone(filters: Filters | None) -> Filters:
    """Return the filters with ``before`` in a time zone: UTC where it names none."""
    if filters is None:
        return Filters()
    if filters.before is not None and filters.before.tzinfo is None:
        return replace(filters, before=filters.before.replace(tzinfo=UTC))
    return filters
