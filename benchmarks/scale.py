"""One forum of N questions: what it costs to build, to keep and to ask, beside the rivals of each part, in one run.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.scale --questions N`` (needs the bench group). The questions are those
of Reddit. Beyond the 224,741 that there are, they are copies with other words: of the words of each title and body, 30
in 100 are replaced by words drawn from all texts as often as they occur there, so that a copy is near its original and
not the same, and every word stays as common as it was; the vocabulary does not grow with the copies, as a real forum's
would.

The forum is built in a process of its own. Meanwhile this one looks at the write-ahead log and takes the lock of
writers for a moment, over and over, to see how long another writer would have waited. Searches are of titles, and of
titles and bodies, of real questions that are in the forum and excluded from their answers. All times but those of
indexing and waiting are processor time of one thread, which a busy machine changes little. Graphs and bm25s are built
up to ``--rivals`` questions only: a graph of a million takes an hour.

``--asked FOLDER…`` asks forums that are there, as ``--keep`` leaves them, in turns, so that a machine that is faster at
one moment than at another tells of none of them: titles, titles and bodies, and the same terms of tantivy alone.

A run that was ended goes on where it was when it is started again by the same commit: every part that was measured is
kept in the forum's folder, and a forum that was half built is built on. Its seconds are then those of the last run,
with ``"resumed": true``.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from askalike import Filters, Forum, Query, Question
from askalike.index.vectors import VectorIndex
from benchmarks.record import WORK, need_data, percentiles, stamp, write
from benchmarks.vector_search import graphs, in_numpy, measured, ours

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.scale"
REAL = 224_741
REPLACED = 0.3
ADDED = 30
COMPARED = 100
TURN = 20
"""Questions that a forum is asked before it is the next one's turn: enough that what it reads lies in the caches."""
EXACT = 40
"""Queries whose nearest are also found by looking at all."""
K = 10
WATCHED_EACH_S = 0.05


# -- the questions -------------------------------------------------------------------------------------------------


def real_rows() -> Iterator[dict[str, Any]]:
    """Yield the questions of Reddit."""
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def pool_of(rows: Iterator[dict[str, Any]], size: int = 300_000) -> list[str]:
    """Return words of the texts as often as they occur there."""
    words: list[str] = []
    for row in rows:
        words += row["body"].split()[:40]
        if len(words) >= size:
            break
    return words


def changed(text: str, pool: list[str], chance: np.random.Generator) -> str:
    """Return a text of which some words are replaced by others.

    >>> changed("can birds fly in rain", ["cats"], np.random.default_rng(0))
    'can cats cats cats rain'
    """
    words = text.split()
    places = np.flatnonzero(chance.random(len(words)) < REPLACED)
    for place, drawn in zip(places.tolist(), chance.integers(len(pool), size=len(places)).tolist(), strict=True):
        words[place] = pool[drawn]
    return " ".join(words)


def write_archive(path: Path, count: int) -> None:
    """Write so many questions: the real ones, then copies of them with other words."""
    chance, pool = np.random.default_rng(0), pool_of(real_rows())
    written, copy = 0, 0
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8") as file:
        while written < count:
            for row in islice(real_rows(), count - written):
                if copy:
                    title, body = (changed(row[name], pool, chance) for name in ("title", "body"))
                    row |= {"id": f"{row['id']}-{copy}", "title": title, "body": body}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                written += 1
            copy += 1
    unfinished.rename(path)


# -- building ------------------------------------------------------------------------------------------------------


