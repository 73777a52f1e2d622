"""Runs every measurement, one after the other: ``python -m benchmarks``."""

from __future__ import annotations

import subprocess
import sys

ORDER = (
    "scorer_checks",
    "tune_lexical",
    "quality_lexical",
    "index_and_search",
    "updates",
    "kill",
    "encode_runtime",
    "vector_search",
)


def main() -> None:
    """Run each in a process of its own, so that memory and caches are its own too."""
    for name in ORDER:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
    subprocess.run([sys.executable, "-m", "tools.document"], check=True)


if __name__ == "__main__":
    main()
