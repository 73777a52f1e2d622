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
from askalike.search.thresholds import (
    Promise,
    calibration_error,
    clopper_pearson,
    clustered_share,
    components,
    labelled_threshold,
    needed,
)

pytestmark = pytest.mark.usefixtures("words_alone")

PLACES = ["attic", "barn", "cellar", "den", "garage", "hall", "kitchen", "loft", "office", "porch"]
THINGS = ["printer", "router", "clock", "phone", "radio", "lamp", "kettle", "camera", "scanner", "fridge"]


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    """Return a forum of a hundred pairs that differ in one word of five, and none of which asks the same."""
    with Forum.create(tmp_path / "f") as forum:
        forum.add(
            [
                Question(f"{thing}-{place}-{side}", f"{thing} {word} every evening in {place}")
                for thing in THINGS
                for place in PLACES
                for side, word in (("a", "fails"), ("b", "stops"))
            ]
        )
        yield forum


def labels_of(verdict: object) -> list[tuple[str, str, object]]:
    return [(f"{thing}-{place}-a", f"{thing}-{place}-b", verdict) for thing in THINGS for place in PLACES]


def test_probabilities_follow_the_labels(forum: Forum) -> None:
    def likely() -> float:
        (hit,) = [
            hit for hit in forum.similar("printer fails every evening in attic") if hit.question.id.endswith("-b")
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
    forum.add([Question("cat", "My cat eats grass"), Question("eggs", "How are eggs boiled?")])
    threshold = forum.thresholds.find(precision=0.9, labels=[*labels_of(1), ("cat", "eggs", 0)])
    assert (threshold.judgements, threshold.share.value) == (101, 100 / 101)
    assert threshold.share.low == pytest.approx(clopper_pearson(100, 101)[0])
    assert threshold.about == "rests on 101 labelled pairs, and holds for pairs that are drawn as they were"
    assert forum.thresholds.find(precision=0.9) == threshold
    assert forum.thresholds.least_probability("precision:0.9") == threshold.minimum


def test_labels_that_prove_nothing_promise_nothing(forum: Forum) -> None:
    threshold = forum.thresholds.find(precision=0.9, labels=labels_of(0))
    assert (threshold.minimum, threshold.judgements, threshold.share.value) == (None, 0, 0.0)
    assert threshold.about.startswith("no minimum is proved by 100 labelled pairs: nearest came ")
    assert threshold.about.endswith("more labels like these would not prove it")
    assert forum.thresholds.find(precision=0.9) == threshold, "labels that deny it outweigh an estimate"
    assert forum.thresholds.least_probability("precision:0.9") == 1.0


def test_few_labels_leave_the_estimate(forum: Forum) -> None:
    about = forum.thresholds.find(precision=0.9, labels=labels_of(0)[:20]).about
    assert about == "no minimum is proved by 20 labelled pairs: it takes at least 58"
    estimate = forum.thresholds.find(precision=0.9)
    assert estimate.judgements == 0
    assert "no judged pair was drawn by chance" in estimate.about
    assert estimate.about.endswith(about)


def test_labels_of_duplicates_alone_prove_no_precision(forum: Forum) -> None:
    report = forum.thresholds.label([*labels_of(1)[:80], *labels_of("")[80:]])
    assert (report.pairs, len(report.left_out)) == (80, 20)
    threshold = report.threshold(Promise("precision", 0.9))
    assert (threshold.minimum, threshold.judgements) == (None, 0)
    assert "all 80 labelled pairs are duplicates" in threshold.about
    assert forum.thresholds.find(precision=0.9).judgements == 0
    assert report.threshold(Promise("recall", 0.9)).judgements == 80


def test_labels_that_contradict_each_other_are_left_out_and_named(forum: Forum) -> None:
    first, second, _ = labels_of(1)[0]
    report = forum.thresholds.label([(first, second, 1), *labels_of(1)[1:], (second, first, 0)])
    assert (report.pairs, report.stored) == (99, 99)
    reason = "another row says the opposite of this pair"
    assert [(unused.row, unused.reason) for unused in report.left_out] == [(0, reason), (100, reason)]


def test_an_id_that_the_forum_lacks_is_no_text(forum: Forum) -> None:
    report = forum.thresholds.label([*labels_of(1)[:2], ("printer-attic-a", "printer-attik-b", 1)])
    assert report.pairs == 2
    [unused] = report.left_out
    assert (unused.row, unused.reason) == (2, "'printer-attik-b' is no id of the forum, as those of other rows are")


def test_calibration_is_told_before_and_with_the_labels(forum: Forum) -> None:
    for _ in range(2):  # labels that are there already do not hide what the package says
        report = forum.thresholds.label(labels_of(0))
        assert sum(group.judged for group in report.before) == sum(group.judged for group in report.after) == 100
        assert calibration_error(report.after) < calibration_error(report.before)


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
    table: Any
    if form == "frame":
        columns = zip(*[(number, *row) for number, row in enumerate(rows)], strict=True)
        table = pyarrow.table(dict(zip(names, map(list, columns), strict=True)))
    else:
        table = tmp_path / f"pairs.{form}"
        mark = "," if form == "csv" else "\t"
        lines = [names, *((str(number), *row) for number, row in enumerate(rows))]
        table.write_text("".join(f"{mark.join(line)}\n" for line in lines))
    report = forum.thresholds.label(table)
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


@pytest.mark.parametrize("label", [("a", "b"), ("a", "b", 1, 1), "ab1", 5, None, {"question1": "a"}])
def test_a_label_that_is_no_triple_is_named(forum: Forum, label: object) -> None:
    with pytest.raises(SettingError, match=r"label 1 is .*expected a triple"):
        forum.thresholds.label([("printer fails", "printer stops", 1), label])


def test_gaps_of_pandas_are_rows_that_say_nothing(forum: Forum) -> None:
    pandas = pytest.importorskip("pandas")
    report = forum.thresholds.label([("printer", "a radio", pandas.NA), (pandas.NaT, "a radio", 1)])
    assert [unused.reason for unused in report.left_out] == [
        "is_duplicate is '', expected 1 or 0",
        "a question is empty",
    ]


def test_the_command_shows_the_curve_and_what_is_proved(run: Run, forum: Forum, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("qid1,qid2,is_duplicate\n" + "".join(f"{a},{b},{same}\n" for a, b, same in labels_of(1)))
    forum.close()
    shown = run("threshold", forum.path, "--labels", path)
    assert shown.code == 0
    assert "labelled pairs: 100, the same: 100, of the forum's questions: 100," in shown.out
    assert "█" * 20 in shown.out
    assert "before the labels, off by " in shown.out
    assert "no minimum promises that 90 % of what is shown are duplicates" in shown.out
    assert "all 100 labelled pairs are duplicates" in shown.out
    report = run("threshold", forum.path, "--labels", path, "--recall", 0.9, "--json").json
    assert (report["promise"], report["is_proved"], report["pairs"], report["stored"]) == ("recall", True, 100, 0)
    assert report["curve"][0]["precision"] == 1.0
    assert report["before"][0]["judged"] <= 100 >= report["after"][0]["judged"]
    assert 0 <= report["calibration_error"]["after"] < report["calibration_error"]["before"] <= 1


def test_what_the_command_proposes_does_what_the_labels_prove(run: Run, forum: Forum, tmp_path: Path) -> None:
    forum.add([Question("cat", "My cat eats grass"), Question("eggs", "How are eggs boiled?")])
    path = tmp_path / "pairs.csv"
    lines = "".join(f"{a},{b},{same}\n" for a, b, same in [*labels_of(1), ("cat", "eggs", 0)])
    path.write_text(f"question1,question2,is_duplicate\n{lines}")
    forum.close()
    assert "--minimum precision:0.9\n" in run("threshold", forum.path, "--labels", path).out
    texts = "".join(f"{a.replace('-', ' ')},{b.replace('-', ' ')},{same}\n" for a, b, same in labels_of(1)[:70])
    path.write_text(f"question1,question2,is_duplicate\n{texts}" + "".join(f"grass {n},eggs,0\n" for n in range(30)))
    shown = run("threshold", forum.path, "--labels", path, "--precision", 0.8)
    assert "--minimum 0." in shown.out, "by other texts a number, not a promise"
    assert "precision:0.8 is 0." in shown.out


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
    proved = labelled_threshold(Promise("precision", 0.9), likely, is_same, np.arange(2 * count))
    assert proved.minimum == 0.9
    assert (proved.share.value, proved.share.low) == (1.0, pytest.approx(0.05 ** (1 / count)))
    few = labelled_threshold(Promise("precision", 0.9), likely[1:], is_same[1:], np.arange(2 * count - 1))
    assert few.minimum is None


def test_a_labelled_recall_takes_the_greatest_minimum_that_is_proved() -> None:
    likely = np.array([0.9] * 95 + [0.3] * 5 + [0.1] * 50)
    is_same = np.array([True] * 100 + [False] * 50)
    proved = labelled_threshold(Promise("recall", 0.9), likely, is_same, np.arange(150))
    assert clopper_pearson(95, 100)[0] < 0.9, "of the greater minimum not enough is sure"
    assert (proved.minimum, proved.share.value, proved.share.high) == (0.3, 1.0, 1.0)


def test_labels_say_how_many_more_would_prove_a_precision() -> None:
    """Of the likeliest 100 pairs 92 are the same: more than .9, and not surely; of the others none is."""
    likely = np.repeat(np.linspace(0.99, 0.01, 10), 20)
    is_same = np.array(([True] * 18 + [False, False] + [True] * 19 + [False]) * 3 + [False] * 80)
    threshold = labelled_threshold(Promise("precision", 0.9), likely, is_same, np.arange(200))
    assert threshold.minimum is None
    assert "are the same (at least " in threshold.about
    assert threshold.about.endswith("labels like these would prove one")
