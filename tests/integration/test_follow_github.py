"""A forum that follows a repository on GitHub: issues, discussions, marks of duplicates, limits and redirections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.fake_github import DAY, SECONDARY_LIMIT, FakeGitHub, discussion_comment
from tests.fake_site import Answer, FakeClock, Request, as_json, serving

from askalike import Forum
from askalike.errors import SourceError
from askalike.follow.follower import Follower, Rhythm
from askalike.follow.github import GitHub
from askalike.follow.settings import FollowSettings
from askalike.follow.site import Pace
from askalike.follow.state import State
from askalike.store import ForumLayout
from askalike.types import Link
from askalike.web import FailedError

pytestmark = pytest.mark.usefixtures("words_alone")

ADDRESS = "https://github.com/own/name"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Forum.create(tmp_path / "f").close()
    return tmp_path / "f"


@contextmanager
def following(folder: Path, fake: FakeGitHub, **more: Any) -> Iterator[tuple[Follower, Forum, State, FakeClock]]:
    """Give a follower of a repository, with its forum, state and clock."""
    clock = FakeClock()
    with serving(fake.answer) as api, Forum.open(folder) as forum, State.create(ForumLayout(folder)) as state:
        site = GitHub(ADDRESS, Pace(0, clock.clock), fake.key, api, **more)
        origin = FollowSettings(ADDRESS, "github").origin
        yield Follower(forum, site, state, origin, Rhythm(check_s=60.0)), forum, state, clock


def titles(forum: Forum) -> dict[str, str]:
    return {question.id: question.title for question in forum.questions()}


def test_issues_are_followed_with_their_comments_and_are_gone_where_they_are_deleted_or_moved(folder: Path) -> None:
    fake = FakeGitHub()
    for number in range(1, 6):
        fake.add_issue(number, "first", "second", "third")
    fake.add_issue(6, closed_at=DAY.format(6), state="closed")
    fake.add_issue(7, pull_request={"url": "https://api.github.com/repos/own/name/pulls/7"})
    with following(folder, fake) as (follower, forum, state, _):
        assert follower.once()
        assert titles(forum) == {str(number): f"Issue {number}" for number in range(1, 7)}
        question = forum.question("6")
        assert (question.closed, question.score, question.tags) == (datetime(2026, 1, 6, tzinfo=UTC), 2, ("bug",))
        assert len(forum.answers("3")) == 3
        fake.add_issue(2, "first", title="Issue 2, edited", updated="2026-02-01T00:00:00Z")
        fake.issues[4]["moved"] = True
        del fake.issues[5]
        fake.add_issue(8)
        fake.refusals = [(200, {}, b"[" * 50_000)]
        assert follower.once()
        now = titles(forum)
        assert (now.keys(), now["2"]) == ({"1", "2", "3", "6", "8"}, "Issue 2, edited")
        assert len(forum.answers("2")) == 1
        assert state.rejects() == (0, [])


def test_a_poll_of_a_list_that_has_not_changed_is_answered_by_its_tag(folder: Path) -> None:
    fake = FakeGitHub()
    for number in (1, 2, 3):
        fake.add_issue(number)
    with serving(fake.answer) as api:
        site = GitHub(ADDRESS, Pace(0, FakeClock().clock), api=api)
        first = site.poll(None)
        second = site.poll(first.cursor)
        assert (first.stamps, second.stamps.keys()) == ({}, {"3"})
        assert site.poll(second.cursor).stamps == {}
        fake.add_issue(2, "a comment", updated="2026-02-01T00:00:00Z")
        assert site.poll(second.cursor).stamps.keys() == {"3", "2"}
        assert "if-none-match" in fake.asked[-1].headers


@pytest.mark.parametrize(
    ("body", "more", "original"),
    [
        ("Duplicate of #1", {}, "1"),
        ("duplicate of #1, see there", {}, "1"),
        ("Duplicate of own/name#1", {}, "1"),
        (f"Duplicate of {ADDRESS}/issues/1#issuecomment-7", {}, "1"),
        ("Duplicate of https://github.com/OWN/Name/discussions/1", {}, "1"),
        ("Duplicate of https://github.com/other/name/issues/1", {}, ""),
        ("Duplicate of https://evil.example.org/own/name/issues/1", {}, ""),
        ("Duplicate of other/name#1", {}, ""),
        ("No duplicate of #1", {}, ""),
        ("Duplicate of #1", {"author_association": "NONE"}, ""),
        ("Duplicate of #2", {}, ""),
    ],
)
def test_a_members_comment_that_names_an_issue_of_the_same_repository_links_both(
    folder: Path, body: str, more: dict[str, str], original: str
) -> None:
    fake = FakeGitHub()
    fake.add_issue(1)
    fake.add_issue(2)
    fake.add_comment(2, body, **more)
    with following(folder, fake) as (follower, forum, _, _):
        assert follower.once()
        assert forum.store.links() == ([Link("2", original, "duplicate")] if original else [])


def test_discussions_are_followed_beside_issues_with_their_answers_and_replies(folder: Path) -> None:
    fake = FakeGitHub(key="k")
    fake.add_issue(1, "first")
    for number in range(2, 8):
        fake.add_discussion(number)
    fake.discussions[7]["closedAt"] = DAY.format(9)
    reply = discussion_comment(2, "That helped.", author=None)
    fake.add_discussion_comment(7, 1, "Change the channel.", reply, isAnswer=True)
    fake.add_discussion_comment(7, 3, "Spam", isMinimized=True)
    fake.add_discussion_comment(7, 4, "More", replies={"totalCount": 99, "nodes": []})
    with pytest.raises(SourceError, match="key"):
        GitHub(ADDRESS, Pace(0), has_discussions=True)
    with following(folder, fake, has_discussions=True) as (follower, forum, state, _):
        assert follower.once()
        assert titles(forum).keys() == set("1234567")
        question = forum.question("7")
        assert (question.tags, question.score) == (("Q&A", "wifi"), 3)
        assert question.closed == datetime(2026, 1, 9, tzinfo=UTC)
        answers = {answer.id: (answer.body, answer.is_accepted, answer.author) for answer in forum.answers("7")}
        assert answers == {
            "d1": ("Change the channel.", True, "bob"),
            "d2": ("That helped.", False, ""),
            "d4": ("More", False, "bob"),
        }
        assert state.rejects()[1] == [("7", "replies beyond the first 50 of comment 4")]
        fake.add_discussion(8, title="Printer jams")
        fake.add_discussion(2, title="Renamed", updated="2026-02-02T00:00:00Z")
        del fake.issues[1], fake.discussions[3]
        fake.add_discussion(1, title="Now a discussion", updated="2026-02-03T00:00:00Z")
        assert follower.once()
        now = titles(forum)
        assert (now.keys(), now["1"], now["2"]) == (set("1245678"), "Now a discussion", "Renamed")
        fake.graph_errors = [{"type": "NOT_FOUND", "message": "Could not resolve to a Repository"}]
        with pytest.raises(SourceError, match="may read it"):
            follower.once()
        assert titles(forum).keys() == set("1245678")


PRIMARY_LIMIT: Answer = as_json(
    {"message": "API rate limit exceeded"}, 403, X_RateLimit_Remaining="0", X_RateLimit_Reset="1750000900"
)


@pytest.mark.parametrize(
    ("refusals", "waits_s"),
    [
        ([SECONDARY_LIMIT], [60]),
        ([SECONDARY_LIMIT] * 3, [60, 120, 240]),
        ([as_json({"message": "You have triggered an abuse detection mechanism"}, 403)], [60]),
        ([as_json({"message": "Too many requests"}, 429)], [60]),
        ([as_json({"message": "Slow down"}, 403, Retry_After="30")] * 2, [30, 60]),
        ([PRIMARY_LIMIT], [901]),
    ],
    ids=["secondary", "again", "abuse", "429", "asked", "primary"],
)
def test_a_limit_is_a_pause_of_a_minute_at_least_that_grows_and_is_no_deletion(
    folder: Path, refusals: list[Answer], waits_s: list[float]
) -> None:
    fake = FakeGitHub()
    fake.add_issue(1)
    with following(folder, fake) as (follower, forum, _, clock):
        fake.refusals = list(refusals)
        assert follower.once()
        assert titles(forum) == {"1": "Issue 1"}
        assert sum(waits_s) <= clock.now_s - 1_750_000_000 < sum(waits_s) + 10


def test_a_limit_of_graphql_is_the_same_pause_for_issues_too(folder: Path) -> None:
    fake = FakeGitHub(key="k")
    clock = FakeClock()
    with serving(fake.answer) as api:
        site = GitHub(ADDRESS, Pace(0, clock.clock), "k", api, has_discussions=True)
        fake.graph_errors = [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]
        with pytest.raises(FailedError, match="rate limit") as caught:
            site.sweep("")
        assert caught.value.pause_s == site.pace.wait_s() == 60
        fake.graph_errors = [{"message": "You have exceeded a secondary rate limit."}]
        with pytest.raises(FailedError, match="secondary rate limit"):
            site.sweep("")
        assert site.pace.wait_s() == 120


def test_one_issue_that_cannot_be_read_keeps_no_other_waiting(folder: Path) -> None:
    fake = FakeGitHub()
    for number in (1, 2, 3):
        fake.add_issue(number)
    fake.issues[1] |= {"title": ["no", "text"], "body": None}
    fake.issues[2] |= {"title": "broken \ud83d text", "user": None, "labels": [None, 7], "reactions": "x"}
    with following(folder, fake) as (follower, forum, state, _):
        assert follower.once()
        assert titles(forum).keys() == {"2", "3"}
        assert [identifier for identifier, _ in state.rejects()[1]] == ["1"]


def test_a_sweep_whose_place_is_refused_begins_again_once(folder: Path) -> None:
    fake = FakeGitHub()
    for number in range(1, 8):
        fake.add_issue(number)
    with serving(fake.answer) as api:
        site = GitHub(ADDRESS, Pace(0), api=api)
        second = site.sweep(site.sweep(None).cursor)
        assert list(second.stamps) == ["3", "4"]
        fake.are_cursors_refused = True
        anew = site.sweep(second.cursor)
        assert anew.stamps == {}
        fake.are_cursors_refused = False
        cursor, listed = anew.cursor, []
        while cursor is not None:
            listing, last = site.sweep(cursor), cursor
            listed += listing.stamps
            cursor = listing.cursor
        assert listed == list("1234567")
        fake.are_cursors_refused = True
        with pytest.raises(SourceError, match="answered 422"):
            site.sweep(last)


def test_a_link_to_another_site_is_not_followed(folder: Path) -> None:
    paths: list[str] = []

    def answer(request: Request) -> Answer:
        paths.append(request.path)
        link = {"Link": '<http://169.254.169.254/meta?page=2&after=x>; rel="next"'}
        return 200, link if len(paths) == 1 else {}, b"[]"

    with serving(answer) as api:
        site = GitHub(ADDRESS, Pace(0), api=api)
        assert site.sweep(site.sweep(None).cursor).cursor is None
    assert paths[1] == "/repos/own/name/issues?page=2&after=x"


RENAMED = {"Location": "https://api.github.com/repositories/1300192/issues/1"}


@pytest.mark.parametrize(
    ("refusal", "wanted"),
    [
        ((301, RENAMED, b'{"message": "Moved Permanently"}'), "leads to"),
        (as_json({"message": "Not Found"}, 404), "answered 404"),
        (as_json({"message": "Issues has been disabled in this repository."}, 410), "answered 410"),
        (as_json({"message": "Bad credentials"}, 401), "answered 401"),
    ],
)
def test_a_repository_that_refuses_everything_has_deleted_nothing(folder: Path, refusal: Answer, wanted: str) -> None:
    fake = FakeGitHub()
    for number in (1, 2):
        fake.add_issue(number)
    with following(folder, fake) as (follower, forum, state, _):
        assert follower.once()
        fake.refusals = [refusal] * 9
        state.add_event("e", ["1"], 1.0)
        with pytest.raises(SourceError, match=wanted):
            follower.turn()
        assert [thread.id for thread in state.due(9, 2.0)] == ["1"]
        assert titles(forum).keys() == {"1", "2"}
