"""Moderation end to end: the library, the command line, the service with named keys, exports, and kills."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from tests.command import Run
from tests.integration.test_server_process import serving

from askalike import Forum, Link, Question
from askalike.client import Client, ServiceError
from askalike.errors import InputError, SettingError, UnknownIdError
from askalike.server.guards import Keys
from askalike.types import Feedback

pytestmark = pytest.mark.usefixtures("words_alone")

TITLES = ("Printer is offline after a power cut", "Scanner makes no sound", "How to water a cactus in winter")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "a.forum") as made:
        for number, title in enumerate(TITLES):
            tags = ("printer",) if number == 0 else ("garden",)
            made.add([Question(f"{number}{letter}", title, f"{letter} says so.", tags=tags) for letter in "ab"])
        made.compare()
    return tmp_path / "a.forum"


@pytest.fixture
def forum(path: Path) -> Iterator[Forum]:
    with Forum.open(path) as opened:
        yield opened


def queue(forum: Forum, **asked: str | None) -> set[frozenset[str]]:
    return {frozenset((one.question.id, one.candidate.id)) for one in forum.proposals(0.3, **asked)}  # type: ignore[arg-type]


def pair(ends: str) -> frozenset[str]:
    return frozenset(ends.split())


# -- the library -------------------------------------------------------------------------------------------------------


def test_a_queue_is_narrowed_to_a_category_and_leaves_out_what_others_have(forum: Forum) -> None:
    everything = {pair("0a 0b"), pair("1a 1b"), pair("2a 2b")}
    assert queue(forum) == everything
    assert queue(forum, tag="printer") == {pair("0a 0b")}
    forum.moderation.take([("0b", "0a")], "ann", timedelta(minutes=5))
    assert queue(forum, by="bob") == queue(forum) == everything - {pair("0a 0b")}
    assert queue(forum, by="ann") == queue(forum, by=None) == everything
    with pytest.raises(InputError, match="ann has taken"):
        forum.moderation.decide([Feedback("0b", "0a", "duplicate", "bob")])
    with pytest.raises(SettingError, match="366 days"):
        forum.moderation.take([("1a", "1b")], "ann", timedelta(days=400))


def test_a_decided_pair_leaves_the_queue_and_an_undone_one_comes_back(forum: Forum) -> None:
    moderation = forum.moderation
    decided = moderation.decide([Feedback("0b", "0a", "duplicate", "ann"), Feedback("1a", "1b", "different", "ann")])
    assert queue(forum) == {pair("2a 2b")}
    assert [hit.question.id for hit in forum.similar(TITLES[0])][:1] == ["0a"]
    bulk = decided.entries[0].bulk
    assert moderation.last("ann") == decided.entries[1]
    with pytest.raises(InputError, match="no decision of bob"):
        moderation.last("bob")
    assert [one.undoes for one in moderation.undo(bulk=bulk, by="bob")] == [2, 1]
    assert queue(forum) == {pair("0a 0b"), pair("1a 1b"), pair("2a 2b")}
    assert forum.links() == []
    with pytest.raises(InputError, match="nothing stands of a bulk"):
        moderation.undo(bulk=bulk)
    with pytest.raises(SettingError):
        moderation.undo()
    with pytest.raises(UnknownIdError):
        moderation.undo([99])


def test_chains_and_circles_are_refused_with_the_chain_and_nothing_is_stored(forum: Forum) -> None:
    forum.mark("0b", "0a")
    with pytest.raises(InputError, match=r"1a -> 0b -> 0a; 1 of 2 cannot be stored, and nothing was"):
        forum.moderation.decide([Feedback("2a", "2b", "duplicate"), Feedback("1a", "0b", "duplicate")])
    with pytest.raises(InputError, match="close a circle: 0a -> 0b -> 0a"):
        forum.moderation.decide([Feedback("0a", "0b", "duplicate")])
    assert (forum.moderation.log(), forum.links(), list(forum.feedback())) == ([], [Link("0b", "0a")], [])
    assert forum.moderation.decide([Feedback("1a", "0b", "duplicate")], has_links=False).stored


def test_a_related_link_is_no_duplicate_link_and_an_undone_decision_takes_its_own_back(forum: Forum) -> None:
    done = forum.moderation.decide([Feedback("0b", "0a", "duplicate")])
    forum.add_links([Link("0b", "0a", "related")])
    forum.moderation.undo([done.entries[0].number])
    assert forum.links() == [Link("0b", "0a", "related")]


def test_numbers_that_no_log_has_are_not_there(forum: Forum) -> None:
    forum.moderation.note("0b", "0a", "Look.")
    assert forum.moderation.log(10**30, 10**30) == forum.moderation.log()
    for number in (0, -1, 10**30):
        with pytest.raises(UnknownIdError, match=f"no entry {number}"):
            forum.moderation.undo([number])


def test_pairs_are_read_from_a_file_whatever_their_titles_hold(run: Run, path: Path, tmp_path: Path) -> None:
    with Forum.open(path) as forum:
        forum.edit([Question("0a", "Printer\u2028is offline after\x85a power cut")])
    listed = run("duplicates", path, "--min", 0.3, "--csv").out
    (tmp_path / "pairs.csv").write_bytes(listed.encode())
    words = ("--pairs", tmp_path / "pairs.csv", "--verdict", "different", "--json")
    stored = run("review", "decide", path, *words).json["entries"]
    assert len(stored) == 3


def test_two_who_mark_each_of_a_pair_a_duplicate_of_the_other_close_no_circle(path: Path) -> None:
    numbers = range(12)
    with Forum.open(path) as one, Forum.open(path) as other:
        one.add([Question(f"{number}{end}", "Which fuse?") for number in numbers for end in "xy"])
        both = Barrier(2)

        def mark(forum: Forum, ends: str) -> int:
            marked = 0
            for number in numbers:
                both.wait()
                with contextlib.suppress(InputError):
                    marked += forum.mark(f"{number}{ends[0]}", f"{number}{ends[1]}")
            return marked

        with ThreadPoolExecutor(2) as pool:
            found = sum(pool.map(mark, (one, other), ("xy", "yx")))
        assert found == len(one.links()) == len(numbers)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_log_goes_along_with_exports_and_is_read_once(forum: Forum, tmp_path: Path, form: str) -> None:
    forum.moderation.decide([Feedback("0b", "0a", "duplicate", "ann"), Feedback("1a", "1b", "different", "ann")])
    forum.moderation.note("2a", "2b", 'Two lines:\n"quoted", and 🙂', "bob")
    forum.moderation.undo([2], by="bob")
    assert forum.export(tmp_path / "out", form=form)["log"] == 4  # type: ignore[arg-type]
    with Forum.create(tmp_path / "b.forum") as other:
        other.load(tmp_path / "out")
        assert other.moderation.log() == forum.moderation.log()
        assert other.load(tmp_path / "out").load.log.unchanged == 4
        assert other.moderation.log() == forum.moderation.log()
        other.moderation.undo([1], by="eve")
        assert other.links() == []
        assert queue(other) <= {pair("0a 0b"), pair("1a 1b"), pair("2a 2b")}


_KILLED = """
import os, sys
from askalike import Forum
from askalike.types import Feedback
forum = Forum.open(sys.argv[1])
for number in range(1000):
    done = forum.moderation.decide([Feedback("0b", "0a", "duplicate", "ann"), Feedback("1a", "1b", "different", "ann")])
    print(done.entries[-1].number, flush=True)
    print(forum.moderation.undo(bulk=done.entries[0].bulk, by="ann")[-1].number, flush=True)
