"""Plays the five people from a bare folder, installing what the documents say: ``python -m tools.journeys [NAME …]``.

Each starts in a copy of what is committed, without an environment. It takes some ten minutes with a warm package cache,
most of them the contributor's set-up, and writes results/journeys.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.record import write

from tools.journeys.people import PEOPLE, REPOSITORY, play

NOTE = (
    "Seconds by the clock, processor's seconds of all that was run, and the machine's load (processes that run or wait,"
    " mean of a minute) before each journey and after it; the journey itself adds about 1."
)


def main(names: list[str]) -> None:
    """Play the people named, or all, and write what it took each as soon as the goal is reached."""
    file = REPOSITORY / "results" / "journeys.json"
    found = json.loads(file.read_text(encoding="utf-8"))["people"] if names and file.exists() else {}
    for name in names or PEOPLE:
        person, before_s, load = PEOPLE[name], _processor_s(), os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            packed = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
            ran = play(person, Path(folder), is_installed=False)
        found[name] = {
            "goal": person.goal,
            "pages": list(person.pages),
            "commands": len(ran),
            "seconds": round(sum(one.seconds for one in ran), 1),
            "setting_up_s": round(sum(one.seconds for one in ran if is_setting_up(one.command)), 1),
            "processor_s": round(_processor_s() - before_s, 1),
            "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        }
        print(f"{name}: {person.goal} after {len(ran)} commands and {found[name]['seconds']} s", flush=True)
        write("journeys", "python -m tools.journeys", {"people": found, "note": NOTE})


def _processor_s() -> float:
    """Return the processor's time of all processes that were started here and have ended."""
    used = os.times()
    return used.children_user + used.children_system


def is_setting_up(command: str) -> bool:
    """Return whether a command installs."""
    return command.startswith(("make demo", "make setup", "python3 -m venv", "pip install", ". .venv"))


if __name__ == "__main__":
    main(sys.argv[1:])
