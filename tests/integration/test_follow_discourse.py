"""A forum that follows a Discourse site stays equal to it, whatever fails, is lost, hidden, or is killed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run
from tests.fake_discourse import CALM
from tests.fake_site import Answer, Request, as_json, serving
from tests.living import Following, Killed, living

from askalike import Forum
from askalike.errors import DatabaseError, SourceError
from askalike.follow.discourse import Discourse
from askalike.follow.site import Pace
from askalike.follow.state import State
from askalike.progress import SilentProgress
from askalike.readers.values import Unreadable
from askalike.store import Store
from askalike.web import FailedError

pytestmark = pytest.mark.usefixtures("words_alone")

SECRET = "FOLLOWED_FORUM_SECRET"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "secret")


@contextmanager
def calm(tmp_path: Path, seed: int, topics: int, rate: int = 0, **more: Any) -> Iterator[Following]:
    """Give a forum and a site that neither changes nor fails by chance."""
    with living(tmp_path / "f", seed, topics, chances=CALM, rate=rate, **more) as following:
        following.prepare(SECRET)
        yield following


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_living_forum_is_followed_without_a_difference_though_it_is_killed_and_loses_webhooks(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with living(tmp_path / "f", seed, 100, mutations_s=30.0, rate=600) as following:
        following.prepare(SECRET)
        until_s, kills = following.fake.now_s + 2 * 3_600, 0
        while following.fake.now_s < until_s:
            following.kill_after = chance.randint(2, 100) if kills < 12 else 0
            try:
                following.live(until_s)
            except Killed:
                kills += 1
        following.kill_after = 0
        following.settle()
        assert kills == 12
        assert following.fake.counts["over the rate"] == 0
        assert following.fake.mutated.total() > 150
        assert following.differences() == []


def test_one_topic_that_always_fails_keeps_no_other_waiting(tmp_path: Path) -> None:
    with calm(tmp_path, 3, 30) as following:
        answer = following.fake.answer

        def failing(path: str, headers: Any) -> Any:
            return (500, {}, b"") if path.startswith("/t/7.json") else answer(path, headers)

        following.fake.answer = failing  # type: ignore[method-assign]
        with following.follower() as follower:
            assert not follower.once()
        with Forum.open(following.folder) as forum:
            assert {question.id for question in forum.questions()} == following.fake.threads("").keys() - {"7"}
        with State(following.layout) as state:
            ((identifier, tries, why),) = state.failing()
        assert (identifier, tries >= 3, "answered 500" in why) == ("7", True, True)
        following.fake.answer = answer  # type: ignore[method-assign]
        following.settle()
        assert following.differences() == []


def test_a_database_that_goes_away_and_comes_back_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calm(tmp_path, 3, 20) as following:
        replace_threads, tries = Store.replace_threads, itertools.count()

        def failing(self: Store, *arguments: Any, **more: Any) -> Any:
            if next(tries) < 2:
                raise DatabaseError("postgresql://db.example.org/travel does not answer", "start it")
            return replace_threads(self, *arguments, **more)

        monkeypatch.setattr(Store, "replace_threads", failing)
        with following.follower() as follower:
            assert follower.once()
        assert next(tries) > 2
        assert following.differences() == []


def test_an_event_is_found_by_searches_seconds_after_it_came(tmp_path: Path) -> None:
    with calm(tmp_path, 4, 40, rate=60) as following:
        following.live(following.fake.now_s + 600)
        following.fake.mutations_s = 30.0
        following.live(following.fake.now_s + 1_800)
        with State(following.layout) as state:
            lags = state.lags_s()
        assert len(lags) > 20
        assert max(lags) < 5
        assert following.fake.counts["over the rate"] == 0


def test_what_people_said_of_a_hidden_topic_counts_again_when_it_is_shown(tmp_path: Path) -> None:
    with calm(tmp_path, 6, 20) as following:
        with following.follower() as follower:
            follower.once()
        first, second = list(following.fake.threads(""))[:2]
        with Forum.open(following.folder) as forum:
            forum.judge(first, second, "different")
        for is_visible in (False, True):
            following.fake.topics[int(first)].is_visible = is_visible
            with following.follower() as follower:
                follower.once()
            assert following.differences() == []
        with Forum.open(following.folder) as forum:
            assert [judgement.verdict for judgement in forum.store.all_judgements()] == ["different"]


def test_a_clock_that_is_set_back_keeps_nothing_waiting(tmp_path: Path) -> None:
    with calm(tmp_path, 14, 20) as following:
        with following.follower() as follower, State(following.layout) as state:
            assert follower.once()
            polls, sweep = state.get("polls"), state.get("sweep")["number"]
            following.fake.new_topic(following.fake.now_s)
            following.fake.topics.pop(1)
            following.fake.set_back_s = 30 * 86_400
            until_s = following.fake.now_s + 150
            while following.fake.now_s < until_s:
                following.fake.advance(min(max(follower.turn(), 0.01), 60.0))
            assert state.get("polls") == polls + 2
            assert state.get("sweep")["number"] == sweep + 1
        assert following.differences() == []


class Told(SilentProgress):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def test_a_site_that_is_down_is_waited_for_told_once_and_once_gives_up_after_two_minutes(tmp_path: Path) -> None:
    with calm(tmp_path, 8, 5) as following:
        answer, times = following.fake.answer, []

        def down(path: str, headers: Any) -> Any:
            times.append(following.fake.now_s)
            return (503, {}, b"")

        following.fake.answer = down  # type: ignore[method-assign]
        began_s = following.fake.now_s
        with following.follower() as follower, pytest.raises(SourceError, match=r"answered 503.* times in a row"):
            follower.once()
        assert 120 < following.fake.now_s - began_s < 300
        assert len(times) < 12
        progress = Told()
        with following.follower(progress=progress) as follower:
            until_s = following.fake.now_s + 3 * 3_600
            while following.fake.now_s < until_s:
                following.fake.advance(min(follower.turn(), 60.0))
            assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 220
            following.fake.answer = answer  # type: ignore[method-assign]
            while following.fake.now_s < until_s + 600:
                following.fake.advance(min(max(follower.turn(), 0.01), 60.0))
        assert len(progress.notices) == 2
        assert "asked again until it answers" in progress.notices[0]
        assert "answers again" in progress.notices[1]
        assert following.differences() == []


def test_a_site_that_asks_for_pauses_for_ever_does_not_keep_once_for_ever(tmp_path: Path) -> None:
    with calm(tmp_path, 8, 5) as following:
        following.fake.answer = lambda *_: (429, {"Retry-After": "6000"}, b"")  # type: ignore[method-assign]
        with following.follower() as follower, pytest.raises(SourceError, match="tried 21 times in a row"):
            follower.once()


def test_what_a_poll_finds_is_read_before_the_next_though_everything_else_is_still_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living(tmp_path / "f", 9, 800, chances={**CALM, "lost": 1.0}, rate=60, mutations_s=60.0) as following:
        following.prepare(SECRET)
        began_s = following.fake.now_s
        with following.follower() as follower, State(following.layout) as state:
            read: dict[str, list[float]] = {}
            finish = State.finish

            def finished(own: State, done: Any, began_s: float, now_s: float) -> None:
                threads = list(done)
                finish(own, threads, began_s, now_s)
                for thread, _, _ in threads:
                    read.setdefault(thread.id, []).append(now_s)

            monkeypatch.setattr(State, "finish", finished)
            while following.fake.now_s < began_s + 600:
                following.fake.advance(min(max(follower.turn(), 0.01), 60.0))
            assert sum(state.waiting()) > 0  # others waited to be read all the time
        posts = [(at_s, topic) for at_s, name, topic in following.fake.lost if name == "post_created"]
        posts = [(at_s, topic) for at_s, topic in posts if began_s + 60 < at_s < began_s + 480]
        assert posts
        for at_s, topic in posts:
            assert min(moment for moment in read[topic] if moment >= at_s) - at_s < 60 + 10
        assert following.fake.counts["over the rate"] == 0


@pytest.mark.slow
def test_the_key_of_who_moderates_shows_nothing_that_not_everybody_may_read(tmp_path: Path) -> None:
    with living(tmp_path / "f", 11, 80, mutations_s=20.0, rate=600, key="k") as following:
        following.prepare(SECRET)
        following.live(following.fake.now_s + 3_600, key="k")
        following.settle(key="k")
        assert following.fake.mutated["whisper"] > 0
        assert following.differences() == []


def test_a_category_that_is_closed_is_gone_as_soon_as_the_lists_say_so(tmp_path: Path) -> None:
    with calm(tmp_path, 13, 300, key="k") as following:
        with following.follower(key="k") as follower:
            assert follower.once()
        following.fake.rate = 60
        closed = [str(topic.id) for topic in following.fake.topics.values() if topic.category == 2]
        following.fake.categories[2].is_private = True
        following.live(following.fake.now_s + 150, key="k")  # a poll, and the sweep that it asks for
        assert len(closed) > 60
        assert following.differences() == []


# -- categories, redirections, deletions -------------------------------------------------------------------------------


def ids_of(following: Following) -> set[str]:
    with Forum.open(following.folder) as forum:
        return {question.id for question in forum.questions()}


def once(following: Following, **more: Any) -> bool:
    with following.follower(**more) as follower:
        return follower.once()


@pytest.mark.parametrize("preloaded", [(), (1,)], ids=["none", "one"])
@pytest.mark.parametrize("key", ["", "k"], ids=["everybody", "moderator"])
def test_a_site_that_loads_categories_lazily_is_followed_and_loses_nothing_by_it(
    tmp_path: Path, preloaded: tuple[int, ...], key: str
) -> None:
    with calm(tmp_path, 20, 24, key="k") as following:
        following.is_mass_delete_allowed = False
        assert once(following, key=key)
        following.fake.preloaded = preloaded
        for _ in range(2):
            assert once(following, key=key)
            assert following.differences() == []
        with State(following.layout) as state:
            assert state.get("questions_deleted") is None


def test_a_category_that_no_list_names_is_as_private_as_its_topics_are(tmp_path: Path) -> None:
    with calm(tmp_path, 21, 40, key="k") as following:
        private = {3, 9}
        for number in private:
            following.fake.topics[number].category = 4
        assert once(following, key="k")
        following.fake.preloaded, following.fake.is_category_list_empty = (1,), True
        added = following.fake.new_topic(following.fake.now_s)
        added.category = 2
        before = ids_of(following)
        assert once(following, key="k")
        assert ids_of(following) == {*before, str(added.id)}
        with State(following.layout) as state:
            assert {int(identifier) for identifier, _ in state.rejects(99)[1]} == private
            assert "without the key the site answered 404" in state.rejects()[1][0][1]


def test_a_site_that_shows_nothing_without_a_key_keeps_topics_of_categories_that_no_list_names(tmp_path: Path) -> None:
    with calm(tmp_path, 22, 20, key="k") as following:
        following.fake.is_login_required = True
        assert once(following, key="k")
        before = ids_of(following)
        following.fake.preloaded, following.fake.is_category_list_empty = (1,), True
        assert once(following, key="k")
        assert ids_of(following) == before


def test_a_new_topic_of_a_category_that_lists_by_activity_leave_out_is_found_by_its_posts(tmp_path: Path) -> None:
    with calm(tmp_path, 27, 5) as following:
        assert once(following)
        following.fake.muted = frozenset({2})
        added = following.fake.new_topic(following.fake.now_s)
        added.category = 2
        following.live(following.fake.now_s + 90)
        assert str(added.id) in ids_of(following)
        assert once(following)
        assert following.differences() == []


def test_a_topic_that_redirects_is_gone_and_keeps_no_other_waiting(tmp_path: Path) -> None:
    with calm(tmp_path, 23, 20) as following:
        assert once(following)
        first, second, third, fourth = [int(thread) for thread in following.fake.threads("")][:4]
        for number in (first, second, third):
            del following.fake.topics[number]
        following.fake.permalinks = {first: f"/t/another/{fourth}", second: f"/t/the-same/{second}", third: "/login"}
        kept = following.fake.new_topic(following.fake.now_s)
        kept.category = 1
        assert not once(following)
        assert ids_of(following) == {*following.fake.threads(""), str(second), str(third)}
        with State(following.layout) as state:
            assert {identifier for identifier, _, _ in state.failing()} == {str(second), str(third)}


@pytest.mark.parametrize("number", [3, 60])
def test_no_more_than_half_of_a_site_is_deleted_unless_that_is_allowed_and_following_goes_on(
    tmp_path: Path, number: int
) -> None:
    with calm(tmp_path, 24, number) as following:
        following.is_mass_delete_allowed = False
        assert once(following)
        public = list(following.fake.threads(""))
        for identifier in public[: max(3, len(public) * 2 // 3)]:
            following.fake.topics.pop(int(identifier))
        added = following.fake.new_topic(following.fake.now_s)
        added.category = 1
        assert not once(following)
        assert len(ids_of(following)) >= len(public) / 2 + 1
        assert str(added.id) in ids_of(following)
        with State(following.layout) as state:
            assert "seem to be gone" in state.get("error")
        following.live(following.fake.now_s + 300)
        assert len(ids_of(following)) >= len(public) / 2 + 1
        following.is_mass_delete_allowed = True
        assert once(following)
        assert following.differences() == []


# -- sites that answer anything ----------------------------------------------------------------------------------------

SITE_JSON = {"categories": [{"id": 1, "name": "Help", "slug": "help", "read_restricted": False}]}
TOPIC: dict[str, Any] = {"id": 7, "title": "T", "category_id": 1, "archetype": "regular", "visible": True}
POST = {"id": 1, "post_number": 1, "cooked": "<p>b</p>"}


def site_with(topic: Answer) -> Callable[[Request], Answer]:
    """Return what answers as a Discourse with one topic does."""

    def answer(request: Request) -> Answer:
        if request.path == "/site.json":
            return as_json(SITE_JSON)
        if request.path.startswith("/latest.json"):
            return as_json({"topic_list": {"topics": [TOPIC] if "page=0" in request.path else []}})
        return topic

    return answer


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ((200, {}, b"[" * 50_000), FailedError),
        ((200, {}, b"[1]"), FailedError),
        ((200, {}, b"\xff"), FailedError),
        (as_json(TOPIC | {"id": 8}), FailedError),
        (as_json(TOPIC | {"title": ["x"], "post_stream": {"posts": [POST]}}), Unreadable),
        (as_json(TOPIC | {"title": "", "post_stream": {"posts": []}}), Unreadable),
        ((200, {"Content-Length": "99999"}, b"{"), FailedError),
        ((404, {}, b"<html>a proxy has no such site</html>"), FailedError),
        ((403, {}, b"[]"), FailedError),
        ((418, {}, b"{}"), FailedError),
        ((500, {}, b""), FailedError),
    ],
)
def test_an_answer_that_is_no_topic_is_named_and_nothing_is_deleted(answer: Answer, wanted: type[Exception]) -> None:
    with serving(site_with(answer)) as address, pytest.raises(wanted) as caught:
        Discourse(address, Pace(0)).read("7")
    assert str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "posts",
    [
        "no list",
        [None, 3, "x", {"id": "x"}, {"id": 10**30}, {"id": True}],
        [POST, {"id": 2, "post_number": "two", "cooked": ["x"]}, {"id": 3, "topic_id": 99, "cooked": "elsewhere"}],
        [POST, {**POST, "id": 4, "link_counts": [{"url": 7, "internal": "x"}], "created_at": "never"}],
        [{**POST, "username": "half \ud83d of one", "cooked": "<p>\x00\ud83d</p>"}],
    ],
)
def test_a_topic_with_values_of_any_kind_is_read_without_what_cannot_be_used(posts: Any) -> None:
    topic = TOPIC | {"post_stream": {"posts": posts, "stream": [1, None, "x", -3]}, "tags": [], "details": 4}
    with serving(site_with(as_json(topic))) as address:
        reading = Discourse(address, Pace(0)).read("7")
    assert reading.thread is not None
    assert reading.thread.question.title == "T"
    assert all((answer.question_id, answer.body) == ("7", "<p>b</p>") for answer in reading.thread.answers)


def test_an_address_at_which_no_discourse_answers_ends_with_what_to_do(run: Run, tmp_path: Path) -> None:
    answers = {
        "check that a Discourse site answers": as_json({}),
        "elsewhere.example.org": (301, {"Location": "https://elsewhere.example.org/"}, b""),
    }
    for wanted, answer in answers.items():
        with serving(lambda _, content=answer: content) as address:
            done = run("follow", tmp_path / "new.forum", "--from", address, "--once")
        assert (done.code, wanted in " ".join(done.err.split())) == (1, True)
        assert not (tmp_path / "new.forum").exists()


def test_a_site_that_refuses_everything_has_deleted_nothing(tmp_path: Path) -> None:
    with calm(tmp_path, 25, 5) as following:
        assert once(following)
        before = ids_of(following)
        following.fake.is_login_required = True
        with State(following.layout) as state:
            state.add_event("e", sorted(before), 1.0)
        with following.follower() as follower, pytest.raises(SourceError, match="answered 403"):
            follower.turn()
        assert ids_of(following) == before


def test_a_private_category_is_followed_where_it_is_named_alone(tmp_path: Path) -> None:
    with calm(tmp_path, 26, 30, key="k") as following:
        private = {str(topic.id) for topic in following.fake.topics.values() if topic.category == 4}
        for named in ((), ("staff",), ()):
            assert once(following, key="k", private=named)
            assert ids_of(following) & private == (private if named else set())
        assert following.differences() == []
