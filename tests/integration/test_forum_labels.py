"""Labels of pairs: stored as judgements that move probabilities, and thresholds that they prove for pairs like them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from tests.command import Run

from askalike import Forum, Question
from askalike.errors import FormatError, InputError, SettingError
from askalike.search.thresholds import Promise, clopper_pearson, clustered_share, components, labelled_threshold, needed

pytestmark = pytest.mark.usefixtures("words_alone")

PLACES = ["attic", "barn", "cellar", "den", "garage", "hall", "kitchen", "loft", "office", "porch"]
THINGS = ["printer", "router", "clock", "phone", "radio", "lamp", "kettle", "camera", "scanner", "fridge"]


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    """Return a forum of a hundred pairs that differ in one word of five, and none of which asks the same."""
    with Forum.create(tmp_path / "f") as made:
        made.add(
            [
                Question(f"{thing}-{place}-{side}", f"{thing} {word} every evening in {place}")
                for thing in THINGS
                for place in PLACES
                for side, word in (("a", "fails"), ("b", "stops"))
            ]
        )
        yield made


def labels_of(verdict: object) -> list[tuple[str, str, object]]:
    return [(f"{thing}-{place}-a", f"{thing}-{place}-b", verdict) for thing in THINGS for place in PLACES]


def test_probabilities_follow_the_labels(forum: Forum) -> None:
    def likely() -> float:
        (hit,) = [
            one for one in forum.similar("printer fails every evening in attic") if one.question.id.endswith("-b")
        ]
        return hit.score

    before = likely()
    report = forum.thresholds.label(labels_of(0))
    assert (report.pairs, report.same, report.in_forum, report.stored, report.left_out) == (100, 0, 100, 100, ())
    assert likely() < before
    assert [judged.draw.by for judged in forum.store.judgements()] == ["label"] * 100
    assert forum.thresholds.label(labels_of(0)).stored == 0, "labels that are there are not stored again"
    assert forum.thresholds.label(labels_of("1")).stored == 100, "a label that was corrected is"


def test_a_persons_judgement_outvotes_a_label(forum: Forum) -> None:
    forum.judge("printer-attic-b", "printer-attic-a", "duplicate", "ann")
    assert forum.thresholds.label(labels_of(0)).stored == 99
    assert forum.store.judgements_on("printer-attic-a") == {"printer-attic-b": "duplicate"}


def test_labels_prove_a_threshold_for_pairs_like_them_in_every_door(forum: Forum) -> None:
    threshold = forum.thresholds.find(precision=0.9, labels=labels_of(1))
    assert (threshold.judgements, threshold.share.value) == (100, 1.0)
    assert threshold.share.low == pytest.approx(clopper_pearson(100, 100)[0])
    assert threshold.about == "rests on 100 labelled pairs, and holds for pairs that are drawn as they were"
    assert forum.thresholds.find(precision=0.9) == threshold
    assert forum.thresholds.least("precision:0.9") == threshold.minimum


def test_labels_that_prove_nothing_promise_nothing(forum: Forum) -> None:
    threshold = forum.thresholds.find(precision=0.9, labels=labels_of(0))
    assert (threshold.minimum, threshold.judgements, threshold.share.value) == (None, 0, 0.0)
    assert threshold.about == "no minimum is proved by 100 labelled pairs"
    assert "an estimate, not a promise" in forum.thresholds.find(precision=0.01).about


def test_titles_are_found_and_other_texts_are_measured_alone(forum: Forum) -> None:
    report = forum.thresholds.label(
        [
            ("  Printer FAILS every evening in attic", "printer-attic-b", "yes"),
            ("My cat eats grass", "my cat eats grass!", True),
            ("My cat eats grass", "How are eggs boiled?", 0.0),
        ]
    )
    assert (report.pairs, report.same, report.in_forum, report.stored) == (3, 2, 1, 1)
    assert report.likely[1] > report.likely[2]
    assert len(forum) == 200
    assert report.curve[0].shown == 3
    assert report.curve[0].precision == pytest.approx(2 / 3)
    assert report.curve[0].recall == 1.0


@pytest.mark.parametrize("form", ["frame", "csv", "tsv"])
def test_rows_that_say_nothing_are_named(forum: Forum, form: str, tmp_path: Path) -> None:
    rows = [
        ("printer-attic-a", "printer-attic-b", "1"),
        ("printer-attic-a", "", "1"),
        ("printer-attic-a", "radio-attic-a", "maybe"),
        ("printer-attic-a", "printer fails every evening in attic", "1"),
    ]
    names = ("id", "question1", "question2", "is_duplicate")
    given: Any
    if form == "frame":
        columns = zip(*[(number, *row) for number, row in enumerate(rows)], strict=True)
        given = pyarrow.table(dict(zip(names, map(list, columns), strict=True)))
    else:
        given = tmp_path / f"pairs.{form}"
        mark = "," if form == "csv" else "\t"
        lines = [names, *((str(number), *row) for number, row in enumerate(rows))]
        given.write_text("".join(f"{mark.join(line)}\n" for line in lines))
    report = forum.thresholds.label(given)
    assert report.pairs == 1
    assert [(unused.row, unused.reason) for unused in report.left_out] == [
        (1, "a question is empty"),
        (2, "is_duplicate is 'maybe', expected 1 or 0"),
        (3, "both are one question"),
    ]


def test_no_labels_say_nothing(forum: Forum) -> None:
    report = forum.thresholds.label([])
    assert (report.pairs, report.curve) == (0, ())
    assert report.threshold(Promise("precision", 0.9)).minimum is None


def test_labels_that_cannot_be_read_are_named(forum: Forum, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("question1,is_duplicate\nq1,1\n")
    with pytest.raises(FormatError, match=r"pairs\.csv has no column question2; its columns are 'question1'"):
        forum.thresholds.label(tmp_path / "pairs.csv")
    with pytest.raises(InputError, match=r"none\.csv"):
        forum.thresholds.label(tmp_path / "none.csv")
    with pytest.raises(SettingError, match="a int was given as labels"):
        forum.thresholds.label(7)


def test_the_command_shows_the_curve_and_what_is_proved(run: Run, forum: Forum, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("qid1,qid2,is_duplicate\n" + "".join(f"{a},{b},{same}\n" for a, b, same in labels_of(1)))
    forum.close()
    shown = run("threshold", forum.path, "--labels", path)
    assert shown.code == 0
    assert "100 labelled pairs, 100 of them the same; 100 are pairs of the forum's questions" in shown.out
    assert "█" * 20 in shown.out
    assert "rests on 100 labelled pairs" in shown.out
    found = run("threshold", forum.path, "--labels", path, "--recall", 0.9, "--json").json
    assert (found["promise"], found["is_proved"], found["pairs"], found["stored"]) == ("recall", True, 100, 0)
    assert found["curve"][0]["precision"] == 1.0


# -- worked examples -------------------------------------------------------------------------------------------


def test_pairs_that_share_a_question_are_worth_one() -> None:
    alone = np.arange(20)
    share = clustered_share(np.array([True] * 18 + [False] * 2), alone)
    assert (share.value, share.worth, (share.low, share.high)) == (0.9, 20.0, clopper_pearson(18, 20))
    shared = clustered_share(np.array([True] * 18 + [False] * 2), np.append(np.zeros(18, dtype=int), [1, 2]))
    assert shared.worth == pytest.approx(400 / (18**2 + 2))
    assert shared.low < share.low


def test_components_join_pairs_by_any_way_of_shared_questions() -> None:
    assert components([(1, 2), (3, 4), (5, 6), (4, 5), (6, 1)]).tolist() == [0, 0, 0, 0, 0]
    assert components([]).tolist() == []


def test_a_labelled_precision_stops_at_the_first_threshold_that_fails() -> None:
    count = 2 * needed(0.9)
    likely = np.array([0.9] * count + [0.5] * count)
    is_same = np.array([True] * count + [False] * count)
    minimum, share = labelled_threshold(Promise("precision", 0.9), likely, is_same, np.arange(2 * count))
    assert minimum == 0.9
    assert (share.value, share.low) == (1.0, pytest.approx(0.05 ** (1 / count)))
    few = labelled_threshold(Promise("precision", 0.9), likely[1:count], is_same[1:count], np.arange(count - 1))
    assert few[0] is None


def test_a_labelled_recall_takes_the_greatest_minimum_that_is_proved() -> None:
    likely = np.array([0.9] * 95 + [0.3] * 5 + [0.1] * 50)
    is_same = np.array([True] * 100 + [False] * 50)
    minimum, share = labelled_threshold(Promise("recall", 0.9), likely, is_same, np.arange(150))
    assert clopper_pearson(95, 100)[0] < 0.9, "of the greater minimum not enough is sure"
    assert (minimum, share.value, share.high) == (0.3, 1.0, 1.0)
