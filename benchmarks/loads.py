"""Large loads: what others wait for and what lies on the disk, at once and in short transactions.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.loads --questions N`` (needs the bench group). The archive holds the
questions of ``benchmarks.scale``. A process of its own reads it into an empty forum's archive, without indexes, in two
ways: all of it in one transaction at the end of reading, and as ``store.sqlite.staging`` does it. Meanwhile this
process looks at the write-ahead log and takes the lock of writers for a moment, over and over. Then the same archive,
with an edit of every tenth question, is loaded again, which is one transaction either way.

``--reddit`` takes questions of Reddit instead: 100,000 into forums that hold 20,000 and 100,000 others, in both ways,
the last archive again with every other question edited, and 100,000 into an empty one by a process that is killed
when it has read half of them, and by another that goes on. So is the load of 100,000 into as many killed when half was
written, and that of the edited ones.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from askalike.forum.exchange import ImportOptions, import_archive
from askalike.store.sqlite import replacement, staging
from askalike.store.sqlite.store import SqliteStore
from benchmarks.record import WORK, need_data, write
from benchmarks.scale import REAL, Course, Memory, Watcher, write_archive

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.loads"
WAYS = ("one transaction", "short transactions")
EDITED_EACH = 10
LOADED, HELD = 100_000, (20_000, 100_000)


class Halved(Course):
    """Kills the process when half of a phase is done."""

    def __init__(self, phase: str) -> None:
        super().__init__()
        self._phase, self._left = phase, math.inf

    def start(self, phase: str, total: int, unit: str) -> None:
        """Begin a phase."""
        super().start(phase, total, unit)
        self._left = total / 2 if phase.split()[0] == self._phase else math.inf

    def advance(self, count: int) -> None:
        """Go on."""
        self._left -= count
        if self._left < 0:
            own = resource.getrusage(resource.RUSAGE_SELF)
            print(json.dumps({"processor_s": round(own.ru_utime + own.ru_stime, 2)}), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        super().advance(count)


def load(folder: Path, archive: Path, way: str, course: Course) -> dict[str, Any]:
    """Load in this process; return what it took."""
    path = folder / "archive.sqlite"
    store = SqliteStore(path) if path.exists() else SqliteStore.create(path, {})
    options, began = (
        ImportOptions(format="jsonl", source="held" if archive.stem == "held" else "bulk"),
        time.perf_counter(),
    )
    with Memory() as memory, contextlib.ExitStack() as patched:
        if way == WAYS[0]:
            patched.enter_context(mock.patch.object(staging, "_is_empty", _never))
            patched.enter_context(mock.patch.object(replacement, "LEAST", sys.maxsize))
        done = import_archive(store, archive, options, folder / "rejects.jsonl", course).load
    ended = time.perf_counter()
    store.close()
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "added": done.questions.added,
        "edited": done.questions.edited,
        "of them written by a load that was killed": done.resumed,
        "seconds": round(ended - began, 2),
        "processor_s": round(own.ru_utime + own.ru_stime, 2),
        "written to the disk, MB": round(own.ru_oublock * 512 / 1e6, 1),
        "time left wrong by at most": max(one["time left wrong by at most"] for one in course.report(ended).values()),
        "peak memory without mapped files, MB": memory.own_mb,
    }


def _never(_: object) -> bool:
    return False


def watched(folder: Path, archive: Path, way: str, halved: str = "") -> dict[str, Any]:
    """Load in another process, and watch it.

    Args:
        halved: the phase at half of which it is killed.
    """
    with Watcher(folder) as watcher:
        words = [sys.executable, "-m", "benchmarks.loads", "--load", str(folder), str(archive), way]
        words += ["--halved", halved] if halved else []
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=not halved)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {
        "largest write-ahead log, MB": round(watcher.log_bytes / 1e6, 1),
        "longest wait of another writer, s": round(watcher.longest_wait_s, 3),
        "times looked": watcher.looks,
        "archive, MB": round((folder / "archive.sqlite").stat().st_size / 1e6, 1),
    }


def write_edited(path: Path, archive: Path, each: int = EDITED_EACH) -> None:
    """Write an archive with other titles of some of its questions."""
    with archive.open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as file:
        for number, line in enumerate(lines):
            if number % each == 0:
                row = json.loads(line)
                line = json.dumps(row | {"title": f"{row['title']} again"}, ensure_ascii=False) + "\n"
            file.write(line)


def write_reddit(path: Path, first: int, count: int) -> Path:
    """Write so many questions of Reddit after the first ones."""
    with (
        gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines,
        path.open("w", encoding="utf-8") as file,
    ):
        file.writelines(islice(lines, first, first + count))
    return path


def of_reddit() -> None:
    """Measure a load into a forum that holds others, and one that is killed."""
    place = WORK / "loads-reddit"
    shutil.rmtree(place, ignore_errors=True)
    folders = [place / name for name in ("killed", "whole")]
    for folder in folders:
        folder.mkdir(parents=True)
    archive = write_reddit(place / "loaded.jsonl", 0, LOADED)
    body: dict[str, Any] = {"questions": LOADED, "into a forum that holds others": {}}
    for count in HELD:
        held = write_reddit(place / "held.jsonl", LOADED, count)
        for way in WAYS:
            folder = place / f"{count}-{way.split()[0]}"
            folder.mkdir()
            watched(folder, held, WAYS[1])
            body["into a forum that holds others"][f"{count} in {way}"] = watched(folder, archive, way)
    edited = place / "edited.jsonl"
    write_edited(edited, archive, 2)
    for way in WAYS:
        folder = place / f"edited-{way.split()[0]}"
        folder.mkdir()
        watched(folder, archive, WAYS[1])
        body[f"every other edited, in {way}"] = watched(folder, edited, way)
    for name, first, then in (("others", held, archive), ("every other edited", archive, edited)):
        folder = place / f"halved-{first.stem}"
        folder.mkdir()
        watched(folder, first, WAYS[1])
        body[f"{name}, killed when half was written"] = watched(folder, then, WAYS[1], "writing")
        body[f"{name}, and loaded again"] = watched(folder, then, WAYS[1])
    body["into an empty one"] = watched(folders[1], archive, WAYS[1])
    body["killed when half was read"] = watched(folders[0], archive, WAYS[1], "reading")
    body["and loaded again"] = watched(folders[0], archive, WAYS[1])
    print(json.dumps(body, indent=1), flush=True)
    body["load_15_min_at_end"] = round(os.getloadavg()[2], 2)
    write("loads-reddit", f"{COMMAND} --reddit", body)
    shutil.rmtree(place)


def main() -> None:
    """Measure one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=REAL)
    parser.add_argument("--reddit", action="store_true")
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--halved", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.load:
        folder, archive, way = given.load
        print(json.dumps(load(Path(folder), Path(archive), way, Halved(given.halved) if given.halved else Course())))
        return
    if given.reddit:
        of_reddit()
        return
    place = WORK / f"loads-{given.questions}"
    archive, edited = place / "questions.jsonl", place / "edited.jsonl"
    place.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        write_archive(archive, given.questions)
    if not edited.exists():
        write_edited(edited, archive)
    body: dict[str, Any] = {"questions": given.questions}
    for way in WAYS:
        folder = place / way.split()[0]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        body[way] = watched(folder, archive, way)
        print(way, json.dumps(body[way]), flush=True)
    body["every tenth edited"] = watched(folder, edited, WAYS[1])
    print(json.dumps(body["every tenth edited"]), flush=True)
    write(
        f"loads-{given.questions}",
        f"{COMMAND} --questions {given.questions}",
        body | {"load_15_min_at_end": round(os.getloadavg()[2], 2)},
    )
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
