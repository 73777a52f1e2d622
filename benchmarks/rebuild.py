"""Speed and memory of this checkout beside those of another commit, in turn: indexing, search, one epoch of training.

Command: ``python -m benchmarks.rebuild --old FOLDER [--rounds 5]``, where FOLDER is a checkout of the commit to compare
with, such as ``git worktree add FOLDER d76a4fb``. Both run with this Python and its packages, each measurement in a
process of its own on one thread; what goes first changes from round to round. A measurement's ratio is the median over
the rounds of new / old. Writes ``results/rebuild.json``.

Indexing is of the travel forum with words and vectors. Searches are for its first titles. Rankers that both know are
compared; the default is another ranker since, with more work, and is shown beside. Training is one epoch of a small
encoder on the forum's own text, from nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from benchmarks.record import REPOSITORY, need_data, write

COMMAND: Final = "python -m benchmarks.rebuild"
RANKERS: Final = ("default", "lexical", "vector", "hybrid")
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
SEEDS: Final = {"PYTHONHASHSEED": "0"}
BOUND: Final = 1.03

RECIPE: Final = """
[words]
size = 100
max_size = 20_000
min_count = 2
vectors = "word2vec"
epochs = 1
is_trained = true

[encoder]
kind = "rcnn"
hidden_size = 200
order = 2
pooling = "normalised-mean"

[[stage]]
objective = "contrastive"
views = { title-body = 1.0, marked = 1.0 }
batch_size = 128
epochs = 1
learning_rate = 1e-3
"""

BEGIN: Final = """
import json, resource, sys, time
from pathlib import Path
from askalike import Forum
folder, archive, number = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
found = {}
"""
END: Final = """
found["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print("FOUND " + json.dumps(found))
"""
PROGRAMS: Final = {
    "indexing": """
began = time.perf_counter()
with Forum.create(folder) as forum:
    forum.load(archive)
    forum.encode()
found["seconds"] = time.perf_counter() - began
""",
    "search": """
from itertools import islice
rankers = sys.argv[4].split()
with Forum.open(folder) as forum:
    titles = [question.title for question in islice(forum.questions(), number)]
    for ranker in rankers:
        named = {} if ranker == "default" else {"ranker": ranker}
        for title in titles[:20]:
            forum.similar(title, **named)
        spent = []
        for title in titles:
            began = time.perf_counter()
            forum.similar(title, **named)
            spent.append(time.perf_counter() - began)
        found[f"{ranker}_ms"] = 1000 * sorted(spent)[len(spent) // 2]
""",
    "training": """
from askalike.cli.main import main
recipe = folder.parent / "rebuild.toml"
sys.argv = ["askalike", "train", str(folder), "--recipe", str(recipe), "--from", "nothing", "--keep", "--fresh"]
sys.argv += ["--threads", "1", "--json"]
began = time.perf_counter()
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended
found["seconds"] = time.perf_counter() - began
""",
}


def measured(side: Path, program: str, folder: Path, archive: Path, searches: int) -> dict[str, float]:
    """Return what a program finds of a checkout."""
    environment = os.environ | dict.fromkeys(THREADS, "1") | SEEDS | {"PYTHONPATH": str(side / "src")}
    command = [sys.executable, "-c", BEGIN + PROGRAMS[program] + END, str(folder), str(archive)]
    command += [str(searches), " ".join(RANKERS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND ")), None)
    if line is None:
        sys.exit(f"{program} of {side} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(line.removeprefix("FOUND "))
    return found


def summary(sides: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return each figure's medians, and the median of its ratios with the least and the greatest.

    >>> summary({"old": [{"s": 2.0}, {"s": 4.0}], "new": [{"s": 1.0}, {"s": 4.0}]})
    {'s': {'old': 3.0, 'new': 2.5, 'ratio': 0.75, 'least': 0.5, 'greatest': 1.0}}
    """
    rows: dict[str, Any] = {}
    for name in sides["new"][0]:
        old, new = ([one[name] for one in sides[side]] for side in ("old", "new"))
        ratios = [later / before for before, later in zip(old, new, strict=True)]
        rows[name] = {
            "old": round(statistics.median(old), 3),
            "new": round(statistics.median(new), 3),
            "ratio": round(statistics.median(ratios), 4),
            "least": round(min(ratios), 4),
            "greatest": round(max(ratios), 4),
        }
    return rows


def main() -> None:
    """Measure both checkouts and write what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--searches", type=int, default=300)
    options = parser.parse_args()
    archive = need_data("travel-stackexchange")
    sides = {"old": options.old.resolve(), "new": REPOSITORY}
    found: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as work:
            (Path(work) / "rebuild.toml").write_text(RECIPE, encoding="utf-8")
            order = list(sides) if number % 2 == 0 else list(reversed(sides))
            for program in PROGRAMS:
                for side in order:
                    one = measured(sides[side], program, Path(work) / side, archive, options.searches)
                    found[program][side].append(one)
                    print(f"round {number + 1}, {program}, {side}: {one}", flush=True)
    commit = subprocess.run(
        ["git", "-C", str(sides["old"]), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    rows = {program: summary(both) for program, both in found.items()}
    for program, figures in rows.items():
        for name, row in figures.items():
            verdict = "within 3 %" if row["ratio"] <= BOUND else "more than 3 % above"
            print(f"{program} {name}: {row['old']} -> {row['new']}, ratio {row['ratio']}, {verdict}")
    body = {"old_commit": commit.stdout.strip(), "rounds": options.rounds, "searches": options.searches}
    write("rebuild", COMMAND, {**body, "load_15_min_at_end": round(os.getloadavg()[2], 2), "measured": rows})


if __name__ == "__main__":
    main()
