"""Kill test: a writing process is killed (SIGKILL) at random moments; the forum must hold every acknowledged write.

Command: ``python -m benchmarks.kill`` (50 kills). The archive holds 20,000 real questions, some with answers. Of two
worker processes in turn, one makes a forum and loads the archive for the first time; the other has a forum that is
loaded and encoded, and loads two versions of the archive one after the other again and again: in one of them every
twentieth question is missing, and others are edited. Meanwhile another thread of each worker adds, edits and deletes
questions and answers, marks and judges pairs, those with questions that go and return too, and tries dates that no
reader could take. The worker prints what it begins and what was acknowledged. The parent kills it, opens the forum, and
checks that

- it opens, and passes SQLite's own check;
- of the archive it holds one version whole: that of the last load, or of the one under way;
- it holds exactly what was acknowledged beside it; the one write under way may be there or not, whole;
- no date out of range was taken;
- nothing is left in the temporary directory, and no file of a load once another load is done;
- once the whole archive is loaded again, every mark and judgement counts;
- searches by words find the same questions as a forum built afresh from the same questions (each fifth kill), and so
  do searches by meaning where the package carries a model (each tenth), once what waits is encoded.
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
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final, get_args

from recipes.folders import REPOSITORY, WORK

from askalike.errors import ForumNotFoundError, InputError, UnknownIdError
from askalike.forum import Forum, ImportOptions
from askalike.progress import SilentProgress
from askalike.readers.detection import READERS
from askalike.readers.frame import ReadContext
from askalike.store import ForumLayout, stored_faults
from askalike.types import Answer, Link, Query, Question, Verdict
from benchmarks.record import option_parser, reddit_rows, write

COMMAND: Final = "python -m benchmarks.kill"
KILLS: Final = 50
QUESTIONS: Final = 20_000
LONGEST_S: Final = {"first": 12.0, "again": 20.0}
"""The longest time until a kill, in a first load and in repeated loads."""
LONGEST_START_S: Final = 300.0
SMALLEST_OVERLAP: Final = 0.9
PROBES: Final = 25
MISSING_EACH: Final = 20
WORDS: Final = ("printer", "game", "people", "best", "help", "music", "computer", "anyone", "phone", "work")
SOURCE: Final = "bulk"
HOSTILE: Final = (
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-14))),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
)
"""Moments that lie outside the years 1 to 9999 in UTC."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Two versions of an archive, and a forum that holds the whole one, encoded."""

    whole: Path
    less: Path
    base: Path

    def path(self, name: str) -> Path:
        """Return the version that has this name: "whole" or "less"."""
        return self.whole if name == "whole" else self.less


@dataclass
class Outcome:
    """What a killed round left behind."""

    phase: str
    acknowledged: int
    longest_write_s: float
    overlap: dict[str, float] = field(default_factory=dict)


# -- the process that is killed --------------------------------------------------------------------------------------


def worker(folder: Path, versions: Versions, seed: int, kind: str) -> None:
    """Load and write until killed, printing each step."""
    tell("begin", "create")
    with Forum.create(folder) if kind == "first" else Forum.open(folder) as forum:
        tell("done", "create")
        threading.Thread(target=write_singly, args=(forum, seed), daemon=True).start()
        names = ("less", "whole") if kind == "again" else ("whole",)
        while True:
            for name in names:
                tell("begin", "load", name)
                forum.load(versions.path(name), options=ImportOptions(format="jsonl", source=SOURCE))
                tell("done", "load", name)


def write_singly(forum: Forum, seed: int) -> None:
    """Write one thing after the other."""
    writer = Writer(forum, random.Random(seed), seed, [question.id for question in forum.questions()])
    while True:
        writer.step()
        time.sleep(0.002)


