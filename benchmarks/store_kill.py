"""Kills of a process that loads into a store and writes to it: is every acknowledged write there?

Command: ``python -m benchmarks.store_kill`` (100 kills). One SQLite store, no indexes. In each round a process loads
two versions of an archive of 2,000 questions in turn, while another thread of it adds, edits and deletes questions and
judges pairs; it is killed (SIGKILL) at a random moment. Then the store has to pass the check of its file, hold one
version of the archive whole, and exactly what was acknowledged beside it; the one write under way may be there or not.
Every round goes on with the store that the round before has left. Writes results/store-kill.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sqlite3
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final

from recipes.folders import WORK

from askalike.readers.detection import READERS
from askalike.readers.frame import ReadContext
from askalike.store import ForumLayout, create_store, open_store
from askalike.types import Feedback, Question, Source
from benchmarks.kill import SOURCE, Ledger, Versions, check_archive, killed_steps, tell, tell_write, write_archives
from benchmarks.record import option_parser, reddit_rows, write

COMMAND: Final = "python -m benchmarks.store_kill"
KILLS: Final = 100
QUESTIONS: Final = 2_000
LONGEST_S: Final = 4.0
"""The longest time between the begin of a round's first load and its kill."""
JUDGED: Final = ("first judged", "second judged")
"""The questions that are judged again and again."""


def worker(folder: Path, versions: Versions, seed: int) -> None:
    """Load and write until killed, printing each step."""
    chance, store = random.Random(seed), open_store(ForumLayout(folder))
    names = [question.id for _, question in store.all_questions() if question.id.startswith("own-")]

    def load() -> None:
        for number in range(seed, seed + 1_000_000):
            name = ("whole", "less")[number % 2]
            tell("begin", "load", name)
            records = READERS["jsonl"].read(versions.path(name), ReadContext())
            store.load(records, Source(SOURCE, "jsonl"), lambda _: None)
            tell("done", "load", name)

    threading.Thread(target=load, daemon=True).start()
    for number in range(1_000_000):
        name, title = f"own-{seed}-{number}", f"scanner {chance.random()}"
        kind = chance.choice(("put", "put", "edit", "judge", "delete")) if names else "put"
        if kind == "delete":
            name = names.pop(chance.randrange(len(names)))
            tell_write("delete", [name], partial(store.put_questions, [], [name]))
        elif kind == "judge":
            judgement = Feedback(*JUDGED, "different", by=name)
            tell_write("judge", [*JUDGED, "different", name], partial(store.add_judgement, judgement))
        else:
            if kind == "put":
                names.append(name)
            question = Question(chance.choice(names) if kind == "edit" else name, title)
            tell_write("put", [question.id, title], partial(store.put_questions, [question]))


def main() -> None:
    """Measure and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args()
    folder = WORK / "store-kill.forum"
    if options.worker:
        *paths, seed = options.worker
        worker(folder, Versions(*map(Path, paths)), int(seed))
        return
    shutil.rmtree(folder, ignore_errors=True)
    versions = write_archives(WORK / "store-kill", map(json.dumps, reddit_rows(QUESTIONS)))
    paths = [str(path) for path in (versions.whole, versions.less, versions.base)]
    layout, ledger, chance = ForumLayout(folder), Ledger(), random.Random(0)
    with contextlib.closing(create_store(layout, {})) as store:
        store.put_questions([Question(name, name) for name in JUDGED])
        ledger.questions |= dict(zip(JUDGED, JUDGED, strict=True))
    killed_during: Counter[str] = Counter()
    for seed in range(options.kills):
        command = ["benchmarks.store_kill", "--worker", *paths, str(seed)]
        ledger.read(killed_steps(command, chance.uniform(0.2, LONGEST_S)))
        killed_during.update("load" if step[0] == "load" else "write" for step in ledger.pending)
        with contextlib.closing(sqlite3.connect(layout.archive)) as archive:
            ledger.check(archive)
            ledger.versions = [check_archive(folder, archive, versions, ledger.versions)]
        print(f"{seed + 1} kills: {ledger.acknowledged:,} acknowledged, none lost", flush=True)
    body = {
        "questions": QUESTIONS,
        "kills": options.kills,
        "killed_during": killed_during,
        "acknowledged": ledger.acknowledged,
        "lost": 0,
    }
    if options.kills == KILLS:
        write("store-kill", COMMAND, body)


if __name__ == "__main__":
    main()
