"""500 questions asked at once beside one after the other: ``Forum.similar_many`` and a loop over ``Forum.search``.

Command: ``python -m benchmarks.many_queries``. Both are asked the same blocks in turn, and the processor's time counts
beside the clock's, so that what else runs on the machine weighs on both alike.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from askalike.forum import Forum
from askalike.types import Query, Question
from benchmarks.record import WORK, need_data, write

FORUM = WORK / "slicer.forum"
DATA = "slicer-discourse/topics.jsonl.gz"
QUERIES = 500
BLOCK = 100
COMMAND = "python -m benchmarks.many_queries"


def compared(forum: Forum, queries: Sequence[Query]) -> dict[str, Any]:
    """Return milliseconds a question, by the clock and of the processor, of a loop and of ``similar_many``."""
    ways: dict[str, Callable[[Sequence[Query]], object]] = {
        "loop": lambda block: [forum.search(one) for one in block],
        "similar_many": forum.similar_many,
    }
    spent = {name: [0.0, 0.0] for name in ways}
    forum.similar_many(queries[:20])
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        for name, way in ways.items() if start // BLOCK % 2 else reversed(ways.items()):
            began = (time.perf_counter(), time.process_time())
            way(block)
            for place, moment in enumerate((time.perf_counter(), time.process_time())):
                spent[name][place] += moment - began[place]
    return {
        name: {"ms": round(1e3 * wall / len(queries), 2), "processor_ms": round(1e3 * cpu / len(queries), 2)}
        for name, (wall, cpu) in spent.items()
    }


def main() -> None:
    """Measure and write the result."""
    if not FORUM.exists():
        with Forum.create(FORUM) as made:
            made.load(need_data(DATA))
    with Forum.open(FORUM) as forum:
        sample = random.Random(0).sample(list(forum.questions()), QUERIES)

        def asked(question: Question, *, has_body: bool) -> Query:
            return Query(question.title, question.body if has_body else "", question.markup, own=question.id)

        found = {
            kind: compared(forum, [asked(one, has_body=has_body) for one in sample])
            for kind, has_body in (("title", False), ("title and body", True))
        }
        model, size = forum.vectors.model, len(forum)
    print(found)
    write(
        "many-queries", COMMAND, {"data": DATA, "questions": size, "model": model, "queries": QUERIES, "spent": found}
    )


if __name__ == "__main__":
    main()