@dataclass
class Writer:
    """Writes one thing after the other beside a load, and prints each.

    Args:
        bulk: ids of the archive; some go and return.
    """

    forum: Forum
    chance: random.Random
    seed: int
    bulk: list[str]
    number: int = 0
    own: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def step(self) -> None:
        """Write one thing."""
        self.number += 1
        kinds = ["add", "add", "edit", "hostile", "answer", "link", "judge", "delete", "delete answer", "unlink"]
        kind = self.chance.choice(kinds)
        subject = f"{self.chance.choice(WORDS)} trouble {self.seed} {self.number}"
        name = f"new-{self.seed}-{self.number}"
        if kind == "hostile":
            tell_write(kind, [name], lambda: self.forum.add([Question(name, "t", created=HOSTILE[0])]))
            tell_write(kind, [name], lambda: self.forum.put([Question(name, "t", closed=HOSTILE[1])]))
        elif kind == "add" or not self.own:
            question = Question(name, subject, "x " * 30, created=datetime(2024, 1, 1, tzinfo=UTC))
            if self.number % 10:
                tell_write("put", [name, subject], lambda: self.forum.put_unindexed([question]))
            else:  # and waits until it is indexed, after what the load indexes
                tell_write("add", [name, subject], lambda: self.forum.add([question]))
            self.own.append(name)
        elif kind == "edit":
            edited = Question(self.chance.choice(self.own), subject)
            tell_write("put", [edited.id, subject], lambda: self.forum.put_unindexed([edited]))
        elif kind == "answer":
            answer = Answer(f"a-{self.seed}-{self.number}", self._target(), subject)
            if tell_write("answer", [answer.id, answer.question_id], lambda: self.forum.store.put_answers([answer])):
                self.answers.append(answer.id)
        elif kind == "link" and self.bulk:
            link = Link(self._target(), self._target(), self.chance.choice(["duplicate", "related"]))
            key = [link.source_id, link.target_id, link.kind]
            if tell_write("link", key, lambda: self.forum.store.put_links([link])):
                self.links.append(link)
        elif kind == "judge" and self.bulk:
            pair = (self._target(), self._target())
            verdict = self.chance.choice(get_args(Verdict))
            tell_write("judge", [*pair, verdict, subject], lambda: self.forum.judge(*pair, verdict, by=subject))
        elif kind == "unlink" and self.links:
            link = self.links.pop()
            key = [link.source_id, link.target_id, link.kind]
            tell_write("unlink", key, lambda: self.forum.store.delete_links([link]))
        elif kind == "delete answer" and self.answers:
            identifier = self.answers.pop(self.chance.randrange(len(self.answers)))
            tell_write(kind, [identifier], lambda: self.forum.store.delete_answers([identifier]))
        elif kind == "delete":
            identifier = self.own.pop(self.chance.randrange(len(self.own)))
            tell_write(kind, [identifier], lambda: self.forum.put_unindexed(gone=[identifier]))

    def _target(self) -> str:
        """Return the id of a question that a load may take away; in a forum that is still empty, one of its own."""
        return self.chance.choice(self.bulk or self.own)


def tell_write(kind: str, details: list[str], write: Callable[[], object]) -> bool:
    """Write, and print that before and after; return whether it was acknowledged."""
    tell("begin", kind, *details)
    began = time.monotonic()
    try:
        write()
    except (InputError, UnknownIdError) as error:
        tell("refused", kind, *details, str(error))
        return False
    tell("done", kind, *details, f"{time.monotonic() - began:.3f}")
    return True


_output_lock = threading.Lock()


def tell(*words: str) -> None:
    """Print one step, at once."""
    with _output_lock:
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()


# -- what the forum must hold ------------------------------------------------------------------------------------------


