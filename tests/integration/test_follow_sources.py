"""GitHub's issues, and sites that answer anything: nothing worse than an error that is named."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from tests.command import Run

from askalike import Forum
from askalike.errors import SourceError
from askalike.follow import github
from askalike.follow.discourse import Discourse
from askalike.follow.follower import Follower, Rhythm
from askalike.follow.github import GitHub
from askalike.follow.pace import Clock, Pace
from askalike.follow.settings import FollowSettings
from askalike.follow.state import State
from askalike.readers.values import Unreadable
from askalike.store import ForumLayout
from askalike.types import Link
from askalike.web import FailedError

pytestmark = pytest.mark.usefixtures("words_alone")


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def site(answer: Callable[[str, Any], Answer]) -> Iterator[str]:
    """Give the address of a server that answers as a function says."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.headers["Body"] = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.do_GET()

        def do_GET(self) -> None:
            status, headers, content = answer(self.path, self.headers)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Forum.create(tmp_path / "f").close()
    return tmp_path / "f"


def held(folder: Path) -> dict[str, str]:
    with Forum.open(folder) as forum:
        return {one.id: one.title for one in forum.questions()}


# -- GitHub ------------------------------------------------------------------------------------------------------------


MOST_BARE_PAGES = 1
"""So many pages of a list are given by number alone, without the cursor of the one before."""


