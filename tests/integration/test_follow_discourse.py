"""A forum that follows a Discourse site stays equal to it, whatever fails, is lost, or is killed."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from tests.fake_discourse import Chances
from tests.living import Killed, living

from askalike import Forum
from askalike.errors import DatabaseError, SourceError
from askalike.follow.state import State
from askalike.progress import SilentProgress

pytestmark = pytest.mark.usefixtures("words_alone")

SECRET = "FOLLOWED_FORUM_SECRET"
CALM = Chances(**dict.fromkeys(Chances().of, 0.0))


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "secret")


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
    with living(tmp_path / "f", 3, 30, chances=CALM, rate=0) as following:
        following.prepare(SECRET)
        answer = following.fake.answer

        def failing(path: str, headers: Any) -> Any:
            return (500, {}, b"") if path.startswith("/t/7.json") else answer(path, headers)

        following.fake.answer = failing  # type: ignore[method-assign]
        with following.follower() as follower:
            assert not follower.once()
        with Forum.open(following.folder) as forum:
            assert {one.id for one in forum.questions()} == following.fake.threads("").keys() - {"7"}
        with State(following.layout) as state:
            ((identifier, tries, why),) = state.failing()
        assert (identifier, tries >= 3, "answered 500" in why) == ("7", True, True)
        following.fake.answer = answer  # type: ignore[method-assign]
        following.settle()
        assert following.differences() == []


def test_a_database_that_goes_away_and_comes_back_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living(tmp_path / "f", 3, 20, chances=CALM, rate=0) as following:
        following.prepare(SECRET)
        replace_threads, tries = Forum.replace_threads, itertools.count()

        def failing(self: Forum, *given: Any, **more: Any) -> Any:
            if next(tries) < 2:
                raise DatabaseError("postgresql://db.example.org/travel does not answer", "start it")
            return replace_threads(self, *given, **more)

        monkeypatch.setattr(Forum, "replace_threads", failing)
        with following.follower() as follower:
            assert follower.once()
        assert next(tries) > 2
        assert following.differences() == []


def test_retry_after_is_waited_for(tmp_path: Path) -> None:
    with living(tmp_path / "f", 3, 5, chances=CALM, rate=0) as following:
        following.prepare(SECRET)
        answer, asked = following.fake.answer, []

        def limited(path: str, headers: Any) -> Any:
            asked.append(following.fake.now_s)
            return (429, {"Retry-After": "300"}, b"{}") if len(asked) == 4 else answer(path, headers)

        following.fake.answer = limited  # type: ignore[method-assign]
        with following.follower() as follower:
            assert follower.once()
        assert asked[4] - asked[3] >= 300
        assert following.differences() == []


def test_an_event_is_found_by_searches_seconds_after_it_came(tmp_path: Path) -> None:
    with living(tmp_path / "f", 4, 40, chances=CALM, rate=60) as following:
        following.prepare(SECRET)
        following.live(following.fake.now_s + 600)
        following.fake.mutations_s = 30.0
        following.live(following.fake.now_s + 1_800)
        with State(following.layout) as state:
            lags = state.lags_s()
        assert len(lags) > 20
        assert max(lags) < 5
        assert following.fake.counts["over the rate"] == 0


def test_what_people_said_of_a_hidden_topic_counts_again_when_it_is_shown(tmp_path: Path) -> None:
    with living(tmp_path / "f", 6, 20, chances=CALM, rate=0) as following:
        following.prepare(SECRET)
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
            assert [one.verdict for one in forum.store.all_feedback()] == ["different"]


def test_a_clock_that_is_set_back_keeps_nothing_waiting(tmp_path: Path) -> None:
    with living(tmp_path / "f", 14, 20, chances=CALM, rate=0) as following:
        following.prepare(SECRET)
        with following.follower() as follower, State(following.layout) as state:
            assert follower.once()
            polls, sweep = state.get("polls"), state.get("sweep")["number"]
            following.fake._new_topic(following.fake.now_s)
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
    with living(tmp_path / "f", 8, 5, chances=CALM, rate=0) as following:
        following.prepare(SECRET)
        answer, asked = following.fake.answer, []

        def down(path: str, headers: Any) -> Any:
            asked.append(following.fake.now_s)
            return (503, {}, b"")

        following.fake.answer = down  # type: ignore[method-assign]
        began_s = following.fake.now_s
        with following.follower() as follower, pytest.raises(SourceError, match=r"answered 503.* times in a row"):
            follower.once()
        assert 120 < following.fake.now_s - began_s < 300
        assert len(asked) < 12
        told = Told()
        with following.follower() as follower:
            follower._progress = told
            until_s = following.fake.now_s + 3 * 3_600
            while following.fake.now_s < until_s:
                following.fake.advance(min(follower.turn(), 60.0))
            assert max(later - earlier for earlier, later in itertools.pairwise(asked)) < 220
            following.fake.answer = answer  # type: ignore[method-assign]
            while following.fake.now_s < until_s + 600:
                following.fake.advance(min(max(follower.turn(), 0.01), 60.0))
        assert len(told.notices) == 2
        assert "asked again until it answers" in told.notices[0]
        assert "answers again" in told.notices[1]
        assert following.differences() == []


def test_a_site_that_asks_for_pauses_for_ever_does_not_keep_once_for_ever(tmp_path: Path) -> None:
    with living(tmp_path / "f", 8, 5, chances=CALM, rate=0) as following:
        following.prepare(SECRET)
        following.fake.answer = lambda *_: (429, {"Retry-After": "600"}, b"")  # type: ignore[method-assign]
        with following.follower() as follower, pytest.raises(SourceError, match="tried 21 times in a row"):
            follower.once()


def test_what_a_poll_finds_is_read_before_the_next_though_everything_else_is_still_to_be_read(tmp_path: Path) -> None:
    lost = Chances(**(dict.fromkeys(Chances().of, 0.0) | {"lost": 1.0}))
    with living(tmp_path / "f", 9, 1_500, chances=lost, rate=60, mutations_s=60.0) as following:
        following.prepare(SECRET)
        began_s = following.fake.now_s
        with following.follower() as follower, State(following.layout) as state:
            read: dict[str, list[float]] = {}
            finish = state.finish

            def finished(done: Any, began_s: float, now_s: float) -> None:
                kept = list(done)
                finish(kept, began_s, now_s)
                for one, _, _ in kept:
                    read.setdefault(one.id, []).append(now_s)

            follower._state.finish = finished  # type: ignore[method-assign]
            while following.fake.now_s < began_s + 900:
                following.fake.advance(min(max(follower.turn(), 0.01), 60.0))
            assert state.known() < 1_000  # others waited to be read all the time
        posts = [(at_s, topic) for at_s, name, topic in following.fake.lost if name == "post_created"]
        posts = [(at_s, topic) for at_s, topic in posts if began_s + 60 < at_s < began_s + 780]
        assert posts
        for at_s, topic in posts:
            assert min(one for one in read[topic] if one >= at_s) - at_s < 60 + 5
        assert following.fake.counts["over the rate"] == 0


@pytest.mark.parametrize("seed", [11, 12])
def test_the_key_of_who_moderates_shows_nothing_that_not_everybody_may_read(tmp_path: Path, seed: int) -> None:
    with living(tmp_path / "f", seed, 80, mutations_s=20.0, rate=600, key="k") as following:
        following.prepare(SECRET)
        following.live(following.fake.now_s + 3_600, key="k")
        following.settle(key="k")
        assert following.fake.mutated["whisper"] > 0
        assert following.differences() == []


def test_a_category_that_is_closed_is_gone_as_soon_as_the_lists_say_so(tmp_path: Path) -> None:
    with living(tmp_path / "f", 13, 900, chances=CALM, rate=0, key="k") as following:
        following.prepare(SECRET)
        with following.follower(key="k") as follower:
            assert follower.once()
        following.fake.rate = 60
        closed = [str(one.id) for one in following.fake.topics.values() if one.category == 2]
        following.fake.categories[2].is_private = True
        following.live(following.fake.now_s + 150, key="k")  # a poll, and the sweep that it asks for
        assert len(closed) > 200
        assert following.differences() == []
