"""A month's report on visits worked by hand, its labels, and the counts of an earlier version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from askalike import Forum, Question
from askalike.errors import DamagedForumError, InputError, SettingError
from askalike.store.rows import KEPT_DAYS, to_microseconds
from askalike.store.sql import SqlStore
from askalike.types import DayCounts, Link, Outcome, OutcomeCounts, OutcomeLabel, Saver

NOW = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
MONTH = NOW.strftime("%Y-%m")
DAY = NOW.date()


@pytest.fixture
def forum(tmp_path: Path, words_alone: None) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as made:
        made.add([Question("a", "Wifi drops"), Question("b", "Printer prints"), Question("c", "Disk is full")])
        yield made


def count(forum: Forum, visit: str, *outcomes: Outcome, at: datetime = NOW) -> None:
    at_us = to_microseconds(at)
    store = forum._store
    assert at_us is not None
    assert isinstance(store, SqlStore)
    store.add_outcomes(visit, outcomes, at_us)


def shown(*ids: str, teams: str = "", propensity: float = 1.0) -> list[Outcome]:
    names = {"d": "default", "r": "rival", "": ""}
    return [
        Outcome("shown", one, place=place, team=names[team], propensity=propensity)  # type: ignore[arg-type]
        for place, (one, team) in enumerate(zip(ids, teams or [""] * len(ids), strict=True), 1)
    ]


def test_a_month_worked_by_hand(forum: Forum) -> None:
    count(forum, "one", *shown("a", "b"), Outcome("opened", "a"), Outcome("helped", "a"))
    count(forum, "two", *shown("a"), Outcome("helped", "a"), Outcome("asked", title="Wifi drops at noon"))
    count(forum, "three", *shown("b"), Outcome("opened", "b"))
    count(forum, "four", Outcome("asked", title="Nothing was shown"))
    count(forum, "", Outcome("helped", "c"), Outcome("helped", "c"))
    forum.add([Question("n", "wifi DROPS at  noon", created=NOW + timedelta(minutes=1))], links=[Link("n", "a")])
    found = forum.report(MONTH)
    total = OutcomeCounts(shown=3, opened=2, helped=4, asked=1, duplicates=1, saved=1)
    assert (found.month, found.total, found.days) == (MONTH, total, (DayCounts(DAY, total),))
    assert found.questions == (
        Saver("a", "Wifi drops", 2, 1, 2),
        Saver("c", "Disk is full", 0, 0, 2),
        Saver("b", "Printer prints", 2, 1, 0),
    )
    assert round(found.saved_low, 4) == 0.0084  # R: binom.test(1, 3)
    assert round(found.saved_high, 4) == 0.9057
    assert found.comparison is None
    assert forum.report("2001-02").days == ()
    assert forum.report() == found


def test_a_visit_that_goes_on_after_midnight_is_one_and_counts_where_it_began(forum: Forum) -> None:
    evening = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
    count(forum, "one", *shown("a"), at=evening)
    count(forum, "one", *shown("a", "b"), Outcome("helped", "a"), at=evening + timedelta(minutes=2))
    found = forum.report("2026-01")
    assert found.days == (DayCounts(date(2026, 1, 31), OutcomeCounts(shown=1, helped=1, saved=1)),)
    assert forum.report("2026-03").days == ()


def test_a_duplicate_that_is_marked_after_three_days_does_not_count(forum: Forum) -> None:
    for days, expected in ((2, 1), (4, 0)):
        asked = datetime.now(UTC) - timedelta(days=days)
        title = f"Asked {days} days ago"
        count(forum, f"visit {days}", *shown("a"), Outcome("asked", title=title), at=asked)
        forum.add([Question(title, title, created=asked)], links=[Link(title, "a")])
        counts = [one.counts for one in forum.report(asked.strftime("%Y-%m")).days if one.day == asked.date()]
        assert [(one.asked, one.duplicates) for one in counts] == [(1, expected)]


def test_what_people_did_before_they_asked_are_labels_with_their_propensity(forum: Forum) -> None:
    done = [Outcome("opened", "b", team="rival", propensity=0.5), Outcome("asked", title="Paper jams")]
    count(forum, "one", *shown("a", "b", "c", teams="drd", propensity=0.5), *done)
    count(forum, "two", *shown("a"), Outcome("asked", title="Never came"))
    count(forum, "three", *shown("a"))
    forum.add([Question("n", "Paper jams", created=NOW), Question("o", "Paper jams", created=NOW - timedelta(days=9))])
    forum.judge("n", "c", "duplicate")
    assert list(forum.outcome_labels(MONTH)) == [
        OutcomeLabel("n", "a", "shown", 1, "default", 0.5),
        OutcomeLabel("n", "b", "opened", 2, "rival", 0.5),
        OutcomeLabel("n", "c", "duplicate", 3, "default", 0.5),
    ]


def test_rankers_are_compared_by_the_visits_that_one_of_both_won(forum: Forum) -> None:
    for number in range(9):
        taken = Outcome("opened", "a" if number < 8 else "b", team="default" if number < 8 else "rival")
        count(forum, f"visit {number}", *shown("a", "b", teams="dr"), taken)
    count(forum, "of one ranker alone", *shown("a", teams="d"), Outcome("opened", "a", team="default"))
    found = forum.report(MONTH).comparison
    assert found is not None
    assert (found.visits, found.default, found.rival, found.ties, found.better) == (9, 8, 1, 0, "default")
    assert found.p_value == 20 / 512


@pytest.mark.parametrize("month", ["2026-13", "2026", "0000-01", "november", "2026-1"])
def test_a_month_that_is_none_is_refused(forum: Forum, month: str) -> None:
    with pytest.raises(SettingError, match="no month"):
        forum.report(month)


def test_a_visit_needs_a_random_name(forum: Forum) -> None:
    for wrong in ("", "short", "ann@example.org and more", "x" * 65):
        with pytest.raises(SettingError, match="no random name"):
            forum.add_outcomes(wrong, [Outcome("shown", "a")])
    assert forum.add_outcomes("0123456789abcdef", [Outcome("shown", "a")]) == 1


def test_what_no_outcome_can_be_is_not_counted_and_leaves_the_report_readable(forum: Forum) -> None:
    visit, before = "0123456789abcdef", forum.report()
    many, unlikely = Outcome("shown", "a", place=2**70), Outcome("shown", "a", propensity=float("nan"))
    for wrong in (Outcome("seen", "a"), many, unlikely):  # type: ignore[arg-type]
        with pytest.raises(InputError, match="cannot be counted"):
            forum.add_outcomes(visit, [Outcome("shown", "a"), wrong])
    assert forum.report() == before


def test_one_day_is_counted_to_a_bound_and_old_days_are_forgotten(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.store.rows.MOST_OUTCOMES", 3)
    old = NOW - timedelta(days=KEPT_DAYS + 1)
    count(forum, "old", *shown("a", "b"), Outcome("helped", "a"), at=old)
    assert forum.report(old.strftime("%Y-%m")).total.shown == 1
    count(forum, "one", *shown("a", "b", "c"))
    count(forum, "two", *shown("a", "b", "c"))
    assert forum.add_helped("a") == 2  # what is said without a visit always counts
    assert forum.report(MONTH).total.shown == 1
    assert forum.report(old.strftime("%Y-%m")).total == OutcomeCounts(helped=1)


def test_the_counts_of_an_earlier_version_are_taken_over_once(forum: Forum) -> None:
    before = forum.path / "helped.sqlite"
    with closing(sqlite3.connect(before)) as connection, connection:
        connection.execute("CREATE TABLE helped (question_id TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID")
        connection.execute("INSERT INTO helped VALUES ('a', 3), ('gone', 2)")
    assert forum.helped() == (5, 2)
    assert not before.exists()
    assert forum.add_helped("a") == 4
    assert forum.helped() == (6, 2)
    before.write_bytes(b"no database" * 99)
    with pytest.raises(DamagedForumError, match="delete it"):
        forum.helped()
    assert before.exists()
