"""What the scorer learns from: how much each kind of pair counts, and how well weights explain grades."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import benchmarks.__main__ as every
import numpy as np
import pytest
from benchmarks.margins import over_forums
from benchmarks.scorer import (
    NOISE,
    OF_COPIES,
    OF_ELSEWHERE,
    OF_OTHER_FORM,
    calibration_error,
    fitted,
    furthest,
    training_rows,
)
from benchmarks.scorer_sets import ARRAYS, MARGIN, OTHER_FORM, Pairs, read_pairs, write_pairs

from askalike.search.features import FEATURES
from askalike.search.scorer import SENTENCES, VERSIONS, WORDS

TEXTS = FEATURES.index("texts")


def pairs(kind: str, *grades: float, forum: str = "travel") -> Pairs:
    features = np.zeros((len(grades), len(FEATURES)))
    features[:, TEXTS] = np.nan_to_num(np.array(grades)) / 3
    none = np.zeros(len(grades))
    ids = tuple(map(str, range(len(grades))))
    return Pairs(forum, kind, True, ids, np.array(grades), features, features, features, none, none, none, none)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_kind_of_pair_counts_as_it_is_said(version: str) -> None:
    kinds = ["pool", OTHER_FORM, "copy", "elsewhere", "nonsense"]
    found = training_rows([pairs(kind, 0.0) for kind in kinds], version, [])
    far = OF_ELSEWHERE[version]
    assert found.weights.tolist() == [1.0, OF_OTHER_FORM, OF_COPIES, far, far]
    assert training_rows([pairs("elsewhere", 0.0)], version, [], 0.5).weights.tolist() == [0.5]


def test_nothing_is_learned_from_the_forum_that_is_left_out_nor_from_what_nobody_judged() -> None:
    given = [pairs("pool", 2.0, np.nan), pairs("pool", 3.0, forum="devops")]
    assert training_rows(given, WORDS, ["devops"]).grades.tolist() == [2.0]


def test_ten_equal_groups_are_off_by_the_mean_distance_of_what_is_said_and_what_is() -> None:
    likely, is_so = np.repeat([0.2, 0.8], 50), np.tile([True, False], 50)
    assert calibration_error(likely, is_so) == pytest.approx(30.0)  # each group is so in half


def test_pairs_are_kept_to_the_last_digit(tmp_path: Path) -> None:
    given = [[pairs("pool", 1 / 3, np.nan)], [replace(pairs("copy", 3.0), sentences=None)]]
    write_pairs(tmp_path / "pairs.json", given)
    read = read_pairs(tmp_path / "pairs.json")
    assert [[one.kind for one in part] for part in read] == [["pool"], ["copy"]]
    for one, other in ((read[0][0], given[0][0]), (read[1][0], given[1][0])):
        assert one.ids == other.ids
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_weights_are_as_far_apart_as_the_number_that_differs_most() -> None:
    held = {"weights": {"texts": 2.0}, "related": -4.0, "same": -6.0}
    assert furthest(held, held) == 0 < NOISE
    assert furthest(held, {"weights": {"texts": 2.5, "titles": 1.0}, "related": -4.25, "same": -6.0}) == 1.0


def test_what_rests_on_weights_goes_on_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []
    failing: set[str] = set()

    def run(command: str) -> int:
        ran.append(command.removeprefix(every.ONE_THREAD))
        return 3 if ran[-1] in failing else 0

    monkeypatch.setattr(every, "run", run)
    monkeypatch.setattr(every, "RESULTS", tmp_path)
    for name in ("scorer", "judgements", "groups"):
        commit = "abc-dirty" if name == "groups" else "abc"
        held = f'{{"weights": "{every.weights_digest()}", "commit": "{commit}"}}'
        (tmp_path / f"{name}.json").write_text(held, encoding="utf-8")
    failing.add("encoders")
    assert every.by_weights([]).startswith("encoders ended with 3")
    assert ran == ["groups", "encoders --build", "encoders"], "two were done; a dirty commit is none"
    assert every.by_weights(["judgements"]) == ""
    assert ran[-1] == "judgements"
    monkeypatch.setattr(every, "weights_digest", iter(["before", "after"]).__next__)
    assert every.by_weights(["scorer"]).startswith("other weights were learned")
    assert f"1 of {len(every.BY_WEIGHTS)}: scorer took" in capsys.readouterr().out


def test_a_forum_whose_questions_stand_out_is_said_to_have_more_duplicates_where_others_do() -> None:
    some = [("slicer", -1.0, 0.0), ("devops", -1.0, 0.0), ("math", 1.0, 3.0), ("quantum", 1.0, 3.0)]
    judged = []
    for forum, standing, grade in some:
        features = np.zeros((9, len(FEATURES)))
        features[:, FEATURES.index(MARGIN)] = standing
        judged += [replace(pairs("pool", *[grade] * 8, 3.0 - grade, forum=forum), sentences=features)] * 20
    weight = {
        name: fitted(training_rows(judged, SENTENCES, [], used=used)).weights[FEATURES.index(MARGIN)]
        for name, used in (("with", (MARGIN,)), ("without", ("texts",)))
    }
    assert weight["with"] > 0.5
    assert weight["without"] == 0.0


def test_forums_that_agree_have_a_narrow_interval() -> None:
    assert over_forums({"a": [1.0, 1.0], "b": [1.0]}) == [1.0, 1.0]