"""


def test_what_was_acknowledged_is_in_the_log_after_a_kill_and_bulks_are_whole(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(21):
            last = int(process.stdout.readline())
        process.kill()
        rest = process.stdout.read().split()
    last = int(rest[-1]) if rest else last
    with Forum.open(path) as forum:
        log = forum.moderation.log(10_000)
        assert {one.number for one in log} >= set(range(1, last + 1))
        assert len(log) % 2 == 0
        stands = {one.question_id for one in log if one.kind != "undone" and not one.undone}
        assert stands in (set(), {"0b", "1a"})
        assert forum.links() == ([Link("0b", "0a")] if stands else [])
        assert {one.question_id for one in forum.verdicts()} == stands


# -- the command line --------------------------------------------------------------------------------------------------


def test_moderators_work_from_the_command_line(run: Run, path: Path, tmp_path: Path) -> None:
    (row,) = run("review", "queue", path, "--tag", "printer", "--json").json
    ends = (row["id"], row["original_id"])
    assert (set(ends), row["taken_by"], row["notes"]) == ({"0a", "0b"}, "", 0)
    (taken,) = run("review", "take", path, "--tag", "printer", "--by", "ann", "--minutes", 30, "--json").json
    assert (taken["by"], taken["question"], taken["candidate"]) == ("ann", *ends)
    assert run("review", "queue", path, "--tag", "printer", "--by", "bob", "--json").json == []
    noted = run("review", "note", path, *ends, "--text", "Same model?", "--by", "ann", "--json").json
    assert (noted["kind"], noted["text"]) == ("note", "Same model?")
    (row,) = run("review", "queue", path, "--tag", "printer", "--json").json
    assert (row["taken_by"], row["notes"]) == ("ann", 1)
    refused = run("review", "decide", path, *ends, "--verdict", "duplicate", "--by", "bob", "--json")
    assert (refused.code, "ann has taken this pair until" in refused.json["error"]) == (1, True)
    assert run("review", "give-back", path, "--by", "ann", "--json").json == {"given_back": 1}
    shown = run("review", "decide", path, "--tag", "garden", "--verdict", "duplicate", "--by", "bob")
    assert "2 decisions; nothing was stored" in shown.out
    done = run("review", "decide", path, "--tag", "garden", "--verdict", "duplicate", "--by", "bob", "--yes", "--json")
    assert [one["made_link"] for one in done.json["entries"]] == [True, True]
    (tmp_path / "pairs.csv").write_text(f"id,original_id,title\n{ends[0]},{ends[1]},x\n", encoding="utf-8")
    more = run("review", "decide", path, "--pairs", tmp_path / "pairs.csv", "--verdict", "different", "--by", "bob")
    assert "1 decision stored; to undo:" in more.out
    assert "review undo" in more.out
    log = run("review", "log", path, "--json").json
    assert [one["kind"] for one in log] == ["different", "duplicate", "duplicate", "note"]
    assert [one["kind"] for one in run("review", "log", path, *ends, "--json").json] == ["different", "note"]
    (undone,) = run("review", "undo", path, "--by", "bob", "--json").json
    assert (undone["kind"], undone["undoes"]) == ("undone", log[0]["number"])
    assert len(run("review", "undo", path, "--bulk", log[1]["bulk"], "--by", "eve", "--json").json) == 2
    assert "different (undone)" in run("review", "log", path).out


@pytest.mark.parametrize(
    "words",
    [
        ("take", "0a"),
        ("take", "0a", "0b"),
        ("note", "--text", "x"),
        ("decide", "0a", "0b"),
        ("decide", "0a", "nowhere", "--verdict", "duplicate"),
        ("decide", "--verdict", "duplicate", "--precision", "1.5"),
        ("decide", "--verdict", "duplicate", "--pairs", "/nowhere.csv"),
        ("decide", "--verdict", "duplicate", "--tag", "none"),
        ("undo",),
        ("undo", "--entry", "7"),
        ("undo", "--entry", "1" + "0" * 30),
        ("log", "--limit", "1" + "0" * 30),
        ("queue", "--limit", "1" + "0" * 30),
        ("take", "0a", "0b", "--by", "ann", "--minutes", "1e300"),
        ("undo", "--bulk", "none"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_explained(run: Run, path: Path, words: tuple[str, ...]) -> None:
    done = run("review", words[0], path, *words[1:], "--json")
    assert done.code in (1, 2)
    assert done.json["error"]
    assert run("review", "log", path, "--json").json == []


def test_a_longest_list_of_duplicates_is_all_of_them(run: Run, path: Path) -> None:
    words = ("duplicates", path, "--min", 0.3, "--json")
    assert len(run(*words, "--limit", "1" + "0" * 30).json) == len(run(*words).json) == 3


# -- the service -------------------------------------------------------------------------------------------------------


@pytest.fixture
def clients(path: Path) -> Iterator[dict[str, Client]]:
    keys = Keys(path)
    secrets = {name: keys.add(name, "write")[1] for name in ("ann", "bob")}
    secrets |= {"reader": keys.add("reader", "read")[1], "": keys.add("", "write")[1]}
    secrets["passer"] = keys.add("", "read")[1]
    with serving(path, "--allow-host", "askalike.example.org") as (_, client):
        address = f"http://127.0.0.1:{client._port}"
        made = {name: Client(address, key) for name, key in secrets.items()}
        yield made
        for one in made.values():
            one.close()


def test_the_service_knows_moderators_by_the_names_of_their_keys(clients: dict[str, Client]) -> None:
    ann, bob, reader, unnamed = (clients[name] for name in ("ann", "bob", "reader", ""))
    (taken,) = ann.take([("0b", "0a")], by="bob", minutes=5).assignments
    assert taken.by == "ann"
    ann.note("0b", "0a", "Ask the vendor.")
    page = ann.duplicates(minimum=0.3)
    assert page.you == "ann"
    shown = next(one for one in page.pairs if "0a" in (one.question.id, one.candidate.id))
    assert shown.taken == taken
    assert [one.text for one in shown.notes] == ["Ask the vendor."]
    assert all(one.taken is None and not one.notes for one in reader.duplicates(minimum=0.3).pairs)
    passer = clients["passer"]
    assert passer.duplicates(minimum=0.3, by="bob") == passer.duplicates(minimum=0.3), "who has what is not told"
    assert not any("0a" in (one.question.id, one.candidate.id) for one in bob.duplicates(minimum=0.3).pairs)
    assert bob.taken().assignments == (taken,)
    decisions = [
        {"question": "0b", "candidate": "0a", "verdict": "duplicate"},
        {"question": "1b", "candidate": "1a", "verdict": "different", "draw": {"by": "sample", "propensity": 0.5}},
    ]
    with pytest.raises(ServiceError) as refused:
        bob.decide(decisions)
    assert (refused.value.status, "ann has taken this pair" in refused.value.message) == (422, True)
    assert [one.question_id for one in bob.decide(decisions, preview=True).refused] == ["0b"]
    done = ann.decide(decisions)
    assert [(one.by, one.kind, one.made_link) for one in done.entries] == [
        ("ann", "duplicate", True),
        ("ann", "different", False),
    ]
    assert ann.taken().assignments == ()
    log = bob.log()
    assert (log.you, [one.kind for one in log.entries]) == ("bob", ["different", "duplicate", "note"])
    assert log.entries[0].question_title == TITLES[1]
    assert [one.kind for one in bob.log(limit=1, before=log.entries[0].number).entries] == ["duplicate"]
    undone = unnamed.undo(bulk=done.entries[0].bulk, by="the night shift")
    assert {one.by for one in undone.entries} == {"the night shift"}
    assert bob.give_back([("0b", "0a")]).pairs == 0
    for method in (reader.log, reader.taken, lambda: reader.decide(decisions), lambda: reader.undo([1])):
        with pytest.raises(ServiceError) as forbidden:
            method()
        assert forbidden.value.status == 403


def test_of_two_who_take_or_decide_at_once_one_does(clients: dict[str, Client]) -> None:
    pairs = [("0b", "0a"), ("1b", "1a"), ("2b", "2a")]

    def work(name: str) -> tuple[list[tuple[str, str]], list[int]]:
        got, decided = [], []
        for _ in range(5):
            for one in pairs:
                with contextlib.suppress(ServiceError):
                    got += [(one[0], taken.by) for taken in clients[name].take([one]).assignments]
                with contextlib.suppress(ServiceError):
                    wanted = [{"question": one[0], "candidate": one[1], "verdict": "different"}]
                    decided += [entry.number for entry in clients[name].decide(wanted).entries]
        return got, decided

    with ThreadPoolExecutor(2) as threads:
        (_, first), (_, second) = threads.map(work, ("ann", "bob"))
    assert len(first) + len(second) == 3
    stands = [one for one in clients["ann"].log().entries if one.kind == "different"]
    assert {one.question_id: one.by for one in stands}.keys() == {"0b", "1b", "2b"}
    assert {one.number: one.by for one in stands} == dict.fromkeys(first, "ann") | dict.fromkeys(second, "bob")


def test_requests_that_do_not_fit_are_refused_and_name_the_field(clients: dict[str, Client]) -> None:
    ann = clients["ann"]
    bad: tuple[tuple[str, object], ...] = (
        ("/v1/decisions", {"decisions": []}),
        ("/v1/decisions", {"decisions": [{"question": "0a", "candidate": "0b", "verdict": "withdrawn"}]}),
        ("/v1/decisions", {"decisions": [{"question": "0a", "candidate": "0b", "verdict": "duplicate"}] * 501}),
        ("/v1/decisions/undo", {}),
        ("/v1/decisions/undo", {"numbers": [0]}),
        ("/v1/notes", {"question": "0a", "candidate": "0b", "text": ""}),
        ("/v1/notes", {"question": "0a", "candidate": "0a", "text": "x"}),
        ("/v1/assignments", {"pairs": [{"question": "0a", "candidate": "0b"}], "minutes": 0}),
    )
    for path, body in bad:
        with pytest.raises(ServiceError) as refused:
            ann._send("POST", path, json.dumps(body).encode())
        assert refused.value.status == 422, path
    with pytest.raises(ServiceError) as missing:
        ann.undo([99])
    assert missing.value.status == 404
    with pytest.raises(ServiceError) as half:
        ann._send("GET", "/v1/log?question=0a")
    assert half.value.status == 422
    assert ann.log().entries == ()
