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

WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from askalike.index.vectors import VectorIndex

index = VectorIndex(Path(sys.argv[1]))
with index.writing() as writer:
    for step in range(1, 100_000):
        vectors = np.random.default_rng(step).standard_normal((40, 16))
        writer.put(np.arange(20 * step, 20 * step + 40), vectors)  # twenty new ones, and twenty of the last step anew
        writer.remove(range(20 * step - 60, 20 * step - 50))
        writer.commit(replace(index.cursor, applied=step))
        print(step, flush=True)
        if len(sys.argv) > 2 and step == int(sys.argv[2]):
            break
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), *arguments], stdout=subprocess.PIPE, text=True)


def expected(steps: int) -> dict[int, np.ndarray]:
    held: dict[int, np.ndarray] = {}
    for step in range(1, steps + 1):
        vectors = np.random.default_rng(step).standard_normal((40, 16))
        held.update(zip(range(20 * step, 20 * step + 40), vectors, strict=True))
        for num in range(20 * step - 60, 20 * step - 50):
            held.pop(num, None)
    return held


def holds(index: VectorIndex, steps: int) -> None:
    held = expected(steps)
    assert index.numbers().tolist() == sorted(held)
    _, vectors = index.vectors(sorted(held))
    unit = np.array([held[num] / np.linalg.norm(held[num]) for num in sorted(held)])
    np.testing.assert_allclose(vectors, unit, atol=3e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_writer_leaves_its_last_commit(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "vectors"
    VectorIndex.create(folder, 16, applied=0, fingerprint="f")
    with start(folder) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        acknowledged = 1 + len(process.stdout.read().split())
    index = VectorIndex(folder)
    assert acknowledged <= index.cursor.applied <= acknowledged + 1
    holds(index, index.cursor.applied)
    index.check()
    with index.writing() as writer:
        writer.put([10**9], np.ones((1, 16)))
        writer.commit(index.cursor)
    assert index.search(np.ones((1, 16)), 1)[0][0][0] == 10**9
    assert len(list(folder.glob("*.segment"))) <= 6


def test_a_reader_in_another_process_sees_each_commit(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    VectorIndex.create(folder, 16, applied=0, fingerprint="f")
    reader = VectorIndex(folder)
    with start(folder, "30") as process:
        assert process.stdout is not None
        for line in process.stdout:
            reader.refresh()
            assert reader.cursor.applied >= int(line)
            holds(reader, reader.cursor.applied)
    assert process.returncode == 0
    assert reader.cursor.applied == 30
