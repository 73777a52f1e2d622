"""``Forum``: create or open one, fill it, change it, ask it.

Enters: a folder. Leaves: hits. May import: archive, lexical, rank, read, text; not cli or serve.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from askalike.archive import Archive, Layout
from askalike.encode.model import Model
from askalike.errors import BusyForumError
from askalike.forum.filters import with_zone
from askalike.forum.founding import new_archive
from askalike.forum.importing import ImportOptions, ImportReport, import_archive
from askalike.forum.indexes import Indexes, remove_indexes
from askalike.forum.info import Info, forum_info
from askalike.forum.model_source import wanted_model
from askalike.forum.rerankers import take_ranker
from askalike.forum.settings import ForumSettings, stored_text_settings
from askalike.forum.vectors import VectorsState
from askalike.progress import Progress, SilentProgress
from askalike.rank import Query
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Explanation, Filters, Hit, Link, Markup, Question

__all__ = ["Forum", "ForumSettings"]


class Forum:
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
        self.path, self.settings, self.analyzer = path, settings, analyzer
        self._layout = Layout(path)
        self._archive = archive
        self._indexes = Indexes(self._layout, archive, analyzer, self.settings)

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
        layout, text = Layout(Path(path)), text or TextSettings()
        archive = new_archive(layout, text)
        try:
            return cls(layout.folder, archive, Analyzer(text), settings or ForumSettings())
        except BaseException:
            archive.close()
            raise

    @classmethod
    def open(
        cls, path: str | Path, *, settings: ForumSettings | None = None, progress: Progress | None = None
    ) -> Forum:
        """Open a forum; an index that is behind the archive catches up first, vectors where that is soon done.

        Raises:
            ForumNotFoundError: there is none.
            ForumVersionError, DamagedForumError: it cannot be used; the message says what to do.
        """
        layout = Layout(Path(path))
        archive = Archive(layout.archive)
        try:
            text = stored_text_settings(archive, layout)
            forum = cls(layout.folder, archive, Analyzer(text), settings or ForumSettings())
            forum.catch_up(progress=progress, is_waiting=False)
        except BaseException:
            archive.close()
            raise
        return forum

    def close(self) -> None:
        """Close the forum's files; everything is on disk already."""
        self._archive.close()

    def discard_if_empty(self) -> bool:
        """Close the forum and delete its folder, unless it holds a question or another process writes to it.

        Return whether the folder is gone.
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

        Then all that waits is encoded, where there is a model; another process that is encoding takes it over.

        Raises:
            InputError: it cannot be read; nothing was changed then.
            ModelError: the model cannot be read; the archive was, and words find its questions.
        """
        shown = progress or SilentProgress()
        report = import_archive(self._archive, Path(archive), options or ImportOptions(), self._layout.rejects, shown)
        self.catch_up(progress=shown)
        if self.settings.has_vectors and wanted_model(self._layout) is not None:
            with contextlib.suppress(BusyForumError):
                self._indexes.encode(shown)
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
        self,
        title: str,
        body: str = "",
        k: int = 10,
        *,
        markup: Markup = "plain",
        filters: Filters | None = None,
        ranker: str | None = None,
    ) -> list[Hit]:
        """Return the ``k`` earlier questions that are most similar to a new one, best first.

        Args:
            title: the new question's title.
            body: its body; more words find more, and cost little.
            markup: how the body is written.
            filters: tags that a hit must have, a moment that it must be older than, ids that it must not have.
            ranker: a name from ``rank.RANKER_NAMES``, such as "hybrid" or "lexical"; None takes the settings' one,
                which is hybrid, or lexical while there are no vectors.

        Raises:
            SettingError: k is out of range, or there is no such ranker.
            ForumError: the ranker was named, and the vectors or the model that it needs are not there.
            ModelError: the model cannot be read.
        """
        query = Query(title, body, markup)
        return self._indexes.ask(lambda searcher: searcher.similar(query, k, with_zone(filters), ranker))

    def ranking(
        self,
        title: str,
        body: str = "",
        k: int = 10,
        *,
        markup: Markup = "plain",
        filters: Filters | None = None,
        ranker: str | None = None,
    ) -> list[tuple[str, float]]:
        """Return (question id, score) as ``similar`` ranks them, without explanations and answers: for evaluation.

        Raises:
            SettingError, ForumError, ModelError: as ``similar``.
        """
        query = Query(title, body, markup)
        ranked = self._indexes.ask(lambda searcher: searcher.ranking(query, k, with_zone(filters), ranker))
        return [(question.id, scored.score) for scored, question in ranked.found]

    def explain(
        self, hits: Sequence[Hit], title: str, body: str = "", *, markup: Markup = "plain", ranker: str | None = None
    ) -> list[Explanation]:
        """Return for each hit of this query how much the model takes of each word of the query and of the hit's title.

        No words are weighed where the forum has no vectors, or its model has no gate to tell it by. A ranker that
        matches word by word, as "ramn", gives the best match of each word of the query instead.

        Raises:
            ForumError: the ranker has to be learned, and was not.
            ModelError: the model cannot be read.
        """
        query = Query(title, body, markup)
        return self._indexes.ask(lambda searcher: searcher.explanations(query, hits, ranker))

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
        """Return what the forum holds and whether its indexes are in step."""
        return forum_info(self.path, self._archive, self._indexes, self.analyzer.settings.language)

    @property
    def behind(self) -> int:
        """Return how many questions and changes no search sees yet, since another process is still indexing them."""
        return self._indexes.behind()

    @property
    def vectors(self) -> VectorsState:
        """Return which model answers, and how much is still to be encoded."""
        return self._indexes.state()

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

    def use_ranker(self, name: str, folder: str | Path) -> None:
        """Take a copy of what a ranker of ``rank.RERANKERS`` has learned, or ModelError; it answers from now on."""
        take_ranker(name, Path(folder), self._layout)

    def encode(self, *, progress: Progress | None = None) -> None:
        """Encode all questions that wait, and switch to a new model when its vectors are complete.

        It can be interrupted and goes on where it was. Others may search and write meanwhile.

        Raises:
            BusyForumError: another process is encoding.
            ModelError: there is no model, or it cannot be read.
        """
        self._indexes.encode(progress or SilentProgress())

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
        if settings.has_vectors and wanted_model(layout) is not None:
            forum.encode(progress=progress)
        return forum


def _listed(questions: Question | Iterable[Question]) -> Sequence[Question]:
    return [questions] if isinstance(questions, Question) else list(questions)
