"""1,000 adds, edits and deletes against the Reddit forum: time until each shows in a search.

Command: ``python -m benchmarks.updates`` (after ``benchmarks.index_and_search``, whose forum it works on copies of).
Each change is timed from the call until a search in the same process has found it (or finds it gone), so the figure
holds the durable write, the index's commit, and one search; with vectors, the question's encoding too. Measured with
the default settings and by words alone; without a model both are the same.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from typing import Any

from askalike.forum import Forum, ForumSettings
from askalike.types import Question
from benchmarks.index_and_search import FORUM
from benchmarks.record import WORK, percentiles, write

CHANGES = 1000
COMMAND = "python -m benchmarks.updates"
COPY = WORK / "updates.forum"


def measured(settings: ForumSettings) -> dict[str, Any]:
    """Make the changes on a copy of the forum and return what they took."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(FORUM, COPY)
    chance = random.Random(0)
    seconds: dict[str, list[float]] = {"add": [], "edit": [], "delete": []}
    with Forum.open(COPY, settings=settings) as forum:
        forum.similar("the first search reads the model")
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
        info, vectors = forum.info(), forum.vectors
    return {
        "has_vectors": bool(vectors.model),
        "until_shown": {kind: percentiles(found) for kind, found in seconds.items()},
        "not_indexed_at_end": info.behind,
        "not_encoded_at_end": vectors.waiting,
    }


def main() -> None:
    """Measure and write the result."""
    if not FORUM.is_dir():
        sys.exit("run python -m benchmarks.index_and_search first")
    write(
        "updates",
        COMMAND,
        {"forum": "reddit, 224,741 questions", "changes": CHANGES, "all_shown": True}
        | measured(ForumSettings())
        | {"words alone": measured(ForumSettings(has_vectors=False))},
    )


if __name__ == "__main__":
    main()
