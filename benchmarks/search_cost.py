"""What a search costs beside another commit: processor time of both in turns, and what the scorer adds to it.

Command: ``python -m benchmarks.search_cost CHECKOUT [--data ARCHIVE] [--blocks N]``, with the other commit's folder. A
process of each holds the forum that its own code made of the archive; blocks of 20 questions are asked in turns, each
question by its title and with its body, by three rankers. A busy machine makes both slower alike: the ratio is what
counts. Writes ``results/search-cost.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
BLOCK: Final = 20
KINDS: Final = [(body, ranker) for body in (False, True) for ranker in ("probability", "hybrid", "lexical")]


def named(body: bool, ranker: str) -> str:
    """Return what a kind of search is called.

    >>> named(True, "hybrid")
    'title and body, hybrid'
    """
    return f"{'title and body' if body else 'title'}, {ranker}"


def work(folder: Path, archive: Path, count: int) -> None:
    """Ask blocks of questions, a number a line on stdin; print the milliseconds of each kind, a line for each block."""
    from askalike.forum import Forum
    from askalike.types import Filters, Query

    if not folder.exists():
        with Forum.create(folder) as made:
            made.load(archive)
    with Forum.open(folder) as forum:
        numbers = random.Random(0).sample(range(1, forum.size() + 1), count + 2 * BLOCK)
        asked = list(forum.questions_by_number(numbers).values())

        def ask(at: int, body: bool, ranker: str) -> float:
            one = asked[at]
            own = Filters(exclude_ids=frozenset([one.id]))
            query = Query(one.title, one.body if body else "", one.markup, 10, own, ranker, is_canonical=True)
            begun = time.process_time()
            forum.search(query)
            return 1000 * (time.process_time() - begun)

        for at in range(count, len(asked)):
            ask(at, True, "probability")
        print(json.dumps({"questions": forum.size()}), flush=True)
        for line in sys.stdin:
            places = range(BLOCK * int(line), BLOCK * (int(line) + 1))
            print(json.dumps({named(*kind): [ask(at, *kind) for at in places] for kind in KINDS}), flush=True)


def started(source: Path, folder: Path, archive: Path, count: int) -> subprocess.Popen[str]:
    """Start the process of one commit."""
    return subprocess.Popen(
        [sys.executable, __file__, str(source), "--work", str(folder), "--data", str(archive), "--blocks", str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source / "src")},
    )


def told(process: subprocess.Popen[str], block: int | None = None) -> Any:
    """Return the next line of a process, asking for a block of questions first where one is given."""
    assert process.stdin is not None
    assert process.stdout is not None
    if block is not None:
        process.stdin.write(f"{block}\n")
        process.stdin.flush()
    return json.loads(process.stdout.readline())


def compare(other: Path, archive: Path, blocks: int) -> dict[str, Any]:
    """Return what searches cost in both commits, and what the scorer adds."""
    from benchmarks.record import WORK

    name = archive.name.partition(".")[0]
    sources = {"before": other, "now": REPOSITORY}
    processes = {
        key: started(source, WORK / f"cost-{key}-{name}.forum", archive, blocks) for key, source in sources.items()
    }
    size = max([told(process)["questions"] for process in processes.values()])
    found: dict[str, dict[str, list[float]]] = {key: {} for key in processes}
    for block in range(blocks):
        for key in sorted(processes, reverse=bool(block % 2)):
            for kind, values in told(processes[key], block).items():
                found[key].setdefault(kind, []).extend(values)
    for process in processes.values():
        process.communicate()
    rows = {}
    for kind in map(named, *zip(*KINDS, strict=True)):
        middle = {key: statistics.median(found[key][kind]) for key in found}
        rows[kind] = {key: round(value, 2) for key, value in middle.items()}
        rows[kind]["ratio"] = round(middle["now"] / middle["before"], 3)
    adds = {
        asked: {
            key: round(statistics.median(map(float.__sub__, of[f"{asked}, probability"], of[f"{asked}, hybrid"])), 2)
            for key, of in found.items()
        }
        for asked in ("title", "title and body")
    }
    return {"questions": size, "asked": blocks * BLOCK, "processor time, p50 ms": rows, "the scorer adds, p50 ms": adds}


def main() -> None:
    """Run it, or one of its two processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the folder of the commit to compare with")
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        work(given.work, given.data[0], given.blocks * BLOCK)
        return
    from benchmarks.record import need_data, write

    archives = given.data or [need_data("devops-stackexchange/posts.csv.gz"), need_data("reddit/questions.jsonl.gz")]
    rows = {}
    for archive in archives:
        rows[f"{archive.parent.name}/{archive.name}"] = row = compare(given.other.resolve(), archive, given.blocks)
        print(json.dumps(row, indent=1))
    other = subprocess.run(
        ["git", "-C", str(given.other), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    write("search-cost", "python -m benchmarks.search_cost CHECKOUT", {"before": other.stdout.strip(), "forums": rows})


if __name__ == "__main__":
    main()
