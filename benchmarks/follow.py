"""A fake Discourse of 50,000 topics is followed for days of a simulated clock, by a process that is killed 30 times.

Command: ``python -m benchmarks.follow``. The site (``tests/fake_discourse.py``, written from the API's official
description) makes, edits, renames, moves, closes, hides and deletes by chance; 10 % of its webhooks are lost, 2 % come
up to ten minutes late, 5 % twice; 1.6 % of its answers are a 429, a 5xx, a broken connection, half a body or no JSON;
some do not come in the 10 s that the follower waits at first; and each request above its limit of 60 a minute is
counted. The follower is a process of its own and is ended by SIGKILL, at moments drawn by chance. At the end the site
changes no more; the follower sweeps it and reads every topic again, and what it holds is compared with the site, field
by field.

The clock is simulated: each request takes 0.02 to 0.25 s of it, a wait as long as it is, though neither takes that long
here. Whatever the follower itself does between two requests (to store, to index, to start again after a kill) takes as
much of the simulated clock as it took on the wall, on a machine that may have other work. The lag of a webhook is from
its receipt until searches find what it is about. The lag by polls is that of new topics and posts whose webhook was
lost, from when they were written.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import random
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from recipes.folders import REPOSITORY, WORK

from askalike import Forum
from askalike.follow.discourse import Discourse
from askalike.follow.follower import Follower, Rhythm
from askalike.follow.settings import FollowSettings
from askalike.follow.site import Clock as FollowClock
from askalike.follow.site import Pace
from askalike.follow.state import State
from askalike.follow.webhook import receive
from askalike.forum import ForumSettings, ImportOptions
from askalike.readers.frame import ReadOptions
from askalike.store import ForumLayout
from benchmarks.record import memory_mb, option_parser, write

sys.path.insert(0, str(REPOSITORY))
from tests.fake_discourse import CHANCES, FAILURES, FakeDiscourse, serving
from tests.fake_site import Answer
from tests.living import compared

COMMAND: Final = "python -m benchmarks.follow"
SOURCE: Final = "archive"
SECRET: Final = "ASKALIKE_BENCH_SECRET"
RATE: Final = 60
LEAST_TOPICS: Final = 10_000
HOUR_S: Final = 3_600.0
LOST: Final = 0.1
NO_VECTORS: Final = ForumSettings(has_vectors=False)


class Clock:
    """The site's time, in a file that both processes see, and how long the follower worked since its last request.

    The file holds three numbers: the site's time; the seconds of work that the site is to let pass before its next
    answer; and when the follower last asked, by the machine's clock, from which the next goes on where one was killed.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(24))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 24)
        self._is_asking = False

    def _get(self, place: int) -> float:
        return float(struct.unpack_from("d", self._shared, 8 * place)[0])

    def _set(self, place: int, value: float) -> None:
        struct.pack_into("d", self._shared, 8 * place, value)

    def tell(self, now_s: float) -> None:
        """Set the site's time."""
        self._set(0, now_s)

    def take_work(self) -> float:
        """Return the seconds of work that the site has not let pass so far."""
        seconds = self._get(1)
        self._set(1, 0.0)
        return seconds

    def now(self) -> float:
        """Return the time as the follower sees it: the site's, and its own work since."""
        return self._get(0) + (0.0 if self._is_asking else time.monotonic() - (self._get(2) or time.monotonic()))

    def ask(self) -> None:
        """Note that a request is about to be sent."""
        now = time.monotonic()
        self._set(1, self._get(1) + now - (self._get(2) or now))
        self._set(2, now)
        self._is_asking = True

    def answered(self) -> None:
        """Note that the request is over; the time that the simulation itself took does not count."""
        self._set(2, time.monotonic())
        self._is_asking = False


class TimedPace(Pace):
    """Reports each request to the clock."""

    def __init__(self, clock: Clock, pause: Callable[[float], None]) -> None:
        super().__init__(RATE, FollowClock(clock.now, clock.now, pause))
        self._simulated = clock

    def begin(self) -> None:
        """Begin a request."""
        super().begin()
        self._simulated.ask()

    def end(self) -> None:
        """End a request."""
        self._simulated.answered()
        super().end()


class TimedDiscourse(FakeDiscourse):
    """Lets the simulated time pass while the follower works."""

    worked: Callable[[], float]

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Answer after the follower's work has passed."""
        with self.lock:
            self.advance(self.worked(), is_waiting=False)
            return super().answer(path, headers)

    def advance(self, seconds: float, *, is_waiting: bool = True) -> None:
        """Let time pass; an event that came while the follower worked ends a wait before it begins."""
        with self.lock:
            if is_waiting:
                came = len(self.delivered), self.delivered[-1:]
                super().advance(self.worked(), is_waiting=False)
                if came != (len(self.delivered), self.delivered[-1:]):
                    return
            super().advance(seconds, is_waiting=is_waiting)


