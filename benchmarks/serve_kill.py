"""Kill test of the service: killed (SIGKILL) at random moments while four clients write; nothing acknowledged is lost.

Command: ``python -m benchmarks.serve_kill`` (30 kills). Each client writes under names of its own, one question at a
time and some hundred at once, edits and deletes. After each kill the forum is opened and checked:

- it opens, and passes SQLite's own check;
- it holds what was acknowledged; the one request under way of each client may be there or not, a bulk request in part;
- its indexes are in step, and what was written last is found.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from askalike import Forum
from askalike.archive import Archive, Layout
from askalike.archive import check as check_archive
from askalike.client import Client, ServiceError
from askalike.data import bundled_forum
from benchmarks.record import WORK, write
from benchmarks.serving import serving

COMMAND = "python -m benchmarks.serve_kill"
KILLS = 30
CLIENTS = 4
LONGEST_S = 4.0
BULK = 120


@dataclass
class Ledger:
    """What one client was told.

    Args:
        held: id → title, of what was acknowledged and not deleted since.
        pending: id → title, None for a deletion, of the request under way.
    """

    name: str
    held: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str | None] = field(default_factory=dict)
    acknowledged: int = 0

    def write(self, client: Client, chance: random.Random, start: int) -> None:
        """Write until the service is gone."""
        with contextlib.suppress(ServiceError):
            for number in range(start, start + 1_000_000):
                kind = chance.choice(("put", "put", "edit", "delete", "bulk"))
                if kind == "bulk":
                    many = {f"{self.name}-{number}-{one}": f"bulk trouble {number} {one}" for one in range(BULK)}
                    self.pending = dict(many)
                    for told in client.put_many({"id": one, "title": title} for one, title in many.items()):
                        if told.id is not None and not told.error:
                            self._acknowledge(told.id)
                elif kind == "delete" and self.held:
                    gone = chance.choice(list(self.held))
                    self.pending = {gone: None}
                    client.delete(gone)
                    self._acknowledge(gone)
                else:
                    known = list(self.held)
                    one = chance.choice(known) if kind == "edit" and known else f"{self.name}-{number}"
                    self.pending = {one: f"{kind} trouble {number}"}
                    client.put(one, f"{kind} trouble {number}")
                    self._acknowledge(one)

    def _acknowledge(self, identifier: str) -> None:
        title = self.pending.pop(identifier)
        if title is None:
            del self.held[identifier]
        else:
            self.held[identifier] = title
        self.acknowledged += 1

    def settle(self, found: dict[str, str]) -> Iterator[str]:
        """Yield what differs from what was acknowledged, and go on from what is there."""
        for identifier in {*found, *self.held}:
            allowed = {self.held.get(identifier)}
            if identifier in self.pending:
                allowed.add(self.pending[identifier])
            if found.get(identifier) not in allowed:
                yield f"{identifier}: {found.get(identifier)!r}, expected one of {allowed}"
        self.held, self.pending = dict(found), {}


def one_round(folder: Path, ledgers: list[Ledger], number: int, delay_s: float) -> None:
    """Serve, write, kill after a while, check.

    Raises:
        AssertionError: something that was acknowledged is not there.
    """
    with serving(folder) as running:
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
    with contextlib.closing(Archive(Layout(folder).archive)) as stored:
        check_archive(stored)
    with Forum.open(folder) as forum:
        titles = {question.id: question.title for question in forum.questions()}
        for ledger in ledgers:
            found = {one: title for one, title in titles.items() if one.startswith(f"{ledger.name}-")}
            wrong = list(ledger.settle(found))
            assert not wrong, f"{len(wrong)} differ, such as {wrong[:3]}"
        info = forum.info()
        assert info.behind == 0, f"{info.behind} changes are not in the index"
        assert info.indexed == len(titles), f"{info.indexed} entries for {len(titles)} questions"
        for ledger in ledgers:
            for identifier, title in list(ledger.held.items())[-3:]:
                ranked = [one for one, _ in forum.ranking(title, k=1000, ranker="lexical")]
                assert identifier in ranked, f"{identifier} ({title!r}) is not found"


def main() -> None:
    """Kill so often and write the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args()
    folder = WORK / "serve" / "killed.forum"
    shutil.rmtree(folder, ignore_errors=True)
    with Forum.create(folder) as forum:
        forum.load(bundled_forum())
    ledgers = [Ledger(f"client{number}") for number in range(CLIENTS)]
    chance = random.Random(0)
    for number in range(options.kills):
        one_round(folder, ledgers, number, chance.uniform(0.1, LONGEST_S))
        print(number + 1, sum(ledger.acknowledged for ledger in ledgers), flush=True)
    if options.kills < KILLS:
        return  # a trial
    write(
        "serve-kill",
        COMMAND,
        {
            "kills": options.kills,
            "failures": 0,
            "clients": CLIENTS,
            "acknowledged_writes": sum(ledger.acknowledged for ledger in ledgers),
        },
    )


if __name__ == "__main__":
    main()
