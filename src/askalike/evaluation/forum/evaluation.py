"""Systems evaluated on a forum's duplicate links: full retrieval, and re-ranking of what its search found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from askalike.errors import SettingError
from askalike.evaluation import Report, evaluate
from askalike.evaluation.forum.links import DuplicateTask, duplicate_task, judge_candidates, learned_questions
from askalike.evaluation.forum.tasks import (
    CANDIDATES,
    SCORERS,
    OnQuery,
    collection_run,
    forum_run,
    lexical_run,
    make_scorer,
    rerank,
    search_rerank,
)
from askalike.forum import Forum
from askalike.progress import Progress, SilentProgress
from askalike.search import RANKER_NAMES, RANKERS
from askalike.types import Qrels, Question, Run

DEPTH: Final = 100

TASKS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "retrieval": ("trec", ("recall@10", "recall@100", "mrr", "ndcg@10", "success@1")),
    "rerank": ("askubuntu", ("map", "mrr", "p@1", "p@5")),
}
"""task → (protocol, measures); the measure that systems are compared by is the one in ``MAIN_MEASURE``."""

MAIN_MEASURE = {"retrieval": "ndcg@10", "rerank": "map"}

OWN_SEARCH = "search"

SYSTEMS = (OWN_SEARCH, *RANKER_NAMES, *SCORERS)
"""``search`` is the forum's own with its default ranker, then its rankers by name, of which ``meaning`` needs
vectors and ``reranker`` one that was named; the others score pairs, over the whole collection or over the candidates
that are re-ranked."""


@dataclass(frozen=True, slots=True)
class ForumEvaluation:
    """What the systems answered to one task, and how it was scored.

    Args:
        learned: questions whose links were learned by the forum's model, where that answered one of the systems.
    """

    task: str
    title: str
    qrels: Qrels
    runs: Mapping[str, Run]
    reports: Mapping[str, Report]
    learned: frozenset[str]

    @property
    def main_measure(self) -> str:
        """The measure that systems are compared by."""
        return MAIN_MEASURE[self.task]

    @property
    def learned_queries(self) -> int:
        """How many of the queries the model that answered one of the systems has learned."""
        return len(self.learned & self.qrels.keys())


def evaluate_forum(
    forum: Forum,
    task: str,
    systems: Sequence[str],
    split: str = "all",
    seed: int = 0,
    progress: Progress | None = None,
) -> ForumEvaluation:
    """Let systems answer one task and score their runs; every system is a phase of the progress.

    Raises:
        EvaluationError: the forum has no duplicate links in this split.
        SettingError: there is no such task or system.
    """
    if task not in TASKS:
        raise SettingError(f"there is no task {task!r}", f"expected one of {', '.join(TASKS)}")
    if missing := [name for name in systems if name not in SYSTEMS]:
        raise SettingError(f"there is no system {missing[0]!r}", f"expected one of {', '.join(SYSTEMS)}")
    protocol, measures = TASKS[task]
    links = duplicate_task(forum, split, seed)
    collection = list(links.collection.values())
    phase = _phases(progress or SilentProgress(), len(links.queries))
    if task == "retrieval":
        runs = {name: _retrieve(forum, links, name, collection, phase(f"retrieval, {name}")) for name in systems}
        qrels = links.qrels
        title = f"Full retrieval over {len(collection):,} questions, {len(links.queries):,} queries ({split})"
    else:
        candidates = lexical_run(forum, links, CANDIDATES, phase("candidates to re-rank"))
        runs = {name: _rerank(forum, links, name, candidates, phase(f"re-ranking, {name}")) for name in systems}
        qrels = judge_candidates(links, candidates)
        title = f"Re-ranking of the lexical search's {CANDIDATES} best ({split})"
    reports = {name: evaluate(qrels, run, protocol, measures) for name, run in runs.items()}
    learned = learned_questions(forum) if any(_asks_vectors(forum, name) for name in systems) else frozenset()
    return ForumEvaluation(task, title, qrels, runs, reports, learned)


def _asks_vectors(forum: Forum, system: str) -> bool:
    name = forum.settings.search.ranker if system == OWN_SEARCH else system
    return name in RANKERS and RANKERS[name].reads_vectors


def _phases(progress: Progress, queries: int) -> Callable[[str], OnQuery]:
    """Return what begins a phase over all queries, and returns what is to be called after each."""

    def begin(name: str) -> OnQuery:
        progress.start(name, queries, "queries")
        return partial(progress.advance, 1)

    return begin


def _retrieve(forum: Forum, task: DuplicateTask, system: str, collection: Sequence[Question], on_query: OnQuery) -> Run:
    if system in (OWN_SEARCH, *RANKER_NAMES):
        return forum_run(forum, task, DEPTH, ranker=None if system == OWN_SEARCH else system, on_query=on_query)
    return collection_run(task, make_scorer(system, collection, forum.analyzer.settings), collection, DEPTH, on_query)


def _rerank(forum: Forum, task: DuplicateTask, system: str, candidates: Run, on_query: OnQuery) -> Run:
    runs = {query: entries for query, entries in candidates.items() if entries}
    if system in (OWN_SEARCH, *RANKER_NAMES):
        return search_rerank(forum, task, runs, None if system == OWN_SEARCH else system, on_query)
    scorer = make_scorer(system, list(task.collection.values()), forum.analyzer.settings)
    return rerank(runs, scorer, task.queries, task.collection, on_query)
