"""Team-draft interleaving on drafts worked by hand, and what it finds of rankers that are better, or alike."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from askalike.search.interleaving import compared, propensities, session_coins, sign_test, team_draft

DEFAULT = ["a", "b", "c", "d"]
RIVAL = ["b", "e", "a", "f"]


def test_a_draft_worked_by_hand() -> None:
    # Round 1, default first: a; the rival's best that is left is b. Round 2, rival first: e; the default's c.
    assert team_draft(DEFAULT, RIVAL, 4, [True, False]) == [
        ("a", "default"),
        ("b", "rival"),
        ("e", "rival"),
        ("c", "default"),
    ]
    # Of three places the second round has one pick, that of who picks first.
    assert team_draft(DEFAULT, RIVAL, 3, [True, True])[2] == ("c", "default")
    assert team_draft(DEFAULT, RIVAL, 3, [False, False]) == [("b", "rival"), ("a", "default"), ("e", "rival")]


def test_propensities_are_the_shares_of_the_throws_of_the_coins() -> None:
    # a and b come in round 1 whoever begins; c or e is third, by the second coin.
    assert propensities(DEFAULT, RIVAL, 3) == {"a": 1.0, "b": 1.0, "c": 0.5, "e": 0.5}
    assert propensities(DEFAULT, DEFAULT, 3) == {"a": 1.0, "b": 1.0, "c": 1.0}
    for limit in (1, 2, 5, 7, 20):
        assert sum(propensities(DEFAULT, RIVAL, limit).values()) == min(limit, 6)


def test_who_has_nothing_left_gets_no_credit_for_what_follows() -> None:
    drafted = team_draft(["a"], RIVAL, 5, [True] * 3)
    assert drafted == [("a", "default"), ("b", "rival"), ("e", ""), ("f", "")]
    assert team_draft([], RIVAL, 2, [False]) == [("b", "rival"), ("e", "")]
    assert team_draft([], [], 5, [True] * 3) == []


def test_no_question_comes_twice_and_both_pick_alike_often() -> None:
    teams: Counter[str] = Counter()
    for coins in itertools.product((True, False), repeat=2):
        drafted = team_draft(DEFAULT, RIVAL, 3, coins)
        assert len({one for one, _ in drafted}) == 3
        teams.update(team for _, team in drafted)
    assert teams["default"] == teams["rival"] == 6


def test_the_coins_of_a_visit_are_always_the_same_and_fair_over_many() -> None:
    assert session_coins("visit") == session_coins("visit")
    heads = sum(session_coins(f"visit {number}")[0] for number in range(2_000))
    assert 900 < heads < 1_100


@pytest.mark.parametrize(("wins", "losses", "p_value"), [(0, 0, 1.0), (1, 1, 1.0), (8, 0, 2 / 256), (0, 8, 2 / 256)])
def test_the_sign_test_worked_by_hand(wins: int, losses: int, p_value: float) -> None:
    assert sign_test(wins, losses) == p_value


def test_the_interval_of_the_share_is_clopper_and_pearsons() -> None:
    found = compared([(1, 0)] * 8 + [(0, 1)] * 2)
    assert (found.share, round(found.low, 4), round(found.high, 4)) == (0.8, 0.4439, 0.9748)  # R: binom.test(8, 10)
    assert compared([]).share is None


def _visits(rng: random.Random, number: int, quality: float) -> list[tuple[int, int]]:
    """Return what was taken in visits of readers who take the one helpful question, if they see it.

    Args:
        quality: how often the default has it among its first; the rival has it so in half of the visits.
    """
    taken: list[tuple[int, int]] = []
    for _ in range(number):
        rankings = []
        for likely in (quality, 0.5):
            others = rng.sample([f"other {one}" for one in range(30)], 6)
            others.insert(rng.randrange(2) if rng.random() < likely else 5, "helpful")
            rankings.append(others)
        drafted = team_draft(rankings[0], rankings[1], 5, [rng.random() < 0.5 for _ in range(3)])
        team = dict(drafted).get("helpful", "") if rng.random() < 0.7 else ""
        if rng.random() < 0.1:  # some open what is on top, whatever it is
            team = drafted[0][1]
        taken.append((int(team == "default"), int(team == "rival")))
    return taken


def test_a_better_ranker_is_found_and_an_equal_one_is_seldom_called_better() -> None:
    rng = random.Random(24)
    assert [compared(_visits(rng, 400, 0.9)).better for _ in range(20)] == ["default"] * 20
    assert [compared(_visits(rng, 400, 0.1)).better for _ in range(20)] == ["rival"] * 20
    alike = [compared(_visits(rng, 400, 0.5)).better for _ in range(100)]
    assert sum(one != "" for one in alike) <= 11  # 5 of 100 by chance; more than 11 in 1 of 200 runs at most


def test_the_interval_holds_the_true_share_about_as_often_as_it_promises() -> None:
    rng = random.Random(7)
    holds = 0
    for _ in range(200):
        found = compared(_visits(rng, 150, 0.5))
        holds += found.low <= 0.5 <= found.high
    assert holds >= 185
