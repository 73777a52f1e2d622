"""A killed writer leaves a forum that holds what it acknowledged; a few rounds of the benchmark's fifty.

Loads, into an empty archive and into one that holds questions, are killed at every statement besides.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.kill import Versions, one_round, write_versions
from tests.children import printed_by

from askalike.data import bundled_forum
from askalike.progress import SilentProgress
from askalike.store import ForumLayout, stored_faults
from askalike.store.sqlite import SqliteStore
from askalike.types import Answer, Feedback, Link, Question, Record, Reject, Source

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    lines = bundled_forum().read_text(encoding="utf-8").splitlines()
    return write_versions(tmp_path_factory.mktemp("kill"), lines)


@pytest.mark.parametrize("kind", ["first", "again"])
def test_a_killed_forum_holds_every_acknowledged_write(tmp_path: Path, versions: Versions, kind: str) -> None:
    delay_s = random.Random(kind).uniform(0.2, 2.0)
    one_round(tmp_path / "killed.forum", versions, len(kind), kind, delay_s)


DUMP = Source("dump", "jsonl")
BEFORE: list[Record] = [
    *(Question(f"old{number}", f"title {number}", "body " * 300) for number in range(4)),
    *(Answer(f"a{number}", f"old{number}", "answer") for number in range(3)),
    Link("old1", "old0"),
]
AFTER: list[Record] = [
    Question("old0", "edited", "body"),
    *BEFORE[1:3],
    *(Question(f"new{number}", f"title {number}", "body " * 300) for number in range(5)),
    Answer("a0", "old0", "edited"),
    Answer("a1", "old1", "answer"),
    Answer("b0", "new0", "answer"),
    Answer("lost", "nowhere", "answer"),
    Link("old1", "old0"),
    Link("new1", "new0"),
    Feedback("new1", "new2", "different"),
]
BY_HAND = Question("by hand", "kept")


def kill_at_each_statement(folder: Path) -> None:
    """Load, in one child after the other, and kill each of them at a later statement; one comes to the end."""
    SqliteStore.create(folder / "made" / "archive.sqlite", {}).close()
    with closing(opened(folder / "made")) as store:
        if (folder / "full").exists():
            store.load(BEFORE, DUMP, reject_nothing)
    for place in range(1, 10_000):
        shutil.copytree(folder / "made", folder / str(place))
        child = os.fork()
        if not child:
            load_until(folder / str(place), place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        check_loaded(folder / str(place), is_whole=not status, is_full=(folder / "full").exists())
        if not status:
            print(place)
            return
        assert os.WTERMSIG(status) == signal.SIGKILL


def opened(folder: Path) -> SqliteStore:
    """Open an archive without waiting for the disk: no power fails here."""
    return SqliteStore(folder / "archive.sqlite", synchronous="OFF")


def reject_nothing(reject: Reject) -> None:
    raise AssertionError(reject)


def load_until(folder: Path, place: int) -> None:
    """Load while somebody else writes, and stop at the statement of this number."""
    left = place

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def write() -> None:
        store.put_questions([BY_HAND])
        (folder / "acknowledged").touch()

    def records() -> Iterator[Record]:
        yield from AFTER[:4]
        with ThreadPoolExecutor(1) as thread:
            thread.submit(write).result()
        yield from AFTER[4:]

    with closing(opened(folder)) as store:
        store.connection.set_trace_callback(count)
        store.load(records(), DUMP, lambda _: None)


def check_loaded(folder: Path, *, is_whole: bool, is_full: bool) -> None:
    """Check that an archive is the old one or the new one, holds what was acknowledged, and is loaded again."""
    old = {f"old{number}" for number in range(4)} if is_full else set()
    new = {"old0", "old1", "old2", *(f"new{number}" for number in range(5))}
    with closing(opened(folder)) as store:
        for is_again in (False, True):
            titles = {question.id: question.title for _, question in store.all_questions()}
            assert (titles.pop(BY_HAND.id, None) is not None) or not (folder / "acknowledged").exists()
            is_new = set(titles) == new
            assert is_new or (set(titles) == old and not is_whole and not is_again)
            assert not is_new or titles["old0"] == "edited"
            counts = store.counts()
            expected = (3, 2, 1) if is_new else (3, 1, 0) if is_full else (0, 0, 0)
            assert (counts.answers, counts.duplicates, counts.judgements) == expected
            assert {change.num for change in store.changes(0, 1_000)} >= set(store.numbers())
            assert not list(stored_faults(ForumLayout(folder), SilentProgress()))
            if not is_again:
                rejects: list[Reject] = []
                store.load(AFTER, DUMP, rejects.append)
                assert [reject.record_id for reject in rejects] == ["lost"]
        assert not (folder / "loading.sqlite").exists(), "a file that a killed load has left"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("state", ["empty", "full"])
def test_a_load_is_whole_or_nothing_wherever_it_is_killed(tmp_path: Path, state: str) -> None:
    (tmp_path / state).touch()
    statements = int(printed_by("test_kill", "kill_at_each_statement", tmp_path).split()[-1])
    assert statements > 40, "there are too few statements to be killed at"
