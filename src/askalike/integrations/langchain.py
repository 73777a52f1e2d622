"""A retriever for LangChain: ``AskalikeRetriever(forum=Forum.open("my.forum"), k=5).invoke("Wifi drops")``."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from askalike.forum import Forum
from askalike.text.markup import plain_text
from askalike.types import Filters, Hit, Query


def text_of(hit: Hit) -> str:
    """Return a hit as a model reads it: title, body, and the best answer, in plain text."""
    question, answer = hit.question, hit.answer
    parts = [question.title, plain_text(question.body, question.markup)]
    if answer is not None:
        parts.append(f"Answer: {plain_text(answer.body, answer.markup)}")
    return "\n\n".join(part for part in parts if part.strip())


def metadata_of(hit: Hit) -> dict[str, Any]:
    """Return what is known of a hit besides its text."""
    question = hit.question
    return {
        "id": question.id,
        "title": question.title,
        "url": question.url,
        "tags": list(question.tags),
        "created": None if question.created is None else question.created.isoformat(),
        "answers": hit.answer_count,
        "score": hit.score,
        "likelihood": hit.likelihood,
    }


class AskalikeRetriever(BaseRetriever):  # type: ignore[misc]
    """Finds a forum's questions that ask the same, each with its best answer.

    Args:
        forum: an open forum.
        k: how many documents are found; ``invoke(…, k=…)`` asks for another number.
        filters: what they must satisfy.
        ranker: a name from ``askalike.search.RANKER_NAMES``; None takes the default.
        minimum: the least score.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    forum: Forum
    k: int = 5
    filters: Filters = Filters()
    ranker: str | None = None
    minimum: float = 0.0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        asked = Query(query, k=k or self.k, filters=self.filters, ranker=self.ranker, minimum=self.minimum)
        return [
            Document(id=hit.question.id, page_content=text_of(hit), metadata=metadata_of(hit))
            for hit in self.forum.search(asked).hits
        ]
