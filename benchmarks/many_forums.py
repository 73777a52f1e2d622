"""A service of many small forums: the memory that it takes, and how long a forum needs to open.

Command: ``python -m benchmarks.many_forums [--forums N] [--questions N]``. The forums hold the first questions of
Reddit, the same number each, none in two; the vectors are the general model's. Each forum is asked once, so that it
opens, and then again, in turn; memory is that of the service's process, private pages and its share of mapped files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import time
from itertools import islice
from pathlib import Path

from askalike import Forum, Question
from askalike.client import Client
from benchmarks.record import WORK, need_data, percentiles, write
from benchmarks.serving import memory_mb, serving

COMMAND = "python -m benchmarks.many_forums"


def build(folder: Path, forums: int, questions: int) -> list[str]:
    """Make the forums where they are not there; return a title of each."""
    titles: list[str] = []
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        given = (Question(str(one["id"]), one["title"], one["body"], "markdown") for one in map(json.loads, lines))
        for number in range(forums):
            part = list(islice(given, questions))
            titles.append(part[-1].title)
            if not (folder / f"forum-{number}").exists():
                with Forum.create(folder / f"forum-{number}.part") as forum:
                    forum.add(part)
                (folder / f"forum-{number}.part").rename(folder / f"forum-{number}")
    return titles


def asked(port: int, titles: list[str]) -> list[float]:
    """Return the seconds that a search of each forum took."""
    found: list[float] = []
    for number, title in enumerate(titles):
        began = time.perf_counter()
        client = Client(f"http://127.0.0.1:{port}/forum-{number}")
        client.similar(title)
        client.close()  # a client that keeps more than 128 connections has to wait
        found.append(time.perf_counter() - began)
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forums", type=int, default=200)
    parser.add_argument("--questions", type=int, default=250)
    given = parser.parse_args()
    folder = WORK / f"many-{given.questions}"
    shutil.rmtree(folder / "service.log", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    titles = build(folder, given.forums, given.questions)
    size = sum(path.stat().st_size for path in (folder / "forum-0").rglob("*") if path.is_file())
    rows = []
    for open_forums in (given.forums, max(1, given.forums // 10)):
        with serving(folder, "--open-forums", str(open_forums)) as running:
            before = memory_mb(running.process.pid)
            first = asked(running.port, titles)
            after = memory_mb(running.process.pid)
            again = asked(running.port, titles)
            later = memory_mb(running.process.pid)
        rows.append(
            {
                "open at once": open_forums,
                "first search": percentiles(first),
                "second search": percentiles(again),
                "memory_mb": {"none open": before, "after the first": after, "after the second": later},
            }
        )
        print(rows[-1])
    body = {"forums": given.forums, "questions_each": given.questions, "bytes_of_a_forum": size, "rows": rows}
    write("many-forums", COMMAND, body)


if __name__ == "__main__":
    main()
