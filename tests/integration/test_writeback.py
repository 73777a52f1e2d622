"""Decisions written to a Discourse and to GitHub: each once, whatever fails or is killed, and only when told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run
from tests.fake_forums import KEY, FakeDiscourse, FakeForum, FakeGitHub, Thread, served

from askalike import Forum, Question
from askalike.errors import SourceError
from askalike.follow.pace import Clock, Pace
from askalike.follow.settings import FollowSettings, Kind
from askalike.follow.state import State
from askalike.follow.writeback import DiscourseTarget, GitHubTarget, WriteBack, WriteSettings
from askalike.store import ForumLayout
from askalike.types import Feedback, Source, Write
from askalike.types import Thread as Followed

pytestmark = pytest.mark.usefixtures("words_alone")

SITE = "the forum"
DECIDED = [Feedback("3", "1", "duplicate", "ann"), Feedback("4", "2", "duplicate", "bob")]


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("WRITE_KEY", KEY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "a.forum") as made:
        threads = [Followed(Question(str(number), f"Wifi drops {number}")) for number in range(1, 7)]
        made.replace_threads(threads, [], Source(SITE, "discourse"))
        made.add([Question("own", "Wifi drops here"), Question("more", "Wifi drops there")])
        own = [Feedback("own", "1", "duplicate"), Feedback("more", "own", "duplicate"), Feedback("5", "6", "different")]
        for decision in [*DECIDED, *own]:
            made.store.decide(decision, has_link=False)
    return tmp_path / "a.forum"


def threads() -> dict[int, Thread]:
    return {number: Thread(number) for number in range(1, 7)}


@pytest.fixture
def discourse() -> Iterator[FakeDiscourse]:
    forum = FakeDiscourse(threads())
    with served(forum):
        yield forum
    assert forum.odd == []


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    forum = FakeGitHub(threads())
    with served(forum):
        yield forum
    assert forum.odd == []


@pytest.fixture
def discussions() -> Iterator[FakeGitHub]:
    """Serve a repository of which the duplicates are discussions, and the originals an issue and a discussion."""
    forum = FakeGitHub(threads())
    for number in (2, 3, 4):
        forum.threads[number].is_discussion = True
    with served(forum):
        yield forum
    assert forum.odd == []


def words(site: FakeForum, *more: object) -> tuple[object, ...]:
    """Return the options that name a site."""
    if isinstance(site, FakeDiscourse):
        return ("--to", site.address, "--kind", "discourse", "--username", "helper", "--source", SITE, *more)
    to = f"{site.address}/own/name"
    return ("--to", to, "--kind", "github", "--api", site.address, "--source", SITE, *more)


SEND = ("--send", "--key-variable", "WRITE_KEY", "--rate", 6000)


def test_without_send_each_write_is_shown_and_nothing_is_asked_or_kept(
    run: Run, path: Path, discourse: FakeDiscourse
) -> None:
    done = run("writeback", path, *words(discourse, "--link", "--close", "--json"))
    assert [(one["question"], one["candidate"], one["action"]) for one in done.json] == [
        ("3", "1", "link"),
        ("3", "1", "close"),
        ("4", "2", "link"),
        ("4", "2", "close"),
    ]
    comment = f"This asks the same as {discourse.address}/t/1"
    assert [one["comment"] for one in done.json[:2]] == [comment, ""]
    plain = run("writeback", path, *words(discourse, "--link", "--limit", 1))
    assert f"3 link {comment}\n" in plain.out
    assert (discourse.asked, run("writeback", path, "--status", "--json").json) == ([], [])


def test_decisions_are_linked_and_closed_on_discourse_once(run: Run, path: Path, discourse: FakeDiscourse) -> None:
    done = run("writeback", path, *words(discourse, "--link", "--close", *SEND, "--json"))
    assert (done.code, [one["state"] for one in done.json]) == (0, ["done"] * 4)
    assert [one[:2] for one in discourse.writes] == [
        ("POST", "/posts.json"),
        ("PUT", "/t/3/status.json"),
        ("POST", "/posts.json"),
        ("PUT", "/t/4/status.json"),
    ]
    assert [thread.is_closed for thread in discourse.threads.values()] == [False, False, True, True, False, False]
    again = run("writeback", path, *words(discourse, "--link", "--close", *SEND, "--json"))
    assert (again.json, len(discourse.writes)) == ([], 4)
    assert KEY not in done.out + done.err


def test_decisions_are_commented_labelled_and_closed_on_github_once(run: Run, path: Path, github: FakeGitHub) -> None:
    options = ("--link", "--tag", "duplicate", "--close", *SEND, "--json")
    done = run("writeback", path, *words(github, *options))
    assert (done.code, [one["action"] for one in done.json]) == (0, ["link", "tag duplicate", "close"] * 2)
    issue = github.threads[3]
    assert (issue.is_closed, issue.labels, len(issue.comments)) == (True, ["duplicate"], 1)
    assert issue.comments[0]["body"].startswith("Duplicate of #1\n\n<!-- askalike:duplicate 1 ")
    patched = next(one for one in github.writes if one[0] == "PATCH")
    assert patched[1:] == ("/repos/own/name/issues/3", {"state": "closed", "state_reason": "duplicate"})
    assert run("writeback", path, *words(github, *options)).json == []
    assert KEY not in done.out + done.err


def test_discussions_are_commented_labelled_and_closed_through_graphql_once(
    run: Run, path: Path, discussions: FakeGitHub
) -> None:
    options = ("--link", "--tag", "duplicate", "--close", *SEND, "--json")
    done = run("writeback", path, *words(discussions, *options))
    assert (done.code, [one["state"] for one in done.json]) == (0, ["done"] * 6)
    for number, original in ((3, 1), (4, 2)):
        thread = discussions.threads[number]
        assert (thread.is_closed, thread.labels, len(thread.comments)) == (True, ["duplicate"], 1)
        said = f"Duplicate of #{original}\n\n<!-- askalike:duplicate {original} "
        assert thread.comments[0]["body"].startswith(said)
    assert len(discussions.writes) == 6
    assert {one[1] for one in discussions.writes} == {"/graphql"}
    assert run("writeback", path, *words(discussions, *options)).json == []
    assert KEY not in done.out + done.err


def test_what_a_discussion_has_already_is_not_written_nor_what_cannot_be(
    run: Run, path: Path, discussions: FakeGitHub
) -> None:
    third, fourth = discussions.threads[3], discussions.threads[4]
    third.comments = [
        *({"id": one, "body": "Duplicate of #1", "authorAssociation": "NONE"} for one in range(4)),
        {"id": 9, "body": "duplicate of #1", "authorAssociation": "MEMBER"},
    ]
    third.is_closed, fourth.labels = True, ["duplicate"]
    words_of = words(discussions, "--link", "--tag", "duplicate", "--close", *SEND, "--json")
    done = {(one["question"], one["action"]): one["why"] for one in run("writeback", path, *words_of).json}
    assert (done["3", "link"], done["3", "close"]) == ("comment 9 says so", "closed already")
    assert done["4", "tag duplicate"] == "labelled already"
    assert len(discussions.writes) == 3
    unknown = run("writeback", path, *words(discussions, "--tag", "nobody's", *SEND, "--json"))
    assert [(one["state"], "no such label" in one["why"]) for one in unknown.json] == [("failed", True)] * 2
    discussions.threads[2].is_private = True
    fourth.comments.clear()
    again = run(
        "writeback", path, *words(discussions, "--link", "--text", "see {original}", *SEND, "--retry", "--json")
    )
    assert again.json == []  # what was done is not done again


@pytest.mark.parametrize(("kind", "state"), [("FORBIDDEN", "failed"), ("RATE_LIMITED", "waiting")])
def test_what_graphql_refuses_is_kept_with_the_reason(
    path: Path, discussions: FakeGitHub, kind: str, state: str
) -> None:
    discussions.graph_error = kind
    forum, send = sender(path, discussions, lambda _: None)
    with forum:
        send(("link",), 1)
        held = forum.store.outbox()[0]
        assert (held.state, "answered: no" in held.why) == (state, True)
        assert discussions.threads[3].comments == []
        discussions.graph_error = ""
        assert [one.state for one in send(("link",), is_retried=True)] == ["done", "done"]


def test_an_issue_that_became_a_discussion_or_went_is_found_or_named(path: Path, github: FakeGitHub) -> None:
    forum, send = sender(path, github, lambda _: None)
    with forum:
        send(("link",), 1)
        github.threads[4].is_discussion = True
        github.threads[3].is_private = True
        done = {(one.question_id, one.action): one for one in send(("link", "close"))}
        assert (done["4", "link"].state, done["4", "close"].state) == ("done", "done")
        assert (done["3", "close"].state, "issue 3 answered 404" in done["3", "close"].why) == ("failed", True)
    assert [len(github.threads[one].comments) for one in (3, 4)] == [1, 1]


def test_what_is_there_already_is_not_written(
    run: Run, path: Path, discourse: FakeDiscourse, github: FakeGitHub
) -> None:
    topic = discourse.threads[3]
    topic.is_closed = True
    topic.comments = [
        {"id": 7, "username": "asker", "cooked": '<a href="/t/1">no word of ours</a>'},
        *({"id": 10 + number, "username": "asker", "cooked": ""} for number in range(30)),
        {"id": 99, "username": "Helper", "cooked": '<a href="/t/wifi-drops/1/2">the same</a>'},
    ]
    done = run("writeback", path, *words(discourse, "--link", "--close", "--limit", 2, *SEND, "--json")).json
    assert [(one["state"], one["why"]) for one in done] == [("done", "post 99 links there"), ("done", "closed already")]
    github.threads[3].labels = ["duplicate"]
    strangers = [{"id": one, "body": "Duplicate of #1", "author_association": "NONE"} for one in range(2)]
    github.threads[3].comments = [*strangers, {"id": 3, "body": "duplicate of #1", "author_association": "MEMBER"}]
    done = run("writeback", path, *words(github, "--link", "--tag", "duplicate", "--limit", 2, *SEND, "--json")).json
    assert [one["why"] for one in done] == ["comment 3 says so", "labelled already"]
    assert (discourse.writes, github.writes) == ([], [])


def test_comments_that_never_end_are_looked_through_for_so_long_alone(
    run: Run, path: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.follow.github.MAX_COMMENT_PAGES", 1)
    github.threads[3].comments = [{"id": one, "body": "no", "author_association": "NONE"} for one in range(3)]
    done = run("writeback", path, *words(github, "--link", "--limit", 1, *SEND, "--json")).json
    assert [one["state"] for one in done] == ["failed"]
    assert "more comments than are looked through" in done[0]["why"]
    assert github.writes == []


def test_an_original_that_is_not_public_is_named_and_never_linked_to(
    run: Run, path: Path, discourse: FakeDiscourse
) -> None:
    discourse.threads[1].is_private = True
    done = run("writeback", path, *words(discourse, "--link", "--close", *SEND, "--json"))
    assert (done.code, [one["state"] for one in done.json]) == (1, ["failed", "failed", "done", "done"])
    assert "topic 1 answered 404" in done.json[0]["why"]
    discourse.threads[1].is_private = False
    assert run("writeback", path, *words(discourse, "--link", "--close", *SEND, "--json")).json == []
    retried = run("writeback", path, *words(discourse, "--link", "--close", *SEND, "--retry", "--json"))
    assert [one["state"] for one in retried.json] == ["done", "done"]


def test_an_original_in_a_closed_category_is_named_within_that_alone(
    run: Run, path: Path, discourse: FakeDiscourse
) -> None:
    discourse.threads[1].category = discourse.threads[2].category = discourse.threads[4].category = 2
    done = run("writeback", path, *words(discourse, "--link", *SEND, "--json"))
    assert (done.code, [one["state"] for one in done.json]) == (1, ["failed", "done"])
    assert "topic 1 is in a category that is not public" in done.json[0]["why"]
    assert [len(thread.comments) for thread in discourse.threads.values()] == [0, 0, 0, 1, 0, 0]
    assert [one[1] for one in discourse.asked].count("/site.json") == 1


def sender(path: Path, site: FakeForum, paused: Callable[[float], object]) -> tuple[Forum, Callable[..., list[Write]]]:
    forum = Forum.open(path)
    now_s = [0.0]

    def pause(seconds: float) -> None:
        now_s[0] += seconds
        paused(seconds)

    pace = Pace(6000, Clock(steady=lambda: now_s[0], pause=pause))
    kind: Kind = "discourse" if isinstance(site, FakeDiscourse) else "github"
    if kind == "discourse":
        target: Any = DiscourseTarget(site.address, pace, KEY, "helper")
    else:
        target = GitHubTarget(f"{site.address}/own/name", pace, KEY, site.address)
    settings = FollowSettings(site.address if kind == "discourse" else f"{site.address}/own/name", kind, SITE)

    def send(actions: Sequence[str], limit: int = 0, **more: Any) -> list[Write]:
        wanted = WriteSettings("link" in actions, is_closed="close" in actions)
        return WriteBack(forum.store, settings, wanted).send(target, limit, **more)

    return forum, send


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("status", "headers"), [(429, {"Retry-After": "2"}), (503, {}), (500, {})])
@pytest.mark.parametrize("name", ["discourse", "github", "discussions"])
def test_a_site_that_fails_is_asked_again_and_nothing_is_written_twice(
    path: Path, request: pytest.FixtureRequest, name: str, status: int, headers: dict[str, str], is_done: bool
) -> None:
    site: FakeForum = request.getfixturevalue(name)
    site.failures = [(status, headers, is_done)] * 2
    waited: list[float] = []

    forum, send = sender(path, site, waited.append)
    with forum:
        done = send(("link", "close"), 1)
    assert [(one.state, one.tries) for one in done] == [("done", 2 if is_done else 3)]
    assert len(site.threads[3].comments) == 1
    assert len(site.writes) == (1 if is_done else 3)
    if status == 429:
        assert sum(waited) >= (1.5 if is_done else 3.5)


def test_a_site_that_goes_on_failing_ends_the_run_and_what_is_left_waits(path: Path, github: FakeGitHub) -> None:
    github.failures = [(500, {}, False)] * 5
    forum, send = sender(path, github, lambda _: None)
    with forum:
        assert send(("link", "close")) == []
        held = forum.store.outbox()
        assert [(one.state, one.tries) for one in held] == [("waiting", 5)] + [("waiting", 0)] * 3
        assert "answered 500" in held[0].why
        github.failures = [(429, {"Retry-After": "86400"}, False)]
        assert send(("link", "close")) == []
        assert [one.state for one in send(("link", "close"))] == ["done"] * 4


def test_a_wrong_key_ends_the_run_and_is_not_shown(run: Run, path: Path, github: FakeGitHub, monkeypatch: Any) -> None:
    monkeypatch.setenv("WRITE_KEY", "wrong-key-wrong-key")
    done = run("writeback", path, *words(github, "--link", *SEND, "--json"))
    assert (done.code, "answered 401" in done.json["error"]) == (1, True)
    assert "wrong-key" not in done.out + done.err
    assert {one["state"] for one in run("writeback", path, "--status", "--json").json} == {"waiting"}
    monkeypatch.delenv("WRITE_KEY")
    assert run("writeback", path, *words(github, "--link", *SEND)).code == 2
    assert run("writeback", path, *words(github, "--link", "--send")).code == 2


def test_what_was_undone_is_not_written_and_what_was_written_stays(run: Run, path: Path, github: FakeGitHub) -> None:
    run("writeback", path, *words(github, "--link", "--limit", 1, *SEND))
    with Forum.open(path) as forum:
        for number in (1, 2):
            forum.store.undo(number, "ann")
        assert [one.state for one in forum.store.outbox()] == ["done", "cancelled"]
    assert run("writeback", path, *words(github, "--link", "--close", *SEND, "--json")).json == []
    assert [len(thread.comments) for thread in github.threads.values()] == [0, 0, 1, 0, 0, 0]
    with Forum.open(path) as forum:
        for decision in DECIDED:
            forum.store.decide(decision, has_link=False)
    done = run("writeback", path, *words(github, "--link", *SEND, "--json")).json
    assert [(one["question"], one["state"]) for one in done] == [("4", "done")]
    assert len(github.threads[3].comments) == 1


_KILLED = """
import sys
from askalike.cli.main import main
sys.argv[:] = ["askalike", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("name", ["discourse", "github", "discussions"])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_process_that_is_killed_while_it_writes_writes_nothing_twice(
    run: Run, path: Path, request: pytest.FixtureRequest, name: str, is_done: bool
) -> None:
    site: FakeForum = request.getfixturevalue(name)
    site.failures = [(0, {}, is_done)]
    given = [str(one) for one in ("writeback", path, *words(site, "--link", "--close", *SEND))]
    with subprocess.Popen([sys.executable, "-c", _KILLED, *given], env=dict(os.environ)) as process:
        until = time.monotonic() + 60
        while not site.writes and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
    time.sleep(0.1)
    done = run(*given, "--json")
    assert [one["state"] for one in done.json] == ["done"] * 4
    assert [len(thread.comments) for thread in site.threads.values()] == [0, 0, 1, 1, 0, 0]
    assert [thread.is_closed for thread in site.threads.values()] == [False, False, True, True, False, False]


def test_a_folder_that_names_an_address_gets_no_key_without_a_word(
    run: Run, path: Path, discourse: FakeDiscourse
) -> None:
    with State.create(ForumLayout(path)) as state:
        kept = FollowSettings(discourse.address, "discourse", SITE, key_variable="READ_KEY", username="helper")
        state.put(settings=kept.to_json())
    options = ("--link", "--username", "helper")
    assert len(run("writeback", path, *options, "--json").json) == 2
    refused = run("writeback", path, *options, *SEND, "--json")
    assert (refused.code, "you have not said to write" in refused.json["error"]) == (2, True)
    assert discourse.asked == []
    assert run("writeback", path, *options, "--to", discourse.address, *SEND).code == 0
    assert run("writeback", path, *options, "--close", *SEND).code == 0  # it was said before
    assert len(discourse.writes) == 4


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--link", "--text", "no place for the original"),
        ("--tag", "a, b"),
        ("--link", "--kind", "vanilla"),
        ("--tag", "duplicate"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_written_is_explained(run: Run, path: Path, options: tuple[str, ...]) -> None:
    to = ("--to", "https://forum.example.org", "--source", SITE)
    done = run("writeback", path, *to, *options, "--json")
    assert (done.code, bool(done.json["error"])) == (2, True)
    assert run("writeback", path, "--link").code == 2


def test_texts_of_comments_are_the_operators(run: Run, path: Path, discourse: FakeDiscourse) -> None:
    done = run("writeback", path, *words(discourse, "--link", "--text", "Schon gefragt: {original}", "--json"))
    assert done.json[0]["comment"] == f"Schon gefragt: {discourse.address}/t/1"


def test_a_redirection_is_not_followed_and_ends_the_run_where_the_whole_site_leads_elsewhere(
    path: Path, discourse: FakeDiscourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = {"Location": "https://elsewhere.example.org/"}
    discourse.failures = [(302, elsewhere, False)]
    forum, send = sender(path, discourse, lambda _: None)
    with forum:
        assert [write.state for write in send(("link",))] == ["failed", "done"]
        monkeypatch.setattr(FakeDiscourse, "reply", lambda *_: (301, {}, elsewhere))
        with pytest.raises(SourceError, match="leads to"):
            send(("close",))
        assert {write.state for write in forum.store.outbox() if write.action == "close"} == {"waiting"}
