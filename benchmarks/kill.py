"""Kill test: a writing process is killed (SIGKILL) at random moments; the forum must hold every acknowledged write.

Command: ``python -m benchmarks.kill`` (50 kills). A worker process makes a forum, loads an archive in bulk, then adds,
edits and deletes one by one, and says on its output what it begins and what was acknowledged. The parent kills it,
opens the forum, and checks that

- it opens, and passes SQLite's own check;
- it holds exactly what was acknowledged; the one write under way may be there or not, whole;
- searches by words find the same questions as a forum built afresh from the same questions, and so do searches by
  meaning where the package carries a model, once what waits is encoded.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from askalike.archive import Archive, Layout
from askalike.archive import check as check_archive
from askalike.errors import ForumNotFoundError
from askalike.forum import Forum, ImportOptions
from askalike.read.frame import ReadContext
from askalike.read.registry import READERS
from askalike.types import Answer, Question
from benchmarks.record import REPOSITORY, WORK, need_data, write

COMMAND = "python -m benchmarks.kill"
KILLS = 50
LONGEST_S = (4.0, 3.0)
"""The longest time until a kill, in turn: from the first step, mostly within the bulk load; from its end."""
LOADED = 3000
SMALLEST_OVERLAP = 0.9
LONGEST_START_S = 120.0
AFTER = (("begin", "create"), ("done", "load"))
"""From which step the time until a kill counts, in turn."""
PROBES = 25
WORDS = ("printer", "game", "people", "best", "help", "music", "computer", "anyone", "phone", "work")


Content = tuple[str, str]
"""A question's title and body."""


@dataclass
class Outcome:
    """What a killed round left behind."""

    phase: str
    acknowledged: int
    overlap: dict[str, float]


def worker(folder: Path, archive: Path, seed: int) -> None:
    """Write until killed, telling each step."""
    chance = random.Random(seed)
    tell("begin", "create")
    with Forum.create(folder) as forum:
        tell("done", "create")
        tell("begin", "load")
        forum.load(archive, options=ImportOptions(format="jsonl", source="bulk"))
        tell("done", "load")
        ids = [question.id for question in forum.questions()]
        for number in range(100_000):
            kind = chance.choice(("add", "add", "edit", "delete"))
            if kind == "add":
                question = Question(f"new-{seed}-{number}", f"{chance.choice(WORDS)} trouble {number}", "x " * 30)
                tell("begin", "put", question.id, question.title, question.body)
                forum.add(question)
                ids.append(question.id)
            elif kind == "edit":
                question = Question(chance.choice(ids), f"{chance.choice(WORDS)} edited {number}")
                tell("begin", "put", question.id, question.title, question.body)
                forum.edit(question)
            else:
                gone = ids.pop(chance.randrange(len(ids)))
                tell("begin", "delete", gone, "")
                forum.delete(gone)
            tell("done", kind)


def tell(*words: str) -> None:
    """Say one step, at once."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def one_round(folder: Path, archive: Path, seed: int, after: tuple[str, str], delay_s: float) -> Outcome:
    """Start a worker, kill it ``delay_s`` seconds after a step, check what is left.

    Args:
        folder: where the forum is made.
        archive: what is loaded.
        seed: of the changes.
        after: the step from which the time counts.
        delay_s: the time.
    """
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.kill", "worker", str(folder), str(archive), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        lines: list[str] = []
        is_there = threading.Event()

        def listen() -> None:  # all the time: a worker whose words nobody takes would stop writing
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if line.endswith("]\n") and json.loads(line)[:2] == list(after):
                    is_there.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert is_there.wait(LONGEST_START_S), f"the worker did not come to {' '.join(after)}"
        time.sleep(delay_s)
        process.kill()
        listener.join()
    assert process.returncode == -signal.SIGKILL, f"the worker stopped by itself with {process.returncode}"
    steps = [json.loads(line) for line in lines if line.endswith("]\n")]
    return check(folder, archive, steps)


def check(folder: Path, archive: Path, steps: list[list[str]]) -> Outcome:
    """Compare the forum with what was acknowledged; raises AssertionError where they differ."""
    pending = steps[-1] if steps[-1][0] == "begin" else None
    acknowledged = sum(step[0] == "done" for step in steps)
    try:
        forum = Forum.open(folder)
    except ForumNotFoundError:
        assert pending is not None, "the forum has gone although its making was acknowledged"
        assert pending[1] == "create", "the forum has gone although its making was acknowledged"
        Forum.create(folder).close()
        return Outcome("create", acknowledged, {})
    with forum:
        with contextlib.closing(Archive(Layout(folder).archive)) as stored:
            check_archive(stored)
        held = {question.id: (question.title, question.body) for question in forum.questions()}
        loaded, answers = bulk(archive)
        assert held in allowed_states(loaded, steps, pending), (
            f"{len(held)} questions differ from what was acknowledged"
        )
        kept = {answer.id for identifier in held for answer in forum.answers(identifier)}
        wanted = {answer for answer, question in answers.items() if question in held}
        assert kept == (wanted if held else set()), f"{len(kept)} answers, {len(wanted)} expected"
        info = forum.info()
        assert info.behind == 0, f"{info.behind} changes are not in the index"
        assert info.indexed == len(held), f"{info.indexed} entries for {len(held)} questions"
        overlap = agreement(forum, folder.parent / "fresh.forum") if held else {}
    return Outcome(pending[1] if pending else "between", acknowledged, overlap)


def bulk(archive: Path) -> tuple[dict[str, Content], dict[str, str]]:
    """Return the archive's questions as the reader gives them, and answer id → question id."""
    questions: dict[str, Content] = {}
    answers: dict[str, str] = {}
    for record in READERS["jsonl"].read(archive, ReadContext()):
        if isinstance(record, Question):
            questions[record.id] = (record.title, record.body)
        elif isinstance(record, Answer):
            answers[record.id] = record.question_id
    return questions, answers


