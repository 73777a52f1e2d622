"""What misspellings cost: recall@10 over the duplicates of a real forum, when every content word of a query has one.

Command: ``python -m benchmarks.misspelling``. Queries are the test split of the travel forum's duplicate links, title
and body; the collection is the whole forum as it was written. Each content word, one of at least three letters that is
no stop word, is edited once: a letter is left out, another is put before it, it is changed, or swapped with the next
one, each as likely. The same words are edited in the same way for every system, in ``DRAWS`` draws; a query's value is
the mean over them. The forum's own search is asked with and without its correction of words. Writes
``results/misspelling.json``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any, Final, Protocol

import numpy as np
from recipes.scorer.vectors import KeptVectors

from askalike.evaluation import bootstrap_difference, bootstrap_mean, randomisation_test
from askalike.evaluation.forum.tasks import VectorScorer
from askalike.forum import Forum, ForumSettings
from askalike.search import SearchSettings
from askalike.text.analyzer import STOP_WORDS
from askalike.text.markup import plain_text
from askalike.types import Filters, Query, Question, Run
from benchmarks.quality_sets import forum_folder, travel_tasks
from benchmarks.record import option_parser, write
from benchmarks.systems import RetrievalTask, Terms, Vectors, judge

COMMAND = "python -m benchmarks.misspelling"
DRAWS: Final = 5
MEASURE: Final = "recall@10"
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
LEAST: Final = 3
_WORD: Final = re.compile(r"[A-Za-z]+")
Values = Mapping[str, float]


def edited(word: str, chance: np.random.Generator) -> str:
    """Return a word with one letter left out, put in, changed, or swapped with the next; never the word itself."""
    while True:
        place, letter = int(chance.integers(len(word))), LETTERS[int(chance.integers(len(LETTERS)))]
        before, here, after = word[:place], word[place], word[place + 1 :]
        made = (
            before + after,
            before + letter + here + after,
            before + letter + after,
            before + after[:1] + here + after[1:],
        )[int(chance.integers(4))]
        if made != word:
            return made


def misspelled(text: str, chance: np.random.Generator) -> str:
    """Return a text with an edit in each content word; what is no word of letters stays."""

    def edit(found: re.Match[str]) -> str:
        word = found.group()
        is_content = len(word) >= LEAST and word.lower() not in STOP_WORDS["english"]
        return edited(word, chance) if is_content else word

    return _WORD.sub(edit, text)


def with_edits(task: RetrievalTask, draw: int) -> RetrievalTask:
    """Return a task with misspelled queries; bodies are plain text then."""
    chance = np.random.default_rng(draw)
    queries: dict[str, Question] = {}
    for identifier, question in task.queries.items():
        title = misspelled(question.title, chance)
        body = misspelled(plain_text(question.body, question.markup), chance)
        queries[identifier] = replace(question, title=title, body=body, markup="plain")
    return replace(task, queries=queries)


def compared(right: Values, wrong: Values) -> dict[str, Any]:
    """Return recall before and after, and what was lost, in points of 100."""
    before, after = list(right.values()), [wrong[query] for query in right]
    lost = bootstrap_difference(before, after)
    return {
        "written": _shown(bootstrap_mean(before)),
        "misspelled": _shown(bootstrap_mean(after)),
        "lost": _shown(lost),
        "lost_share": round(lost.mean / max(fmean(before), 1e-12), 4),
        "p_value": round(randomisation_test(before, after).p_value, 4),
    }


def _shown(found: Any) -> dict[str, Any]:
    return {
        "mean": round(100 * found.mean, 2),
        "interval95": [round(100 * found.low, 2), round(100 * found.high, 2)],
    }


def values(system: Retriever, task: RetrievalTask) -> Values:
    """Return each query's recall@10."""
    return judge(task, system.retrieve(task)).per_query[MEASURE]


class Retriever(Protocol):
    """Answers a retrieval task."""

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return every query's best questions of the collection."""


class Search:
    """The default search of the travel forum.

    Args:
        is_corrected: whether words that nobody knows are read as others.
    """

    def __init__(self, *, is_corrected: bool) -> None:
        self._settings = ForumSettings(search=SearchSettings(is_corrected=is_corrected))

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the best ten for each query, without itself."""
        run: Run = {}
        with Forum.open(forum_folder("travel"), settings=self._settings) as forum:
            if forum.indexes.state().waiting:
                forum.encode()
            for identifier, one in task.queries.items():
                own = Filters(exclude_ids=frozenset([identifier]))
                run[identifier] = forum.indexes.ranking(Query(one.title, one.body, one.markup, 10, own))
        return run


SYSTEMS: Final[Mapping[str, Callable[[], Retriever]]] = {
    "bm25": lambda: Terms("bm25"),
    "the search, words as written": lambda: Search(is_corrected=False),
    "the search": lambda: Search(is_corrected=True),
    "the bundled encoder": lambda: Vectors(VectorScorer(KeptVectors())),
}
"""Name → what makes a system when it is its turn."""


def main() -> None:
    """Measure and write the result."""
    option_parser(__doc__).parse_args()
    task = travel_tasks("test")["travel test, retrieval"]
    assert isinstance(task, RetrievalTask), "of both tasks of the travel forum this is retrieval"
    edits = [with_edits(task, draw) for draw in range(DRAWS)]
    rows: dict[str, Any] = {}
    for name, make in SYSTEMS.items():
        system = make()
        right = values(system, task)
        by_draw = [values(system, edited_task) for edited_task in edits]
        wrong = {query: fmean(draw[query] for draw in by_draw) for query in right}
        rows[name] = compared(right, wrong)
        print(name, rows[name], flush=True)
    first = next(iter(task.queries))
    body = {
        "queries": len(task.queries),
        "collection": len(task.collection),
        "draws": DRAWS,
        "measure": MEASURE,
        "systems": rows,
        "example": {"written": task.queries[first].title, "misspelled": edits[0].queries[first].title},
    }
    write("misspelling", COMMAND, body)


if __name__ == "__main__":
    main()
