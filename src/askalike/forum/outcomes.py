"""What a forum's suggestions brought, from what was counted of visits of its ask forms: a month's report, and labels.

A visit is one random name that a page makes for itself and forgets when it is left. Nothing else is known of who came:
no address, no browser, no text. A question that was asked all the same is known again by the digest of its title.
"""

from __future__ import annotations

import calendar
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

import msgspec

from askalike.errors import InputError, SettingError
from askalike.search.interleaving import SURE, compared
from askalike.search.thresholds import clopper_pearson
from askalike.store import ForumLayout, Store, StoredOutcome, take_over_helped
from askalike.store.rows import DAY_US, title_digest
from askalike.types import DayCounts, Outcome, OutcomeCounts, OutcomeLabel, Report, Saver

MARKED_WITHIN_US: Final = 3 * DAY_US
"""A duplicate that people mark later is not counted: it says little about what the ask form could have shown."""
FOUND_WITHIN_US: Final = DAY_US
"""A question whose date lies so near to when its form was sent is the one that was asked."""
MOST_SAVERS: Final = 20
SESSION: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")
_SHOWN: Final = ("shown", "opened", "helped")
_MONTH: Final = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
_EPOCH: Final = date(1970, 1, 1)


@dataclass(slots=True)
class _Visit:
    """One visit of an ask form: what was shown, and the most that happened to it."""

    day: int
    suggested: dict[str, StoredOutcome] = field(default_factory=dict)
    opened: dict[str, StoredOutcome] = field(default_factory=dict)
    helped: dict[str, StoredOutcome] = field(default_factory=dict)
    asked: StoredOutcome | None = None


