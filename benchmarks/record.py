"""What every result carries: command, commit, machine, moment; and where it is written."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "results"
WEIGHTS = REPOSITORY / "src" / "askalike" / "data" / "scorer.json"
WORK = Path(os.environ.get("ASKALIKE_BENCH", Path(tempfile.gettempdir()) / "askalike-bench"))
"""Where forums are built for measuring; what an earlier measurement left there is built over."""
DATA = Path(os.environ.get("ASKALIKE_DATA", REPOSITORY.parent / "shared" / "data"))


def need_data(name: str) -> Path:
    """Return a path of the real data sets, or stop saying what is missing."""
    path = DATA / name
    if not path.exists():
        sys.exit(f"{path} is not there; set ASKALIKE_DATA to the folder of the real data sets")
    return path


def percentiles(seconds: list[float]) -> dict[str, float]:
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
        "versions": {package: version(package) for package in ("tantivy", "numpy", "PyStemmer", "selectolax")},
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


def weights_digest(learned: str | None = None) -> str:
    """Return what changes with the weights of the scorer: those of the package, or those that were just learned."""
    data = WEIGHTS.read_bytes() if learned is None else learned.encode()
    return hashlib.sha256(data).hexdigest()[:12]


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
