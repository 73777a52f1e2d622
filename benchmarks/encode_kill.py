"""Kill test of encoding: a process that encodes a forum with MiniLM is killed (SIGKILL) on the way, again and again.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.encode_kill``. A forum of 10,000 questions of Reddit is encoded by
processes that are killed, at moments spread over the work and drawn within a commit, each next one going on where the
last one was. Every question must have one vector, and the killed processes together must not have encoded much twice.
The vectors are compared with those of a second forum that is encoded without a break. In 8 bits a vector depends a
little on the texts that run beside it (its scale is the batch's), and after a kill other texts run together: a vector
is right where its cosine to the other forum's is at least .98.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from recipes.folders import WORK
from recipes.scorer.pairs import WORDS_ALONE

from askalike.forum import Forum
from askalike.index.vector_sets import PACES
from askalike.index.vectors import VectorIndex
from askalike.store import ForumLayout
from askalike.types import Question
from benchmarks.record import option_parser, reddit_questions, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.encode_kill"
STEPS = PACES["general"].steps
QUESTIONS: Final = 10_000
KILLS: Final = 5
LEAST_COSINE: Final = 0.98
WORKER = "import sys; from benchmarks.encode_kill import worker; worker(*sys.argv[1:])"


class PrintedProgress:
    """Progress as lines of output."""

    def start(self, phase: str, total: int, unit: str) -> None:
        """Print how much there is to do."""
        print(f"start {total} {phase}", flush=True)

    def advance(self, count: int) -> None:
        """Print how much was done."""
        print(f"done {count}", flush=True)

    def notice(self, text: str) -> None:
        """Print it."""
        print(f"notice {text}", flush=True)


def worker(folder: str) -> None:
    """Encode a forum, reporting on standard output."""
    with Forum.open(folder) as forum:
        forum.encode(progress=PrintedProgress())


def encode(folder: Path, kill_after: int | None) -> int:
    """Encode in a process that is killed after a number of questions; return how many it encoded."""
    done = 0
    command = [sys.executable, "-c", WORKER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            word, _, rest = line.partition(" ")
            if word == "done":
                done += int(rest)
            if kill_after is not None and done >= kill_after:
                process.kill()
                break
        process.stdout.read()
    assert process.returncode == (0 if kill_after is None else -9), process.returncode
    return done


def vectors_of(folder: Path, names: list[str]) -> NDArray[np.float32]:
    """Return the vectors of the set that answers, in the order of the ids; all must be there, once."""
    with Forum.open(folder) as forum:
        state = forum.indexes.state()
        assert (state.entries, state.waiting, state.next_model) == (len(names), 0, ""), state
        assert state.model.startswith("general@"), state.model
        numbers = forum.store.nums_by_id(names)
    (place,) = ForumLayout(folder).vectors.glob("*/index")
    stored, vectors = VectorIndex(place).vectors([numbers[name] for name in names])
    rows = {int(number): row for row, number in enumerate(stored)}
    assert len(rows) == len(stored) == len(names)
    return vectors[[rows[numbers[name]] for name in names]]


def create(folder: Path, questions: list[Question]) -> None:
    """Make a forum of questions without vectors."""
    with Forum.create(folder, settings=WORDS_ALONE) as forum:
        forum.add(questions)


def kill(folder: Path, questions: list[Question], kills: int, chance: random.Random) -> list[int]:
    """Encode a forum by processes that are killed; return how many questions each has encoded."""
    create(folder, questions)
    runs = list[int]()
    for number in range(kills):
        left = len(questions) - sum(runs)
        runs.append(encode(folder, left // (kills + 1 - number) + chance.randrange(STEPS.scan - 64)))
        print(f"killed after {runs[-1]} more", flush=True)
    return [*runs, encode(folder, None)]


def main() -> None:
    """Kill, compare, and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args()
    folder, questions = WORK / "encode-kill", list(reddit_questions(options.questions))
    ids = [question.id for question in questions]
    shutil.rmtree(folder, ignore_errors=True)
    runs = kill(folder / "killed", questions, options.kills, random.Random(0))
    create(folder / "whole", questions)
    encode(folder / "whole", None)
    killed, whole = (vectors_of(folder / name, ids) for name in ("killed", "whole"))
    cosines = (killed * whole).sum(axis=1)
    encoded_twice, wrong = sum(runs) - len(ids), int((cosines < LEAST_COSINE).sum())
    assert wrong == 0, f"{wrong} vectors are wrong"
    assert 0 <= encoded_twice <= options.kills * (STEPS.scan + STEPS.batch), runs
    body = {
        "questions": len(ids),
        "kills": options.kills,
        "encoded_by_each_process": runs,
        "encoded_twice": encoded_twice,
        "missing": len(ids) - len(killed),
        "wrong": wrong,
        "same_to_the_bit": int((killed == whole).all(axis=1).sum()),
        "least_cosine": round(float(cosines.min()), 5),
    }
    print(body)
    if (options.questions, options.kills) == (QUESTIONS, KILLS):
        write("encode-kill", COMMAND, body)


if __name__ == "__main__":
    main()