class Outcomes:
    """Counts what became of a forum's suggestions, and reports it."""

    def __init__(self, layout: ForumLayout, store: Store) -> None:
        self._layout, self._store = layout, store

    def add(self, session: str, outcomes: Sequence[Outcome]) -> int:
        """Count what became of suggestions in a visit; return how many were new.

        Raises:
            SettingError: the session is no random name.
            InputError: a value is none that an outcome has; nothing is counted then.
        """
        if not SESSION.fullmatch(session):
            raise SettingError("the session is no random name", f"expected a text that matches {SESSION.pattern}")
        for one in outcomes:
            try:
                msgspec.convert(msgspec.structs.asdict(one), Outcome)
            except (msgspec.ValidationError, UnicodeEncodeError) as error:
                raise InputError(f"{one!r:.200} cannot be counted: {error}", "see askalike.types.Outcome") from error
        return self._store.add_outcomes(session, outcomes, time.time_ns() // 1000)

    def add_helped(self, question_id: str) -> int:
        """Count that a question helped somebody without a visit; return how often it has helped."""
        take_over_helped(self._layout, self._store)
        question = self._store.question(question_id).id
        self._store.add_outcomes("", [Outcome("helped", question)], time.time_ns() // 1000)
        return self._store.helped(question)[0]

    def helped(self) -> tuple[int, int]:
        """Return how often a question helped, and how many did."""
        take_over_helped(self._layout, self._store)
        return self._store.helped()

    def report(self, month: str = "") -> Report:
        """Return what a month's suggestions brought.

        Args:
            month: such as "2026-11"; "" for the running one, by UTC.

        Raises:
            SettingError: it is none.
        """
        month, first, last = _days(month)
        by_day: dict[int, Counter[str]] = {}
        questions: dict[str, Counter[str]] = {}
        drafts: list[tuple[int, int]] = []
        visits = list(self._visits(first, last))
        for visit, (_, originals) in zip(visits, self._asked(visits, first, last), strict=True):
            if visit.suggested:
                came_to = {
                    "shown": True,
                    "opened": bool(visit.opened),
                    "helped": bool(visit.helped),
                    "asked": visit.asked is not None,
                    "duplicates": bool(originals),
                    "saved": bool(visit.helped) and visit.asked is None,
                }
                by_day.setdefault(visit.day, Counter()).update(name for name, is_so in came_to.items() if is_so)
                teams = Counter(one.team for one in visit.suggested.values())
                if teams["default"] and teams["rival"]:
                    taken = Counter(one.team for one in (visit.opened | visit.helped).values())
                    drafts.append((taken["default"], taken["rival"]))
            for kind, found in (("shown", visit.suggested), ("opened", visit.opened), ("helped", visit.helped)):
                for identifier, one in found.items():
                    questions.setdefault(identifier, Counter())[kind] += one.times
            if not visit.suggested and visit.helped:  # said without a visit
                by_day.setdefault(visit.day, Counter())["helped"] += sum(one.times for one in visit.helped.values())
        days = [DayCounts(_EPOCH + timedelta(day), OutcomeCounts(**by_day[day])) for day in sorted(by_day)]
        total = OutcomeCounts(**sum(by_day.values(), Counter()))
        low, high = clopper_pearson(total.saved, total.shown, SURE)
        comparison = compared(drafts) if drafts else None
        return Report(month, total, low, high, tuple(days), self._savers(questions), comparison)

    def _savers(self, questions: dict[str, Counter[str]]) -> tuple[Saver, ...]:
        saving = [one for one, counts in questions.items() if counts["helped"] or counts["opened"]]
        saving.sort(key=lambda one: (-questions[one]["helped"], -questions[one]["opened"], one))
        held = self._store.questions_by_id(saving[: 2 * MOST_SAVERS])  # some may have been deleted since
        rows = [Saver(one, held[one].title, *map(questions[one].__getitem__, _SHOWN)) for one in saving if one in held]
        return tuple(rows[:MOST_SAVERS])

    def labels(self, month: str = "") -> Iterator[OutcomeLabel]:
        """Yield a label for each suggestion of a visit whose question was asked and is there by now.

        Raises:
            SettingError: the month is none.
        """
        _, first, last = _days(month)
        visits = list(self._visits(first, last))
        for visit, (asked, originals) in zip(visits, self._asked(visits, first, last), strict=True):
            for identifier, one in visit.suggested.items() if asked else ():
                outcome: Literal["shown", "opened", "helped", "duplicate"] = "shown"
                if identifier in originals:
                    outcome = "duplicate"
                elif identifier in visit.helped:
                    outcome = "helped"
                elif identifier in visit.opened:
                    outcome = "opened"
                yield OutcomeLabel(asked, identifier, outcome, one.place, one.team, one.propensity)

    def _visits(self, first: int, last: int) -> Iterator[_Visit]:
        """Yield the visits that began on one of these days, by day; one that goes on after midnight is one."""
        before: dict[str, _Visit] = {}
        for day in self._store.outcome_days(first, last + 1):
            visits: dict[str, _Visit] = {}
            for one in self._store.outcomes(day):
                held = (one.session and before.get(one.session)) or visits.setdefault(one.session, _Visit(day))
                if one.kind == "asked":
                    held.asked = held.asked or one
                else:
                    kept = {"shown": held.suggested, "opened": held.opened, "helped": held.helped}[one.kind]
                    kept.setdefault(one.subject, one)
            yield from before.values()
            before = visits if day <= last else {}
        yield from before.values()

    def _asked(self, visits: Sequence[_Visit], first: int, last: int) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield for each visit the id of the question that was asked in it, and what it was soon marked a duplicate of.

        The id is "" where nothing was asked, or no question of this title came within a day.
        """
        named: dict[str, list[tuple[str, int]]] = {}
        for identifier, title, created_us in self._store.asked_between((first - 1) * DAY_US, (last + 3) * DAY_US):
            named.setdefault(title_digest(title), []).append((identifier, created_us))
        marked: dict[str, dict[str, int]] = {}
        span = (first * DAY_US, (last + 2) * DAY_US + MARKED_WITHIN_US)
        for (source, target), at_us in self._store.duplicates_marked(*span).items() if named else ():
            marked.setdefault(source, {})[target] = at_us
        for visit in visits:
            at_us = visit.asked.at_us if visit.asked else 0
            same = named.get(visit.asked.subject, []) if visit.asked else []
            apart_us, asked = min(((abs(us - at_us), one) for one, us in same), default=(0, ""))
            asked = asked if apart_us <= FOUND_WITHIN_US else ""
            originals = marked.get(asked, {}).items()
            yield asked, frozenset(one for one, us in originals if us <= at_us + MARKED_WITHIN_US)


def _days(month: str) -> tuple[str, int, int]:
    """Return a month's name, first and last day, counted since 1970.

    >>> _days("1970-02")
    ('1970-02', 31, 58)
    """
    named = month or datetime.now(UTC).strftime("%Y-%m")
    found = _MONTH.fullmatch(named)
    if found is None or not int(found[1]):
        raise SettingError(f"{month[:20]!r} is no month", "expected one such as 2026-11")
    first = date(int(found[1]), int(found[2]), 1)
    length = calendar.monthrange(first.year, first.month)[1]
    begin = (first - _EPOCH).days
    return named, begin, begin + length - 1
