"""Connected components, and splits by component."""

from __future__ import annotations

import pytest

from askalike.errors import SettingError
from askalike.evaluation import components, split_components

LINKS = [("b", "a"), ("c", "b"), ("x", "y"), ("m", "m")]
PAIRS = [(f"d{number:03}", f"o{number:03}") for number in range(300)]


def test_components_join_what_is_linked_in_any_direction_and_in_any_number_of_steps() -> None:
    assert components(LINKS, ids=["z", "a"]) == [("a", "b", "c"), ("m",), ("x", "y"), ("z",)]


def test_a_long_chain_is_one_component() -> None:
    chain = [(f"{number:05}", f"{number + 1:05}") for number in range(5_000)]
    assert [len(group) for group in components(chain)] == [5_001]


def test_another_seed_gives_another_split() -> None:
    shares = {"train": 0.5, "test": 0.5}
    assert split_components(PAIRS, shares, seed=1) != split_components(PAIRS, shares, seed=2)


def test_a_split_is_the_same_on_every_machine() -> None:
    # sha256 of "1:a", "1:c" and "1:e" begins with 41, b8 and 69: the order is a, e, c. Of 6 ids train lacks 4.02 and
    # test 1.98, so a and e go to train (2.02 lacking after a, still more than 1.98) and c to test.
    parts = split_components([("a", "b"), ("c", "d"), ("e", "f")], {"train": 0.67, "test": 0.33}, seed=1)
    assert parts == {"train": ("a", "b", "e", "f"), "test": ("c", "d")}


@pytest.mark.parametrize(
    ("fractions", "said"),
    [
        ({}, "no part"),
        ({"train": 0.5, "test": 0.4}, "together 0.9"),
        ({"train": 1.5, "test": -0.5}, "shares over 0"),
        ({"train": float("nan"), "test": 0.5}, "shares over 0"),
    ],
)
def test_shares_that_are_no_split_are_refused(fractions: dict[str, float], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        split_components(PAIRS, fractions, seed=0)


SHARES = {"train": 0.6, "dev": 0.2, "test": 0.2}


def test_a_split_that_keeps_nothing_is_the_plain_one() -> None:
    assert split_components(PAIRS, SHARES, 0, kept={}) == split_components(PAIRS, SHARES, 0)


def test_what_was_split_stays_where_it_is_and_what_is_new_is_shared_out() -> None:
    before = split_components(PAIRS[:200], SHARES, 0)
    kept = {name: part for part, names in before.items() for name in names}
    after = split_components(PAIRS, SHARES, 0, kept={**kept, "gone": "dev"})
    assert all(set(before[part]) <= set(after[part]) for part in SHARES)
    assert sum(map(len, after.values())) == 600
    assert all(abs(len(after[part]) - share * 600) <= 2 for part, share in SHARES.items())


def test_a_component_that_joins_parts_goes_to_train_before_dev_before_test() -> None:
    kept = {"a": "test", "b": "dev", "c": "train"}
    assert split_components([("a", "b")], SHARES, 0, kept=kept)["dev"] == ("a", "b")
    assert split_components([("a", "b"), ("c", "b")], SHARES, 0, kept=kept)["train"] == ("a", "b", "c")
    assert split_components([("a", "z")], SHARES, 0, kept=kept)["test"] == ("a", "z")
