"""The paired test and the bootstrap, where SciPy defines them alike."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.evaluation import bootstrap_mean, randomisation_test

stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize("seed", range(5))
def test_an_exact_p_value_is_that_of_scipys_permutation_test(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.2, 1.0, size=9)
    expected = stats.permutation_test((differences,), np.mean, permutation_type="samples").pvalue
    assert randomisation_test(differences.tolist(), [0.0] * 9).p_value == pytest.approx(expected, abs=1e-12)


def test_a_bootstrap_interval_is_that_of_scipys_percentile_method() -> None:
    values = np.random.default_rng(1).random(80)
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=1000, rng=np.random.default_rng(7)
    ).confidence_interval
    interval = bootstrap_mean(values.tolist(), rounds=1000, seed=7)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
