"""Decisions written to a Discourse and to GitHub: each once, whatever fails or is killed, and only when told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import fake_discourse, fake_site
from tests.command import Run
from tests.fake_discourse import CALM, FakeDiscourse
from tests.fake_github import SECONDARY_LIMIT, FakeGitHub
from tests.fake_site import Answer, FakeClock, as_json

from askalike import Forum, Question
from askalike.errors import SourceError
from askalike.follow.settings import FollowSettings, Kind
from askalike.follow.site import Pace
from askalike.follow.state import State
from askalike.follow.writeback import DiscourseTarget, GitHubTarget, Target, WriteBack, WriteSettings
from askalike.store import ForumLayout
from askalike.types import Feedback, Source, Thread, Write

pytestmark = pytest.mark.usefixtures("words_alone")

KEY = "a-secret-key-of-the-site"
ORIGIN = "the forum"
DECIDED = [Feedback("3", "1", "duplicate", "ann"), Feedback("4", "2", "duplicate", "bob")]
SEND = ("--send", "--key-variable", "WRITE_KEY", "--rate", 6000)


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("WRITE_KEY", KEY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "a.forum") as forum:
        threads = [Thread(Question(str(number), f"Wifi drops {number}")) for number in range(1, 7)]
        forum.store.replace_threads(threads, [], Source(ORIGIN, "discourse"))
        forum.add([Question("own", "Wifi drops here"), Question("more", "Wifi drops there")])
        own = [Feedback("own", "1", "duplicate"), Feedback("more", "own", "duplicate"), Feedback("5", "6", "different")]
        for decision in [*DECIDED, *own]:
            forum.store.decide(decision, has_link=False)
    return tmp_path / "a.forum"


class WrittenSite:
    """A site that is written to, one way to look at it, and the options that name it."""

    def __init__(self, kind: Kind, fake: Any, address: str, api: str) -> None:
        self.kind, self.fake, self.address, self.api = kind, fake, address, api

    def options(self, *more: object) -> tuple[object, ...]:
        own = ("--username", "helper") if self.kind == "discourse" else ("--api", self.api)
        return ("--to", self.address, *own, "--source", ORIGIN, *more)

    def comments(self, number: int) -> list[str]:
        """Return the comments that the key has written."""
        if self.kind == "discourse":
            return [post.text for post in self.fake.topics[number].posts if post.username == "helper"]
        rows = self.fake.comments.get(number) or self.fake.discussions.get(number, {"comments": []})["comments"]
        return [row["body"] for row in rows if "askalike:duplicate" in row["body"]]

    def is_closed(self, number: int) -> bool:
        if self.kind == "discourse":
            return bool(self.fake.topics[number].is_closed)
        issue, discussion = self.fake.issues.get(number), self.fake.discussions.get(number)
        return bool(issue["state"] == "closed" if issue else discussion["closed"])

    def sender(self, path: Path) -> tuple[Forum, Callable[..., list[Write]], FakeClock]:
        """Return the forum, and what writes back to this site, on a clock of its own."""
        forum, clock = Forum.open(path), FakeClock()
        pace = Pace(6000, clock.clock)
        target: Target
        if self.kind == "discourse":
            target = DiscourseTarget(self.address, pace, KEY, "helper")
        else:
            target = GitHubTarget(self.address, pace, KEY, self.api)
        settings = FollowSettings(self.address, self.kind, ORIGIN)

        def send(actions: Sequence[str], limit: int = 0, **more: Any) -> list[Write]:
            wanted = WriteSettings("link" in actions, is_closed="close" in actions)
            return WriteBack(forum.store, settings, wanted).send(target, limit, **more)

        return forum, send, clock


@contextmanager
def serving_discourse() -> Iterator[WrittenSite]:
    fake = FakeDiscourse(1, 6, chances=CALM, rate=0, key=KEY)
    for topic in fake.topics.values():
        topic.category, topic.posts = 1, topic.posts[:1]
    with fake_discourse.serving(fake) as address:
        yield WrittenSite("discourse", fake, address, address)


@contextmanager
def serving_github(*discussions: int) -> Iterator[WrittenSite]:
    fake = FakeGitHub(key=KEY)
    for number in range(1, 7):
        if number in discussions:
            fake.add_discussion(number)
        else:
            fake.add_issue(number)
    with fake_site.serving(fake.answer) as address:
        yield WrittenSite("github", fake, f"{address}/own/name", address)


@pytest.fixture
def discourse() -> Iterator[WrittenSite]:
    with serving_discourse() as site:
        yield site


@pytest.fixture
def github() -> Iterator[WrittenSite]:
    with serving_github() as site:
        yield site


@pytest.fixture
def discussions() -> Iterator[WrittenSite]:
    """Serve a repository of which the duplicates are discussions, and the originals an issue and a discussion."""
    with serving_github(2, 3, 4) as site:
        yield site


def written(run: Run, path: Path, *words: object) -> Any:
    return run("follow", path, "--write-back", *words)


def test_without_send_each_write_is_shown_and_nothing_is_asked_or_kept(
    run: Run, path: Path, discourse: WrittenSite, github: WrittenSite
) -> None:
    done = written(run, path, *discourse.options("--link", "--close", "--json"))
    assert [(row["question"], row["candidate"], row["action"]) for row in done.json] == [
        ("3", "1", "link"),
        ("3", "1", "close"),
        ("4", "2", "link"),
        ("4", "2", "close"),
    ]
    comment = f"This asks the same as {discourse.address}/t/1"
    assert [row["comment"] for row in done.json[:2]] == [comment, ""]
    plain = written(run, path, *discourse.options("--link", "--limit", 1))
    assert f"3 link {comment}\n" in plain.out
    assert "--send would be refused: no key was named" in " ".join(plain.err.split())
    other = written(run, path, "--to", discourse.address, "--username", "helper", "--link", "--json")
    assert (other.json, f"left out: 2 decisions on questions of {ORIGIN}" in " ".join(other.err.split())) == ([], True)
    own = written(run, path, *github.options("--link", "--text", "Schon gefragt: {original}", "--json"))
    assert own.json[0]["comment"] == "Schon gefragt: #1"
    assert discourse.fake.asked == github.fake.asked == written(run, path, "--status", "--json").json == []


def test_decisions_are_linked_and_closed_on_discourse_once(run: Run, path: Path, discourse: WrittenSite) -> None:
    done = written(run, path, *discourse.options("--link", "--close", *SEND, "--json"))
    assert (done.code, [row["state"] for row in done.json]) == (0, ["done"] * 4)
    places = ["/posts.json", "/t/3/status.json", "/posts.json", "/t/4/status.json"]
    assert [request.path for request in discourse.fake.writes] == places
    assert [discourse.is_closed(number) for number in range(1, 7)] == [False, False, True, True, False, False]
    again = written(run, path, *discourse.options("--link", "--close", *SEND, "--json"))
    assert (again.json, len(discourse.fake.writes)) == ([], 4)
    assert KEY not in done.out + done.err


@pytest.mark.parametrize("name", ["github", "discussions"])
def test_decisions_are_commented_labelled_and_closed_on_github_once(
    run: Run, path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    site: WrittenSite = request.getfixturevalue(name)
    options = site.options("--link", "--tag", "duplicate", "--close", *SEND, "--json")
    done = written(run, path, *options)
    assert (done.code, [row["action"] for row in done.json]) == (0, ["link", "tag duplicate", "close"] * 2)
    for number, original in ((3, 1), (4, 2)):
        thread = site.fake.issues.get(number) or site.fake.discussions[number]
        labels = thread["labels"] if name == "github" else thread["labels"]["nodes"]
        assert (site.is_closed(number), labels[-1]["name"]) == (True, "duplicate")
        (comment,) = site.comments(number)
        assert comment.startswith(f"Duplicate of #{original}\n\n<!-- askalike:duplicate {original} ")
    if name == "github":
        assert site.fake.issues[3]["state_reason"] == "duplicate"
    assert len(site.fake.writes) == 6
    assert written(run, path, *options).json == []
    assert KEY not in done.out + done.err


def test_what_is_there_already_is_not_written(
    run: Run, path: Path, discourse: WrittenSite, github: WrittenSite, discussions: WrittenSite
) -> None:
    topic = discourse.fake.topics[3]
    topic.is_closed = True
    links = [("asker", '<a href="/t/1">no word of ours</a>'), *[("asker", "")] * 30]
    for username, html in [*links, ("Helper", '<a href="/t/wifi-drops/1/2">the same</a>')]:
        post = discourse.fake.add_post(topic, discourse.fake.now_s)
        post.username, post.html = username, html
    done = written(run, path, *discourse.options("--link", "--close", "--limit", 2, *SEND, "--json")).json
    assert [row["why"] for row in done] == [f"post {topic.posts[-1].id} links there", "closed already"]
    github.fake.issues[3]["labels"] = [{"name": "duplicate"}]
    for number in range(2):
        github.fake.add_comment(3, "Duplicate of #1", author_association="NONE", id=number)
    github.fake.add_comment(3, "duplicate of #1", id=9)
    options = ("--link", "--tag", "duplicate", "--limit", 2, *SEND, "--json")
    done = written(run, path, *github.options(*options)).json
    assert [row["why"] for row in done] == ["comment 9 says so", "labelled already"]
    for number in range(4):
        discussions.fake.add_discussion_comment(3, number, "Duplicate of #1", authorAssociation="NONE")
    discussions.fake.add_discussion_comment(3, 9, "duplicate of #1")
    discussions.fake.discussions[3]["closed"] = True
    done = written(run, path, *discussions.options("--link", "--close", "--limit", 2, *SEND, "--json")).json
    assert [row["why"] for row in done] == ["comment 9 says so", "closed already"]
    assert discourse.fake.writes == github.fake.writes == discussions.fake.writes == []


def test_a_label_that_the_repository_lacks_is_named(run: Run, path: Path, discussions: WrittenSite) -> None:
    unknown = written(run, path, *discussions.options("--tag", "nobody's", *SEND, "--json"))
    assert [(row["state"], "no such label" in row["why"]) for row in unknown.json] == [("failed", True)] * 2


@pytest.mark.parametrize(("kind", "state"), [("FORBIDDEN", "failed"), ("INTERNAL", "waiting")])
def test_what_graphql_refuses_is_kept_with_the_reason(
    path: Path, discussions: WrittenSite, monkeypatch: pytest.MonkeyPatch, kind: str, state: str
) -> None:
    forum, send, _ = discussions.sender(path)
    problem = {"errors": [{"type": kind, "message": "no"}], "data": None}
    discussions.fake.write_failures = [(as_json(problem), False)] * (1 if state == "failed" else 5)
    with forum:
        send(("link",), 1)
        first = forum.store.outbox()[0]
        assert (first.state, "answered: no" in first.why) == (state, True)
        assert discussions.comments(3) == []
        assert [write.state for write in send(("link",), is_retried=True)] == ["done", "done"]


def test_an_issue_that_became_a_discussion_or_went_is_found_or_named(path: Path, github: WrittenSite) -> None:
    forum, send, _ = github.sender(path)
    with forum:
        send(("link",), 1)
        del github.fake.issues[4], github.fake.issues[3]
        github.fake.add_discussion(4)
        done = {(write.question_id, write.action): write for write in send(("link", "close"))}
        assert (done["4", "link"].state, done["4", "close"].state) == ("done", "done")
        assert (done["3", "close"].state, "issue 3 answered 404" in done["3", "close"].why) == ("failed", True)


def test_comments_that_never_end_are_looked_through_for_so_long_alone(
    run: Run, path: Path, github: WrittenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.follow.github.MAX_COMMENT_PAGES", 1)
    for _ in range(3):
        github.fake.add_comment(3, "no", author_association="NONE")
    done = written(run, path, *github.options("--link", "--limit", 1, *SEND, "--json")).json
    assert [row["state"] for row in done] == ["failed"]
    assert "more comments than are looked through" in done[0]["why"]
    assert github.fake.writes == []


def test_an_original_that_not_everybody_may_read_is_named_and_never_linked_to(
    run: Run, path: Path, discourse: WrittenSite
) -> None:
    topics = discourse.fake.topics
    topics[1].is_deleted = True
    topics[2].category = topics[4].category = 4
    done = written(run, path, *discourse.options("--link", *SEND, "--json"))
    assert (done.code, [row["state"] for row in done.json]) == (1, ["failed", "done"])
    assert "topic 1 is not listed, or deleted" in done.json[0]["why"]
    topics[1].is_deleted, topics[1].category = False, 4
    assert written(run, path, *discourse.options("--link", *SEND, "--json")).json == []
    retried = written(run, path, *discourse.options("--link", *SEND, "--retry", "--json"))
    assert "topic 1 is in a category that is not public" in retried.json[0]["why"]
    topics[1].category = 1
    retried = written(run, path, *discourse.options("--link", *SEND, "--retry", "--json"))
    assert [row["state"] for row in retried.json] == ["done"]


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("failure", "waits_s"),
    [
        (as_json({"errors": ["slow down"]}, 429, Retry_After="2"), 62),
        (SECONDARY_LIMIT, 180),
        (as_json({}, 503), 5),
    ],
    ids=["asked", "secondary", "503"],
)
@pytest.mark.parametrize("name", ["discourse", "github", "discussions"])
def test_a_site_that_fails_is_asked_again_and_nothing_is_written_twice(
    path: Path, request: pytest.FixtureRequest, name: str, failure: Answer, waits_s: float, is_done: bool
) -> None:
    site: WrittenSite = request.getfixturevalue(name)
    site.fake.write_failures = [(failure, is_done)] * (1 if is_done else 2)
    forum, send, clock = site.sender(path)
    with forum:
        done = send(("link", "close"), 1)
    assert [(write.state, write.tries) for write in done] == [("done", 2 if is_done else 3)]
    assert len(site.comments(3)) == 1
    assert is_done or sum(clock.waits_s) >= waits_s


def test_a_site_that_goes_on_failing_ends_the_run_and_what_is_left_waits(path: Path, github: WrittenSite) -> None:
    github.fake.write_failures = [(as_json({}, 500), False)] * 5
    forum, send, _ = github.sender(path)
    with forum:
        assert send(("link", "close")) == []
        outbox = forum.store.outbox()
        assert [(write.state, write.tries) for write in outbox] == [("waiting", 5)] + [("waiting", 0)] * 3
        assert "answered 500" in outbox[0].why
        github.fake.write_failures = [(as_json({}, 429, Retry_After="86400"), False)]
        assert send(("link", "close")) == []
        assert [write.state for write in send(("link", "close"))] == ["done"] * 4


def test_a_wrong_key_ends_the_run_and_is_not_shown(
    run: Run, path: Path, github: WrittenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITE_KEY", "wrong-key-wrong-key")
    done = written(run, path, *github.options("--link", *SEND, "--json"))
    assert (done.code, "answered 401" in done.json["error"]) == (1, True)
    assert "wrong-key" not in done.out + done.err
    assert {row["state"] for row in written(run, path, "--status", "--json").json} == {"waiting"}
    monkeypatch.delenv("WRITE_KEY")
    assert written(run, path, *github.options("--link", *SEND)).code == 2
    assert written(run, path, *github.options("--link", "--send")).code == 2


def test_what_was_undone_is_not_written_and_what_was_written_stays(run: Run, path: Path, github: WrittenSite) -> None:
    written(run, path, *github.options("--link", "--limit", 1, *SEND))
    with Forum.open(path) as forum:
        for number in (1, 2):
            forum.store.undo(number, "ann")
        assert [write.state for write in forum.store.outbox()] == ["done", "cancelled"]
    assert written(run, path, *github.options("--link", "--close", *SEND, "--json")).json == []
    assert [len(github.comments(number)) for number in (3, 4)] == [1, 0]
    with Forum.open(path) as forum:
        for decision in DECIDED:
            forum.store.decide(decision, has_link=False)
    done = written(run, path, *github.options("--link", *SEND, "--json")).json
    assert [(row["question"], row["state"]) for row in done] == [("4", "done")]
    assert len(github.comments(3)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["discourse", "github", "discussions"])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_process_that_is_killed_while_it_writes_writes_nothing_twice(
    run: Run, path: Path, request: pytest.FixtureRequest, name: str, is_done: bool
) -> None:
    site: WrittenSite = request.getfixturevalue(name)
    site.fake.write_failures = [((0, {}, None), is_done)]
    words = [str(word) for word in ("follow", path, "--write-back", *site.options("--link", "--close", *SEND))]
    with subprocess.Popen([sys.executable, "-m", "askalike", *words], env=dict(os.environ)) as process:
        until = time.monotonic() + 120
        while not site.fake.writes and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
    done = run(*words, "--json")
    assert [row["state"] for row in done.json] == ["done"] * 4
    assert [len(site.comments(number)) for number in range(1, 7)] == [0, 0, 1, 1, 0, 0]
    assert [site.is_closed(number) for number in range(1, 7)] == [False, False, True, True, False, False]


def test_a_folder_that_names_an_address_gets_no_key_without_a_word(
    run: Run, path: Path, discourse: WrittenSite
) -> None:
    with State.create(ForumLayout(path)) as state:
        kept = FollowSettings(discourse.address, "discourse", ORIGIN, key_variable="READ_KEY", username="helper")
        state.put(settings=kept.to_json())
    assert len(written(run, path, "--link", "--json").json) == 2
    refused = written(run, path, "--link", *SEND, "--json")
    assert (refused.code, "you have not said to write" in refused.json["error"]) == (2, True)
    assert discourse.fake.asked == []
    assert written(run, path, "--link", "--to", discourse.address, *SEND).code == 0
    assert written(run, path, "--link", "--close", *SEND).code == 0  # it was said before
    assert len(discourse.fake.writes) == 4


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--link", "--text", "no place for the original"),
        ("--tag", "a, b"),
        ("--link", "--to", "board.jsonl"),
        ("--tag", "duplicate"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_written_is_explained(run: Run, path: Path, options: tuple[str, ...]) -> None:
    to = ("--to", "https://forum.example.org", "--source", ORIGIN)
    done = written(run, path, *to, *options, "--json")
    assert (done.code, bool(done.json["error"])) == (2, True)
    assert written(run, path, "--link").code == 2


def test_a_redirection_is_not_followed_and_ends_the_run_where_the_whole_site_leads_elsewhere(
    path: Path, github: WrittenSite
) -> None:
    elsewhere = (301, {"Location": "https://elsewhere.example.org/"}, b"{}")
    github.fake.issues[1]["moved"] = True
    forum, send, _ = github.sender(path)
    with forum:
        assert [write.state for write in send(("link",))] == ["failed", "done"]
        github.fake.refusals = [elsewhere] * 9
        with pytest.raises(SourceError, match="leads to"):
            send(("close",))
        assert {write.state for write in forum.store.outbox() if write.action == "close"} == {"waiting"}
