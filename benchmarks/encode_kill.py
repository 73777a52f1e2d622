"""Kill test of encoding: a process that encodes a forum with MiniLM is killed (SIGKILL) on the way, again and again.

Commands: ``OMP_NUM_THREADS=1 python -m benchmarks.encode_kill`` (10,000 questions of Reddit, 5 kills);
``OMP_NUM_THREADS=1 python -m benchmarks.encode_kill --questions 224741 --check 5000`` (all of them, in less than an
hour); ``--again`` checks the forum of the last run once more. A forum is encoded by processes that are killed, at
moments spread over the work and drawn within a commit, each next one going on where the last one was. Every question
must have one vector, and the killed processes together must not have encoded much twice.

The vectors are compared with those of a second forum that is encoded without a break: of the same questions in 8 bits,
or, with ``--check``, of so many drawn ones in float32. In 8 bits a vector depends a little on the texts that run beside
it (its scale is the batch's), and after a kill other texts run together; in float32 it does not. A vector is right
where its cosine to the other forum's is at least .98, and where no other question's vector is nearer to that by more
than .001, but for copies: questions whose own vectors are as near to each other as two readings of one text are (.98).
How many are the same to the last bit is told too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askalike.forum import Forum, ForumSettings
from askalike.index.encoder_settings import EncoderSettings, Precision
from askalike.index.vector_indexer import STEPS_OF_TEXTS
from askalike.index.vectors import VectorIndex
from askalike.store import ForumLayout
from askalike.types import Question
from benchmarks.record import WORK, need_data, write

LEAST_COSINE = COPY = 0.98
WORKER = "import sys; from benchmarks.encode_kill import worker; worker(*sys.argv[1:])"


class Told:
    """Progress as lines of output."""

    def start(self, phase: str, total: int, unit: str) -> None:
        """Tell it."""
        print(f"start {total} {phase}", flush=True)

    def advance(self, count: int) -> None:
        """Tell it."""
        print(f"done {count}", flush=True)

    def notice(self, text: str) -> None:
        """Tell it."""
        print(f"notice {text}", flush=True)


def worker(folder: str, precision: Precision) -> None:
    with Forum.open(folder, encoder=EncoderSettings("minilm", precision=precision)) as forum:
        forum.encode(progress=Told())


def encode(folder: Path, kill_after: int | None, precision: Precision = "int8") -> int:
    """Let a process encode, killed after so many questions; return how many it encoded by the text encoder."""
    done, is_text = 0, False
    command = [sys.executable, "-c", WORKER, str(folder), precision]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        phases = 0
        for line in process.stdout:
            word, _, rest = line.partition(" ")
            if word == "start":  # the general encoder's vectors come first, in the first process
                phases += 1
                is_text = phases > 1 or has_quick_set(folder)
            elif word == "done" and is_text:
                done += int(rest)
            if kill_after is not None and done >= kill_after:
                process.kill()
                break
        process.stdout.read()
    assert process.returncode == (0 if kill_after is None else -9), process.returncode
    return done


def has_quick_set(folder: Path) -> bool:
    return (ForumLayout(folder).vectors / "current.json").exists()


def vectors_of(folder: Path, names: list[str]) -> NDArray[np.float32]:
    """Return the vectors of the set that answers, in the order of the ids; all must be there, once."""
    with Forum.open(folder, settings=ForumSettings()) as forum:
        state = forum.vectors
        assert (state.entries, state.waiting, state.next_model) == (len(names), 0, ""), state
        assert state.model.startswith("minilm:"), state.model
        numbers = forum.numbers(names)
    (place,) = ForumLayout(folder).vectors.glob("*/index")
    held, found = VectorIndex(place).vectors([numbers[name] for name in names])
    rows = {int(number): row for row, number in enumerate(held)}
    assert len(rows) == len(held) == len(names)
    return found[[rows[numbers[name]] for name in names]]


def kill(folder: Path, questions: list[Question], kills: int, chance: random.Random) -> None:
    """Encode a forum by processes that are killed; keep what each has done, and how long all took, beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Forum.create(folder / "killed", settings=ForumSettings(has_vectors=False)) as forum:
        forum.add(questions)
    began, runs = time.monotonic(), list[int]()
    for kill in range(kills):
        left = len(questions) - sum(runs)
        runs.append(encode(folder / "killed", left // (kills + 1 - kill) + chance.randrange(STEPS_OF_TEXTS.scan - 64)))
        print(f"killed after {runs[-1]} more", flush=True)
    runs.append(encode(folder / "killed", None))
    (folder / "killed.json").write_text(json.dumps({"runs": runs, "seconds": time.monotonic() - began}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--check", type=int, help="how many questions are encoded again without a break (all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="check what the last run has left")
    given = parser.parse_args()
    chance = random.Random(given.seed)
    folder = WORK / "encode-kill"
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        questions = [
            Question(str(one["id"]), one["title"], one["body"], "markdown")
            for one in map(json.loads, islice(lines, given.questions))
        ]
    names = [one.id for one in questions]
    checked = questions if given.check is None else chance.sample(questions, min(given.check, len(questions)))
    if not given.again:
        kill(folder, questions, given.kills, chance)
    killed = json.loads((folder / "killed.json").read_text())
    runs, killed_s = killed["runs"], killed["seconds"]
    print(f"killed and complete after {killed_s:.0f} s", flush=True)
    precision: Precision = "int8" if given.check is None else "float32"
    shutil.rmtree(folder / "whole", ignore_errors=True)
    with Forum.create(folder / "whole", settings=ForumSettings(has_vectors=False)) as forum:
        forum.add(checked)
    began = time.monotonic()
    encode(folder / "whole", None, precision)
    whole_s = time.monotonic() - began
    second = vectors_of(folder / "killed", names)
    first = vectors_of(folder / "whole", [one.id for one in checked])
    places = {name: row for row, name in enumerate(names)}
    same = second[[places[one.id] for one in checked]]
    cosines = (first * same).sum(axis=1)
    wrong, copies = 0, 0
    for rows in np.array_split(np.arange(len(first)), 1 + len(first) // 200):
        near = first[rows] @ second.T > cosines[rows, None] + 1e-3
        for row, nearer in zip(rows, near, strict=True):
            others = int((second[nearer] @ same[row] < COPY).sum())
            wrong += int(others > 0 or cosines[row] < LEAST_COSINE)
            copies += int(nearer.sum() > others)
    lost = None if None in runs else sum(runs) - len(names)
    assert wrong == 0, f"{wrong} vectors are wrong"
    assert lost is None or 0 <= lost <= given.kills * (STEPS_OF_TEXTS.scan + STEPS_OF_TEXTS.batch), runs
    write(
        "encode-kill" if len(names) == 10_000 else f"encode-kill-{len(names)}",
        "OMP_NUM_THREADS=1 python -m benchmarks.encode_kill"
        + (f" --questions {given.questions}" if given.questions != 10_000 else "")
        + (f" --kills {given.kills}" if given.kills != 5 else "")
        + (f" --check {given.check}" if given.check is not None else ""),
        {
            "questions": len(names),
            "kills": given.kills,
            "encoded_by_each_process": runs,
            "encoded_twice": lost,
            "missing": len(names) - len(second),
            "checked": len(checked),
            "compared_with": precision,
            "wrong": wrong,
            "copies_nearer": copies,
            "same_to_the_bit": int((first == same).all(axis=1).sum()),
            "least_cosine": round(float(cosines.min()), 5),
            "median_cosine": round(float(np.median(cosines)), 5),
            "unbroken_s": round(whole_s, 1),
            "killed_s": round(killed_s, 1),
            "questions_a_second_unbroken": round(len(checked) / whole_s, 1),
            "questions_a_second_killed": round(len(names) / killed_s, 1),
        },
    )


if __name__ == "__main__":
    main()