class FakeGitHub:
    """The issues of one repository, as GitHub's REST API describes them: paged by ``Link``, with tags and limits.

    Links name the repository by its number, and have a cursor.
    """

    def __init__(self) -> None:
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.discussions: dict[int, dict[str, Any]] = {}
        self.graph_errors: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.limited_until = 0
        self.are_cursors_refused = False

    def add(self, number: int, title: str, at: str, *comments: str, **more: Any) -> None:
        self.issues[number] = {
            "number": number,
            "title": title,
            "body": f"body of {title}",
            "state": "open",
            "user": {"login": "ann"},
            "labels": [{"name": "bug"}],
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": at,
            "closed_at": None,
            "comments": len(comments),
            "html_url": f"https://github.com/a/b/issues/{number}",
            "reactions": {"+1": 2},
        } | more
        self.comments[number] = [
            {"id": number * 100 + place, "body": said, "user": {"login": "bob"}, "created_at": at, "updated_at": at}
            | {"author_association": "MEMBER", "issue_url": f"https://api.github.com/repos/a/b/issues/{number}"}
            for place, said in enumerate(comments)
        ]

    def answer(self, path: str, headers: Any) -> Answer:
        self.asked.append(path)
        parts = urlsplit(path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.limited_until:
            limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(self.limited_until)}
            return 403, limits, b'{"message": "API rate limit exceeded"}'
        if parts.path == "/graphql":
            return 200, {}, json.dumps(self._graph(json.loads(headers["Body"]))).encode()
        words = parts.path.removeprefix("/repos/a/b").strip("/").split("/")
        if words == ["issues"]:
            return self._paged(parts.path, asked, list(self.issues.values()), headers)
        if words == ["issues", "comments"]:
            return self._paged(parts.path, asked, [one for many in self.comments.values() for one in many], headers)
        issue = self.issues.get(int(words[1]))
        if issue is None:
            return 404, {}, b'{"message": "Not Found"}'
        if issue.get("moved"):
            return 301, {"Location": "https://api.github.com/repositories/1/issues/9"}, b"{}"
        if len(words) == 3:
            return self._paged(parts.path, asked, self.comments[issue["number"]], headers)
        return 200, {}, json.dumps(issue).encode()

    def discuss(self, number: int, title: str, at: str, *comments: dict[str, Any], **more: Any) -> None:
        self.discussions[number] = {
            "number": number,
            "title": title,
            "body": f"body of {title}",
            "createdAt": f"2026-01-01T00:00:{number:02}Z",
            "updatedAt": at,
            "closed": False,
            "closedAt": None,
            "isAnswered": False,
            "upvoteCount": 3,
            "url": f"https://github.com/a/b/discussions/{number}",
            "author": {"login": "ann"},
            "category": {"name": "Q&A"},
            "labels": {"nodes": [{"name": "wifi"}]},
            "comments": list(comments),
        } | more

    def _graph(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.graph_errors:
            return {"errors": self.graph_errors, "data": None}
        given = asked["variables"]
        assert (given["owner"], given["name"]) == ("a", "b")
        first = int(given["after"] or 0)
        if "number" in given:
            found = self.discussions.get(given["number"])
            if found is None:
                said = {"type": "NOT_FOUND", "message": "Could not resolve to a Discussion"}
                return {"data": {"repository": {"discussion": None}}, "errors": [said]}
            return {"data": {"repository": {"discussion": found | {"comments": _connection(found["comments"], first)}}}}
        name = {"UPDATED_AT": "updatedAt", "CREATED_AT": "createdAt"}[given["order"]["field"]]
        is_newest = given["order"]["direction"] == "DESC"
        rows = sorted(self.discussions.values(), key=lambda one: (one[name], one["number"]), reverse=is_newest)
        shown = [one | {"comments": {"totalCount": len(one["comments"])}} for one in rows]
        return {"data": {"repository": {"discussions": _connection(shown, first)}}}

    def _paged(self, path: str, asked: dict[str, str], rows: list[dict[str, Any]], headers: Any) -> Answer:
        name = "updated_at" if asked.get("sort") == "updated" else "created_at"
        rows = sorted(rows, key=lambda row: (row[name], row.get("number", row.get("id"))))
        rows = [row for row in rows if row["updated_at"] >= asked.get("since", "") and not row.get("moved")]
        rows = rows[::-1] if asked.get("direction") == "desc" else rows
        size, page = 2, int(asked.get("page", 1))
        if self.are_cursors_refused if "after" in asked else page > MOST_BARE_PAGES:
            said = "Pagination with the page parameter is not supported for large datasets"
            return 422, {}, json.dumps({"message": said}).encode()
        found = json.dumps(rows[(page - 1) * size : page * size]).encode()
        tag = f'W/"{hash((found, str(asked)))}"'
        if headers.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, b""
        place = f"https://api.github.com/repositories/1300192{path.removeprefix('/repos/a/b')}"
        more = urlencode({name: value for name, value in asked.items() if name not in ("page", "after")})
        following = f'<{place}?{more}&after=Y3Vyc29yOnYyOpHO%3D%3D&page={page + 1}>; rel="next"'
        return 200, {"ETag": tag} | ({"Link": following} if len(rows) > page * size else {}), found


def _connection(rows: list[dict[str, Any]], first: int) -> dict[str, Any]:
    """Return two of some rows, as GraphQL pages them."""
    is_last = first + 2 >= len(rows)
    return {"nodes": rows[first : first + 2], "pageInfo": {"hasNextPage": not is_last, "endCursor": str(first + 2)}}


def _said(number: int, body: str, *replies: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = {"databaseId": number, "body": body, "createdAt": "2026-01-02T00:00:00Z", "upvoteCount": 1}
    made |= {"isAnswer": False, "isMinimized": False, "author": {"login": "bob"}} | more
    return made | {"replies": {"totalCount": len(replies), "nodes": list(replies)}}


def test_discussions_are_followed_beside_issues_with_their_answers_and_replies(folder: Path) -> None:
    fake = FakeGitHub()
    fake.add(1, "Issue 1", "2026-01-01T00:00:00Z", "first")
    for number in range(2, 7):
        fake.discuss(number, f"Discussion {number}", f"2026-01-0{number}T00:00:00Z")
    fake.discuss(
        7,
        "Wifi drops",
        "2026-01-08T00:00:00Z",
        _said(1, "Change the channel.", _said(2, "That helped.", author=None), isAnswer=True),
        _said(3, "Spam", isMinimized=True),
        _said(100, "More", *(_said(200 + one, "me too") for one in range(2)))
        | {"replies": {"totalCount": 99, "nodes": []}},
        closedAt="2026-01-09T00:00:00Z",
    )
    settings = FollowSettings("https://github.com/a/b", "github", discussions=True)
    with site(fake.answer) as address, Forum.open(folder) as forum, State.create(ForumLayout(folder)) as state:
        with pytest.raises(SourceError, match="key"):
            GitHub("https://github.com/a/b", Pace(0), api=address, has_discussions=True)
        clock = Clock(pause=lambda _: None, steady=itertools.count().__next__)
        source = GitHub("https://github.com/a/b", Pace(0, clock), "k", address, has_discussions=True)
        follower = Follower(forum, source, state, settings.origin)
        assert follower.once()
        assert held(folder).keys() == set("1234567")
        question = forum.question("7")
        assert (question.tags, question.score, question.closed) == (
            ("Q&A", "wifi"),
            3,
            datetime(2026, 1, 9, tzinfo=UTC),
        )
        answers = {one.id: (one.body, one.is_accepted, one.author) for one in forum.answers("7")}
        assert answers == {
            "d1": ("Change the channel.", True, "bob"),
            "d2": ("That helped.", False, ""),
            "d100": ("More", False, "bob"),
        }
        assert state.rejects()[1] == [("7", "replies beyond the first 50 of comment 100")]
        fake.asked.clear()
        follower._poll()
        assert fake.asked.count("/graphql") == 1
        follower._read(3)
        fake.discuss(8, "Printer jams", "2026-02-01T00:00:00Z")
        fake.discuss(2, "Discussion 2, renamed", "2026-02-02T00:00:00Z")
        del fake.issues[1], fake.discussions[3]
        fake.discuss(1, "Issue 1, now a discussion", "2026-02-03T00:00:00Z")
        follower._poll()
        follower._read(3)
        now = held(folder)
        assert (now["8"], now["2"], now["1"]) == ("Printer jams", "Discussion 2, renamed", "Issue 1, now a discussion")
        assert follower.once()
        assert held(folder).keys() == set("1245678")
        fake.graph_errors = [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]
        with pytest.raises(FailedError, match="rate limit"):
            source.read("8")
        fake.graph_errors = [{"type": "NOT_FOUND", "message": "Could not resolve to a Repository"}]
        with pytest.raises(SourceError, match="may read it"):
            source.read("8")
        assert held(folder).keys() == set("1245678")


def test_issues_are_followed_with_their_comments_and_members_marks_of_duplicates(folder: Path) -> None:
    fake = FakeGitHub()
    for number in range(1, 6):
        fake.add(number, f"Issue {number}", f"2026-01-0{number}T00:00:00Z", "first", "second", "third")
    fake.add(
        6, "Crash again", "2026-01-06T00:00:00Z", "Duplicate of #1", closed_at="2026-01-06T00:00:00Z", state="closed"
    )
    fake.add(7, "A pull request", "2026-01-07T00:00:00Z", pull_request={})
    with site(fake.answer) as address, Forum.open(folder) as forum, State.create(ForumLayout(folder)) as state:
        source = GitHub("https://github.com/a/b", Pace(0), api=address)
        follower = Follower(forum, source, state, FollowSettings("https://github.com/a/b", "github").origin)
        assert follower.once()
        assert held(folder).keys() == {"1", "2", "3", "4", "5", "6"}
        question = forum.question("6")
        assert (question.closed, question.score, question.tags) == (datetime(2026, 1, 6, tzinfo=UTC), 2, ("bug",))
        assert (forum.links(), len(forum.answers("3"))) == ([Link("6", "1", "duplicate")], 3)
        follower._poll()  # comments of the last moment are looked at once more
        follower._read(3)
        fake.asked.clear()
        follower._poll()
        assert len(fake.asked) == 1
        assert not state.due(9, 1e12), "nothing has changed, and one request with a tag says so"
        fake.add(2, "Issue 2, edited", "2026-02-01T00:00:00Z", "first")
        fake.issues[4]["moved"] = True
        del fake.issues[5]
        assert follower.once()
        assert held(folder) == {"1": "Issue 1", "2": "Issue 2, edited", "3": "Issue 3", "6": "Crash again"}
        assert len(forum.answers("2")) == 1


def test_a_sweep_whose_place_is_refused_begins_again_once(folder: Path) -> None:
    fake = FakeGitHub()
    for number in range(1, 8):
        fake.add(number, f"Issue {number}", f"2026-01-0{number}T00:00:00Z")
    with site(fake.answer) as address, State.create(ForumLayout(folder)):
        source = GitHub("https://github.com/a/b", Pace(0), api=address)
        second = source.sweep(source.sweep(None).cursor)
        assert list(second.stamps) == ["3", "4"]
        assert list(source.sweep(7).stamps) == ["1", "2"], "an earlier version kept the page's number"
        fake.are_cursors_refused = True
        anew = source.sweep(second.cursor)
        assert anew.stamps == {}
        fake.are_cursors_refused = False
        place, found = anew.cursor, []
        while place is not None:
            piece = source.sweep(place)
            found += piece.stamps
            place, last = piece.cursor, place
        assert found == list("1234567")
        fake.are_cursors_refused = True
        with pytest.raises(SourceError, match="answered 422"):
            source.sweep(last)


def test_a_link_to_another_site_is_not_followed(folder: Path) -> None:
    asked: list[str] = []

    def answer(path: str, _: Any) -> Answer:
        asked.append(path)
        link = {"Link": '<http://169.254.169.254/meta?page=2&after=x>; rel="next"'}
        return 200, link if len(asked) == 1 else {}, b"[]"

    with site(answer) as address, State.create(ForumLayout(folder)):
        source = GitHub("https://github.com/a/b", Pace(0), api=address)
        assert source.sweep(source.sweep(None).cursor).cursor is None
    assert asked[1] == "/repos/a/b/issues?page=2&after=x"


def test_a_limit_that_is_reached_is_waited_for_and_is_no_deletion(folder: Path) -> None:
    fake = FakeGitHub()
    fake.add(1, "Issue 1", "2026-01-01T00:00:00Z")
    now = [1_750_000_000.0]
    with site(fake.answer) as address, State.create(ForumLayout(folder)):
        pace = Pace(0, Clock(lambda: now[0], lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds)))
        source = GitHub("https://github.com/a/b", pace, api=address)
        fake.limited_until = 1_750_000_900
        with pytest.raises(FailedError, match="rate limit"):
            source.read("1")
        fake.limited_until = 0
        assert source.read("1").thread is not None
        assert now[0] >= 1_750_000_900


def test_webhooks_name_the_issue_and_leave_pull_requests_out() -> None:
    assert github.event_ids("issue_comment", {"issue": {"number": 4}, "comment": {}}) == ("4",)
    assert github.event_ids("issue_comment", {"issue": {"number": 4, "pull_request": {}}}) == ()
    assert github.event_ids("issues", {"issue": {"number": "../4"}}) == ()
    assert github.event_ids("push", {"issue": {"number": 4}}) == ()
    assert github.event_ids("discussion", {"discussion": {"number": 4}}) == ("4",)
    assert github.event_ids("discussion_comment", {"discussion": {"number": 4}, "comment": {"id": 9}}) == ("4",)


# -- sites that answer anything ----------------------------------------------------------------------------------------

SITE_JSON = {"categories": [{"id": 1, "name": "Help", "slug": "help", "read_restricted": False}]}
TOPIC: dict[str, Any] = {"id": 7, "title": "T", "category_id": 1, "archetype": "regular", "visible": True}
POST = {"id": 1, "post_number": 1, "cooked": "<p>b</p>"}


@pytest.mark.parametrize(
    ("status", "headers", "content", "wanted"),
    [
        (200, {}, b"[" * 50_000, FailedError),
        (200, {}, b"[1]", FailedError),
        (200, {}, b"\xff", FailedError),
        (200, {}, json.dumps(TOPIC | {"id": 8}).encode(), FailedError),
        (200, {}, json.dumps(TOPIC | {"title": ["x"], "post_stream": {"posts": [POST]}}).encode(), Unreadable),
        (200, {}, json.dumps(TOPIC | {"title": "", "post_stream": {"posts": []}}).encode(), Unreadable),
        (200, {"Content-Length": "99999"}, b"{", FailedError),
        (302, {"Location": "/t/another-slug/7"}, b"", FailedError),
        (404, {}, b"<html>a proxy has no such site</html>", FailedError),
        (403, {}, b"[]", FailedError),
        (418, {}, b"{}", FailedError),
        (500, {}, b"", FailedError),
    ],
)
def test_an_answer_that_is_no_topic_is_named_and_nothing_is_deleted(
    folder: Path, status: int, headers: dict[str, str], content: bytes, wanted: type[Exception]
) -> None:
    def answer(path: str, _: Any) -> Answer:
        if path == "/site.json":
            return 200, {}, json.dumps(SITE_JSON).encode()
        return status, headers, content

    with site(answer) as address, State.create(ForumLayout(folder)):
        with pytest.raises(wanted) as told:
            Discourse(address, Pace(0)).read("7")
        assert str(told.value)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "posts",
    [
        "no list",
        [None, 3, "x", {"id": "x"}, {"id": 10**30}, {"id": True}],
        [POST, {"id": 2, "post_number": "two", "cooked": ["x"]}, {"id": 3, "topic_id": 99, "cooked": "elsewhere"}],
        [POST, {**POST, "id": 4, "link_counts": [{"url": 7, "internal": "x"}], "created_at": "never"}],
    ],
)
def test_a_topic_with_values_of_any_kind_is_read_without_what_cannot_be_used(folder: Path, posts: Any) -> None:
    told = TOPIC | {"post_stream": {"posts": posts, "stream": [1, None, "x", -3]}, "tags": {"a": 1}, "details": 4}

    def answer(path: str, _: Any) -> Answer:
        return 200, {}, json.dumps(SITE_JSON if path == "/site.json" else told | {"tags": []}).encode()

    with site(answer) as address, State.create(ForumLayout(folder)):
        reading = Discourse(address, Pace(0)).read("7")
    assert reading.thread is not None
    assert reading.thread.question.title == "T"
    assert all(one.question_id == "7" and one.body == "<p>b</p>" for one in reading.thread.answers)