def followed(folder: Path, address: str, path: Path, is_last: bool) -> None:
    """Follow, in a process of its own; the last one reads every topic again, and then ends."""
    clock = Clock(path)

    def pause(seconds: float) -> None:
        clock.ask()
        urllib.request.urlopen(f"{address}/pause?s={max(seconds, 0.001):.6f}", timeout=60).close()
        clock.answered()

    layout = ForumLayout(folder)
    rhythm = (
        Rhythm(check_s=60.0, sweep_s=48 * HOUR_S, recheck_s=1.0)
        if is_last
        else Rhythm(check_s=60.0, sweep_s=12 * HOUR_S)
    )
    with Forum.open(folder, settings=NO_VECTORS) as forum, State(layout) as state:
        site = Discourse(address, TimedPace(clock, pause))
        origin = FollowSettings(address, "discourse", SOURCE).origin
        follower = Follower(forum, site, state, origin, rhythm, is_mass_delete_allowed=True)
        since_s = clock.now()
        if is_last:
            state.put(sweep=None, swept=None)
        with (path.parent / "reads").open("a") as reads:
            log_reads(follower, state, clock, reads)
            while True:
                wait_s = follower.turn()
                is_done = is_last and state.get("swept") and not sum(state.waiting()[:3])
                if is_done and not unread(layout, since_s):
                    return
                if wait_s > 0:
                    pause(min(wait_s, 60.0))


def log_reads(follower: Follower, state: State, clock: Clock, file: TextIO) -> None:
    """Write when each topic began to be read, and when searches found it."""
    stored: list[tuple[str, float]] = []
    finish, index = state.finish, follower._index

    def finished(done: Any, began_s: float, now_s: float) -> None:
        kept = list(done)
        finish(kept, began_s, now_s)
        stored.extend((topic.id, began_s) for topic, _, _ in kept)

    def indexed(*, is_due: bool) -> None:
        index(is_due=is_due)
        if stored and not follower._is_behind:
            now_s = clock.now()
            file.writelines(f"{topic} {began_s!r} {now_s!r}\n" for topic, began_s in stored)
            file.flush()
            stored.clear()

    state.finish, follower._index = finished, indexed  # type: ignore[method-assign]


def poll_lags(lost: list[tuple[float, str, str]], path: Path) -> list[float]:
    """Return the lags of changes whose webhook was lost: seconds until searches found them, in rising order."""
    reads: dict[str, list[tuple[float, float]]] = {}
    for line in path.read_text().splitlines():
        topic, began_s, searchable_s = line.split()
        reads.setdefault(topic, []).append((float(began_s), float(searchable_s)))
    lags = []
    for at_s, event, topic in lost:
        if event in ("topic_created", "post_created"):
            later = [end_s for start_s, end_s in reads.get(topic, ()) if start_s >= at_s]
            lags += [min(later) - at_s] if later else []
    return sorted(lags)


