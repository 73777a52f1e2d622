"""Kill test of the service: killed (SIGKILL) at random moments while four clients write; nothing acknowledged is lost.

Command: ``python -m benchmarks.serve_kill`` (50 kills). The forum holds 20,000 real questions. Each client writes under
names of its own: questions, edits, deletes, answers, duplicate links, judgements, and dates that no reader could take.
In every second round another process loads two versions of the archive meanwhile, again and again, and is killed too.
After each kill the forum is opened and checked:

- it opens, passes SQLite's own check, and holds one version of the archive whole;
- it holds what was acknowledged; the one request under way of each client may be there or not;
- no date out of range was taken, and what was refused is not there;
- nothing of a load and nothing in the temporary directory is left;
- its indexes are in step, and what was written last is found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from recipes.folders import REPOSITORY, WORK
from recipes.scorer.pairs import WORDS_ALONE

from askalike import Forum, Query
from askalike.client import Client, ServiceError
from askalike.forum import ImportOptions
from askalike.store import ForumLayout
from benchmarks.kill import (
    HOSTILE,
    QUESTIONS,
    SOURCE,
    Versions,
    check_archive,
    contents,
    in_step,
    write_versions,
    written_beside,
)
from benchmarks.record import option_parser, reddit_rows, write
from benchmarks.serving import serving

COMMAND: Final = "python -m benchmarks.serve_kill"
KILLS: Final = 50
CLIENTS: Final = 4
LONGEST_S: Final = 15.0
NOTHING_DONE: Final = (404, 422, 429, 503)
"""Statuses with which nothing was stored."""

Key = tuple[str, ...]
"""Kind and identifiers of a record."""


@dataclass
class Ledger:
    """What the service acknowledged to one client.

    Args:
        archived: ids of the archive; some go and return.
        records: what was acknowledged and not deleted since.
        pending: what may be there or not: of requests under way, or that took too long; None for a deletion.
    """

    name: str
    archived: list[str]
    records: dict[Key, str] = field(default_factory=dict)
    pending: dict[Key, str | None] = field(default_factory=dict)
    acknowledged: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    taken: list[str] = field(default_factory=list)
    longest_write_s: float = 0.0

    def write(self, client: Client, chance: random.Random, start: int) -> None:
        """Write until the service is gone."""
        kinds = ("put", "put", "edit", "delete", "answer", "mark", "judge", "hostile")
        for number in range(start, start + 1_000_000):
            before = dict(self.pending)
            began = time.monotonic()
            try:
                self._write_one(client, chance, chance.choice(kinds), number)
            except ServiceError as error:
                self.refused[error.status] += 1
                if error.status == 0:
                    return
                if error.status in NOTHING_DONE:
                    self.pending = before
            else:
                self.longest_write_s = max(self.longest_write_s, time.monotonic() - began)

    def _write_one(self, client: Client, chance: random.Random, kind: str, number: int) -> None:
        own = [key[1] for key in self.records if key[0] == "question"]
        fresh, subject = f"{self.name}-{number}", f"{kind} trouble {number}"
        if kind == "hostile":
            moment = chance.choice(HOSTILE).isoformat()
            client.put(f"{fresh}-hostile", subject, created=moment)
            self.taken.append(moment)
        elif kind == "delete" and own:
            name = chance.choice(own)
            keys = [key for key, value in self.records.items() if name in key[1:] or value == name]
            self.pending |= dict.fromkeys(keys)
            client.delete(name)
            self._acknowledge(keys)
        elif kind == "answer" and own:
            question = chance.choice(own)
            self.pending["answer", fresh] = question
            client.put_answer(fresh, question, subject)
            self._acknowledge([("answer", fresh)])
        elif kind == "mark" and own:
            key = ("mark", chance.choice(own), chance.choice(self.archived))
            self.pending[key] = "duplicate"
            client.mark(*key[1:])
            self._acknowledge([key])
        elif kind == "judge":
            first, second = chance.sample(self.archived, 2)
            self.pending["judgement", fresh] = f"{first} {second}"
            client.decide(first, second, "different", by=fresh)
            self._acknowledge([("judgement", fresh)])
        else:
            name = chance.choice(own) if kind == "edit" and own else fresh
            self.pending["question", name] = subject
            client.put(name, subject)
            self._acknowledge([("question", name)])

    def _acknowledge(self, keys: list[Key]) -> None:
        for key in keys:
            value = self.pending.pop(key)
            if value is None:
                del self.records[key]
            else:
                self.records[key] = value
        self.acknowledged += 1

    def settle(self, everything: dict[Key, str]) -> Iterator[str]:
        """Yield what differs from what was acknowledged, and continue with what is there."""
        yield from (f"a date out of range was taken: {moment}" for moment in self.taken)
        stored = {key: value for key, value in everything.items() if key[1].startswith(f"{self.name}-")}
        for key in {*stored, *self.records}:
            allowed = {self.records.get(key)}
            if key in self.pending:
                allowed.add(self.pending[key])
            if stored.get(key) not in allowed:
                yield f"{key}: {stored.get(key)!r}, expected one of {allowed}"
        self.records, self.pending = stored, {}


def records_by_key(archive: sqlite3.Connection) -> dict[Key, str]:
    """Return all that the archive holds beside what was loaded, whether or not it counts at present."""
    titles, answers, links, judgements = written_beside(archive)
    records: dict[Key, str] = {("question", name): title for name, title in titles.items()}
    records |= {("answer", name): question for name, question in answers.items()}
    records |= {("mark", first, second): kind for first, second, kind in links}
    return records | {("judgement", judge): f"{first} {second}" for first, second, _, judge in judgements}


def load_again_and_again(folder: Path, versions: Versions) -> None:
    """Load the versions in turn, until killed; the service makes them searchable."""
    with Forum.open(folder, settings=WORDS_ALONE) as forum:
        while True:
            for name in ("less", "whole"):
                forum.load(versions.path(name), options=ImportOptions(format="jsonl", source=SOURCE))


@contextlib.contextmanager
def loading(folder: Path, versions: Versions, *, is_wanted: bool) -> Iterator[None]:
    """Let another process load meanwhile; it is killed at the end."""
    if not is_wanted:
        yield
        return
    paths = map(str, (folder, versions.whole, versions.less, versions.base))
    with subprocess.Popen([sys.executable, "-m", "benchmarks.serve_kill", "--load", *paths], cwd=REPOSITORY) as process:
        try:
            yield
            assert process.poll() is None, f"loading stopped by itself with {process.returncode}"
        finally:
            process.kill()


def one_round(
    folder: Path, versions: Versions, ledgers: list[Ledger], number: int, delay_s: float, *, is_loading: bool
) -> int:
    """Serve, write, kill after a while, check; return how many writes were acknowledged before the kill.

    Raises:
        AssertionError: something that was acknowledged is not there.
    """
    before = sum(ledger.acknowledged for ledger in ledgers)
    with serving(folder) as running, loading(folder, versions, is_wanted=is_loading):
        threads = [
            threading.Thread(
                target=ledger.write, args=(running.client, random.Random(f"{number} {ledger.name}"), number * 1_000_000)
            )
            for ledger in ledgers
        ]
        for thread in threads:
            thread.start()
        time.sleep(delay_s)
        running.process.kill()
        assert running.process.wait() == -signal.SIGKILL
        for thread in threads:
            thread.join()
    left = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
    assert not left, f"left in the temporary directory: {left}"
    with Forum.open(folder) as forum, contextlib.closing(sqlite3.connect(ForumLayout(folder).archive)) as stored:
        check_archive(folder, stored, versions, ("whole", "less"))
        everything = records_by_key(stored)
        for ledger in ledgers:
            wrong = list(ledger.settle(everything))
            assert not wrong, f"{len(wrong)} differ, such as {wrong[:3]}"
        in_step(forum)
        for ledger in ledgers:
            titles = [(key[1], title) for key, title in ledger.records.items() if key[0] == "question"]
            for identifier, title in titles[-3:]:
                ranking = dict(forum.indexes.ranking(Query(title, k=1000, ranker="words")))
                assert identifier in ranking, f"{identifier} ({title!r}) is not found"
    return sum(ledger.acknowledged for ledger in ledgers) - before


def main() -> None:
    """Run the kills and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--load", nargs=4, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args()
    if options.load:
        folder, *paths = options.load
        load_again_and_again(folder, Versions(*paths))
        return
    versions = write_versions(WORK / "serve-kill", map(json.dumps, reddit_rows(options.questions)))
    folder = WORK / "serve-kill" / "killed.forum"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(versions.base, folder)
    temporary = WORK / "serve-kill" / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    archived = sorted(contents(versions, "whole")[0])
    ledgers = [Ledger(f"client{number}", archived) for number in range(CLIENTS)]
    chance, kills_while_answering = random.Random(0), 0
    for number in range(options.kills):
        delay_s = chance.uniform(0.1, LONGEST_S)
        acknowledged = one_round(folder, versions, ledgers, number, delay_s, is_loading=number % 2 == 1)
        kills_while_answering += acknowledged > 0
        refused = sum((ledger.refused for ledger in ledgers), Counter[int]())
        print(
            number + 1,
            f"{delay_s:.1f} s",
            acknowledged,
            sum(ledger.acknowledged for ledger in ledgers),
            dict(refused),
            flush=True,
        )
    if (options.kills, options.questions) != (KILLS, QUESTIONS):
        return  # a trial
    write(
        "serve-kill",
        COMMAND,
        {
            "questions": options.questions,
            "kills": options.kills,
            "failures": 0,
            "clients": CLIENTS,
            "kills_while_answering": kills_while_answering,
            "kills_while_loading": options.kills // 2,
            "acknowledged_writes": sum(ledger.acknowledged for ledger in ledgers),
            "refused": {
                str(status): sum(ledger.refused[status] for ledger in ledgers)
                for status in sorted({status for ledger in ledgers for status in ledger.refused if status})
            },
            "longest_write_s": round(max(ledger.longest_write_s for ledger in ledgers), 2),
        },
    )


if __name__ == "__main__":
    main()
