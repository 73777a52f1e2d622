"""The settings of an encoder: refused values, the shapes and the number of its parameters, storing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askalike.errors import SettingError
from askalike.models.encoders.settings import ENCODER_KINDS, GATES, MAX_LAYERS, POOLINGS, STACKED, EncoderConfig
from askalike.settings import read_settings


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        # n D D_in + G (D_in + D + 1) + D: 2·400·200 + 400·601 + 400
        ({"kind": "rcnn", "input_size": 200, "hidden_size": 400}, 400_800),
        ({"kind": "rcnn", "input_size": 200, "hidden_size": 400, "order": 3}, 480_800),
        # 2·2·3 + 1·(3 + 2 + 1) + 2
        ({"kind": "rcnn", "input_size": 3, "hidden_size": 2, "gate": "scalar"}, 20),
        ({"kind": "rcnn", "input_size": 3, "hidden_size": 2, "gate": "fixed"}, 14),
        ({"kind": "rcnn", "input_size": 3, "hidden_size": 2, "gate": "none"}, 14),
        # 4 D (D_in + D + 2)
        ({"kind": "lstm", "input_size": 200, "hidden_size": 240}, 424_320),
        ({"kind": "gru", "input_size": 200, "hidden_size": 280}, 404_880),
        # 3 D (D_in + D + 2) + 3 D (2 D + 2)
        ({"kind": "gru", "input_size": 200, "hidden_size": 280, "layers": 2}, 876_960),
        # L · (3 D² + 2 D² + 2 D + 4 D)
        ({"kind": "attention", "input_size": 200, "hidden_size": 200}, 201_200),
        ({"kind": "attention", "input_size": 200, "hidden_size": 200, "layers": 2}, 402_400),
        # D (3 · D_in + 1)
        ({"kind": "cnn", "input_size": 200, "hidden_size": 667, "order": 3}, 400_867),
    ],
)
def test_the_number_of_parameters_follows_from_the_sizes(settings: dict[str, Any], count: int) -> None:
    assert EncoderConfig(**settings).parameter_count() == count


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        ({"kind": "transformer"}, ENCODER_KINDS),
        ({"gate": "matrix"}, GATES),
        ({"pooling": "sum"}, POOLINGS),
        ({"order": 0}, ()),
        ({"hidden_size": 2.5}, ()),
        ({"decay": 1.0}, ()),
        ({"kind": "cnn", "order": 5}, ()),
        ({"kind": "attention"}, ()),
        ({"layers": 0}, ()),
        ({"layers": 2}, STACKED),
        ({"kind": "gru", "layers": MAX_LAYERS + 1}, ()),
        ({"kind": "attention", "input_size": 2, "layers": 1_000_000_000}, ()),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_and_the_choices_are_listed(
    change: dict[str, Any], listed: tuple[str, ...]
) -> None:
    with pytest.raises(SettingError) as caught:
        EncoderConfig(**{"kind": "rcnn", "input_size": 3, "hidden_size": 2, **change})
    assert all(choice in str(caught.value) for choice in listed)


@pytest.mark.parametrize("kind", ENCODER_KINDS)
def test_settings_survive_json(kind: Any) -> None:
    layers = 2 if kind in STACKED else 1
    config = EncoderConfig(kind, 3, 3, 3, gate="fixed", decay=0.7, pooling="normalised-mean", layers=layers)
    stored = json.loads(json.dumps(config.to_json()))
    assert stored.get("layers", 1) == layers
    assert read_settings(EncoderConfig, stored, "encoder") == config


@pytest.mark.parametrize(
    "stored", [{"kind": "rcnn"}, {"kind": "rcnn", "input_size": 3, "hidden_size": 2, "heads": 8}, {}]
)
def test_stored_settings_with_missing_or_unknown_names_are_refused(stored: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        read_settings(EncoderConfig, stored, "encoder")
