"""Which trainings the benchmark of Zhang and Wu 2018 takes, and which it draws."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks.logs import Course
from benchmarks.zhang2018 import drawn_amount, finished, reconstructions, with_published

from askalike.papers.zhang2018.autoencoders import Autoencoder, AutoencoderTrainer


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


def rows(*named: tuple[str, int], new: bool = True) -> list[dict[str, Any]]:
    return [{"row": name, "texts": amount, "new": new} for name, amount in named]


def comparison(better: str, *, new: bool) -> dict[str, Any]:
    return {"better": better, "worse": "ir", "task": "dev", "new": new}


def test_rows_that_are_not_scored_anew_stay_as_they_were_published() -> None:
    published = {
        "rows": rows(("ir", 0), ("attention-full", 20), ("attention-full", 42), ("gru-full", 42), new=False),
        "compared": {
            "20": [comparison("attention-full", new=False)],
            "42": [comparison("attention-full", new=False), comparison("gru-full", new=False)],
        },
        "tried_on_dev": {"attention, 20 texts": ["old"]},
        "epochs": {"attention, 20 texts": {"epochs": [1]}},
        "measured": {"attention, 20 texts": "then", "attention, 42 texts": "then", "gru, 42 texts": "then"},
    }
    body = {
        "rows": rows(("ir", 0), ("words-full", 42), ("attention-full", 42), ("attention-full", 100)),
        "compared": {
            "42": [comparison("attention-full", new=True)],
            "100": [comparison("attention-full", new=True)],
        },
        "tried_on_dev": {"attention, 42 texts": ["new"]},
        "epochs": {"attention, 42 texts": {"epochs": [2]}},
        "measured": {"attention, 42 texts": "now", "attention, 100 texts": "now"},
    }
    found = with_published(body, published)
    assert [(row["row"], row["texts"], row["new"]) for row in found["rows"]] == [
        ("ir", 0, True),
        ("attention-full", 20, False),
        ("words-full", 42, True),
        ("attention-full", 42, True),
        ("gru-full", 42, False),
        ("attention-full", 100, True),
    ]
    said = {amount: [(one["better"], one["new"]) for one in of] for amount, of in found["compared"].items()}
    assert said == {
        "20": [("attention-full", False)],
        "42": [("attention-full", True), ("gru-full", False)],
        "100": [("attention-full", True)],
    }
    assert list(found["tried_on_dev"]) == ["attention, 20 texts", "attention, 42 texts"]
    assert found["measured"] == published["measured"] | body["measured"]
    assert with_published(body, {})["rows"] == body["rows"]
