"""A retriever for LangChain: ``AskalikeRetriever(forum=Forum.open("my.forum"), k=5).invoke("Wifi drops")``."""

from __future__ import annotations

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from askalike.forum import Forum
from askalike.integrations import metadata_of, text_of
from askalike.types import Filters, Query


class AskalikeRetriever(BaseRetriever):
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
