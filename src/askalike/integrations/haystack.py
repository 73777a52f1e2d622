"""A retriever for Haystack: a component that finds a forum's questions, each with its best answer."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from askalike.forum import Forum
from askalike.integrations import metadata_of, text_of
from askalike.types import Filters, Query


@component
class AskalikeRetriever:
    """Finds a forum's questions that ask the same.

    Args:
        forum: the forum's folder; it is opened by ``warm_up``, or at the first run.
        top_k: how many documents are found, unless a run asks for another number.
        ranker: a name from ``askalike.search.RANKER_NAMES``; None takes the default.
        minimum: the least score.
    """

    def __init__(self, forum: str, top_k: int = 5, ranker: str | None = None, minimum: float = 0.0) -> None:
        self.forum, self.top_k, self.ranker, self.minimum = str(forum), top_k, ranker, minimum
        self._opened: Forum | None = None

    def warm_up(self) -> None:
        """Open the forum."""
        if self._opened is None:
            self._opened = Forum.open(self.forum)

    def close(self) -> None:
        """Close the forum; the next run opens it again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None, tags: list[str] | None = None) -> dict[str, Any]:
        """Return the documents for a query, best first.

        Args:
            tags: only questions with all of these.
        """
        self.warm_up()
        assert self._opened is not None
        filters = Filters(tuple(tags or ()))
        asked = Query(query, k=top_k or self.top_k, filters=filters, ranker=self.ranker, minimum=self.minimum)
        found = [
            Document(id=hit.question.id, content=text_of(hit), meta=metadata_of(hit), score=hit.score)
            for hit in self._opened.search(asked).hits
        ]
        return {"documents": found}

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a pipeline stores it."""
        made: dict[str, Any] = default_to_dict(
            self, forum=self.forum, top_k=self.top_k, ranker=self.ranker, minimum=self.minimum
        )
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AskalikeRetriever:
        """Return the component that ``to_dict`` described."""
        made: AskalikeRetriever = default_from_dict(cls, data)
        return made
