"""A killed writer of vectors loses nothing that it committed; another process sees each commit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from askalike.index.vectors import VectorIndex

pytestmark = pytest.mark.slow

WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from askalike.index.vectors import VectorIndex

index, new, last = VectorIndex(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
with index.writing() as writer:
    for step in range(1, last + 1):
        vectors = np.random.default_rng(step).standard_normal((2 * new, 16))
        writer.put(np.arange(new * step, new * (step + 2)), vectors)  # half are new ones, half of the last step anew
        writer.remove(range(new * (step - 3), new * (step - 3) + new // 2))
        writer.commit(replace(index.cursor, applied=step, is_complete=True))
        print(step, flush=True)
"""


FEW, MANY = 20, 700
"""New entries of a commit: of many there are soon codes, which are made anew with every few commits."""


def start(folder: Path, new: int, last: int = 100_000) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(folder), str(new), str(last)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def expected(steps: int, new: int) -> dict[int, np.ndarray]:
    vectors_of: dict[int, np.ndarray] = {}
    for step in range(1, steps + 1):
        vectors = np.random.default_rng(step).standard_normal((2 * new, 16))
        vectors_of.update(zip(range(new * step, new * (step + 2)), vectors, strict=True))
        for num in range(new * (step - 3), new * (step - 3) + new // 2):
            vectors_of.pop(num, None)
    return vectors_of


def holds(index: VectorIndex, steps: int, new: int) -> None:
    vectors_of = expected(steps, new)
    assert index.numbers().tolist() == sorted(vectors_of)
    _, vectors = index.vectors(sorted(vectors_of))
    unit = np.array([vectors_of[num] / np.linalg.norm(vectors_of[num]) for num in sorted(vectors_of)])
    np.testing.assert_allclose(vectors, unit, atol=3e-5)
    nums = sorted(vectors_of)[:: max(1, len(vectors_of) // 10)]
    assert [hits[0][0] for hits in index.search([vectors_of[num] for num in nums], 1)] == nums


@pytest.mark.parametrize("new", [FEW, MANY])
@pytest.mark.parametrize("seed", range(5))
def test_a_killed_writer_leaves_its_last_commit(tmp_path: Path, seed: int, new: int) -> None:
    folder = tmp_path / "vectors"
    VectorIndex.create(folder, 16, applied=0, fingerprint="f")
    with start(folder, new) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, 0.25 if new == FEW else 1.5))
        process.send_signal(signal.SIGKILL)
        acknowledged = 1 + len(process.stdout.read().split())
    index = VectorIndex(folder)
    assert acknowledged <= index.cursor.applied <= acknowledged + 1
    holds(index, index.cursor.applied, new)
    index.check()
    with index.writing() as writer:
        writer.put([10**9], np.ones((1, 16)))
        writer.commit(index.cursor)
    assert index.search(np.ones((1, 16)), 1)[0][0][0] == 10**9
    assert len(list(folder.glob("*.segment"))) <= 6
    assert len(list(folder.glob("*.codes"))) <= 6


@pytest.mark.parametrize(("new", "last"), [(FEW, 30), (MANY, 15)])
def test_a_reader_in_another_process_sees_each_commit(tmp_path: Path, new: int, last: int) -> None:
    folder = tmp_path / "vectors"
    VectorIndex.create(folder, 16, applied=0, fingerprint="f")
    reader = VectorIndex(folder)
    with start(folder, new, last) as process:
        assert process.stdout is not None
        for line in process.stdout:
            reader.refresh()
            assert reader.cursor.applied >= int(line)
            holds(reader, reader.cursor.applied, new)
    assert process.returncode == 0
    assert reader.cursor.applied == last
    assert bool(list(folder.glob("*.codes"))) == (new == MANY)
