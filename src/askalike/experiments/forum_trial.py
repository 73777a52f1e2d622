"""Systems tried on a forum's duplicate marks: full retrieval, and re-ranking of what its search found.

Enters: an open forum, the names of a task and of systems. Leaves: runs and reports. May import: forum, evaluate, its
own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from askalike.errors import SettingError
from askalike.evaluation import Report, evaluate
from askalike.experiments.duplicates import DuplicateTask, duplicate_task, judge_candidates
from askalike.experiments.learned_marks import learned_marks
from askalike.experiments.rankings import Told, collection_run, forum_run, lexical_run, rerank, search_rerank
from askalike.experiments.scorers import SCORERS, make_scorer
from askalike.forum import Forum
from askalike.progress import Progress, SilentProgress
from askalike.rank import RANKER_NAMES, RANKERS
from askalike.types import Qrels, Question, Run

__all__ = ["SYSTEMS", "TASKS", "Trial", "run_trial"]

CANDIDATES = 20
DEPTH = 100

TASKS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "retrieval": ("trec", ("recall@10", "recall@100", "mrr", "ndcg@10", "success@1")),
    "rerank": ("askubuntu", ("map", "mrr", "p@1", "p@5")),
}
"""task → (protocol, measures); the measure that systems are compared by is the one in ``MAIN_MEASURE``."""

MAIN_MEASURE = {"retrieval": "ndcg@10", "rerank": "map"}

OWN_SEARCH = "search"

SYSTEMS = (OWN_SEARCH, *RANKER_NAMES, *SCORERS)
"""``search`` is the forum's own with its default ranker, then its rankers by name, of which all but ``lexical`` need
vectors or have to be learned; the others score pairs, over the whole collection or over the lexical search's
candidates."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What the systems answered to one task, and how it was scored.

    Args:
        learned: questions whose marks were learned by the forum's model, where that answered one of the systems.
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


def run_trial(
    forum: Forum,
    task: str,
    systems: Sequence[str],
    part: str = "all",
    seed: int = 0,
    progress: Progress | None = None,
) -> Trial:
    """Let systems answer one task and score their runs; every system is a phase of the progress.

    Raises:
        EvaluationError: the forum has no duplicate marks in this part.
        SettingError: there is no such task or system.
    """
    if task not in TASKS:
        raise SettingError(f"there is no task {task!r}", f"expected one of {', '.join(TASKS)}")
    if missing := [name for name in systems if name not in SYSTEMS]:
        raise SettingError(f"there is no system {missing[0]!r}", f"expected one of {', '.join(SYSTEMS)}")
    protocol, measures = TASKS[task]
    marks = duplicate_task(forum, part, seed)
    collection = list(marks.collection.values())
    told = _telling(progress or SilentProgress(), len(marks.queries))
    if task == "retrieval":
        runs = {name: _retrieve(forum, marks, name, collection, told(f"retrieval, {name}")) for name in systems}
        qrels = marks.qrels
        title = f"Full retrieval over {len(collection):,} questions, {len(marks.queries):,} queries ({part})"
    else:
        candidates = lexical_run(forum, marks, CANDIDATES, told("candidates to re-rank"))
        runs = {name: _rerank(forum, marks, name, candidates, told(f"re-ranking, {name}")) for name in systems}
        qrels = judge_candidates(marks, candidates)
        title = f"Re-ranking of the lexical search's {CANDIDATES} best ({part})"
    reports = {name: evaluate(qrels, run, protocol, measures) for name, run in runs.items()}
    learned = learned_marks(forum) if any(_asks_vectors(forum, name) for name in systems) else frozenset()
    return Trial(task, title, qrels, runs, reports, learned)


def _asks_vectors(forum: Forum, system: str) -> bool:
    name = forum.settings.search.ranker if system == OWN_SEARCH else system
    return name in RANKERS and RANKERS[name].needs_vectors


def _telling(progress: Progress, queries: int) -> Callable[[str], Told]:
    """Return what begins a phase over all queries, and returns what is to be called after each."""

    def begin(phase: str) -> Told:
        progress.start(phase, queries, "queries")
        return partial(progress.advance, 1)

    return begin


def _retrieve(forum: Forum, task: DuplicateTask, system: str, collection: Sequence[Question], told: Told) -> Run:
    if system in (OWN_SEARCH, *RANKER_NAMES):
        return forum_run(forum, task, DEPTH, ranker=None if system == OWN_SEARCH else system, told=told)
    return collection_run(task, make_scorer(system, collection, forum.analyzer.settings), collection, DEPTH, told)


def _rerank(forum: Forum, task: DuplicateTask, system: str, candidates: Run, told: Told) -> Run:
    found = {query: entries for query, entries in candidates.items() if entries}
    if system in (OWN_SEARCH, *RANKER_NAMES):
        return search_rerank(forum, task, found, None if system == OWN_SEARCH else system, told)
    scorer = make_scorer(system, list(task.collection.values()), forum.analyzer.settings)
    return rerank(found, scorer, task.queries, task.collection, told)
