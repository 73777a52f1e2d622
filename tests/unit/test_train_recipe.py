"""Recipes are read from files; what cannot be used is refused with file, place and what was expected."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tiny_training import recipe, stage

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig
from askalike.papers.lei2016.rows import ROWS
from askalike.papers.lei2016.table import row_recipe
from askalike.training.recipe import (
    SHIPPED,
    Adaptation,
    ContrastiveOptions,
    DecodingOptions,
    LoopSettings,
    WordSettings,
    network_recipe,
    read_recipe,
)

TEXT = """
word_limit = 50
[words]
size = 4
is_trained = true
[encoder]
kind = "gru"
hidden_size = 3
[[stage]]
objective = "decoding"
contexts = ["title"]
held_out = 7
stop_on = "perplexity from title"
dropout = 0.25
[[stage]]
objective = "contrastive"
views = { marked = 2.0, title-body = 1 }
needs = "pairs"
learning_rate = 1
"""


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingError) as caught:
        network_recipe(path)
    assert caught.value.message.startswith(f"recipe {path}")
    return str(caught.value).removeprefix(f"recipe {path}: ")


def test_a_file_becomes_a_recipe(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT, encoding="utf-8")
    recipe = network_recipe(str(path))
    assert recipe.encoder == EncoderConfig("gru", 4, 3)
    assert recipe.words == WordSettings(size=4, is_trained=True)
    assert (recipe.word_limit, recipe.reads) == (50, "title and body")
    first, second = recipe.stages
    assert first.options == DecodingOptions(("title",), held_out=7)
    assert first.loop == LoopSettings(stop_on="perplexity from title")
    assert (first.dropout, first.needs, second.needs) == (0.25, "", "pairs")
    assert second.options == ContrastiveOptions({"marked": 2.0, "title-body": 1})
    assert second.loop.learning_rate == 1
    assert recipe.model_settings().encoder == recipe.encoder
    assert recipe.to_json() == network_recipe(path).to_json()


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_the_recipes_that_ship_can_be_used_by_name(path: Path) -> None:
    assert read_recipe(path.stem) == read_recipe(path)


def test_a_recipe_that_is_not_there_is_named_with_those_that_ship() -> None:
    with pytest.raises(SettingError, match=r"there is no recipe 'lei2017' \(give a file, or one of: .*lei2016"):
        network_recipe("lei2017")
    with pytest.raises(SettingError, match="there is no recipe"):
        network_recipe(SHIPPED)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "word_limit = 50",
            "word_limits = 50",
            "top level: got an unexpected keyword argument 'word_limits'; its settings are: encoder, stages, ",
        ),
        (
            "word_limit = 50",
            "word_limit = 0",
            "top level: word_limit is 0, but expected `int` >= 1",
        ),
        ("word_limit = 50", "stems = 'klingon'", "top level: model setting stems is 'klingon', but expected one of"),
        ("size = 4", "size = 0", "words: size is 0, but expected `int` >= 1"),
        ("is_trained = true", "is_trained = 1", "words: is_trained is 1, but expected `bool`, got `int`"),
        (
            "[encoder]",
            "[encoders]",
            "encoder: missing a required argument: 'kind'; its settings are: kind, input_size, ",
        ),
        ("[words]\nsize = 4\nis_trained = true", "words = 3", "words is 3, but expected a table of: max_size, "),
        ("hidden_size = 3", "", "encoder: missing a required argument: 'hidden_size'"),
        ("hidden_size = 3", "hidden_size = 3\ninput_size = 9", "top level: an encoder of 9 numbers a word, but word"),
        ('"decoding"', '"guessing"', "stage 1: objective is 'guessing', but expected one of: decoding, max-margin"),
        (
            "held_out = 7",
            "negatives = 7",
            "stage 1 (decoding): negatives is unknown; known are: objective, dropout",
        ),
        ('["title"]', '"title"', "stage 1 (decoding): contexts is 'title', but expected `array`"),
        ('["title"]', "[1]", "stage 1 (decoding): contexts is [1], but expected `str`, got `int`"),
        (
            "dropout = 0.25",
            "dropout = 1.0",
            "stage 1 (decoding): dropout is 1.0, but expected `float` <= 0.999",
        ),
        ("from title", "from body", "stage 1 (decoding): stop_on is 'perplexity from body', but expected one of: mrr"),
        ("views = { marked = 2.0, title-body = 1 }", "", "stage 2 (contrastive): missing a required argument: 'views'"),
        ('needs = "pairs"', 'needs = "luck"', "stage 2 (contrastive): needs is 'luck'"),
        (
            "learning_rate = 1",
            "learning_rate = 0",
            "stage 2 (contrastive): learning_rate is 0, but expected `float` >= 1e-12",
        ),
        (
            "learning_rate = 1",
            "stop_on = 'mmr'",
            "stage 2 (contrastive): stop_on is 'mmr', but expected one of: mrr, map",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_file_and_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    assert refused(tmp_path, TEXT.replace(old, new)).startswith(message)


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    assert "is no TOML" in refused(tmp_path, "[words\n")
    (tmp_path / "mine.toml").write_bytes(b"\xff")
    with pytest.raises(SettingError, match="is no TOML"):
        network_recipe(tmp_path / "mine.toml")


def test_a_recipe_without_stages_or_with_a_single_table_is_refused(tmp_path: Path) -> None:
    head = TEXT.partition("[[stage]]")[0]
    assert refused(tmp_path, head).startswith("top level: a recipe without a stage")
    assert refused(tmp_path, head + '[stage]\nobjective = "decoding"').startswith(
        "stage is {'objective': 'decoding'}, but expected `array`"
    )
    assert refused(tmp_path, "stage = [3]\n" + head).startswith("stage is [3], but expected `object`, got `int`")


def test_the_name_of_a_recipe_changes_with_every_choice() -> None:
    base = recipe(stage("max-margin"))
    others = [
        recipe(stage("max-margin", margin=0.3)),
        recipe(stage("max-margin", dropout=0.3)),
        recipe(stage("max-margin"), stage("max-margin")),
        recipe(stage("max-margin"), kind="gru"),
        recipe(stage("max-margin"), is_trained=True),
    ]
    assert len({recipe.to_json() for recipe in (base, *others)}) == 6


def test_reading_a_recipe_loads_no_torch() -> None:
    program = "import sys; from askalike.training import recipe; recipe.read_recipe('default'); print([*sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'torch'" not in done.stdout
    assert "'askalike.training.recipe'" in done.stdout


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("a = " + "[" * 20_000 + "]" * 20_000, "nests tables or lists too deeply"),
        (
            '[encoder]\nkind = "rcnn"\nhidden_size = 8\n[[stage]]\nobjective = "max-margin"\nmargin = 1' + "0" * 400,
            "margin is 10{199}, but number out of range",
        ),
        ("a = 1" + "0" * 5_000, "is no TOML"),
    ],
    ids=["nested", "large", "long"],
)
def test_a_recipe_beyond_all_bounds_is_said_with_its_file(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "huge.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SettingError, match=what) as caught:
        network_recipe(path)
    assert "huge.toml" in caught.value.message
    assert caught.value.hint


def test_the_recipe_of_the_official_program_differs_from_the_papers_as_the_program_does() -> None:
    papers, program = (json.loads(network_recipe(name).to_json()) for name in ("lei2016", "lei2016-program"))
    own, stage = program["words"], program["stages"][0]
    assert (own["weighted"], own["unknown"], program["spread"]) == ("by idf", "dropped", 0.05)
    assert (stage["options"]["drawn_for"], stage["options"]["batch_size"], stage["options"]["margin"]) == (
        "query",
        40,
        1,
    )
    assert (stage["first_epoch"], stage["loop"]["patience"], stage["loop"]["epochs"]) == (1, 15, 50)
    assert program["encoder"]["pooling"] == "normalised-last"
    assert (papers["words"]["weighted"], papers["spread"]) == ("equally", 0)
    assert [stage["first_epoch"] for stage in papers["stages"]] == [0, 1], "fine-tuning is at least an epoch"


def test_a_gate_bias_is_part_of_a_recipes_name_and_needs_gates() -> None:
    plain = recipe(stage("max-margin"), kind="rcnn")
    biased = replace(plain, gate_bias=3.0)
    assert biased.to_json() != plain.to_json()
    for wrong, message in (({"kind": "lstm"}, "has no gates to learn"), ({"gate": "fixed"}, "has no gates to learn")):
        with pytest.raises(SettingError, match=message):
            replace(biased, encoder=replace(biased.encoder, **wrong))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="gate_bias is 11"):
        replace(plain, gate_bias=11)
    papers = replace(network_recipe("lei2016"), gate_bias=3.0)
    rows = [row_recipe(ROWS[name], papers, is_pretraining=False).gate_bias for name in ("lstm-last", "rcnn-last")]
    assert rows == [0.0, 3.0], "rows without gates begin as they did"
    plain_recipe = network_recipe("lei2016")
    assert row_recipe(ROWS["rcnn-last-bias"], plain_recipe, is_pretraining=False).gate_bias == 3.0
    assert row_recipe(ROWS["rcnn-last"], plain_recipe, is_pretraining=False).gate_bias == 0.0


def test_the_default_adapts_the_bundled_encoder_and_is_no_network() -> None:
    recipe = read_recipe("default")
    assert isinstance(recipe, Adaptation)
    assert [stage.loop.epochs for stage in recipe.stages] == [1]
    with pytest.raises(SettingError, match="adapts the bundled encoder and trains no network"):
        network_recipe("default")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('adapts = "other"', "adapts is 'other', but expected general"),
        ('adapts = "general"', "stages of contrastive or max-margin"),
        ('adapts = "general"\n[[stage]]\nobjective = "decoding"', "stages of contrastive or max-margin"),
    ],
)
def test_an_adaptation_that_cannot_be_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(content, encoding="utf-8")
    with pytest.raises(SettingError, match=said):
        read_recipe(tmp_path / "mine.toml")