@dataclass
class Ledger:
    """What was acknowledged, and the writes that were under way: each may be there or not.

    Args:
        versions: of the archive, one of which must be there; "" for none.
    """

    versions: list[str] = field(default_factory=lambda: [""])
    questions: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    links: set[tuple[str, ...]] = field(default_factory=set)
    judgements: Counter[tuple[str, ...]] = field(default_factory=Counter)
    hostile: list[str] = field(default_factory=list)
    pending: list[list[str]] = field(default_factory=list)
    acknowledged: int = 0
    longest_write_s: float = 0.0

    def read(self, steps: Iterable[list[str]]) -> None:
        """Take the steps that a process printed."""
        under_way: dict[bool, list[str] | None] = {}
        for state, *step in steps:
            is_load = step[0] in ("create", "load")
            under_way[is_load] = step if state == "begin" else None
            if state == "done":
                self.acknowledged += 1
                self.apply(step)
                if not is_load and step[0] != "add":
                    self.longest_write_s = max(self.longest_write_s, float(step[-1]))
        self.pending = [step for step in under_way.values() if step is not None]
        self.versions += [step[1] for step in self.pending if step[0] == "load"]

    def apply(self, step: list[str]) -> None:
        """Take a write as done."""
        kind, *details = step
        if kind == "load":
            self.versions = [details[0]]
        elif kind in ("put", "add"):
            self.questions[details[0]] = details[1]
        elif kind == "delete":
            del self.questions[details[0]]
            self.answers = {answer: question for answer, question in self.answers.items() if question != details[0]}
        elif kind == "answer":
            self.answers[details[0]] = details[1]
        elif kind == "delete answer":
            self.answers.pop(details[0], None)
        elif kind == "link":
            self.links.add(tuple(details[:3]))
        elif kind == "unlink":
            self.links.discard(tuple(details[:3]))
        elif kind == "judge":
            self.judgements[tuple(details[:4])] += 1
        elif kind == "hostile":
            self.hostile.append(details[0])

    def state(self) -> tuple[Any, ...]:
        """Return what the store must hold beside the loaded archive."""
        return dict(self.questions), dict(self.answers), set(self.links), Counter(self.judgements)

    def check(self, archive: sqlite3.Connection) -> None:
        """Raise AssertionError unless the archive holds what was acknowledged, and take from it what was under way."""
        assert not self.hostile, f"a date out of range was taken: {self.hostile[:3]}"
        stored, expected = written_beside(archive), self.state()
        if stored != expected:
            for step in self.pending:
                if step[0] not in ("create", "load", "hostile"):
                    self.apply(step)
        self.pending = []  # it is known now what became of it
        if stored != self.state():
            parts = ("questions", "answers", "links", "judgements")
            wrong = {
                name: (_less(here, there), _less(there, here))
                for name, here, there in zip(parts, stored, expected, strict=True)
            }
            raise AssertionError(f"differs from what was acknowledged; too many, too few: {wrong}")


def _less(records: Any, others: Any) -> list[Any]:
    first, second = (set(part.items()) if isinstance(part, dict) else part for part in (records, others))
    return sorted(first - second, key=str)[:5]


def written_beside(archive: sqlite3.Connection) -> tuple[Any, ...]:
    """Return questions' titles, answers' questions, links and judgements that came from no archive."""
    select = archive.execute
    manual = "source = (SELECT num FROM sources WHERE name = 'manual')"
    return (
        dict(map(tuple, select(f"SELECT id, title FROM questions WHERE {manual}"))),
        dict(map(tuple, select(f"SELECT id, question_id FROM answers WHERE {manual}"))),
        set(map(tuple, select(f"SELECT source_id, target_id, kind FROM links WHERE {manual}"))),
        Counter(map(tuple, select("SELECT question_id, candidate_id, verdict, judge FROM feedback"))),
    )


# -- one kill --------------------------------------------------------------------------------------------------------


