"""A forum that follows a Discourse site stays equal to it, whatever fails, is lost, or is killed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.fake_discourse import Chances
from tests.living import Killed, living

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
