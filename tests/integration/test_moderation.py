"""Moderation end to end: the library, the service with named keys, exports, and kills."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tools.serving import serving

from askalike import Forum, Link, Question
from askalike.client import Client, ServiceError
from askalike.errors import InputError, UnknownIdError
from askalike.server.app import build
from askalike.server.guards import Keys
from askalike.server.settings import ServeSettings
from askalike.types import Draw, Feedback

pytestmark = pytest.mark.usefixtures("words_alone")

TITLES = ("Printer is offline after a power cut", "Scanner makes no sound", "How to water a cactus in winter")
LONGEST_LOG = 10_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "a.forum") as forum:
        for number, title in enumerate(TITLES):
            tags = ("printer",) if number == 0 else ("garden",)
            forum.add([Question(f"{number}{letter}", title, f"{letter} says so.", tags=tags) for letter in "ab"])
        forum.pairs.compare()
    return tmp_path / "a.forum"


@pytest.fixture
def forum(path: Path) -> Iterator[Forum]:
    with Forum.open(path) as opened:
        yield opened


def queue(forum: Forum, tag: str = "") -> set[frozenset[str]]:
    return {frozenset((pair.question.id, pair.candidate.id)) for pair in forum.queue.proposals(0.3, tag=tag)}


def pair(ids: str) -> frozenset[str]:
    return frozenset(ids.split())


def test_a_decided_pair_leaves_the_queue_and_an_undone_one_comes_back(forum: Forum) -> None:
    everything = {pair("0a 0b"), pair("1a 1b"), pair("2a 2b")}
    assert queue(forum) == everything
    assert queue(forum, tag="printer") == queue(forum, tag="Printer") == {pair("0a 0b")}
    duplicate = forum.store.decide(Feedback("0b", "0a", "duplicate", "ann"))
    different = forum.store.decide(Feedback("1a", "1b", "different", "ann"))
    assert (duplicate.made_link, different.made_link) == (True, False)
    assert queue(forum) == {pair("2a 2b")}
    assert [hit.question.id for hit in forum.similar(TITLES[0])][:1] == ["0a"]
    with pytest.raises(InputError, match=f"by ann to be duplicate, by entry {duplicate.number}"):
        forum.store.decide(Feedback("0a", "0b", "different", "bob"))
    undone = [forum.store.undo(entry.number, "bob") for entry in (duplicate, different)]
    assert [(entry.kind, entry.undoes) for entry in undone] == [("undone", 1), ("undone", 2)]
    assert queue(forum) == everything
    assert forum.store.links() == []
    with pytest.raises(InputError, match="undone already"):
        forum.store.undo(duplicate.number)
    with pytest.raises(InputError, match="no decision"):
        forum.store.undo(undone[0].number)
    for number in (0, -1, 99, 10**30):
        with pytest.raises(UnknownIdError, match=f"no entry {number}"):
            forum.store.undo(number)
    assert forum.store.log(10**30, 10**30) == forum.store.log(LONGEST_LOG)


def test_two_who_mark_each_of_a_pair_a_duplicate_of_the_other_close_no_circle(path: Path) -> None:
    numbers = range(12)
    with Forum.open(path) as first, Forum.open(path) as second:
        first.add([Question(f"{number}{end}", "Which fuse?") for number in numbers for end in "xy"])
        both = Barrier(2)

        def mark(forum: Forum, ends: str) -> int:
            marked = 0
            for number in numbers:
                both.wait()
                with contextlib.suppress(InputError):
                    marked += forum.store.mark(f"{number}{ends[0]}", f"{number}{ends[1]}")
            return marked

        with ThreadPoolExecutor(2) as pool:
            marked = sum(pool.map(mark, (first, second), ("xy", "yx")))
        assert marked == len(first.store.links()) == len(numbers)


def test_the_log_goes_along_with_exports_and_is_read_once(forum: Forum, tmp_path: Path) -> None:
    forum.store.decide(Feedback("0b", "0a", "duplicate", "ann"))
    forum.store.decide(Feedback("1a", "1b", "different", 'Bob, "the 🙂"'))
    forum.store.undo(2, "bob")
    assert forum.export(tmp_path / "out")["log"] == 3
    with Forum.create(tmp_path / "b.forum") as other:
        other.load(tmp_path / "out")
        assert other.store.log(LONGEST_LOG) == forum.store.log(LONGEST_LOG)
        assert other.load(tmp_path / "out").load.log.unchanged == 3
        assert other.store.log(LONGEST_LOG) == forum.store.log(LONGEST_LOG)
        other.store.undo(1, "eve")
        assert other.store.links() == []


_KILLED = """
import sys
from askalike import Forum
from askalike.types import Feedback
forum = Forum.open(sys.argv[1])
for _ in range(1000):
    decision = forum.store.decide(Feedback("0b", "0a", "duplicate", "ann"))
    print(decision.number, flush=True)
    print(forum.store.undo(decision.number, "ann").number, flush=True)
