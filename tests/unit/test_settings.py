"""Every number of every kind of settings has a range; one beyond it is refused with setting, value and range."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from msgspec import Meta

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig, ModelSettings
from askalike.papers.das2016.scqa import ScqaSettings
from askalike.papers.zhang2018.ramn import RamnSettings
from askalike.settings import fit
from askalike.training.encoder import TrainingRun
from askalike.training.recipe import (
    OBJECTIVES,
    LoopSettings,
    Recipe,
    SgdSettings,
    StageSettings,
    WordSettings,
    network_recipe,
    read_recipe,
    shipped_recipes,
)

MODELS = (EncoderConfig, ModelSettings, TrainingRun, RamnSettings)
NETWORK = (Recipe, WordSettings, StageSettings, LoopSettings, *OBJECTIVES.values())
SETTINGS: tuple[type, ...] = (*MODELS, *NETWORK, ScqaSettings, SgdSettings)

ENCODER = """
[words]
size = {size}
max_size = {max_size}
[encoder]
kind = "gru"
hidden_size = {hidden_size}
[[stage]]
objective = "contrastive"
views = {{ marked = {share} }}
epochs = {epochs}
"""
SMALL = {"size": 4, "max_size": 9, "hidden_size": 4, "share": 1.0, "epochs": 2}


def bounds_of(kind: type) -> Iterator[tuple[str, Any, Meta]]:
    """Yield the name, the annotation and the bounds of each number of a class of settings."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        kinds = (hint, *get_args(hint))
        yield from ((name, hint, bounds) for known in kinds for bounds in getattr(known, "__metadata__", ()))


def test_every_number_of_a_class_of_settings_has_bounds() -> None:
    for kind in SETTINGS:
        hints = get_type_hints(kind)
        numbers = {field.name for field in fields(kind) if re.search(r"\b(int|float)\b", str(hints[field.name]))}
        assert {name for name, _, _ in bounds_of(kind)} == numbers, kind


def test_what_is_just_within_bounds_is_taken_and_what_is_beyond_is_refused() -> None:
    for name, hint, bounds in (entry for kind in SETTINGS for entry in bounds_of(kind)):
        least, most = bounds.ge, bounds.le
        assert least is not None
        assert most is not None
        for bound in (least, most):
            fit(listed(hint, bound), hint, name)
        for beyond in (least - 1, most * 2, 10**5_000, float("nan"), float("inf"), True, "1"):
            with pytest.raises(
                SettingError, match=rf"{name} is .*, but (expected `(int|float)`|number out of range)"
            ) as caught:
                fit(listed(hint, beyond), hint, name)
            assert len(caught.value.message) < 300


def listed(hint: Any, value: object) -> object:
    """Return a value as its annotation wants it: by itself, in a list, or in a table."""
    return (value,) if get_origin(hint) is tuple else {"answers": value} if get_origin(hint) is Mapping else value


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_size", 10**12, "words: max_size is 1000000000000, but expected `int` <= 10000000"),
        (
            "share",
            1e9,
            "stage 1 (contrastive): views is {'marked': 1000000000.0}, but expected `float` <= 1000.0",
        ),
        (
            "epochs",
            10**400,
            "stage 1 (contrastive): epochs is 100000000000000000000",
        ),
    ],
)
def test_a_number_that_no_machine_could_train_is_named_with_its_range(
    tmp_path: Path, name: str, value: float, said: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ENCODER.format(**SMALL), encoding="utf-8")
    network_recipe(path)
    path.write_text(ENCODER.format(**{**SMALL, name: value}), encoding="utf-8")
    with pytest.raises(SettingError, match=re.escape(f"mine.toml: {said}")):
        network_recipe(path)


def test_every_recipe_that_ships_is_within_the_ranges() -> None:
    for name in shipped_recipes():
        read_recipe(name)
