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
from recipes.folders import REPOSITORY, WORK, build_once, need_data
from recipes.scorer.fit import WEIGHTS

from askalike.evaluation.significance import Interval, bootstrap_difference, randomisation_test
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
    """Yield the first questions of the Reddit set as questions, all of them by default."""
    for row in reddit_rows(count):
        yield Question(str(row["id"]), row["title"], row["body"], "markdown", tuple(row["tags"]))


def write_reddit(path: Path, count: int) -> Path:
    """Write the first questions of the Reddit set as an archive; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in reddit_rows(count))
    return path


def create_reddit_forum(folder: Path, count: int) -> Forum:
    """Return a new forum of the first questions of the Reddit set, open."""
    shutil.rmtree(folder, ignore_errors=True)
    archive = write_reddit(folder.with_suffix(".jsonl"), count)
    forum = Forum.create(folder)
    forum.load(archive)
    return forum


def reddit_forum() -> Path:
    """Return the folder of a forum of all Reddit questions with vectors, built once."""

    def build(folder: Path) -> None:
        with Forum.create(folder) as forum:
            forum.load(need_data("reddit/questions.jsonl.gz"))

    return build_once(WORK / "reddit.forum", build)


def processor_s(work: Callable[[], object]) -> float:
    """Return the processor time that some work takes in this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def processor_total_s() -> float:
    """Return the processor time of this process and of all that it started and that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def memory_mb(process: int | str, name: str) -> int:
    """Return a size that Linux reports of a process, such as "VmHWM"; 0 of one that has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return int(next((line.split()[1] for line in lines if line.startswith(f"{name}:")), "0")) // 1024


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return p50, p95, p99 and mean in milliseconds."""
    milliseconds = 1000 * np.array(seconds)
    values = {f"p{share}_ms": np.percentile(milliseconds, share) for share in (50, 95, 99)}
    return {name: round(float(value), 2) for name, value in {**values, "mean_ms": milliseconds.mean()}.items()}


def hundredths(interval: Interval) -> list[float]:
    """Return a mean and the bounds of its interval, times 100."""
    return [round(100 * value, 2) for value in (interval.mean, interval.low, interval.high)]


def compare(outcomes: Sequence[float], others: Sequence[float]) -> dict[str, Any]:
    """Return by how much the outcomes of queries are above others, with interval and p of the paired test."""
    p_value = randomisation_test(outcomes, others).p_value
    return {"more": hundredths(bootstrap_difference(outcomes, others)), "p": round(p_value, 4)}


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
    process = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return process.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
