"""Kills of a process that loads into a store and writes to it: is every acknowledged write there?

Command: ``python -m benchmarks.store_kill`` (100 kills). One SQLite store, no indexes. In each round a process loads
two versions of an archive of 2,000 questions in turn, while another thread of it adds, edits and deletes questions and
judges pairs; it is killed (SIGKILL) at a random moment. Then the store has to pass the check of its file, hold one
version of the archive whole, and exactly what was acknowledged beside it; the one write under way may be there or not.
Every round goes on with the store that the round before has left. Writes results/store-kill.json.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from recipes.folders import WORK

from askalike.store import ForumLayout, Store, create_store, open_store, stored_faults
from askalike.types import Feedback, Link, Question, Record, Source
from benchmarks.record import option_parser, write

COMMAND: Final = "python -m benchmarks.store_kill"
KILLS: Final = 100
QUESTIONS: Final = 2_000
LONGEST_S: Final = 4.0
"""The longest time between the first acknowledgement of a round and its kill."""
FOLDER: Final = WORK / "store-kill.forum"
ARCHIVE: Final = Source("archive", "jsonl")
VERSIONS: Final = ("whole", "less")


def records(version: str) -> Iterator[Record]:
    """Yield a version of the archive: in "less" every twentieth question is missing, and every seventh is edited."""
    is_less = version == "less"
    for number in range(QUESTIONS):
        if not (is_less and number % 20 == 0):
            title = f"printer {number} is offline" + " again" * (is_less and number % 7 == 0)
            yield Question(f"b{number}", title, "It worked yesterday. " * 20)
    yield from (Link(f"b{number}", f"b{number - 1}") for number in range(1, QUESTIONS, 40))


@dataclass
class Ledger:
    """What the store must hold: the versions of the archive that may be there, and what was written beside it."""

    versions: set[str] = field(default_factory=lambda: {""})
    questions: dict[str, str] = field(default_factory=dict)
    judgements: set[str] = field(default_factory=set)
    acknowledged: int = 0
    loads: int = 0

    def apply(self, kind: str, name: str, value: str) -> None:
        """Take a write as done."""
        if kind == "load":
            self.versions = {name}
        elif kind == "put":
            self.questions[name] = value
        elif kind == "delete":
            self.questions.pop(name, None)
        else:
            self.judgements.add(name)

    def read(self, lines: list[str]) -> list[tuple[str, str, str]]:
        """Apply what a process has told; return what was under way when it was killed."""
        under_way: dict[bool, tuple[str, str, str]] = {}
        for line in lines:
            state, kind, name, value = json.loads(line)
            if state == "begin":
                under_way[kind == "load"] = (kind, name, value)
            else:
                self.apply(*under_way.pop(kind == "load"))
                self.acknowledged += 1
                self.loads += kind == "load"
        return list(under_way.values())


def work(tell: Any, seed: int, known: list[str]) -> None:
    """Load and write until killed, telling each step before and after."""
    chance, lock = random.Random(seed), threading.Lock()
    store = open_store(ForumLayout(FOLDER))

    def step(kind: str, name: str, value: str, call: Any) -> None:
        for state in ("begin", "done"):
            with lock:
                tell.write(json.dumps([state, kind, name, value]) + "\n")
                tell.flush()
            if state == "begin":
                call()

    def load() -> None:
        for number in range(seed, seed + 1_000_000):
            version = VERSIONS[number % 2]
            step("load", version, "", lambda version=version: store.load(records(version), ARCHIVE, print))

    threading.Thread(target=load, daemon=True).start()
    for number in range(1_000_000):
        name, title = f"w{seed}-{number}", f"scanner {chance.random()}"
        kind = chance.choice(("put", "put", "edit", "judge", "delete")) if len(known) > 2 else "put"
        if kind == "delete":
            gone = known.pop(chance.randrange(len(known)))
            step("delete", gone, "", lambda gone=gone: store.put_questions([], [gone]))
        elif kind == "judge":
            judgement = Feedback(*FIXED, "different", by=name)
            step("judge", name, "", lambda judgement=judgement: store.add_feedback(judgement))
        else:
            name = chance.choice(known) if kind == "edit" else name
            question = Question(name, title)
            step("put", name, title, lambda question=question: store.put_questions([question]))
            known.extend([name] * (kind == "put"))


FIXED: Final = ("fixed one", "fixed other")
"""The questions that are judged again and again."""


def killed_round(seed: int, ledger: Ledger, chance: random.Random) -> list[tuple[str, str, str]]:
    """Let a process work and kill it; return what was under way."""
    known = sorted(set(ledger.questions) - set(FIXED))
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        work(os.fdopen(into, "w"), seed, known)
        os._exit(1)
    os.close(into)
    lines: list[str] = []
    with os.fdopen(out) as said:
        reader = threading.Thread(target=lambda: lines.extend(said))
        reader.start()
        time.sleep(chance.uniform(0.2, LONGEST_S))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        reader.join()
    assert os.WTERMSIG(status) == signal.SIGKILL, f"the process stopped by itself with {status}"
    return ledger.read([line for line in lines if line.endswith("]\n")])


def lost(store: Store, ledger: Ledger, under_way: list[tuple[str, str, str]]) -> list[str]:
    """Return what was acknowledged and is not there, or there and was not; the ledger takes what was under way."""
    titles = {question.id: question.title for _, question in store.all_questions()}
    own = {name: title for name, title in titles.items() if not name.startswith("b")}
    judged = {judgement.by for judgement in store.all_feedback()}
    archive = {name: title for name, title in titles.items() if name.startswith("b")}
    for kind, name, value in under_way:
        if kind == "load":
            ledger.versions.add(name)
        elif (own.get(name) == (value or None)) if kind != "judge" else name in judged:
            ledger.apply(kind, name, value)
    wrong = [f"question {name}" for name, _ in set(own.items()) ^ set(ledger.questions.items())]
    wrong += [f"judgement {name}" for name in judged ^ ledger.judgements]
    held = [version for version in ledger.versions if archive == contents(version)]
    ledger.versions = set(held[:1])
    return wrong + ["the archive is no version of what was loaded"] * (not held)


def contents(version: str) -> dict[str, str]:
    """Return id → title of the questions of a version; "" holds none."""
    return {record.id: record.title for record in records(version) if isinstance(record, Question)} if version else {}


def main() -> None:
    """Measure and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    kills = parser.parse_args().kills
    shutil.rmtree(FOLDER, ignore_errors=True)
    layout, ledger, chance = ForumLayout(FOLDER), Ledger(), random.Random(0)
    with contextlib.closing(create_store(layout, {})) as store:
        for name in FIXED:
            store.put_questions([Question(name, name)])
            ledger.apply("put", name, name)
    wrong, during = list[str](), {"load": 0, "write": 0}
    for seed in range(kills):
        under_way = killed_round(seed, ledger, chance)
        for kind, *_ in under_way:
            during["load" if kind == "load" else "write"] += 1
        with contextlib.closing(open_store(layout)) as store:
            wrong += lost(store, ledger, under_way)
        wrong += stored_faults(layout, *[lambda _: None] * 3)
        print(f"{seed + 1} kills: {ledger.acknowledged:,} acknowledged, {len(wrong)} lost", flush=True)
    body = {
        "questions": QUESTIONS,
        "kills": kills,
        "killed_during": during,
        "acknowledged": ledger.acknowledged,
        "loads": ledger.loads,
        "lost": len(wrong),
    }
    if kills == KILLS:
        write("store-kill", COMMAND, body)
    assert not wrong, wrong[:5]


if __name__ == "__main__":
    main()
