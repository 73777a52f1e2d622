"""A killed writer leaves a forum that holds what it acknowledged; a few rounds of the benchmark's fifty.

Loads in several transactions, into an empty archive and into one that holds questions, are killed at every statement
besides.
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
from askalike.store import ForumLayout
from askalike.store.soundness import stored_faults
from askalike.store.sqlite import SqliteStore, beside, replacement, schema, staging
from askalike.types import Answer, Link, Question, Record, Reject, Source

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    lines = bundled_forum().read_text(encoding="utf-8").splitlines()
    return write_versions(tmp_path_factory.mktemp("kill"), lines)


@pytest.mark.parametrize("kind", ["first", "again"])
def test_a_killed_forum_holds_every_acknowledged_write(tmp_path: Path, versions: Versions, kind: str) -> None:
    delay_s = random.Random(kind).uniform(0.2, 2.0)
    one_round(tmp_path / "killed.forum", versions, len(kind), kind, delay_s)


RECORDS: list[Record] = [
    *(Question(f"q{number}", f"title {number}", "body " * 300) for number in range(5)),
    *(Answer(f"a{number}", f"q{number}", "answer") for number in range(3)),
    Answer("lost", "nowhere", "answer"),
    Link("q1", "q0"),
    Link("q2", "q0"),
]
BY_HAND = Question("by hand", "kept")


def kill_at_each_statement(folder: Path) -> None:
    """Load, in one child after the other, and kill each of them at a later statement; one comes to the end."""
    staging.WRITTEN_EACH = 4  # type: ignore[misc]
    for place in range(1, 10_000):
        child = os.fork()
        if not child:
            load_until(folder / str(place), place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        looked_at(folder / str(place), is_whole=not status)
        if not status:
            print(place)
            return
        assert os.WTERMSIG(status) == signal.SIGKILL


def load_until(folder: Path, place: int) -> None:
    """Load, and stop at the statement of this number that is more than a record's."""

    def count(statement: str) -> None:
        nonlocal left
        left -= not statement.startswith(
            ("SELECT digest", "INSERT OR IGNORE", "PRAGMA", f"INSERT INTO {staging.STAGING}")
        )
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def write() -> None:
        store.put_questions([BY_HAND])
        (folder / "acknowledged").touch()

    left = place
    with closing(SqliteStore.create(folder / "archive.sqlite", {})) as store:
        store.connection.set_trace_callback(count)

        def records() -> Iterator[Record]:
            yield from RECORDS[:4]
            with ThreadPoolExecutor(1) as thread:
                thread.submit(write).result()
            yield from RECORDS[4:]

        store.load(records(), Source("dump", "jsonl"), lambda _: None)


def nothing(_: object) -> None:
    """Take no notice."""


def looked_at(folder: Path, *, is_whole: bool) -> None:
    """Check that an archive holds all of a load or nothing, what was acknowledged, and is loaded again."""
    with closing(SqliteStore(folder / "archive.sqlite")) as store:
        for again in (False, True):
            found = {question.id for _, question in store.all_questions()}
            by_hand = {BY_HAND.id} & found
            assert by_hand or not (folder / "acknowledged").exists()
            loaded = found - by_hand
            assert loaded in (set(), {f"q{number}" for number in range(5)}), loaded
            assert loaded or not (is_whole or again)
            counts = store.counts()
            assert (counts.answers, counts.duplicates) == ((3, 2) if loaded else (0, 0))
            changes = [change.num for change in store.changes(0, 100)]
            assert sorted(changes) == sorted(store.numbers())
            store.check()
            assert not list(stored_faults(ForumLayout(folder), nothing, nothing, nothing))
            if not again:
                rejects: list[Reject] = []
                store.load(RECORDS, Source("dump", "jsonl"), rejects.append)
                assert [reject.record_id for reject in rejects] == ["lost"]
        left = store.rows("SELECT name FROM sqlite_schema WHERE name GLOB ?", (f"{staging.PREFIX}*",))
        assert not left
        assert not (folder / "loading.sqlite").exists()
        assert sorted(store.sources()) == sorted(["dump", *(["manual"] if by_hand else [])])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_load_into_an_empty_archive_is_whole_or_nothing_wherever_it_is_killed(tmp_path: Path) -> None:
    told = printed_by("test_kill", "kill_at_each_statement", tmp_path)
    assert int(told.split()[-1]) > 40  # so many statements there are to be killed at


HELD: list[Record] = [
    *(Question(f"held{number}", f"title {number}", "body " * 300) for number in range(4)),
    *(Answer(f"told{number}", f"held{number}", "answer") for number in range(3)),
    Link("held1", "held0"),
]
CHANGED: list[Record] = [
    Question("held0", "edited", "body"),
    *HELD[1:3],
    *RECORDS,
    Answer("told0", "held0", "edited"),
    Answer("told1", "held1", "answer"),
    Link("held1", "held0"),
    Link("held2", "held0"),
]
LOADED = {"held0", "held1", "held2", *(f"q{number}" for number in range(5))}


