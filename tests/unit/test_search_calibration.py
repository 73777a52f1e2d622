"""How likely two questions ask the same: from judged pairs, moved by verdicts."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from askalike.search.calibration import DEFAULT_PRIOR, SPREAD_OF_PRIOR, Calibration, fits, posterior

RESULT = Path(__file__).parents[2] / "results" / "likelihood.json"
cosines = st.floats(-1, 1)
verdicts = st.lists(st.tuples(cosines, st.booleans()), min_size=1, max_size=30)


def log_posterior(intercept: float, slope: float, prior: Calibration, judged: list[tuple[float, bool]]) -> float:
    """Return what is maximised, written down once more."""
    found = -((intercept - prior.intercept) ** 2 + (slope - prior.slope) ** 2) / (2 * SPREAD_OF_PRIOR**2)
    for cosine, is_same in judged:
        likely = 1 / (1 + exp(-(intercept + slope * cosine)))
        found += log(likely if is_same else 1 - likely)
    return found


@given(verdicts)
@example([(-1.0, False)] * 2 + [(-1.0, True)] * 5)  # whole steps of Newton's method go back and forth for ever
def test_no_calibration_near_by_fits_the_verdicts_better(judged: list[tuple[float, bool]]) -> None:
    found = posterior(DEFAULT_PRIOR, *map(list, zip(*judged, strict=True)))
    best = log_posterior(found.intercept, found.slope, DEFAULT_PRIOR, judged)
    for intercept, slope in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01), (0.01, -0.01)):
        assert log_posterior(found.intercept + intercept, found.slope + slope, DEFAULT_PRIOR, judged) < best


@given(verdicts)
def test_a_greater_cosine_is_likelier_and_nothing_is_certain(judged: list[tuple[float, bool]]) -> None:
    found = posterior(DEFAULT_PRIOR, *map(list, zip(*judged, strict=True)))
    assert found.verdicts == len(judged)
    assert found.likelihood(-1.0) > 0
    assert found.likelihood(1.0) < 1


def test_verdicts_move_the_likelihood_their_way() -> None:
    before = DEFAULT_PRIOR.likelihood(0.6)
    assert posterior(DEFAULT_PRIOR, [0.6] * 10, [True] * 10).likelihood(0.6) > before + 0.2
    assert posterior(DEFAULT_PRIOR, [0.6] * 10, [False] * 10).likelihood(0.6) < before - 0.2


def test_many_verdicts_outweigh_what_was_judged_elsewhere() -> None:
    chance = np.random.default_rng(0)
    truth, drawn = Calibration(-4.0, 5.0), chance.uniform(0, 1, 4000)
    is_same = [bool(chance.random() < truth.likelihood(cosine)) for cosine in drawn]
    found = posterior(DEFAULT_PRIOR, drawn.tolist(), is_same)
    assert (found.intercept, found.slope) == (pytest.approx(-4.0, abs=0.3), pytest.approx(5.0, abs=0.5))


def test_only_cosines_that_spread_as_the_general_models_are_read() -> None:
    chance = np.random.default_rng(0)
    apart = chance.normal(0, 1, (100, 60))
    alike = chance.normal(0, 0.3, (100, 60)) + 1
    apart, alike = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (apart, alike))
    assert fits(apart.astype(np.float32))  # mean 0, spread 1 / √60 = 0.13
    assert not fits(alike.astype(np.float32))
    assert fits(alike[:19].astype(np.float32))  # too few to tell


@pytest.mark.skipif(not RESULT.exists(), reason="the results are not beside the tests")
def test_the_numbers_used_are_those_of_the_measurement() -> None:
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    assert found["fitted"] == {"intercept": DEFAULT_PRIOR.intercept, "slope": DEFAULT_PRIOR.slope}
