"""A forum's marks as tasks: re-ranking of the lexical search's candidates, and retrieval from the whole forum.

Enters: an open forum and marks. Leaves: ``RerankTask`` and ``RetrievalTask``. May import: forum, types, its own folder.

The candidates are always those of the lexical search, whatever the forum's default ranker is.
"""

from __future__ import annotations

from typing import Final

from askalike.experiments.duplicates import DuplicateTask, judge_candidates
from askalike.experiments.rankings import lexical_run
from askalike.experiments.tasks import RerankTask, RetrievalTask
from askalike.forum import Forum
from askalike.types import Question

__all__ = ["CANDIDATES", "forum_rerank_task", "forum_retrieval_task"]

CANDIDATES: Final = 20
LEXICAL_DEPTH: Final = 1000


def forum_rerank_task(name: str, forum: Forum, marks: DuplicateTask) -> RerankTask:
    """Return the twenty best of the lexical search for each query, under AskUbuntu's protocol.

    A query that the search finds nothing for is left out.
    """
    found = {query: entries for query, entries in lexical_run(forum, marks, CANDIDATES).items() if entries}
    return RerankTask(
        name=f"{name} {marks.part}",
        protocol="askubuntu",
        queries={query: marks.queries[query] for query in found},
        documents={document: marks.collection[document] for entries in found.values() for document, _ in entries},
        given=found,
        lexical=found,
        qrels=judge_candidates(marks, found),
        statistics=tuple(marks.collection.values()),
    )


def forum_retrieval_task(name: str, forum: Forum, marks: DuplicateTask, *, main: str = "ndcg@10") -> RetrievalTask:
    """Return the whole forum as the collection, the query itself excluded.

    Args:
        main: the measure that systems are compared by.
    """

    def by_id(question: Question) -> str:
        return question.id

    return RetrievalTask(
        name=f"{name} {marks.part}",
        queries=marks.queries,
        collection=tuple(sorted(marks.collection.values(), key=by_id)),
        lexical=lexical_run(forum, marks, LEXICAL_DEPTH),
        qrels=marks.qrels,
        main=main,
    )