def test_an_address_at_which_no_discourse_answers_ends_with_what_to_do(run: Run, folder: Path) -> None:
    with site(lambda path, _: (200, {}, b"{}")) as address:
        done = run("follow", folder, "--from", address, "--once")
        assert (done.code, "check that a Discourse site answers" in " ".join(done.err.split())) == (1, True)
    with site(lambda path, _: (301, {"Location": "https://elsewhere.example.org/"}, b"")) as address:
        done = run("follow", folder, "--from", address, "--once")
        assert (done.code, "elsewhere.example.org" in done.err) == (1, True)


def _one_topic(path: str, _: Any) -> Answer:
    """Answer as a Discourse with one topic does."""
    found: Any = {"/site.json": SITE_JSON, "/posts.json": {"latest_posts": []}}.get(path)
    if path.startswith("/latest.json"):
        found = {"topic_list": {"topics": [TOPIC] if "page=0" in path else []}}
    return 200, {}, json.dumps(found or TOPIC | {"post_stream": {"posts": [POST]}}).encode()


INVALID_ACCESS = (
    b'{"errors": ["You are not permitted to view the requested resource."], "error_type": "invalid_access"}'
)
RENAMED = {"Location": "https://api.github.com/repositories/1300192/issues/7"}


@pytest.mark.parametrize(
    ("kind", "refusal", "wanted"),
    [
        ("discourse", (403, {}, INVALID_ACCESS), "answered 403"),
        ("github", (301, RENAMED, b"{}"), "leads to"),
        ("github", (404, {}, b'{"message": "Not Found"}'), "answered 404"),
        ("github", (410, {}, b'{"message": "Issues has been disabled in this repository."}'), "answered 410"),
    ],
)
def test_a_site_that_refuses_everything_has_deleted_nothing(
    folder: Path, kind: str, refusal: Answer, wanted: str
) -> None:
    fake = FakeGitHub()
    fake.add(7, "T", "2026-01-01T00:00:00Z")
    answers = {"discourse": _one_topic, "github": fake.answer}
    with (
        site(lambda *asked: answers[kind](*asked)) as address,
        Forum.open(folder) as forum,
        State.create(ForumLayout(folder)) as state,
    ):
        pace = Pace(0)
        source = Discourse(address, pace, "k") if kind == "discourse" else GitHub(f"{address}/a/b", pace, "k", address)
        follower = Follower(forum, source, state, FollowSettings(source.address, kind).origin)
        assert follower.once()
        answers[kind] = lambda *_: refusal
        state.add_event("e", ["7"], 1.0)
        waiting = state.due(9, 2.0)
        with pytest.raises(SourceError, match=wanted):
            follower.turn()
        assert state.due(9, 2.0) == waiting != []
        assert held(folder) == {"7": "T"}


