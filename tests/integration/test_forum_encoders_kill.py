"""Encoding through an endpoint that fails, by processes that are killed on the way: no vector is wrong or missing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.embedding_server import serving

from askalike import Forum, Question
from askalike.index.vectors import VectorIndex
from askalike.store import ForumLayout

pytestmark = pytest.mark.slow

QUESTIONS = 5_000
KILLS = 5
WAIT_S = 300

WORKER = """
import sys
from functools import partial

from askalike import Forum
from askalike.index import vector_sets
from askalike.index.catchup import Steps
from askalike.models import remote

vector_sets.OTHER_PACE = vector_sets.OTHER_PACE._replace(steps=Steps(batch=64, scan=128, changes=64))
vector_sets.PACES = {}
remote.Patience = partial(remote.Patience, first_pause_s=0.0)  # no pause between tries
with Forum.open(sys.argv[1], encoder=sys.argv[2]) as forum:
    forum.encode()
"""


def test_no_vector_is_wrong_or_missing_after_five_kills_and_failing_requests(tmp_path: Path, words_alone: None) -> None:
    path = tmp_path / "forum"
    texts = {str(number): f"question {number} about subject {number % 97}" for number in range(QUESTIONS)}
    with Forum.create(path) as forum:
        forum.add(Question(name, text) for name, text in texts.items())
    with serving() as server:
        for kill in range(KILLS + 1):
            reached = threading.Event()
            target = len(server.requests) + 30 + kill
            server.plan = ["429", "500", "garbage", "nan", "nothing", "fewer"]
            server.on_request = lambda count, target=target, reached=reached: (  # type: ignore[misc]
                reached.set() if count >= target else None
            )
            with subprocess.Popen([sys.executable, "-c", WORKER, str(path), server.named]) as process:
                if kill < KILLS:
                    assert reached.wait(WAIT_S)
                    process.send_signal(signal.SIGKILL)
                else:
                    assert process.wait(WAIT_S) == 0
        sent = sum(len(body["input"]) for _, _, body in server.requests)
        lost = 128 + 64 + 7 * 32  # not committed, under way, and asked for again
        assert sent <= QUESTIONS + (KILLS + 1) * lost  # what was encoded before a kill was kept
        encoder = server.encoder
    with Forum.open(path) as forum:
        assert (forum.indexes.state().entries, forum.indexes.state().waiting, forum.indexes.state().next_model) == (
            QUESTIONS,
            0,
            "",
        )
        numbers = forum.store.nums_by_id(list(texts))
        (place,) = ForumLayout(path).vectors.glob("*/index")
        nums, vectors = VectorIndex(place).vectors([numbers[name] for name in texts])
        names = {number: name for name, number in numbers.items()}
        expected = encoder.vectors([texts[names[int(number)]] for number in nums])
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        assert len(nums) == QUESTIONS
        assert (vectors * expected).sum(axis=1).min() > 0.9999
