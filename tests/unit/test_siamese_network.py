"""The sparse network computes what the dense one does, forward and backward, in torch and in NumPy."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.siamese.config import INITIALS, SIDES, SiameseConfig, SiameseSettings, prefix
from askalike.models.siamese.model import Plan, Runtime, TrigramTexts

torch = pytest.importorskip("torch", reason="the siamese network is trained with torch, which is not installed")

from tests.naive_siamese import TABLE, dense, texts_of  # noqa: E402

from askalike.models.siamese.network import SiameseNetwork, build, from_arrays, to_arrays  # noqa: E402

SIZES = [5, 1, 30, 2, 9]
READINGS = ((5, 5, 4), (100, 1, 1), (485, 1, 1))
everywhere = pytest.mark.parametrize("name", TABLE)


def network_of(name: str, seed: int = 3, kind: Any = torch.float32) -> SiameseNetwork:
    network = build(TABLE[name], seed, "even").to(kind)
    with torch.no_grad():
        for key, value in network.named_parameters():
            if "bias" in key:
                value.abs_().add_(0.5)  # so that no block is silent, and no gradient zero for that
    return network


def named(network: SiameseNetwork) -> dict[str, Any]:
    own = dict(network.named_parameters())
    return {name: own[f"sides.{name if '.' in name else f'shared.{name}'}"] for name in network.config.shapes()}


def starts(config: SiameseConfig) -> list[tuple[str, str]]:
    return [(side, "" if config.is_shared else prefix(side)) for side in SIDES]


@everywhere
@pytest.mark.parametrize("seed", range(4))
def test_the_sparse_network_is_the_dense_one(name: str, seed: int) -> None:
    config, network = TABLE[name], network_of(name, seed)
    texts = texts_of(config, SIZES, seed)
    for side, start in starts(config):
        expected = dense(texts, config, named(network), start)
        torch.testing.assert_close(network.encode(texts, np.arange(5), side), expected, rtol=1e-5, atol=1e-5)
        found = Runtime(config, to_arrays(network)).encode(texts, np.arange(5), side)
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-5)


@everywhere
@pytest.mark.parametrize(("kind", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("seed", range(4))
def test_the_gradients_are_those_of_the_dense_network(name: str, kind: Any, bound: float, seed: int) -> None:
    config = TABLE[name]
    texts = texts_of(config, SIZES, seed)
    wanted = torch.randn(5, config.output_size, generator=torch.Generator().manual_seed(seed)).to(kind)
    slopes = []
    for is_sparse in (True, False):
        network = network_of(name, seed, kind)
        for side, start in starts(config):
            if is_sparse:
                found = network.encode(texts, np.arange(5), side)
            else:
                found = dense(texts, config, named(network), start)
            (found * wanted).sum().backward()
        slopes.append({key: value.grad for key, value in named(network).items()})
    for key, slope in slopes[0].items():
        assert slope.any() or "dense" not in key
        assert (slope - slopes[1][key]).abs().max() <= bound * slopes[1][key].abs().max(), key


@everywhere
def test_the_gradients_are_those_of_small_differences(name: str) -> None:
    config = TABLE[name]
    network = network_of(name, 1, torch.float64)
    texts = texts_of(config, [4, 2])
    parameters = list(network.parameters())

    def run(*_: Any) -> Any:
        return network.encode(texts, np.arange(2))

    assert torch.autograd.gradcheck(run, parameters, eps=1e-7, atol=1e-5)


def test_the_papers_sizes_agree_too() -> None:
    config = SiameseConfig(48_536)
    network, texts = build(config, 1, "even"), texts_of(config, [100, 40, 150])
    expected = dense(texts, config, named(network))
    torch.testing.assert_close(network.encode(texts, np.arange(3)), expected, rtol=1e-5, atol=1e-5)
    found = Runtime(config, to_arrays(network)).encode(texts, np.arange(3))
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert network.encode_all(texts).shape == (3, 128)


def test_what_is_worked_on_is_a_small_share() -> None:
    config = SiameseConfig(48_536)
    texts = texts_of(config, [100])
    plan = Plan.of(texts.keys(np.arange(1), config.vocabulary_size), 1, config.blocks())
    assert plan.blocks[0].windows <= 300  # of 9,705: a trigram is in at most three windows
    assert plan.share[0] < plan.share[1] < plan.share[2] < 1
    assert plan.blocks[0].cells == plan.blocks[0].windows


def test_the_readings_leave_the_places_that_are_told() -> None:
    shapes = {poolings: SiameseConfig(48_536, poolings=poolings).blocks() for poolings in READINGS}
    places = {poolings: [block.windows for block in blocks] for poolings, blocks in shapes.items()}
    assert places == {(5, 5, 4): [9705, 1939, 482], (100, 1, 1): [485, 476, 467], (485, 1, 1): [100, 91, 82]}
    with pytest.raises(SettingError, match="leave nothing"):
        SiameseConfig(1_090_908, poolings=(100, 100, 100))
    assert SiameseConfig(1_090_909, poolings=(100, 100, 100)).blocks()[-1].windows == 1


def test_fewer_than_a_hundred_trigrams_are_left_over() -> None:
    for size in range(48_400, 48_600):
        shapes = SiameseConfig(size).blocks()
        alone = [bool(Plan.of(np.array([place]), 1, shapes).blocks[-1].windows) for place in (size - 100, 0)]
        assert alone == [True, True]


def test_some_rows_in_any_order_are_those_of_all() -> None:
    config, network = TABLE["SCQA"], network_of("SCQA")
    texts = texts_of(config, SIZES)
    whole = network.encode(texts, np.arange(5))
    torch.testing.assert_close(network.encode(texts, np.array([3, 0, 3])), whole[[3, 0, 3]])


def test_the_sides_of_dsqa_differ_and_those_of_scqa_do_not() -> None:
    for name, is_same in (("SCQA", True), ("DSQA", False)):
        network, texts = network_of(name), texts_of(TABLE[name], SIZES)
        first, second = (network.encode(texts, np.arange(5), side) for side in SIDES)
        assert torch.equal(first, second) == is_same
        runtime = Runtime(TABLE[name], to_arrays(network))
        assert np.array_equal(*(runtime.encode(texts, np.arange(5), side) for side in SIDES)) == is_same


def test_texts_without_trigrams_are_zero_and_leave_no_gradient() -> None:
    config, network = TABLE["SCQA"], network_of("SCQA")
    texts = texts_of(config, [0, 3, 0])
    found = network.encode(texts, np.arange(3))
    assert found.any(dim=1).tolist() == [False, True, False]
    network.encode(texts, np.array([0, 2])).sum().backward()
    assert not any(parameter.grad.any() for parameter in network.parameters() if parameter.grad is not None)
    assert network.encode(texts, np.zeros(0, np.int64)).shape == (0, config.output_size)
    assert Runtime(config, to_arrays(network)).encode(texts, np.zeros(0, np.int64)).shape == (0, config.output_size)


def test_a_trigram_that_only_the_end_sees_changes_nothing() -> None:
    config = SiameseConfig(43, 4, (2,), (10,), 3)  # four windows of the places 0 to 42; and five windows need 53
    assert config.blocks()[0].windows == 4
    config = SiameseConfig(48, 4, (2,), (10,), 3)
    network = build(config)
    one = TrigramTexts(np.array([3], np.int32), np.ones(1, np.float32), np.array([0, 1]))
    two = TrigramTexts(np.array([3, 47], np.int32), np.ones(2, np.float32), np.array([0, 2]))
    torch.testing.assert_close(network.encode(one, np.arange(1)), network.encode(two, np.arange(1)), rtol=0, atol=0)


def test_the_same_seed_gives_the_same_network_and_sides_begin_apart() -> None:
    first, same, other = (to_arrays(network_of("DSQA", seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(first[key], same[key]) for key in first)
    assert all(not np.array_equal(first[key], other[key]) for key in first)
    assert not np.array_equal(first["question.dense"], first["answer.dense"])


def test_a_network_survives_its_arrays() -> None:
    for name, config in TABLE.items():
        network, texts = network_of(name), texts_of(config, SIZES)
        arrays = to_arrays(network)
        assert {key: array.shape for key, array in arrays.items()} == config.shapes()
        assert sum(array.size for array in arrays.values()) == config.parameter_count()
        again = from_arrays(config, arrays)
        assert torch.equal(again.encode(texts, np.arange(5)), network.encode(texts, np.arange(5)))
    with pytest.raises(SettingError, match="siamese parameters"):
        from_arrays(TABLE["SCQA"], arrays)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vocabulary_size": 0}, "vocabulary_size is 0"),
        ({"kernel_width": 2.0}, "kernel_width is 2.0"),
        ({"output_size": True}, "output_size is True"),
        ({"channels": ()}, "0 channels and 3 poolings"),
        ({"channels": [8, 8, 8]}, "channels is"),
        ({"channels": (8, 0, 8)}, "channels, number 2, is 0"),
        ({"poolings": (5, 5)}, "3 channels and 2 poolings"),
        ({"poolings": (100, 100, 100)}, r"poolings \[100, 100, 100\] leave nothing of 48536 trigrams"),
        ({"is_shared": 1}, "is_shared is 1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        SiameseConfig(**{"vocabulary_size": 48_536, **wrong})


def test_settings_survive_json() -> None:
    for config in TABLE.values():
        settings = SiameseSettings(config)
        assert SiameseSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
    stored = SiameseSettings(TABLE["SCQA"]).to_json()
    network = asdict(TABLE["SCQA"])
    for wrong in ({}, {**stored, "more": 1}, {**stored, "network": {**network, "channels": 3}}, {**stored, "text": 3}):
        with pytest.raises(SettingError):
            SiameseSettings.from_json(wrong)


def test_before_training_texts_are_told_apart_unless_biases_are_drawn() -> None:
    config = SiameseConfig(2000)
    texts = texts_of(config, [15] * 20)
    alike = {}
    for initial in INITIALS:
        vectors = torch.nn.functional.normalize(build(config, 1, initial).encode(texts, np.arange(20)))
        alike[initial] = float((vectors @ vectors.T)[np.triu_indices(20, 1)].mean().detach())
    assert alike["he"] < 0.75 < alike["even"]
    parameters = to_arrays(build(config, 1))
    assert not any(parameters[f"bias_{block}"].any() for block in (1, 2, 3))
    assert not parameters["dense_bias"].any()
    assert parameters["dense"].std() == pytest.approx((2 / parameters["dense"].shape[1]) ** 0.5, rel=0.1)
