"""Runs measurements, one after the other: ``python -m benchmarks`` all of them, ``python -m benchmarks weights`` what
rests on the weights of the scorer.

Left out of all are ``serve_schema``, which needs a tool of its own, the test splits of ``quality_semantic``, which each
configuration scores once (``--test``), and what reads trainings that were made before: ``lei2016``, ``zhang2018``,
``das2016``, ``tune_ramn`` and ``misspelling``. Other weights are another configuration of ``quality_search``.

``weights`` learns them anew, then measures in an order in which each finds what it needs. Run again it goes on: a
measurement is done whose results name the present weights and a clean commit. Where other weights were learned, or a
measurement fails, it stops and says so. ``weights NAME …`` measures these, done or not. Needs the extras ``minilm`` and
``train``; on two cores it takes about an hour, most of it MiniLM's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.record import REPOSITORY, RESULTS, WEIGHTS, weights_digest

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
    "OMP_NUM_THREADS=1 plain_service",
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
BY_WEIGHTS = {
    "scorer": ("scorer --learn",),
    "judgements": ("judgements",),
    "groups": ("groups",),
    "encoders": ("encoders --build", "encoders"),
    "quality-search": ("quality_search --test",),
    "whole-forums": ("whole_forums",),
    "several-vectors": ("several_vectors",),
}
"""Name of the results file → the measurements that write it."""


def run(command: str) -> int:
    """Run a measurement in a process of its own, so that memory and caches are its own too; return how it ended."""
    print(f"== {command}", flush=True)
    words = command.removeprefix(ONE_THREAD)
    told = {} if words == command else {"OMP_NUM_THREADS": "1"}
    called = [sys.executable, "-m", *f"benchmarks.{words}".split()]
    return subprocess.run(called, check=False, cwd=REPOSITORY, env={**os.environ, **told}).returncode


def is_done(name: str) -> bool:
    """Return whether results rest on the present weights and a clean commit."""
    path = RESULTS / f"{name}.json"
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return held.get("weights") == weights_digest() and not held["commit"].endswith("-dirty")


def by_weights(wanted: Sequence[str]) -> str:
    """Measure what rests on the weights; return why it stopped, "" where all is done."""
    for place, (name, commands) in enumerate(BY_WEIGHTS.items(), 1):
        if name not in wanted if wanted else is_done(name):
            print(f"{place} of {len(BY_WEIGHTS)}: {name}, {'not asked for' if wanted else 'done before'}", flush=True)
            continue
        before, began = weights_digest(), time.monotonic()
        for command in commands:
            print(f"{place} of {len(BY_WEIGHTS)}: {name}", flush=True)
            if code := run(ONE_THREAD + command):
                return f"{command} ended with {code}; mend it and say the same again"
        print(f"{place} of {len(BY_WEIGHTS)}: {name} took {time.monotonic() - began:,.0f} s", flush=True)
        if weights_digest() != before:
            return (
                f"other weights were learned: see results/{name}.json, commit {WEIGHTS.relative_to(REPOSITORY)} or take"
                " it back, and say the same again"
            )
    return ""


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=["all", "weights"], default="all")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"with weights: {', '.join(BY_WEIGHTS)}")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in BY_WEIGHTS or given.part == "all"]:
        parser.error(f"{', '.join(unknown)}: expected weights and some of {', '.join(BY_WEIGHTS)}")
    if given.part == "weights":
        stopped = by_weights(given.names)
    else:
        stopped = next((f"{command} failed" for command in ORDER if run(command)), "")
    if stopped:
        sys.exit(stopped)
    subprocess.run([sys.executable, "-m", "tools.document"], check=True, cwd=REPOSITORY)


if __name__ == "__main__":
    main()
