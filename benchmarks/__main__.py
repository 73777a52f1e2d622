"""Runs measurements, each in a process of its own: ``python -m benchmarks [NAME …]``, all of them without a name.

``python -m benchmarks turns OLD NEW`` compares two checkouts and writes nothing (``benchmarks.turns``).

Left out of all are ``serve_schema``, which needs a tool of its own, ``engine_kill``, which needs servers, and
``evidence`` and ``ramn_states``, which are given folders.
``python -m recipes.scorer`` writes other weights into the package; then ``scorer``, ``groups`` and ``quality_search``
are measured again, in this order.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Final

from recipes.folders import REPOSITORY

from benchmarks import turns

COMMANDS: Final = (
    "scale --keep",
    "vector_search",
    "serve_load",
    "request_cost",
    "plain_service",
    "likely_pairs",
    "postgres",
    "engines",
    "answers",
    "transformer_runtime",
    "training_time",
    "kill",
    "store_kill",
    "serve_kill",
    "encode_kill",
    "damage",
    "serve_attack",
    "follow",
    "scorer_checks",
    "scorer",
    "groups",
    "quality_search --test",
    "languages",
)
"""Modules with their arguments."""


def run(command: str) -> int:
    """Run a measurement; return how it ended."""
    print(f"== {command}", flush=True)
    words = [sys.executable, "-m", *f"benchmarks.{command}".split()]
    return subprocess.run(words, check=False, cwd=REPOSITORY, env={"OMP_NUM_THREADS": "1", **os.environ}).returncode


def main() -> None:
    """Run what is named."""
    if sys.argv[1:2] == ["turns"]:
        turns.main(sys.argv[2:])
        return
    names = list(dict.fromkeys(command.split()[0] for command in COMMANDS))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    chosen = parser.parse_args().names or names
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(names)}")
    failed = [command for command in COMMANDS if command.split()[0] in chosen and run(command)]
    subprocess.run([sys.executable, "-m", "tools.tables"], check=True, cwd=REPOSITORY)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
