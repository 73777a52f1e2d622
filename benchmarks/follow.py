"""A fake Discourse of 50,000 topics is followed for days of a simulated clock, by a process that is killed 30 times.

Command: ``python -m benchmarks.follow``. The site (``tests/fake_discourse.py``, written from the API's official
description) makes, edits, renames, moves, closes, hides and deletes by chance; 3 % of its webhooks are lost, 2 % come
up to ten minutes late, 5 % twice; 1.6 % of its answers are a 429, a 5xx, a broken connection, half a body or no JSON,
and each request above its limit of 60 a minute is counted. The clock moves on with every request, and while the
follower waits. The follower is a process of its own and is ended by SIGKILL, at moments drawn by chance. At the end the
site changes no more; the follower sweeps it and reads every topic again, and what it holds is compared with the site,
field by field.

Meanwhile webhooks come that are to be refused: with a wrong signature, by a former secret, of too many bytes, or JSON
nested too deep; and some that came before, which are to be taken for known.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import hmac
import json
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from askalike import Forum
from askalike.follow.discourse import Discourse
from askalike.follow.follower import Follower, Rhythm
from askalike.follow.pace import Pace
from askalike.follow.settings import FollowSettings
from askalike.follow.state import State
from askalike.follow.webhook import MOST_BYTES, WebhookError, receive
from askalike.forum import ForumSettings, ImportOptions
from askalike.readers.frame import ReadOptions
from askalike.store import ForumLayout
from benchmarks.record import REPOSITORY, WORK, write

sys.path.insert(0, str(REPOSITORY))
from tests.fake_discourse import FakeDiscourse, serving
from tests.living import compared

COMMAND: Final = "python -m benchmarks.follow"
SOURCE: Final = "archive"
SECRET: Final = "ASKALIKE_BENCH_SECRET"
RATE: Final = 60
LEAST_TOPICS: Final = 10_000
HOUR_S: Final = 3_600.0
NO_VECTORS: Final = ForumSettings(has_vectors=False)


@contextmanager
def clock_file(path: Path) -> Iterator[mmap.mmap]:
    """Give the file through which the site tells its time."""
    if not path.exists():
        path.write_bytes(bytes(8))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        yield shared


def followed(folder: Path, address: str, clock: Path, is_last: bool) -> None:
    """Follow, in a process of its own; the last one reads everything again, and ends when all is compared."""
    with clock_file(clock) as shared:

        def now() -> float:
            return float(struct.unpack("d", shared[:8])[0])

        def pause(seconds: float) -> None:
            urllib.request.urlopen(f"{address}/pause?s={max(seconds, 0.001):.6f}", timeout=60).close()

        layout = ForumLayout(folder)
        rhythm = (
            Rhythm(check_s=60.0, sweep_s=48 * HOUR_S, recheck_s=1.0)
            if is_last
            else Rhythm(check_s=60.0, sweep_s=12 * HOUR_S)
        )
        with Forum.open(folder, settings=NO_VECTORS) as forum, State(layout) as state:
            source = Discourse(address, Pace(RATE, state, now, pause))
            origin = FollowSettings(address, "discourse", SOURCE).origin
            follower = Follower(
                forum, source, state, origin, rhythm, is_mass_delete_allowed=True, clock=now, pause=pause
            )
            since_s = now()
            if is_last:
                state.keep(sweep=None, swept=None)
            while True:
                wait_s = follower.turn()
                is_done = is_last and wait_s > 0 and state.value("swept") and not sum(state.waiting()[:3])
                if is_done and not unread(layout, since_s):
                    return
                if wait_s > 0:
                    pause(min(wait_s, 60.0))


def unread(layout: ForumLayout, since_s: float) -> bool:
    """Return whether a topic was not read again since a moment."""
    import sqlite3

    connection = sqlite3.connect(layout.follow)
    try:
        return connection.execute("SELECT 1 FROM known WHERE read_s < ? LIMIT 1", (since_s,)).fetchone() is not None
    finally:
        connection.close()


def hostile(layout: ForumLayout, fake: FakeDiscourse, told: Counter[str]) -> None:
    """Send webhooks that are to be refused, and one that came before."""
    content = json.dumps({"post": {"topic_id": 1}}).encode()
    signed = fake.headers("post", "post_created", content)
    former = "sha256=" + hmac.new(b"the secret before", content, hashlib.sha256).hexdigest()
    deep = b"[" * 100_000
    sent: dict[str, tuple[Mapping[str, str], bytes]] = {
        "wrong": (signed | {"X-Discourse-Event-Signature": "sha256=" + "0" * 64}, content),
        "unsigned": ({k: v for k, v in signed.items() if "Signature" not in k}, content),
        "changed after signing": (signed, content.replace(b"1", b"2")),
        "former secret": (signed | {"X-Discourse-Event-Signature": former}, content),
        "too many bytes": (fake.headers("post", "post_created", bytes(MOST_BYTES + 1)), bytes(MOST_BYTES + 1)),
        "nested too deep": (fake.headers("post", "post_created", deep), deep),
    }
    if fake.delivered:
        sent["came before"] = fake.delivered[-1]
    for name, (headers, body) in sent.items():
        try:
            outcome = receive(layout, headers, body, lambda: fake.now_s)
            told[f"{name}: {outcome}"] += 1
        except WebhookError as error:
            told[f"{name}: refused with {error.status}"] += 1


def run(topics: int, days: float, kills: int, mutations_s: float, seed: int) -> dict[str, Any]:
    """Follow, kill, compare."""
    work = WORK / "follow"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    folder, clock = work / "f", work / "clock"
    os.environ[SECRET] = "secret"
    layout, chance, began = ForumLayout(folder), random.Random(seed), time.monotonic()
    told: Counter[str] = Counter()
    with clock_file(clock) as shared:
        fake = FakeDiscourse(
            seed,
            topics,
            mutations_s=mutations_s,
            secret="secret",
            rate=RATE,
            on_time=lambda now_s: shared.__setitem__(slice(0, 8), struct.pack("d", now_s)),
        )
        fake.deliver = lambda headers, content: receive(layout, headers, content, lambda: fake.now_s)
        fake.advance(0)
        fake.dump(work / "dump")
        with serving(fake) as address, contextlib.ExitStack() as stack:
            options = ImportOptions("discourse", SOURCE, read=ReadOptions(site_url=address))
            with Forum.create(folder, settings=NO_VECTORS) as forum:
                forum.load(work / "dump", options=options)
            print(f"{time.monotonic() - began:6.0f} s: {topics} topics loaded from an archive", flush=True)
            state = stack.enter_context(State.create(layout))
            state.keep(settings=FollowSettings(address, "discourse", SOURCE, secret_variable=SECRET).to_json())
            end_s = fake.start_s + days * 24 * HOUR_S
            moments = sorted(chance.uniform(fake.start_s, end_s) for _ in range(kills))
            hostile_s, shown_s = fake.start_s, 0.0
            done = 0
            while fake.now_s < end_s:
                process = start(folder, address, clock)
                kill_s = moments[done] if done < kills else end_s
                while fake.now_s < kill_s and process.poll() is None:
                    time.sleep(0.05)
                    if fake.now_s > hostile_s and fake.delivered:
                        with fake.lock:
                            hostile(layout, fake, told)
                        hostile_s = fake.now_s + HOUR_S
                    if time.monotonic() > shown_s + 30:
                        shown_s = time.monotonic()
                        print(
                            f"{shown_s - began:6.0f} s: day {(fake.now_s - fake.start_s) / 86_400:.2f}, {done} kills,"
                            f" {fake.counts['requests']} requests, waiting {state.waiting()}",
                            flush=True,
                        )
                if process.poll() is not None:
                    raise SystemExit(f"the follower ended with {process.returncode}")
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += fake.now_s < end_s or done < kills
            living_lags = sorted(state.lags_s())
            living = dict(fake.counts)
            fake.mutations_s, fake.chances = 0.0, dict.fromkeys(fake.chances, 0.0)
            process = start(folder, address, clock, "--last")
            while process.poll() is None:
                time.sleep(0.2)
                if time.monotonic() > shown_s + 30:
                    shown_s = time.monotonic()
                    print(f"{shown_s - began:6.0f} s: settling, {fake.counts['requests']} requests", flush=True)
            if process.returncode:
                raise SystemExit(f"the last follower ended with {process.returncode}")
            found = compared(folder, fake.threads(address))
            return {
                "topics": topics,
                "simulated_days": round(days, 2),
                "seconds": round(time.monotonic() - began),
                "kills": done,
                "changes": dict(sorted(fake.mutated.items())),
                "changes_in_all": fake.mutated.total(),
                "threads_compared": len(fake.threads(address)),
                "differences": len(found),
                "first_differences": found[:5],
                "webhook_lag_s": {
                    "events": len(living_lags),
                    **{
                        f"p{p}": round(living_lags[min(len(living_lags) - 1, len(living_lags) * p // 100)], 2)
                        for p in (50, 90, 95, 99)
                    },
                },
                "events": {name: living.get(name, 0) for name in ("events", "events lost")},
                "polls": state.value("polls"),
                "sweeps": state.value("sweeps"),
                "requests": fake.counts["requests"],
                "requests_above_the_rate": fake.counts["over the rate"],
                "rate_a_minute": RATE,
                "failures": {
                    name: living.get(name, 0)
                    for name in ("too many", "broken", "unavailable", "hung up", "cut", "no json")
                },
                "hostile_webhooks": dict(sorted(told.items())),
            }


def start(folder: Path, address: str, clock: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a follower."""
    words = [sys.executable, "-m", "benchmarks.follow", "--follower", str(folder), address, str(clock), *more]
    return subprocess.Popen(words, cwd=REPOSITORY)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=50_000)
    parser.add_argument("--days", type=float, default=2.0)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two changes, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--follower", nargs=3, metavar=("FOLDER", "ADDRESS", "CLOCK"), help=argparse.SUPPRESS)
    parser.add_argument("--last", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.follower:
        folder, address, clock = given.follower
        followed(Path(folder), address, Path(clock), given.last)
        return
    body = run(given.topics, given.days, given.kills, given.every, given.seed)
    print(json.dumps(body, indent=2))
    names = ("topics", "days", "kills", "every", "seed")
    other = [f"--{name} {getattr(given, name)}" for name in names if getattr(given, name) != parser.get_default(name)]
    if given.topics >= LEAST_TOPICS:
        write("follow", " ".join([COMMAND, *other]), body)
    else:
        print(f"not written: fewer than {LEAST_TOPICS:,} topics")


if __name__ == "__main__":
    main()