class Course:
    """What a load reports: the phases, and how well the time left could be told from their course."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int, float, list[tuple[float, int]]]] = []

    def start(self, phase: str, total: int, unit: str) -> None:
        """Begin a phase."""
        self.phases.append((phase.split()[0], total, time.perf_counter(), []))

    def advance(self, count: int) -> None:
        """Note how far it has come."""
        seen = self.phases[-1][3]
        seen.append((time.perf_counter(), count + (seen[-1][1] if seen else 0)))

    def notice(self, text: str) -> None:
        """Show a sentence."""
        print(text, file=sys.stderr)

    def report(self, ended: float) -> dict[str, Any]:
        """Return the seconds of each phase, and by which factor the time left was wrong between its tenth and its half.

        The time left is told as a bar does: by the rate of the phase so far.
        """
        found: dict[str, Any] = {}
        ends = [one[2] for one in self.phases[1:]] + [ended]
        for (name, total, began, seen), end in zip(self.phases, ends, strict=True):
            factors = [1.0]
            for moment, done in seen:
                if 0.1 <= done / max(1, total) <= 0.5 and end > moment > began:
                    told = (moment - began) / done * (total - done)
                    factors.append(max(told / (end - moment), (end - moment) / told))
            found[name] = {"seconds": round(end - began, 2), "time left wrong by at most": round(max(factors), 2)}
        return found


def build(folder: Path, archive: Path) -> dict[str, Any]:
    """Build the forum in this process and say what it took."""
    course, began = Course(), time.perf_counter()
    is_resumed = (folder / "archive.sqlite").exists()
    with Memory() as memory, Forum.open(folder, progress=course) if is_resumed else Forum.create(folder) as forum:
        report = forum.load(archive, progress=course)
        entries = forum.vectors.entries
    ended = time.perf_counter()
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "questions": report.load.questions.added + report.load.questions.unchanged,
        "rejected": report.rejected,
        "encoded": entries,
        "seconds": round(ended - began, 1),
        "phases": course.report(ended),
        "processor_s": {
            "this process": round(own.ru_utime + own.ru_stime, 1),
            "its workers": round(others.ru_utime + others.ru_stime, 1),
        },
        "peak_memory_mb": {
            "this process": own.ru_maxrss // 1024,
            "this process, without mapped files": memory.own_mb,
            "a worker": memory.worker_mb,
        },
    } | ({"resumed": True} if is_resumed else {})


class Memory:
    """The most memory that this process has taken, without the files that it maps, and that a worker of it has.

    What the system says of ended children (``getrusage``) also counts what their parent had when it started them.
    """

    def __init__(self) -> None:
        self.own_mb = self.worker_mb = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(WATCHED_EACH_S):
            self.own_mb = max(self.own_mb, _status_mb("self", "RssAnon"))
            for child in Path("/proc/self/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    for pid in child.read_text().split():
                        if b"askalike.index.workers" in Path(f"/proc/{pid}/cmdline").read_bytes():
                            self.worker_mb = max(self.worker_mb, _status_mb(pid, "VmHWM"))


def _status_mb(process: str, name: str) -> int:
    """Return a size that the system knows of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next((line.split()[1] for line in lines if line.startswith(f"{name}:")), "0")) // 1024


class Watcher:
    """Looks at a forum's file while another process fills it."""

    def __init__(self, folder: Path) -> None:
        self.archive = folder / "archive.sqlite"
        self.log_bytes = 0
        self.longest_wait_s = 0.0
        self.looks = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        log = self.archive.with_name("archive.sqlite-wal")
        while not self._is_over.wait(WATCHED_EACH_S):
            try:
                self.log_bytes = max(self.log_bytes, log.stat().st_size)
            except FileNotFoundError:
                continue
            began = time.perf_counter()
            connection = sqlite3.connect(self.archive, timeout=600, isolation_level=None)
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            finally:
                connection.close()
            self.longest_wait_s = max(self.longest_wait_s, time.perf_counter() - began)
            self.looks += 1


