"""The settings of an encoder: refused values, the shapes and the number of its parameters, storing."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from typing import Any

import pytest

from askalike.encode import config as module
from askalike.encode.config import GATES, KINDS, POOLINGS, EncoderConfig
from askalike.errors import SettingError


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
        # D (3 · D_in + 1)
        ({"kind": "cnn", "input_size": 200, "hidden_size": 667, "order": 3}, 400_867),
    ],
)
def test_the_number_of_parameters_follows_from_the_sizes(settings: dict[str, Any], count: int) -> None:
    assert EncoderConfig(**settings).parameter_count() == count


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        ({"kind": "transformer"}, KINDS),
        ({"gate": "matrix"}, GATES),
        ({"pooling": "sum"}, POOLINGS),
        ({"order": 0}, ()),
        ({"order": True}, ()),
        ({"input_size": 0}, ()),
        ({"hidden_size": 2.5}, ()),
        ({"decay": 1.0}, ()),
        ({"decay": float("nan")}, ()),
        ({"decay": "half"}, ()),
        ({"kind": "cnn", "order": 5}, ()),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_and_the_choices_are_listed(
    change: dict[str, Any], listed: tuple[str, ...]
) -> None:
    with pytest.raises(SettingError) as caught:
        EncoderConfig(**{"kind": "rcnn", "input_size": 3, "hidden_size": 2, **change})
    assert all(choice in str(caught.value) for choice in listed)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_survive_json(kind: Any) -> None:
    config = EncoderConfig(kind, 3, 2, order=3, gate="fixed", decay=0.7, pooling="normalised-mean")
    assert EncoderConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    "stored", [{"kind": "rcnn"}, {"kind": "rcnn", "input_size": 3, "hidden_size": 2, "heads": 8}, {}]
)
def test_stored_settings_with_missing_or_unknown_names_are_refused(stored: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        EncoderConfig.from_json(stored)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_importing_the_settings_does_not_load_torch() -> None:
    program = "import sys; import askalike.encode.config; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
