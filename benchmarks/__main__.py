"""Runs every measurement, one after the other: ``python -m benchmarks``.

Left out are ``serve_schema``, which needs a tool of its own, the test splits of ``quality_semantic``, which each
configuration scores once (``--test``), and what reads trainings that were made before: ``lei2016``, ``zhang2018``,
``das2016``, ``tune_ramn`` and ``misspelling``.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.record import REPOSITORY

ONE_THREAD = "OMP_NUM_THREADS=1 "
ORDER = (
    "scorer_checks",
    "tune_lexical",
    "quality_lexical",
    "quality_semantic --model src/askalike/data/models/general",
    "svm_baseline",
    "index_and_search",
    "updates",
    "kill",
    "damage",
    "serve_load",
    "serve_kill",
    "serve_attack",
    "follow",
    "OMP_NUM_THREADS=1 encode_runtime",
    "ramn_speed",
    "recurrence",
    "autoencoders",
    "siamese",
    "OMP_NUM_THREADS=1 language_speed",
    "OMP_NUM_THREADS=1 moments",
    "training_time",
    "vector_search",
    "unseen_words",
    "scorer",
    "model_size",
)


def main() -> None:
    """Run each in a process of its own, so that memory and caches are its own too."""
    for command in ORDER:
        print(f"== {command}", flush=True)
        words = command.removeprefix(ONE_THREAD)
        told = {} if words == command else {"OMP_NUM_THREADS": "1"}
        called = [sys.executable, "-m", *f"benchmarks.{words}".split()]
        subprocess.run(called, check=True, cwd=REPOSITORY, env={**os.environ, **told})
    subprocess.run([sys.executable, "-m", "tools.document"], check=True, cwd=REPOSITORY)


if __name__ == "__main__":
    main()
