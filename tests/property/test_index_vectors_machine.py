"""Any sequence of puts, removals, commits and reopenings leaves what a plain dictionary holds."""

from __future__ import annotations

import math
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from askalike.index.vectors import VectorIndex

NUMS = st.integers(0, 30)
VECTORS = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3))


def cosine(vector: tuple[int, ...], other: tuple[int, ...]) -> float:
    norms = math.sqrt(sum(x * x for x in vector) * sum(x * x for x in other))
    return sum(x * y for x, y in zip(vector, other, strict=True)) / norms


class VectorMachine(RuleBasedStateMachine):
    """A writer that stays open, and a reader of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.index = VectorIndex.create(self.folder, 3, applied=0, fingerprint="f")
        self.reader = VectorIndex(self.folder)
        self.held: dict[int, tuple[int, ...]] = {}
        self.pending: dict[int, tuple[int, ...]] = {}
        self.applied = 0
        self.open()

    def open(self) -> None:
        self.stack = ExitStack()
        self.writer = self.stack.enter_context(self.index.writing())

    @rule(entries=st.dictionaries(NUMS, VECTORS, min_size=1, max_size=8))
    def put(self, entries: dict[int, tuple[int, ...]]) -> None:
        self.writer.put(list(entries), list(entries.values()))
        self.pending.update(entries)

    @rule(nums=st.lists(NUMS, max_size=8))
    def remove(self, nums: list[int]) -> None:
        self.writer.remove(nums)
        for num in nums:
            self.pending.pop(num, None)

    @rule()
    def commit(self) -> None:
        self.applied += 1
        self.writer.commit(replace(self.index.cursor, applied=self.applied))
        self.held = dict(self.pending)

    @rule()
    def drop_and_go_on(self) -> None:
        self.stack.close()
        self.index = VectorIndex(self.folder)
        self.pending = dict(self.held)
        self.open()

    @rule(
        query=VECTORS, limit=st.integers(1, 12), allowed=st.none() | st.sets(NUMS), excluded=st.sets(NUMS, max_size=4)
    )
    def search(self, query: tuple[int, ...], limit: int, allowed: set[int] | None, excluded: set[int]) -> None:
        self.reader.refresh()
        scores = {
            num: cosine(query, vector)
            for num, vector in self.held.items()
            if any(vector) and any(query) and num not in excluded and (allowed is None or num in allowed)
        }
        [hits] = self.reader.search([query], limit, allowed, excluded)
        assert len(hits) == min(limit, len(scores))
        assert all(abs(score - scores[num]) < 1e-4 for num, score in hits)
        best = sorted(scores.values(), reverse=True)[: len(hits)]
        assert all(abs(score - expected) < 1e-4 for (_, score), expected in zip(hits, best, strict=True))
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    @invariant()
    def the_reader_holds_what_was_committed(self) -> None:
        self.reader.refresh()
        assert self.reader.numbers().tolist() == sorted(self.held)
        assert self.reader.cursor.applied == self.applied
        nums, vectors = self.reader.vectors(sorted(self.held))
        for num, vector in zip(nums.tolist(), vectors, strict=True):
            expected = np.array(self.held[num], float)
            np.testing.assert_allclose(vector, expected / (np.linalg.norm(expected) or 1), atol=4e-5)

    def teardown(self) -> None:
        self.stack.close()
        VectorIndex(self.folder).check()
        shutil.rmtree(self.folder)


TestVectorMachine = VectorMachine.TestCase
TestVectorMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