"""


@pytest.mark.slow
def test_what_was_acknowledged_is_in_the_log_after_a_kill_and_decisions_are_whole(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(21):
            last = int(process.stdout.readline())
        process.kill()
        rest = process.stdout.read().split()
    last = int(rest[-1]) if rest else last
    with Forum.open(path) as forum:
        log = forum.store.log(LONGEST_LOG)
        assert {entry.number for entry in log} >= set(range(1, last + 1))
        stands = {entry.question_id for entry in log if entry.kind != "undone" and not entry.undone}
        assert stands in (set(), {"0b"})
        assert forum.store.links() == ([Link("0b", "0a")] if stands else [])
        assert {judgement.question_id for judgement in forum.store.judgements()} == stands


# -- the service -------------------------------------------------------------------------------------------------------


@pytest.fixture
def clients(path: Path) -> Iterator[dict[str, Client]]:
    keys = Keys(path)
    secrets = {name: keys.add(name, "write")[1] for name in ("ann", "bob", "")}
    secrets["reader"] = keys.add("reader", "read")[1]
    settings = ServeSettings(str(path), allow_hosts=("askalike.example.org",))
    with serving(build(settings)) as address, contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(Client(address, key)) for name, key in secrets.items()}


def test_the_service_knows_moderators_by_the_names_of_their_keys(clients: dict[str, Client]) -> None:
    ann, bob, reader, unnamed = (clients[name] for name in ("ann", "bob", "reader", ""))
    assert ann.duplicates(minimum=0.3).you == "ann"
    duplicate = ann.decide("0b", "0a", "duplicate", by="bob")
    different = ann.decide("1b", "1a", "different", draw=Draw("sample"))
    assert [(entry.by, entry.kind, entry.made_link) for entry in (duplicate, different)] == [
        ("ann", "duplicate", True),
        ("ann", "different", False),
    ]
    log = bob.log()
    assert (log.you, [entry.kind for entry in log.entries]) == ("bob", ["different", "duplicate"])
    assert log.entries[0].question_title == TITLES[1]
    assert [entry.kind for entry in bob.log(limit=1, before=log.entries[0].number).entries] == ["duplicate"]
    assert [entry.number for entry in bob.log(pair=("0a", "0b")).entries] == [duplicate.number]
    assert unnamed.undo(duplicate.number, by="the night shift").by == "the night shift"
    for method in (reader.log, lambda: reader.decide("0b", "0a", "duplicate"), lambda: reader.undo(1)):
        with pytest.raises(ServiceError) as forbidden:
            method()
        assert forbidden.value.status == 403


def test_of_two_who_decide_at_once_one_does(clients: dict[str, Client]) -> None:
    pairs = [("0b", "0a"), ("1b", "1a"), ("2b", "2a")]

    def decide(name: str) -> list[int]:
        decided = []
        for ids in pairs * 5:
            with contextlib.suppress(ServiceError):
                decided.append(clients[name].decide(*ids, "different").number)
        return decided

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(decide, ("ann", "bob"))
    log = clients["ann"].log().entries
    assert {entry.question_id for entry in log} == {"0b", "1b", "2b"}
    assert {entry.number: entry.by for entry in log} == dict.fromkeys(first, "ann") | dict.fromkeys(second, "bob")
