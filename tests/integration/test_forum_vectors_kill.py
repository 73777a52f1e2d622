"""A process that is killed while it encodes, switches models and writes leaves a forum that answers and goes on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.tiny_models import synonym_model

from askalike import Forum, Query, Question
from askalike.store import ForumLayout

pytestmark = pytest.mark.slow

WORKER = """
import sys
from askalike import Forum, Question

folder, models = sys.argv[1], sys.argv[2:]
with Forum.open(folder) as forum:
    print("open", flush=True)
    for step in range(10_000):
        forum.models.use_model(models[step % 2])
        forum.encode()
        forum.add(Question(f"new-{step}", "wlan lost"))
        print(f"new-{step}", flush=True)
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_encoder_leaves_a_forum_that_answers_and_goes_on(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "f"
    models = [tmp_path / "one", tmp_path / "two"]
    synonym_model().save(models[0])
    synonym_model(({"wlan", "lost"}, {"printer"})).save(models[1])
    with Forum.create(path) as forum:
        forum.models.use_model(models[1])
        forum.add([Question(str(number), "wlan lost" if number % 2 else "printer") for number in range(60)])
    command = [sys.executable, "-c", WORKER, str(path), *map(str, models)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(random.Random(seed).uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        acknowledged = process.stdout.read().split()
    with Forum.open(path) as forum:
        forum.encode()
        expected = {question.id for question in forum.questions() if question.title == "wlan lost"}
        assert set(acknowledged) <= expected
        ranking = forum.indexes.ranking(Query("wlan lost", k=1000, ranker="meaning"))
        assert {identifier for identifier, score in ranking if score > 0.99} == expected
        assert (forum.indexes.state().waiting, forum.indexes.state().next_model) == (0, "")
        assert forum.indexes.state().entries == len(list(forum.questions()))
    assert len([folder for folder in ForumLayout(path).vectors.iterdir() if folder.is_dir()]) == 1
