"""What is asked of a forum: similar questions, with explanations; its records; its state. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from askalike.forum.indexes import Indexes
from askalike.forum.info import Info, forum_info
from askalike.forum.pairs import Pairs
from askalike.forum.settings import with_zone
from askalike.index.vector_sets import VectorsState
from askalike.search import RANKERS, RERANKERS, Query, Search, Suggestions, learned_as, suggestions
from askalike.search.calibration import UNMOVED, moved_probabilities
from askalike.store import (
    Archive,
    Layout,
    all_feedback,
    answer_counts,
    links_of,
    newest,
    standing_verdicts,
    verdicts_on,
)
from askalike.text.analyzer import Analyzer
from askalike.types import Answer, Correction, Explanation, Feedback, Filters, Hit, Link, Markup, Question


class Asking:
    """The half of ``Forum`` that only reads; safe from any thread.

    ``pairs`` holds which of its questions may ask the same, as far as ``pairs.advance`` has compared them.
    """

    def __init__(self, path: Path, archive: Archive, indexes: Indexes, analyzer: Analyzer) -> None:
        self.path, self.analyzer = path, analyzer
        self._archive = archive
        self._indexes = indexes
        self.pairs = Pairs(Layout(path), archive, indexes)

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

    def search(
        self,
        title: str,
        body: str = "",
        k: int = 10,
        *,
        markup: Markup = "plain",
        filters: Filters | None = None,
        ranker: str | None = None,
        is_explained: bool = False,
    ) -> Search:
        """Return hits as ``similar``, how the query was corrected, and explanations where asked for.

        All are of one state of the forum, whatever is written meanwhile.

        Raises:
            SettingError, ForumError, ModelError: as ``similar``.
        """
        query, wanted = Query(title, body, markup), with_zone(filters)
        return self._indexes.ask(lambda searcher: searcher.search(query, k, wanted, ranker, is_explained=is_explained))

    def suggest(
        self,
        title: str,
        body: str = "",
        k: int = 10,
        *,
        markup: Markup = "plain",
        filters: Filters | None = None,
        ranker: str | None = None,
        own: str = "",
        is_explained: bool = False,
    ) -> Suggestions:
        """Return what an asker is shown: as ``similar``, but the original for each question that is marked a duplicate.

        Args:
            own: the id of the question that asks, where the forum holds it; candidates that were judged different from
                it are left out.

        Raises:
            SettingError, ForumError, ModelError: as ``similar``.
        """
        query = Query(title, body, markup)
        wanted = with_zone(filters)
        if own:
            verdicts = verdicts_on(self._archive, own).items()
            excluded = wanted.exclude_ids | {other for other, verdict in verdicts if verdict == "different"}
            wanted = replace(wanted, exclude_ids=excluded)
        return self._indexes.ask(
            lambda searcher: suggestions(searcher, query, k, wanted, ranker, own, is_explained=is_explained)
        )

    def corrections(
        self, title: str, body: str = "", *, markup: Markup = "plain", ranker: str | None = None
    ) -> tuple[Correction, ...]:
        """Return the misspelt words of a query, and what a ranker by vectors searches for instead.

        Raises:
            SettingError, ForumError, ModelError: as ``similar``.
        """
        query = Query(title, body, markup)
        return self._indexes.ask(lambda searcher: searcher.corrections(query, ranker))

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
        matches word by word, as "ramn", gives the best match of each word of the query instead, and one that cannot
        tell, as "scqa", what the score's cosine loses without each.

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

    def questions_by_number(self, nums: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these numbers, as ``pairs`` gives them; those that have gone are left out."""
        return self._archive.questions_by_num(nums)

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those ids that are there."""
        return self._archive.nums_by_id(ids)

    def size(self) -> int:
        """Return how many questions the forum holds."""
        return self._archive.count_questions()

    def answers(self, question_id: str) -> list[Answer]:
        """Return a question's answers, best first: accepted, then most voted, then oldest."""
        return self._archive.answers(question_id)

    def links(self) -> list[Link]:
        """Return all links between questions that the forum holds."""
        return self._archive.links()

    def links_of(self, question_id: str) -> list[Link]:
        """Return the links from or to one question."""
        return links_of(self._archive, question_id)

    def feedback(self) -> Iterator[Feedback]:
        """Yield every verdict that people gave on pairs, oldest first; the newest on a pair counts."""
        return all_feedback(self._archive)

    def verdicts(self) -> list[Feedback]:
        """Return the verdict that counts for each pair that was judged."""
        return standing_verdicts(self._archive)

    def answer_counts(self, ids: Sequence[str]) -> dict[str, int]:
        """Return how many answers each of these questions has; those without one are left out."""
        return answer_counts(self._archive, ids)

    def newest(
        self, limit: int, after: tuple[int | None, int] | None = None
    ) -> list[tuple[tuple[int | None, int], Question]]:
        """Return (place, question), newest first by date, undated ones last; ``after`` takes a place to go on from."""
        return newest(self._archive, limit, after)

    def rankers(self) -> dict[str, bool]:
        """Return each ranker's name, and whether this forum can be searched by it now."""
        has_vectors = bool(self.vectors.model)
        found = {name: has_vectors or not ranker.needs_vectors for name, ranker in RANKERS.items()}
        learned = {name: Layout(self.path).ranker(learned_as(name)) for name in RERANKERS}
        return found | {name: any(folder.glob("manifest.json")) for name, folder in learned.items()}

    def info(self) -> Info:
        """Return what the forum holds and whether its indexes are in step."""
        return forum_info(self.path, self._archive, self._indexes, self.analyzer.settings.language)

    def probe(self) -> None:
        """Look into the indexes as a search does, in a few milliseconds.

        Raises:
            ForumError, ModelError: searches would fail; the message says what to do.
        """
        self._indexes.probe()

    @property
    def behind(self) -> int:
        """Return how many questions and changes no search sees yet, since another process is still indexing them."""
        return self._indexes.behind()

    def likelihoods(self, scores: Sequence[float]) -> list[float]:
        """Return how likely pairs with these scores ask the same, by what people of this forum judged meanwhile."""
        update = self._indexes.ask(lambda searcher: UNMOVED if searcher.scoring is None else searcher.scoring.update)
        return moved_probabilities(update, scores)

    @property
    def vectors(self) -> VectorsState:
        """Return which model answers, and how much is still to be encoded."""
        return self._indexes.state()
