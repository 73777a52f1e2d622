"""Two checkouts, the same forum, searches in turns: medians, and their ratio with an interval.

Command: ``python -m benchmarks turns OLD NEW [--forum F] [--queries N] [--json]``. OLD and NEW are folders with a
checkout each (``git worktree add``). Each indexes F by its own ``askalike index``: an archive, or the first 20,000
questions of Reddit; where F is a forum's folder that both can read, each opens a copy of it. One process a checkout
then searches for the same questions by title and by title with body, a block of queries at a time, the other checkout's
turn coming next, so that whatever else the machine does falls on both. Times are the processor's. The interval is that
of the ratio of medians by the bootstrap over queries; ``same hits`` is the share of queries whose ten ids are equal.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

FORMS: Final = ("title", "title and body")
BLOCK: Final = 20
WARMING: Final = 10
RESAMPLES: Final = 2_000
K: Final = 10


def answer_blocks(forum_folder: Path, count: int) -> None:
    """Answer blocks of queries that standard input names, in the process of one checkout."""
    from askalike import Filters, Forum, Query

    with Forum.open(forum_folder) as forum:
        questions = sorted(forum.questions(), key=lambda question: question.id)
        sample = random.Random(0).sample(questions, min(count, len(questions)))
        print(json.dumps([question.id for question in sample]), flush=True)
        for line in sys.stdin:
            form, start, stop = json.loads(line)
            rows = []
            for question in sample[start:stop]:
                body = question.body if form == FORMS[1] else ""
                own = Filters(exclude_ids=frozenset([question.id]))
                query = Query(question.title, body, question.markup, k=K, filters=own)
                before = time.process_time()
                hits = forum.search(query).hits
                rows.append((time.process_time() - before, [hit.question.id for hit in hits]))
            print(json.dumps(rows), flush=True)


class Checkout:
    """One checkout's process, which answers blocks of queries."""

    def __init__(self, checkout: Path, forum_folder: Path, count: int) -> None:
        words = [sys.executable, __file__, str(forum_folder), str(count)]
        self._process = subprocess.Popen(
            words, env=environment(checkout), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ids: list[str] = self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"a checkout's process ended with {self._process.wait()}")
        return json.loads(line)

    def search(self, form: str, start: int, stop: int) -> list[tuple[float, list[str]]]:
        """Return the processor time and the hits of each query of a block."""
        stdin: IO[str] | None = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps([form, start, stop]) + "\n")
        stdin.flush()
        return [(seconds, ids) for seconds, ids in self._read()]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment in which a checkout's package is imported, with one thread."""
    return os.environ | {"PYTHONPATH": str(checkout.absolute() / "src"), "OMP_NUM_THREADS": "1"}


def index(checkout: Path, source: Path, forum_folder: Path) -> float:
    """Make a checkout's forum from an archive, or from a copy of a forum; return the seconds that indexing took."""
    if (source / "archive.sqlite").exists():
        shutil.copytree(source, forum_folder)
        return 0.0
    began = time.perf_counter()
    words = [sys.executable, "-m", "askalike", "index", str(source), "--into", str(forum_folder)]
    subprocess.run(words, env=environment(checkout), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def compare(old: Sequence[float], new: Sequence[float]) -> dict[str, Any]:
    """Return both medians in milliseconds, and new / old with its 95 % interval.

    >>> compare([0.001, 0.002, 0.003], [0.002, 0.004, 0.006])["ratio"]
    2.0
    """
    import numpy as np

    both = 1000 * np.array([old, new])  # (2, Q)
    draws = np.random.default_rng(0).integers(0, both.shape[1], (RESAMPLES, both.shape[1]))
    medians = np.median(both[:, draws], axis=2)  # (2, R)
    low, high = np.quantile(medians[1] / medians[0], [0.025, 0.975])
    first, second = np.median(both, axis=1)
    return {
        "old_p50_ms": round(float(first), 2),
        "new_p50_ms": round(float(second), 2),
        "ratio": round(float(second / first), 3),
        "interval95": [round(float(low), 3), round(float(high), 3)],
    }


def measure(checkouts: dict[str, Path], source: Path, count: int) -> dict[str, Any]:
    """Return what searches of both checkouts take."""
    with tempfile.TemporaryDirectory() as work:
        folders = {name: Path(work) / name for name in checkouts}
        seconds = {name: round(index(path, source, folders[name]), 1) for name, path in checkouts.items()}
        processes = {name: Checkout(path, folders[name], count) for name, path in checkouts.items()}
        ids = processes["old"].ids
        if ids != processes["new"].ids:
            sys.exit("the two checkouts read other questions from the same source")
        times: dict[str, dict[str, list[float]]] = {form: {"old": [], "new": []} for form in FORMS}
        equal: dict[str, int] = dict.fromkeys(FORMS, 0)
        for form in FORMS:
            for process in processes.values():
                process.search(form, 0, WARMING)
            for turn, start in enumerate(range(0, len(ids), BLOCK)):
                order = ("old", "new") if turn % 2 == 0 else ("new", "old")
                rows = {name: processes[name].search(form, start, start + BLOCK) for name in order}
                for name, block in rows.items():
                    times[form][name] += [spent_s for spent_s, _ in block]
                pairs = zip(rows["old"], rows["new"], strict=True)
                equal[form] += sum(old_ids == new_ids for (_, old_ids), (_, new_ids) in pairs)
        for process in processes.values():
            process.close()
    searches = {
        form: compare(times[form]["old"], times[form]["new"]) | {"same hits": round(equal[form] / len(ids), 3)}
        for form in FORMS
    }
    return {"queries": len(ids), "indexing_s": seconds, "searches": searches}


def main(words: Sequence[str]) -> None:
    """Compare two checkouts and print the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks turns", description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--forum", type=Path, help="an archive, or a forum's folder; Reddit's first 20,000 questions")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as work:
        source = options.forum
        if source is None:
            from benchmarks.record import write_reddit

            source = write_reddit(Path(work) / "questions.jsonl", 20_000)
        report = measure({"old": options.old, "new": options.new}, source, options.queries)
    if options.json:
        print(json.dumps(report, indent=1))
        return
    print(f"{report['queries']} queries; indexing {report['indexing_s']} s")
    for form, row in report["searches"].items():
        low, high = row["interval95"]
        print(
            f"{form:15} old {row['old_p50_ms']:7.2f} ms  new {row['new_p50_ms']:7.2f} ms  "
            f"new / old {row['ratio']:.3f} ({low:.3f} to {high:.3f})  same hits {row['same hits']:.1%}"
        )


if __name__ == "__main__":
    answer_blocks(Path(sys.argv[1]), int(sys.argv[2]))