def built(folder: Path, archive: Path) -> dict[str, Any]:
    """Build the forum in another process, and watch it."""
    with Watcher(folder) as watcher:
        words = [sys.executable, "-m", "benchmarks.scale", "--build", str(folder), str(archive)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {
        "largest write-ahead log, MB": round(watcher.log_bytes / 1e6, 1),
        "longest wait of another writer, s": round(watcher.longest_wait_s, 2),
        "times looked": watcher.looks,
        "load_5_min_at_end": round(os.getloadavg()[1], 2),
    }


# -- asking --------------------------------------------------------------------------------------------------------


def spent(work: Callable[[], Any]) -> float:
    """Return the processor time of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def asking(forum: Forum, ranker: str | None, *, with_body: bool) -> Callable[[Question], object]:
    """Return what asks a forum for what is like one of its questions."""

    def ask(one: Question) -> object:
        own = Filters(exclude_ids=frozenset([one.id]))
        body = one.body if with_body else ""
        return forum.search(Query(one.title, body, one.markup, K, own, ranker, is_canonical=True))

    return ask


def asked(forum: Forum, questions: list[Question], ranker: str | None, *, with_body: bool) -> dict[str, float]:
    """Return what a search takes."""
    ask = asking(forum, ranker, with_body=with_body)
    for one in questions[:10]:
        ask(one)
    return percentiles([spent(lambda one=one: ask(one)) for one in questions])  # type: ignore[misc]


def by_tantivy(forum: Forum, questions: list[Question], *, with_body: bool) -> list[Callable[[], object]]:
    """Return searches by tantivy alone over the same index, for the same terms."""
    index = tantivy.Index.open(str(forum.path / "lexical" / "entries"))
    searcher = index.searcher()

    def search(terms: list[str]) -> object:
        some = [(tantivy.Occur.Should, tantivy.Query.term_query(index.schema, "text", term, "freq")) for term in terms]
        return searcher.search(tantivy.Query.boolean_query(some), K, count=False)

    return [partial(search, terms_asked(forum, one, with_body=with_body)) for one in questions]


def terms_asked(forum: Forum, one: Question, *, with_body: bool) -> list[str]:
    """Return the distinct terms of a question that is asked."""
    prepared = forum.analyzer.prepare(one.title, one.body if with_body else "", one.markup)
    return list(dict.fromkeys([*prepared.title, *prepared.body]))


def asked_in_turns(folders: list[Path], queries: int) -> list[dict[str, Any]]:
    """Return what searches of several forums take, asked in turns."""
    with contextlib.ExitStack() as stack:
        forums = [stack.enter_context(Forum.open(folder)) for folder in folders]
        least = min(REAL, *(forum.size() for forum in forums))
        numbers = random.Random(0).sample(range(1, least + 1), queries)
        sample = list(forums[0].questions_by_number(numbers).values())
        seconds: list[dict[str, list[float]]] = [{} for _ in forums]
        for start in range(-TURN, queries, TURN):
            for forum, of in zip(forums, seconds, strict=True):
                part = sample[max(0, start) : max(0, start) + TURN]
                for with_body in (False, True):
                    kind = "title and body" if with_body else "title"
                    own, alone = asking(forum, None, with_body=with_body), by_tantivy(forum, part, with_body=with_body)
                    taken = {
                        kind: [spent(lambda one=one, own=own: own(one)) for one in part],  # type: ignore[misc]
                        f"tantivy alone, {kind}": [spent(one) for one in alone],
                    }
                    if start >= 0:  # the first turn reads what is read once
                        for name, found in taken.items():
                            of.setdefault(name, []).extend(found)
        return [
            {"questions": forum.size(), **{name: percentiles(found) for name, found in of.items()}}
            for forum, of in zip(forums, seconds, strict=True)
        ]


def opened(folder: Path, title: str) -> dict[str, float]:
    """Return what opening and the first search take, in this process, which has done nothing else."""
    began, at = time.perf_counter(), time.process_time()
    forum = Forum.open(folder)
    opened_s, between, middle = time.perf_counter() - began, time.perf_counter(), time.process_time()
    forum.similar(title)
    found = {
        "open_s": opened_s,
        "open, processor_s": middle - at,
        "first_search_s": time.perf_counter() - between,
        "first search, processor_s": time.process_time() - middle,
    }
    forum.close()
    return {name: round(value, 3) for name, value in found.items()}


def added(forum: Forum, questions: list[Question]) -> dict[str, float]:
    """Return what it takes until an added question is found."""
    found: list[float] = []
    for number, one in enumerate(questions):
        new = Question(f"added-{number}", f"{one.title} zzadded{number}", one.body, one.markup)
        found.append(spent(lambda new=new: forum.add(new)))  # type: ignore[misc]
        assert forum.similar(f"zzadded{number}", k=1)[0].question.id == new.id
    for number in range(len(questions)):
        forum.delete(f"added-{number}")
    return percentiles(found)


def paired(forum: Forum) -> dict[str, float]:
    """Return what the likely pairs of a question take, when all texts have been read."""
    reading = spent(forum.pairs.read_texts)
    before, asked_for = forum.pairs.waiting(), count()
    seconds = spent(lambda: forum.pairs.advance(1e9, lambda: next(asked_for) > COMPARED))
    compared = max(1, before - forum.pairs.waiting())
    return {
        "reading all texts, s": round(reading, 1),
        "questions compared": compared,
        "a question, ms": round(1000 * seconds / compared, 2),
    }


def sizes(folder: Path) -> dict[str, float]:
    """Return the megabytes of each part."""
    found: dict[str, float] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            part = path.relative_to(folder).parts[0]
            found[part] = found.get(part, 0.0) + path.stat().st_size / 1e6
    return {part: round(size, 2) for part, size in sorted(found.items()) if size} | {
        "all": round(sum(found.values()), 2)
    }


def nearest_of(forum: Forum, count: int) -> dict[str, Any]:
    """Return what finding the nearest vectors takes in the forum's own index, and how many of them are found."""
    index = forum._indexes._answering().index
    assert isinstance(index, VectorIndex)
    nums = index.numbers()
    queries = index.vectors(np.random.default_rng(2).choice(nums, count, replace=False))[1]
    index.search(queries[:1], K)
    seconds, shares = [], []
    for query in queries:
        seconds.append(spent(lambda query=query: index.search(query[None], K)))  # type: ignore[misc]
    for query in queries[:EXACT]:
        found, true = (
            dict(one[0]).keys() for one in (index.search(query[None], K), index.search_exactly(query[None], K))
        )
        shares.append(len(found & true) / K)
    return percentiles(seconds) | {"recall_at_10": round(float(np.mean(shares)), 4)}


def beside(forum: Forum, count: int, folder: Path) -> list[dict[str, Any]]:
    """Return rows of the forum's vectors in our index, made anew, and in the rivals'."""
    index = forum._indexes._answering().index
    nums = index.numbers()
    vectors = np.concatenate([index.vectors(nums[start : start + 8_192])[1] for start in range(0, len(nums), 8_192)])
    queries = vectors[np.random.default_rng(2).permutation(len(vectors))[:count]]
    blocks = [vectors[start : start + 65_536] @ queries.T for start in range(0, len(vectors), 65_536)]
    nearest = [set(np.argpartition(-column, K)[:K].tolist()) for column in np.concatenate(blocks).T]
    del blocks
    return [
        measured(made, len(vectors), queries, nearest)
        for maker in (ours, in_numpy, graphs)
        for made in maker(vectors, _made(folder))
    ]


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(dir=folder))