def one_round(
    folder: Path, versions: Versions, seed: int, kind: str, delay_s: float, compared: tuple[str, ...] = ("words",)
) -> Outcome:
    """Start a worker, kill it ``delay_s`` seconds after its first load has begun, check what is left.

    Args:
        folder: where the forum is made.
        seed: of the changes.
        kind: "first" for a first load, "again" for loads that come again.
        compared: the rankers whose results are compared with those of a forum built afresh.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if kind == "again":
        shutil.copytree(versions.base, folder)
    temporary = folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    paths = map(str, (folder, versions.whole, versions.less, versions.base))
    command = ["benchmarks.kill", "--worker", *paths, str(seed), kind]
    ledger = Ledger(["whole" if kind == "again" else ""])
    ledger.read(killed_steps(command, delay_s, os.environ | {"TMPDIR": str(temporary)}))
    outcome = check(folder, versions, ledger, compared)
    left = sorted(path.name for path in temporary.iterdir())
    assert not left, f"left in the temporary directory: {left}"
    return outcome


def killed_steps(
    module: Sequence[str], delay_s: float, environment: Mapping[str, str] | None = None
) -> list[list[str]]:
    """Run a module that prints its steps, and kill it ``delay_s`` seconds after its first load has begun."""
    command = [sys.executable, "-m", *module]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment) as process:
        lines: list[str] = []
        has_begun = threading.Event()

        def listen() -> None:  # all the time: a worker whose output nobody reads would stop writing
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if line.startswith('["begin", "load"'):
                    has_begun.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert has_begun.wait(LONGEST_START_S), "the worker did not come to its first load"
        time.sleep(delay_s)
        process.kill()
        listener.join()
    assert process.returncode == -signal.SIGKILL, f"the worker stopped by itself with {process.returncode}"
    return [json.loads(line) for line in lines if line.endswith("]\n")]


def check(folder: Path, versions: Versions, ledger: Ledger, compared: tuple[str, ...]) -> Outcome:
    """Compare the forum with what was acknowledged; raises AssertionError where they differ."""
    load = next((step for step in ledger.pending if step[0] in ("create", "load")), None)
    phase = "between" if load is None else " ".join(load)
    outcome = Outcome(phase, ledger.acknowledged, ledger.longest_write_s)
    try:
        forum = Forum.open(folder)
    except ForumNotFoundError:
        assert load == ["create"], "the forum has gone although its making was acknowledged"
        Forum.create(folder).close()
        return outcome
    with forum, contextlib.closing(sqlite3.connect(ForumLayout(folder).archive)) as stored:
        ledger.check(stored)
        check_archive(folder, stored, versions, ledger.versions)
        in_step(forum)
        if compared:
            outcome.overlap = agreement(forum, folder.parent / "fresh.forum", compared)
        forum.load(versions.whole, options=ImportOptions(format="jsonl", source=SOURCE))
        assert not list(folder.glob("loading.sqlite*")), "a file of a load is left"
        ledger.check(stored)
        marks = {(link.source_id, link.target_id, link.kind) for link in forum.store.links()}
        assert marks >= ledger.links, f"{len(ledger.links - marks)} marks do not count again"
        judgements = Counter[tuple[str, ...]](
            (judgement.question_id, judgement.candidate_id, judgement.verdict, judgement.by)
            for judgement in forum.store.all_judgements()
        )
        assert judgements >= ledger.judgements, f"{len(ledger.judgements - judgements)} judgements do not count again"
        in_step(forum)
    return outcome


def in_step(forum: Forum) -> None:
    """Raise AssertionError unless the index holds every question of the archive."""
    info = forum.info()
    assert info.behind == 0, f"{info.behind} changes are not in the index"
    assert info.indexed == info.counts.questions, f"{info.indexed} entries for {info.counts.questions} questions"


_contents: dict[Path, tuple[dict[str, str], dict[str, str]]] = {}


def contents(versions: Versions, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the questions' titles and the answers' questions of a version; "" holds nothing."""
    if not name:
        return {}, {}
    path = versions.path(name)
    if path not in _contents:
        records = list(READERS["jsonl"].read(path, ReadContext()))
        titles = {record.id: record.title for record in records if isinstance(record, Question)}
        _contents[path] = (titles, {record.id: record.question_id for record in records if isinstance(record, Answer)})
    return _contents[path]


def check_archive(folder: Path, archive: sqlite3.Connection, versions: Versions, names: Sequence[str]) -> str:
    """Check the file, and that it holds one version of the loaded archive whole; return the name of the version."""
    faults = list(stored_faults(ForumLayout(folder), SilentProgress()))
    assert not faults, f"{len(faults)} faults in the archive, such as {faults[0]}"
    source = f"source = (SELECT num FROM sources WHERE name = '{SOURCE}')"
    titles = dict(map(tuple, archive.execute(f"SELECT id, title FROM questions WHERE {source}")))
    answers = dict(map(tuple, archive.execute(f"SELECT id, question_id FROM answers WHERE {source}")))
    whole = [name for name in names if contents(versions, name) == (titles, answers)]
    assert whole, f"{len(titles)} questions and {len(answers)} answers are no version of {names}"
    return whole[0]


def agreement(forum: Forum, fresh_folder: Path, rankers: tuple[str, ...]) -> dict[str, float]:
    """Check that searches find the same questions as a fresh forum; return ranker → mean overlap of the best ten."""
    questions = list(forum.questions())
    if not questions:
        return {}
    shutil.rmtree(fresh_folder, ignore_errors=True)
    with Forum.create(fresh_folder) as fresh:
        fresh.put(questions)
        by_question = forum.store.answers_of([question.id for question in questions])
        fresh.store.put_answers([answer for answers in by_question.values() for answer in answers])
        fresh.catch_up()
        if "meaning" in rankers:
            for either in (forum, fresh):
                if either.indexes.state().waiting:
                    either.encode()
            entries, expected = forum.indexes.state().entries, fresh.indexes.state().entries
            assert entries == expected, f"{entries} vectors, but {expected} in a fresh forum"
        rankers = tuple(name for name in rankers if name == "words" or forum.indexes.state().model)
        return {ranker: overlap(forum, fresh, questions, ranker) for ranker in rankers}


