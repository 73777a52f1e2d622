"""Plays the five people from a bare folder, installing what the documents say: ``python -m tools.journeys [NAME …]``.

Each starts in a copy of what is committed, without an environment. It takes some ten minutes with a warm package cache,
most of them the contributor's set-up.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.journeys.people import PEOPLE, REPOSITORY, play


def main(names: list[str]) -> None:
    """Play the people named, or all, and print what each took."""
    for name in names or PEOPLE:
        with tempfile.TemporaryDirectory() as folder:
            packed = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
            steps = play(PEOPLE[name], Path(folder), is_installed=False)
        seconds = sum(step.seconds for step in steps)
        print(f"{name}: {PEOPLE[name].goal} after {len(steps)} commands and {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