def words_of(forum: Forum, questions: list[Question], *, has_rivals: bool) -> dict[str, dict[str, float]]:
    """Return what a search by words takes: ours, tantivy alone over the same index and terms, and bm25s."""
    found = {}
    for with_body in (False, True):
        kind = "title and body" if with_body else "title"
        found[f"askalike by words, {kind}"] = asked(forum, questions, "lexical", with_body=with_body)
        alone = by_tantivy(forum, questions, with_body=with_body)
        found[f"tantivy alone, {kind}"] = percentiles([spent(one) for one in alone])
    if has_rivals:
        import bm25s

        rival = bm25s.BM25(backend="numba")
        texts = [terms_of(forum.analyzer, one) for one in forum.questions()]
        found["bm25s, building"] = {"seconds": round(spent(lambda: rival.index(texts, show_progress=False)), 1)}
        del texts
        rival.activate_numba_scorer()
        known = rival.vocab_dict

        def by_rival(given: list[str]) -> None:
            if kept := [term for term in given if term in known]:
                rival.retrieve([kept], k=K, show_progress=False)

        for with_body in (False, True):
            given = [terms_asked(forum, one, with_body=with_body) for one in questions]
            by_rival(given[0])
            seconds = [spent(lambda some=some: by_rival(some)) for some in given]  # type: ignore[misc]
            found[f"bm25s, {'title and body' if with_body else 'title'}"] = percentiles(seconds)
    return found