def overlap(forum: Forum, fresh: Forum, questions: list[Question], ranker: str) -> float:
    """Return the mean overlap of the best ten by one ranker; AssertionError where it is small or the results differ."""
    overlaps: list[float] = []
    for probe in random.Random(0).choices(questions, k=PROBES):
        here = [identifier for identifier, _ in forum.indexes.ranking(Query(probe.title, k=1000, ranker=ranker))]
        there = [identifier for identifier, _ in fresh.indexes.ranking(Query(probe.title, k=1000, ranker=ranker))]
        if len(here) < 1000:
            assert set(here) == set(there), f"{probe.title!r} finds other questions than in a fresh forum, by {ranker}"
        best = set(there[:10])
        overlaps.append(len(best & set(here[:10])) / len(best) if best else 1.0)
    mean = sum(overlaps) / len(overlaps)
    assert mean >= SMALLEST_OVERLAP, f"only {mean:.0%} of the best ten are those of a fresh forum, by {ranker}"
    return mean


# -- the archive and all kills ---------------------------------------------------------------------------------------


def write_versions(folder: Path, lines: Iterable[str]) -> Versions:
    """Write both versions of an archive of questions, with answers to some, and a forum that holds the whole one."""
    versions = write_archives(folder, lines)
    shutil.rmtree(versions.base, ignore_errors=True)
    with Forum.create(versions.base) as forum:
        forum.load(versions.whole, options=ImportOptions(format="jsonl", source=SOURCE))
        assert len(forum) > len(contents(versions, "less")[0]), "no question goes and returns"
    return versions


def write_archives(folder: Path, lines: Iterable[str]) -> Versions:
    """Write both versions of an archive of questions, with answers to some."""
    folder.mkdir(parents=True, exist_ok=True)
    versions = Versions(folder / "whole.jsonl", folder / "less.jsonl", folder / "base.forum")
    with versions.whole.open("w", encoding="utf-8") as whole, versions.less.open("w", encoding="utf-8") as less:
        for number, line in enumerate(lines):
            row = json.loads(line)
            if number % 10 == 0:
                row.setdefault("answers", [{"id": f"answer-{row['id']}", "body": "Have you tried another?"}])
            for name in ("duplicate_of", "related"):
                row.pop(name, None)
            whole.write(json.dumps(row) + "\n")
            if number % MISSING_EACH != 1:
                less.write(json.dumps(row | ({"title": f"{row['title']} edited"} if number % 7 == 0 else {})) + "\n")
    return versions


def main() -> None:
    """Run the kills and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--worker", nargs=6, help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args()
    if options.worker:
        *paths, seed, kind = options.worker
        folder, *versioned = map(Path, paths)
        worker(folder, Versions(*versioned), int(seed), kind)
        return
    folder = WORK / "kill"
    versions = write_versions(folder, map(json.dumps, reddit_rows(options.questions)))
    chance = random.Random(0)
    outcomes: list[Outcome] = []
    for number in range(options.kills):
        kind = "again" if number % 3 else "first"
        compared = ("words", "meaning") if number % 10 == 9 else ("words",) if number % 5 == 4 else ()
        delay_s = chance.uniform(0, LONGEST_S[kind])
        outcomes.append(one_round(folder / "killed.forum", versions, number, kind, delay_s, compared))
        print(number + 1, kind, f"{delay_s:.1f} s", outcomes[-1], flush=True)
    if (options.kills, options.questions) != (KILLS, QUESTIONS):
        return  # a trial
    write(
        "kill",
        COMMAND,
        {
            "questions": options.questions,
            "kills": len(outcomes),
            "failures": 0,
            "killed_during": dict(Counter(outcome.phase for outcome in outcomes)),
            "acknowledged_writes": sum(outcome.acknowledged for outcome in outcomes),
            "longest_write_s": max(outcome.longest_write_s for outcome in outcomes),
            "mean_overlap_of_best_ten_with_fresh_forum": mean_overlap(outcomes, "words"),
            "mean_overlap_by_meaning": mean_overlap(outcomes, "meaning"),
        },
    )


def mean_overlap(outcomes: list[Outcome], ranker: str) -> float | None:
    """Return the mean over the rounds that compared; None where there are no vectors to search by."""
    overlaps = [outcome.overlap[ranker] for outcome in outcomes if ranker in outcome.overlap]
    return sum(overlaps) / len(overlaps) if overlaps else None


if __name__ == "__main__":
    main()
