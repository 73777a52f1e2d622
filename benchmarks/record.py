"""What measurements share: Reddit's questions, times of the processor, and the stamp that every result carries."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from recipes.folders import REPOSITORY, WORK, need_data
from recipes.scorer.fit import WEIGHTS

from askalike.forum import Forum
from askalike.types import Question

RESULTS = REPOSITORY / "results"


def option_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of a measurement's options, with its docstring as the help."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def reddit_rows(count: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the first questions of the Reddit set as its rows, all of them by default."""
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, islice(lines, count))


def reddit_questions(count: int | None = None) -> Iterator[Question]:
    """Yield the same as questions."""
    for row in reddit_rows(count):
        yield Question(str(row["id"]), row["title"], row["body"], "markdown", tuple(row["tags"]))


def write_reddit(path: Path, count: int) -> Path:
    """Write the first questions of the Reddit set as an archive; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in reddit_rows(count))
    return path


def reddit_forum() -> Path:
    """Return the folder of a forum of all Reddit questions with vectors, built once."""
    folder, mark = WORK / "reddit.forum", WORK / "reddit.complete"
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with Forum.create(folder) as forum:
            forum.load(need_data("reddit/questions.jsonl.gz"))
        mark.touch()
    return folder


def processor_s(work: Callable[[], object]) -> float:
    """Return the processor time that some work takes in this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def processor_total_s() -> float:
    """Return the processor time of this process and of all that it started and that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return p50, p95, p99 and mean in milliseconds."""
    found = np.percentile(np.array(seconds) * 1000, [50, 95, 99])
    names = ("p50_ms", "p95_ms", "p99_ms")
    return {name: round(float(value), 2) for name, value in zip(names, found, strict=True)} | {
        "mean_ms": round(1000 * sum(seconds) / len(seconds), 2)
    }


def write(name: str, command: str, body: dict[str, Any]) -> Path:
    """Write ``results/NAME.json`` with everything that is needed to measure it again."""
    record = {
        "name": name,
        "command": command,
        **stamp(),
        "machine": {
            "cpu": _processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "versions": {package: version(package) for package in ("numpy", "scipy", "PyStemmer", "selectolax")},
        **body,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(REPOSITORY)}")
    return path


def stamp() -> dict[str, str]:
    """Return which commit is measured, by which weights of the scorer, and when."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"commit": _commit(), "when": now, "weights": weights_digest()}


def weights_digest() -> str:
    """Return what changes with the weights of the package's scorer."""
    return hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()[:12]


def _commit() -> str:
    """Return the commit that was measured, marked where code, not results or documents, was changed since."""
    commit = _git("rev-parse", "--short", "HEAD")
    return commit + ("-dirty" if _git("status", "--porcelain", "--", "src", "benchmarks", "constraints.txt") else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