def terms_of(analyzer: Any, one: Question) -> list[str]:
    """Return all terms of a question."""
    prepared = analyzer.prepare(one.title, one.body, one.markup)
    return [*prepared.title, *prepared.body]


class Parts:
    """What was measured so far, kept in the folder of the forum so that a run that was ended can go on."""

    def __init__(self, folder: Path, begun: dict[str, Any]) -> None:
        self.path = folder / "measured.json"
        self.body = begun
        if self.path.exists():
            held = json.loads(self.path.read_text())
            if held.items() >= begun.items():
                self.body = held
                return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def add(self, name: str, work: Callable[[], Any]) -> None:
        """Measure a part, unless that was done."""
        if name not in self.body:
            self.body[name] = work()
            print(name, json.dumps(self.body[name]), flush=True)
            self.path.write_text(json.dumps(self.body))


def measure(folder: Path, *, size: int, queries: int, rivals: int) -> dict[str, Any]:
    """Build a forum of ``size`` questions below ``folder``, and measure all."""
    begun = {"commit": stamp()["commit"], "questions": size, "copies": max(0, size - REAL), "queries": queries}
    parts, path, archive = Parts(folder, begun), folder / "forum", folder / "questions.jsonl"
    if "indexing" not in parts.body and not archive.exists():
        write_archive(archive, size)
    parts.add("indexing", lambda: built(path, archive))
    archive.unlink(missing_ok=True)
    parts.add("disk_mb", lambda: sizes(path))
    has_rivals = size <= rivals
    with Forum.open(path) as forum:
        numbers = random.Random(0).sample(range(1, min(size, REAL) + 1), queries)
        sample = list(forum.questions_by_number(numbers).values())
    words = [sys.executable, "-m", "benchmarks.scale", "--open", str(path), sample[0].title]
    parts.add("opening", lambda: json.loads(subprocess.check_output(words, text=True).splitlines()[-1]))
    with Forum.open(path) as forum:
        parts.add(
            "search",
            lambda: {
                kind: asked(forum, sample, None, with_body=kind != "title") for kind in ("title", "title and body")
            },
        )
        parts.add("words", lambda: words_of(forum, sample, has_rivals=has_rivals))
        parts.add("added until found", lambda: added(forum, sample[:ADDED]))
        parts.add("likely pairs", lambda: paired(forum))
        parts.add("nearest vectors", lambda: nearest_of(forum, queries))
        parts.add("vectors beside rivals", lambda: beside(forum, queries, folder / "vectors") if has_rivals else [])
    return parts.body | {"load_15_min_at_end": round(os.getloadavg()[2], 2)}


def main() -> None:
    """Measure one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=REAL)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--rivals", type=int, default=300_000, help="build graphs and bm25s up to so many questions")
    parser.add_argument("--build", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--open", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help="leave the forum, for --asked and benchmarks.likely_pairs")
    parser.add_argument("--asked", nargs="+", type=Path, help="forums to ask in turns, and nothing else")
    given = parser.parse_args()
    if given.asked:
        rows = asked_in_turns(given.asked, given.queries)
        print(json.dumps(rows, indent=1))
        write("sizes-in-turns", f"{COMMAND} --asked FOLDER…", {"rows": rows, "load_15_min_at_end": os.getloadavg()[2]})
    elif given.build:
        print(json.dumps(build(*given.build)))
    elif given.open:
        print(json.dumps(opened(Path(given.open[0]), given.open[1])))
    else:
        folder = WORK / f"scale-{given.questions}"
        body = measure(folder, size=given.questions, queries=given.queries, rivals=given.rivals)
        write(f"scale-{given.questions}", f"{COMMAND} --questions {given.questions}", body)
        if given.keep:
            print(folder / "forum")
        else:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