def kill_at_each_statement_of_a_replacement(folder: Path) -> None:
    """Load into an archive that holds questions, and kill at each statement; the load after it sees no difference."""
    for name, value in (("LEAST", 1), ("LEFT", 0), ("CAUGHT_UP", 3)):
        setattr(replacement, name, value)
    beside.ROWS, beside.PAUSE_S = 3, 0.0  # type: ignore[misc]
    schema._SETTINGS = tuple(one.replace("FULL", "OFF") for one in schema._SETTINGS)  # type: ignore[misc]  # no power fails
    with closing(SqliteStore.create(folder / "made" / "archive.sqlite", {})) as store:
        replacement.LEAST = 1_000  # type: ignore[misc]
        store.load(HELD, Source("dump", "jsonl"), lambda _: None)
        store.put_questions([Question("deleted", "t")])
        replacement.LEAST = 1  # type: ignore[misc]
    for place in range(1, 10_000):
        shutil.copytree(folder / "made", folder / str(place))
        child = os.fork()
        if not child:
            replace_until(folder / str(place), place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        replaced(folder / str(place), is_whole=not status)
        if not status:
            print(place)
            return
        assert os.WTERMSIG(status) == signal.SIGKILL


def replace_until(folder: Path, place: int) -> None:
    """Load, with somebody who writes when the new tables are filled, and stop at the statement of this number."""

    def count(statement: str) -> None:
        nonlocal left
        left -= not statement.startswith(
            ("SELECT", "INSERT OR IGNORE", "PRAGMA", "--", "CREATE INDEX askalike", "CREATE TABLE askalike")
        )
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def write() -> None:
        store.put_questions([BY_HAND, Question("held2", "edited by hand")], ["deleted"])
        (folder / "acknowledged").touch()

    def follow(one: replacement.Replacement) -> None:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(write).result()
        real(one)

    left, real = place, replacement.Replacement._follow
    with closing(SqliteStore(folder / "archive.sqlite")) as store, pytest.MonkeyPatch.context() as patched:
        patched.setattr(replacement.Replacement, "_follow", follow)
        store.connection.set_trace_callback(count)
        store.load(CHANGED, Source("dump", "jsonl"), lambda _: None)


def replaced(folder: Path, *, is_whole: bool) -> None:
    """Check that an archive is the old one or the new one, holds what was acknowledged, and is loaded again."""
    with closing(SqliteStore(folder / "archive.sqlite")) as store:
        is_told = (folder / "acknowledged").exists()
        for again in (False, True):
            found = {question.id: question.title for _, question in store.all_questions()}
            assert ("deleted" in found) is ("by hand" not in found)
            assert "by hand" in found or not is_told
            others = set(found) - {"by hand", "deleted"}
            is_new = others == LOADED
            assert is_new or others == {f"held{number}" for number in range(4)}
            assert is_new or not (is_whole or again)
            assert found["held0"] == ("edited" if is_new else "title 0")
            by_hand = "title 2" if again and not is_whole else "edited by hand"
            assert found["held2"] in ({"title 2", by_hand} if is_told else {"title 2", "edited by hand"})
            counts = store.counts()
            assert (counts.answers, counts.duplicates) == ((5, 4) if is_new else (3, 1))
            nums = store.nums_by_id(["held0", "held1", "held2"])
            assert nums == {"held0": 1, "held1": 2, "held2": 3}
            changes = {change.num for change in store.changes(0, 1_000)}
            assert changes >= set(store.numbers())
            store.put_questions([Question("after", "t")])  # what a killed load has left keeps nobody from writing
            store.put_questions([], ["after"])
            store.check()
            assert not list(stored_faults(ForumLayout(folder), nothing, nothing, nothing))
            assert not store.rows("PRAGMA foreign_key_check")
            assert store.sources() == ("dump", "manual")
            if not again:
                rejects: list[Reject] = []
                store.load(CHANGED, Source("dump", "jsonl"), rejects.append)
                assert [reject.record_id for reject in rejects] == ["lost"]
        left = "SELECT name FROM sqlite_schema WHERE name GLOB 'loaded_*' OR name GLOB 'noted_*'"
        assert not store.rows(left)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_load_into_a_full_archive_is_whole_or_nothing_wherever_it_is_killed(tmp_path: Path) -> None:
    told = printed_by("test_kill", "kill_at_each_statement_of_a_replacement", tmp_path)
    assert int(told.split()[-1]) > 150  # so many statements there are to be killed at
