"""Which trainings the benchmark of Zhang and Wu 2018 takes, and which it draws."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks.logs import Course
from benchmarks.zhang2018 import drawn_amount, finished, reconstructions, with_published

from askalike.experiments.zhang2018.training import Autoencoder, AutoencoderTrainer


@dataclass
class Trained:
    """Stands for a trainer: only what its folder holds matters."""

    out: Path
    ones: tuple[Autoencoder, ...]

    def is_finished(self, one: Autoencoder) -> bool:
        return one in self.ones


def trainer(out: Path, *ones: Autoencoder) -> AutoencoderTrainer:
    for one in ones:
        one.folder(out).mkdir(parents=True)
        (one.folder(out) / "log.csv").write_text("stage,epoch,step,measure,value\n1-a,1,8,loss,2\n", encoding="utf-8")
    return cast("AutoencoderTrainer", cast("Any", Trained(out, ones)))


def test_the_courses_are_those_of_finished_trainings(tmp_path: Path) -> None:
    made = trainer(tmp_path, Autoencoder("gru", 0, 1), Autoencoder("attention", 20, 0))
    found = [(one.dataset, one.row, one.seed, one.curve("loss")) for one in finished(made, [20, 0])]
    assert found == [("20", "attention", 0, [(1, 2.0)]), ("all", "gru", 1, [(1, 2.0)])]


def test_a_folder_without_trainings_ends_it_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no training of 20, all texts is finished in"):
        finished(trainer(tmp_path / "mistyped"), [20, 0])
    assert not list(tmp_path.iterdir())


def test_the_largest_amount_of_which_both_kinds_are_finished_is_drawn() -> None:
    both = [Course(name, kind, 0, ()) for name in ("20", "all") for kind in ("gru", "attention")]
    assert drawn_amount(both, [20, 0]) == 0
    assert drawn_amount(both[:3], [20, 0]) == 20
    assert drawn_amount(both[:1], [20, 0]) == 20


def test_what_each_decoder_wrote_stands_beside_what_was_read(tmp_path: Path) -> None:
    ones = Autoencoder("attention", 20, 0), Autoencoder("gru", 20, 0)
    made = trainer(tmp_path, *ones)
    for one in ones:
        example = {"read": "where is it", "written": f"{one.kind} is it"}
        (one.folder(tmp_path) / "examples.json").write_text(json.dumps([example]), encoding="utf-8")
    expected = {"read": "where is it", "attention": "attention is it", "gru": "gru is it"}
    assert reconstructions(made, 20) == [expected]


def rows(*amounts: int) -> list[dict[str, Any]]:
    return [{"row": "ir" if amount == 0 else "attention-full", "texts": amount, "new": True} for amount in amounts]


def test_amounts_that_are_not_measured_anew_stay_as_they_were_published() -> None:
    old = [{**row, "new": False} for row in rows(0, 20, 42)]
    published = {
        "rows": old,
        "compared": {"20": ["old"], "42": ["old"]},
        "tried_on_dev": {"attention, 20 texts": ["old"]},
        "epochs": {"attention, 20 texts": {"epochs": [1]}},
        "measured": {"20": "then", "42": "then"},
    }
    body = {
        "rows": rows(0, 42, 100),
        "compared": {"42": ["new"], "100": ["new"]},
        "tried_on_dev": {"attention, 42 texts": ["new"]},
        "epochs": {"attention, 42 texts": {"epochs": [2]}},
        "measured": {"42": "now", "100": "now"},
    }
    found = with_published(body, published)
    assert [(row["texts"], row["new"]) for row in found["rows"]] == [(0, True), (20, False), (42, True), (100, True)]
    assert found["compared"] == {"20": ["old"], "42": ["new"], "100": ["new"]}
    assert list(found["tried_on_dev"]) == ["attention, 20 texts", "attention, 42 texts"]
    assert found["measured"] == {"20": "then", "42": "now", "100": "now"}
    assert with_published(body, {})["rows"] == body["rows"]
