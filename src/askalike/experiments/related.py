"""Links between a forum's topics as a weak test collection: "related", not judged to ask the same.

Enters: an open forum and links. Leaves: a ``DuplicateTask``. May import: forum, evaluate, text, types, errors, its own
folder.

Policy, in this one place:

- A *query* is a topic that links to another one; *relevant* are the topics that it links to or that link to it.
- A link is left out when the query's own text quotes the other topic's title: it would be found by its quotation. So
  give links that were made in replies where that is known.
- The parts hold whole components of the links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from askalike.errors import EvaluationError
from askalike.evaluation import split_components
from askalike.experiments.duplicates import DuplicateTask
from askalike.forum import Forum
from askalike.text.markup import plain_text
from askalike.types import Question

__all__ = ["HALVES", "related_task"]

HALVES: Final[Mapping[str, float]] = {"dev": 0.5, "test": 0.5}
SPLIT_SEED: Final = 0
_LEAST_TITLE: Final = 10
"""A shorter title may occur in a text by chance."""


def related_task(forum: Forum, links: Iterable[tuple[str, str]], half: str) -> DuplicateTask:
    """Return one half of the links as queries and what is relevant to them.

    Args:
        links: (topic, topic that it links to); links from or to topics that the forum lacks are left out.

    Raises:
        EvaluationError: there is no such half, or no link falls into it.
    """
    if half not in HALVES:
        raise EvaluationError(f"there is no half {half!r} of the links", f"expected one of {', '.join(HALVES)}")
    known = {question.id: question for question in forum.questions()}
    held = sorted({(source, target) for source, target in links if {source, target} <= known.keys()})
    members = set(split_components(held, HALVES, SPLIT_SEED)[half])
    relevant: dict[str, set[str]] = {}
    for source, target in held:
        relevant.setdefault(source, set()).add(target)
        relevant.setdefault(target, set()).add(source)
    sources = sorted({source for source, _ in held if source in members})
    fair = {
        query: sorted(found for found in relevant[query] if found != query and not _quotes(known[query], known[found]))
        for query in sources
    }
    qrels = {query: dict.fromkeys(found, 1) for query, found in fair.items() if found}
    if not qrels:
        raise EvaluationError(f"no link falls into the half {half!r}", "give links between topics that the forum holds")
    return DuplicateTask(half, {query: known[query] for query in qrels}, qrels, known)


def _quotes(query: Question, other: Question) -> bool:
    title = other.title.casefold()
    text = f"{query.title}\n{plain_text(query.body, query.markup)}".casefold()
    return len(title) >= _LEAST_TITLE and title in text