def shares(ordered: list[float]) -> dict[str, Any]:
    """Return the number of lags, and their percentiles."""
    if not ordered:
        return {"events": 0}
    at = {f"p{p}": round(ordered[min(len(ordered) - 1, len(ordered) * p // 100)], 2) for p in (50, 90, 95, 99)}
    return {"events": len(ordered), **at, "longest": round(ordered[-1], 2)}


def unread(layout: ForumLayout, since_s: float) -> bool:
    """Return whether a topic was not read again since a moment."""
    with contextlib.closing(sqlite3.connect(layout.follow)) as connection:
        return connection.execute("SELECT 1 FROM known WHERE read_s < ? LIMIT 1", (since_s,)).fetchone() is not None


def run(topics: int, days: float, kills: int, mutations_s: float, seed: int) -> dict[str, Any]:
    """Follow a site while its follower is killed, and compare the forum with the site."""
    work = WORK / "follow"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    folder, clock = work / "f", work / "clock"
    os.environ[SECRET] = "secret"
    layout, chance, began = ForumLayout(folder), random.Random(seed), time.monotonic()
    (work / "reads").touch()
    with contextlib.ExitStack() as stack:
        time_file = Clock(clock)
        fake = TimedDiscourse(
            seed,
            topics,
            mutations_s=mutations_s,
            chances={**CHANCES, "lost": LOST},
            secret="secret",
            rate=RATE,
            on_time=time_file.tell,
        )
        fake.worked = time_file.take_work
        fake.deliver = lambda headers, content: receive(layout, headers, content, lambda: fake.now_s)
        fake.advance(0)
        fake.dump(work / "dump")
        with serving(fake) as address:
            options = ImportOptions("discourse", SOURCE, read=ReadOptions(site_url=address))
            with Forum.create(folder, settings=NO_VECTORS) as forum:
                loading_s = time.monotonic()
                forum.load(work / "dump", options=options)
                loading_s = time.monotonic() - loading_s
            print(f"{time.monotonic() - began:6.0f} s: {topics} topics loaded from an archive", flush=True)
            state = stack.enter_context(State.create(layout))
            state.put(settings=FollowSettings(address, "discourse", SOURCE, secret_variable=SECRET).to_json())
            end_s = fake.start_s + days * 24 * HOUR_S
            moments = sorted(chance.uniform(fake.start_s, end_s) for _ in range(kills))
            shown_s = 0.0
            done, most_mb = 0, 0
            while fake.now_s < end_s:
                process = start(folder, address, clock)
                kill_s = moments[done] if done < kills else end_s
                while fake.now_s < kill_s and process.poll() is None:
                    time.sleep(0.05)
                    if time.monotonic() > shown_s + 30:
                        shown_s = time.monotonic()
                        print(
                            f"{shown_s - began:6.0f} s: day {(fake.now_s - fake.start_s) / 86_400:.2f}, {done} kills,"
                            f" {fake.counts['requests']} requests, waiting {state.waiting()}",
                            flush=True,
                        )
                if process.poll() is not None:
                    raise SystemExit(f"the follower ended with {process.returncode}")
                most_mb = max(most_mb, memory_mb(process.pid, "VmHWM"))
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += fake.now_s < end_s or done < kills
            living_lags, lost_lags = sorted(state.lags_s()), poll_lags(fake.lost, work / "reads")
            living_s = time.monotonic() - began
            living = dict(fake.counts)
            fake.mutations_s, fake.chances = 0.0, dict.fromkeys(fake.chances, 0.0)
            process = start(folder, address, clock, "--last")
            while process.poll() is None:
                time.sleep(0.2)
                most_mb = max(most_mb, memory_mb(process.pid, "VmHWM"))
                if time.monotonic() > shown_s + 30:
                    shown_s = time.monotonic()
                    print(f"{shown_s - began:6.0f} s: settling, {fake.counts['requests']} requests", flush=True)
            if process.returncode:
                raise SystemExit(f"the last follower ended with {process.returncode}")
            differences = compared(folder, fake.threads(address))
            return {
                "topics": topics,
                "simulated_days": round(days, 2),
                "seconds": round(time.monotonic() - began),
                "loaded_from_an_archive_s": round(loading_s, 1),
                "lived_s": round(living_s),
                "follower_processor_s": round(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])),
                "follower_peak_mb": most_mb,
                "kills": done,
                "changes": dict(sorted(fake.mutated.items())),
                "changes_in_all": fake.mutated.total(),
                "threads_compared": len(fake.threads(address)),
                "differences": len(differences),
                "first_differences": differences[:5],
                "webhook_lag_s": shares(living_lags),
                "poll_s": Rhythm().poll_s,
                "poll_lag_s": shares(lost_lags),
                "events": {name: living.get(name, 0) for name in ("events", "events lost")},
                "polls": state.get("polls"),
                "sweeps": state.get("sweeps"),
                "requests": fake.counts["requests"],
                "requests_above_the_rate": fake.counts["over the rate"],
                "rate_a_minute": RATE,
                "failures": {name: living.get(name, 0) for name in FAILURES},
            }


def start(folder: Path, address: str, clock: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a follower."""
    words = [sys.executable, "-m", "benchmarks.follow", "--follower", str(folder), address, str(clock), *more]
    return subprocess.Popen(words, cwd=REPOSITORY)


def main() -> None:
    """Follow and write the result, or be the follower."""
    parser = option_parser(__doc__)
    parser.add_argument("--topics", type=int, default=50_000)
    parser.add_argument("--days", type=float, default=2.0)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two changes, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--follower", nargs=3, metavar=("FOLDER", "ADDRESS", "CLOCK"), help=argparse.SUPPRESS)
    parser.add_argument("--last", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follower:
        folder, address, clock = options.follower
        followed(Path(folder), address, Path(clock), options.last)
        return
    body = run(options.topics, options.days, options.kills, options.every, options.seed)
    print(json.dumps(body, indent=2))
    values = {name: getattr(options, name) for name in ("topics", "days", "kills", "every", "seed")}
    changed = [f"--{name} {value}" for name, value in values.items() if value != parser.get_default(name)]
    if options.topics >= LEAST_TOPICS:
        write("follow", " ".join([COMMAND, *changed]), body)
    else:
        print(f"not written: fewer than {LEAST_TOPICS:,} topics")


if __name__ == "__main__":
    main()
