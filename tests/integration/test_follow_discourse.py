"""A forum that follows a Discourse site stays equal to it, whatever fails, is lost, or is killed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.fake_discourse import Chances
from tests.living import Killed, living

from askalike import Forum
from askalike.follow.state import State

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
            following.kill_after = chance.randint(2, 150) if kills < 12 else 0
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
            assert [one.verdict for one in forum.feedback()] == ["different"]