def allowed_states(
    loaded: dict[str, Content], steps: list[list[str]], pending: list[str] | None
) -> list[dict[str, Content]]:
    """Return what the forum may hold: everything acknowledged, without and with the write under way."""
    state: dict[str, Content] = {}
    before: dict[str, Content] = {}
    for step in steps:
        if step[0] != "begin":
            continue
        before = dict(state)
        if step[1] == "load":
            state.update(loaded)
        elif step[1] == "put":
            state[step[2]] = (step[3], step[4])
        elif step[1] == "delete":
            del state[step[2]]
    return [state, before] if pending else [state]


def agreement(forum: Forum, fresh_folder: Path) -> dict[str, float]:
    """Check that searches find the same questions as a fresh forum; return ranker → mean overlap of the best ten."""
    shutil.rmtree(fresh_folder, ignore_errors=True)
    questions = list(forum.questions())
    with Forum.create(fresh_folder) as fresh:
        fresh.put(questions)
        for one in (forum, fresh):
            if one.vectors.waiting:
                one.encode()
        counted = forum.vectors.entries
        assert counted == fresh.vectors.entries, f"{counted} vectors, but {fresh.vectors.entries} in a fresh forum"
        rankers = ("lexical", "vector") if forum.vectors.model else ("lexical",)
        return {ranker: overlap(forum, fresh, questions, ranker) for ranker in rankers}


def overlap(forum: Forum, fresh: Forum, questions: list[Question], ranker: str) -> float:
    """Return the mean overlap of the best ten by one ranker; AssertionError where it is small or the finds differ."""
    overlaps: list[float] = []
    for probe in random.Random(0).choices(questions, k=PROBES):
        here = [identifier for identifier, _ in forum.ranking(probe.title, k=1000, ranker=ranker)]
        there = [identifier for identifier, _ in fresh.ranking(probe.title, k=1000, ranker=ranker)]
        if len(here) < 1000:
            assert set(here) == set(there), f"{probe.title!r} finds other questions than in a fresh forum, by {ranker}"
        best = set(there[:10])
        overlaps.append(len(best & set(here[:10])) / len(best) if best else 1.0)
    mean = sum(overlaps) / len(overlaps)
    assert mean >= SMALLEST_OVERLAP, f"only {mean:.0%} of the best ten are those of a fresh forum, by {ranker}"
    return mean


def write_archive(path: Path, count: int) -> Path:
    """Write the first questions of the Reddit set as an archive of its own."""
    import gzip

    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as source:
        lines = [line for line, _ in zip(source, range(count), strict=False)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def main() -> None:
    """Kill 50 times and write the result."""
    if len(sys.argv) > 1 and sys.argv[1] == "worker":
        worker(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
        return
    folder = WORK / "kill"
    archive = write_archive(folder / "archive.jsonl", LOADED)
    chance = random.Random(0)
    outcomes: list[Outcome] = []
    for number in range(KILLS):
        delay_s = chance.uniform(0, LONGEST_S[number % 2])
        outcomes.append(one_round(folder / "killed.forum", archive, number, AFTER[number % 2], delay_s))
        print(number + 1, outcomes[-1], flush=True)
    write(
        "kill",
        COMMAND,
        {
            "kills": len(outcomes),
            "failures": 0,
            "killed_during": dict(Counter(outcome.phase for outcome in outcomes)),
            "acknowledged_writes": sum(outcome.acknowledged for outcome in outcomes),
            "mean_overlap_of_best_ten_with_fresh_forum": mean_overlap(outcomes, "lexical"),
            "mean_overlap_by_meaning": mean_overlap(outcomes, "vector"),
        },
    )


def mean_overlap(outcomes: list[Outcome], ranker: str) -> float | None:
    """Return the mean over the rounds that left a question; None where there are no vectors to search by."""
    found = [outcome.overlap[ranker] for outcome in outcomes if ranker in outcome.overlap]
    return sum(found) / len(found) if found else None


if __name__ == "__main__":
    main()
