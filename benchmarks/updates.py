"""1,000 adds, edits and deletes against the Reddit forum: time until each shows in a search.

Command: ``python -m benchmarks.updates`` (after ``benchmarks.index_and_search``, whose forum it works on a copy of).
Each change is timed from the call until a search in the same process has found it (or finds it gone), so the figure
holds the durable write, the index's commit, and one search.
"""

from __future__ import annotations

import random
import shutil
import sys
import time

from askalike.forum import Forum
from askalike.types import Question
from benchmarks.index_and_search import FORUM
from benchmarks.record import WORK, percentiles, write

CHANGES = 1000
COMMAND = "python -m benchmarks.updates"
COPY = WORK / "updates.forum"


def main() -> None:
    """Measure and write the result."""
    if not FORUM.is_dir():
        sys.exit("run python -m benchmarks.index_and_search first")
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(FORUM, COPY)
    chance = random.Random(0)
    seconds: dict[str, list[float]] = {"add": [], "edit": [], "delete": []}
    with Forum.open(COPY) as forum:
        ids = chance.sample([question.id for question in forum.questions()], CHANGES)
        for number in range(CHANGES):
            kind = ("add", "edit", "delete")[number % 3]
            word = f"qzx{number}vw"
            identifier = ids[number]
            began = time.perf_counter()
            if kind == "add":
                forum.add(Question(f"new-{number}", f"{word} does not start", "After the update it " + word))
                shown = [hit.question.id for hit in forum.similar(word, k=1)] == [f"new-{number}"]
            elif kind == "edit":
                forum.edit(Question(identifier, f"{word} in an edited title"))
                shown = [hit.question.id for hit in forum.similar(word, k=1)] == [identifier]
            else:
                title = forum.question(identifier).title
                forum.delete(identifier)
                shown = identifier not in [hit.question.id for hit in forum.similar(title, k=10)]
            seconds[kind].append(time.perf_counter() - began)
            if not shown:
                raise SystemExit(f"change {number} ({kind}) did not show")
        info = forum.info()
    write(
        "updates",
        COMMAND,
        {
            "forum": "reddit, 224,741 questions",
            "changes": CHANGES,
            "all_shown": True,
            "until_shown": {kind: percentiles(found) for kind, found in seconds.items()},
            "not_indexed_at_end": info.behind,
        },
    )


if __name__ == "__main__":
    main()
