"""Runs every measurement, one after the other: ``python -m benchmarks``.

Left out are ``serve_schema``, which needs a tool of its own, the test parts of ``quality_semantic``, which each
configuration scores once (``--test``), and ``lei2016``, ``zhang2018``, ``das2016`` and ``tune_ramn``, which read
trainings that were made before.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.record import REPOSITORY

ORDER = (
    "scorer_checks",
    "tune_lexical",
    "quality_lexical",
    "quality_semantic --model src/askalike/data/models/general",
    "svm_baseline",
    "index_and_search",
    "updates",
    "kill",
    "serve_load",
    "serve_kill",
    "encode_runtime",
    "ramn_speed",
    "recurrence",
    "autoencoders",
    "siamese",
    "language_speed",
    "training_time",
    "vector_search",
    "unseen_words",
    "likelihood",
    "misspelling",
)


def main() -> None:
    """Run each in a process of its own, so that memory and caches are its own too."""
    for command in ORDER:
        print(f"== {command}", flush=True)
        subprocess.run([sys.executable, "-m", *f"benchmarks.{command}".split()], check=True, cwd=REPOSITORY)
    subprocess.run([sys.executable, "-m", "tools.document"], check=True, cwd=REPOSITORY)


if __name__ == "__main__":
    main()