def test_a_private_category_is_followed_where_it_is_named_alone(folder: Path) -> None:
    categories = {
        "categories": [*SITE_JSON["categories"], {"id": 2, "name": "Staff", "slug": "staff", "read_restricted": True}]
    }
    topics = [TOPIC, TOPIC | {"id": 8, "category_id": 2}, TOPIC | {"id": 9, "archetype": "private_message"}]
    topics += [TOPIC | {"id": 10, "visible": False}, TOPIC | {"id": 11, "deleted_at": "2026-01-01T00:00:00Z"}]

    def answer(path: str, _: Any) -> Answer:
        found: Any = {"latest_posts": []}
        if path == "/site.json":
            found = categories
        elif path.startswith("/latest.json"):
            found = {"topic_list": {"topics": topics if "page=0" in path else []}}
        elif path.startswith("/t/"):
            number = int(path.removeprefix("/t/").removesuffix(".json"))
            found = next(one for one in topics if one["id"] == number) | {"post_stream": {"posts": [POST]}}
        return 200, {}, json.dumps(found).encode()

    with site(answer) as address, Forum.open(folder) as forum, State.create(ForumLayout(folder)) as state:
        for named, wanted in (((), {"7"}), (("staff",), {"7", "8"}), ((), {"7"})):
            source = Discourse(address, Pace(0), "key", private=named)
            origin = FollowSettings(address, "discourse").origin
            assert Follower(forum, source, state, origin, Rhythm()).once()
            assert {one.id for one in forum.questions()} == wanted
