"""What moderators do with pairs, in SQL: the log of decisions and notes, who has taken what, and what is written back.

A pair has one decision that stands at most: who thinks otherwise undoes it first. Nothing is taken out of the log, but
with a question that a person deletes. A decision is a judgement too, at the same moment, and may make a duplicate link;
undoing it lets the judgement before count again, and takes the link back that nobody else has made.
"""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, get_args

from msgspec import structs

from askalike.errors import InputError, UnknownIdError
from askalike.store import rows, writes
from askalike.store.writes import OF_PAIR, Connection
from askalike.types import Assignment, Decided, Draw, Feedback, Link, LogEntry, LogKind, Refusal, Write, WriteState

TABLES: Final = """
CREATE TABLE moderation (
    num {number},
    at_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    judge TEXT NOT NULL,
    note TEXT NOT NULL,
    bulk TEXT NOT NULL,
    undoes BIGINT NOT NULL,
    made_link INTEGER NOT NULL
);
CREATE INDEX moderation_by_question ON moderation (question_id);
CREATE INDEX moderation_by_candidate ON moderation (candidate_id);
CREATE INDEX moderation_by_bulk ON moderation (bulk) WHERE bulk <> '';
CREATE INDEX moderation_by_undoes ON moderation (undoes) WHERE undoes > 0;
CREATE TABLE assignments (
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    judge TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    until_us BIGINT,
    PRIMARY KEY (question_id, candidate_id)
);
CREATE TABLE outbox (
    num {number},
    target TEXT NOT NULL,
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    action TEXT NOT NULL,
    state TEXT NOT NULL,
    tries BIGINT NOT NULL,
    why TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    UNIQUE (target, question_id, candidate_id, action)
);
CREATE INDEX outbox_by_question ON outbox (question_id)
"""
LOG_COLUMNS: Final = (
    "at_us",
    "kind",
    "question_id",
    "candidate_id",
    "judge",
    "note",
    "bulk",
    "undoes",
    "made_link",
)
WRITE_COLUMNS: Final = ("target", "question_id", "candidate_id", "action", "state", "tries", "why", "at_us")
KINDS: Final[tuple[LogKind, ...]] = get_args(LogKind)
STATES: Final[tuple[WriteState, ...]] = get_args(WriteState)
LONGEST_NOTE: Final = 10_000
LONGEST_NAME: Final = 200

_STANDS: Final = (
    "kind IN ('duplicate', 'different')"
    " AND NOT EXISTS (SELECT 1 FROM moderation AS later WHERE later.undoes = moderation.num)"
)
_ENTRY: Final = (
    f"SELECT num, {', '.join(LOG_COLUMNS)},"
    " EXISTS (SELECT 1 FROM moderation AS later WHERE later.undoes = moderation.num) AS undone FROM moderation"
)
_ADD_ENTRY: Final = (
    f"INSERT INTO moderation ({', '.join(LOG_COLUMNS)}) VALUES ({', '.join('?' * len(LOG_COLUMNS))}) RETURNING num"
)
_WRITE: Final = f"SELECT num, {', '.join(WRITE_COLUMNS)} FROM outbox"


def statements(number: str) -> list[str]:
    """Return what makes the tables.

    Args:
        number: how the database numbers rows.
    """
    return [one for one in TABLES.format(number=number).split(";") if one.strip()]


class ModerationStore(ABC):
    """What moderators do, of ``store.Store``."""

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """Give a connection inside one transaction."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds."""

    @abstractmethod
    def originals_of(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return what questions, and all that they lead to, are duplicates of."""

    # -- decisions ---------------------------------------------------------------------------------------------

    def decide(self, given: Sequence[Feedback], *, has_links: bool, is_preview: bool = False) -> Decided:
        """Store decisions of people, all of them or none."""
        at_us, entries, refused = time.time_ns() // 1000, list[LogEntry](), list[Refusal]()
        bulk = secrets.token_hex(4) if len(given) > 1 else ""
        seen: set[frozenset[str]] = set()
        try:
            with self.write() as connection:
                for one in given:
                    try:
                        self._check_decision(connection, one, seen, at_us, has_link=has_links)
                    except (InputError, UnknownIdError) as error:
                        refused.append(Refusal(one.question_id, one.candidate_id, error.message, error.hint))
                    else:
                        entries.append(_put_decision(connection, one, at_us, bulk, has_link=has_links))
                if refused or is_preview:
                    raise _TakenBackError
        except _TakenBackError:
            entries = [structs.replace(one, number=0, bulk="", at=None) for one in entries]
            return Decided(tuple(entries), tuple(refused), stored=False)
        return Decided(tuple(entries))

    def _check_decision(
        self, connection: Connection, one: Feedback, seen: set[frozenset[str]], at_us: int, *, has_link: bool
    ) -> None:
        """Raise InputError or UnknownIdError unless a decision can be stored."""
        rows.check_feedback(one)
        check_name(one.by)
        if one.verdict == "withdrawn":
            raise InputError("a decision is duplicate or different", "undo the decision that is to be taken back")
        pair = (one.question_id, one.candidate_id)
        for identifier in pair:
            writes.require_question(connection, identifier)
        if frozenset(pair) in seen:
            raise InputError(f"the pair {pair[0]!r} and {pair[1]!r} comes twice", "name it once")
        seen.add(frozenset(pair))
        held = _held(connection, pair, at_us)
        if held is not None and held.by != one.by:
            raise InputError(f"{held.by} has taken this pair{_until(held)}", "ask them to give it back, or wait")
        stands = connection.execute(f"{_ENTRY} WHERE {OF_PAIR} AND {_STANDS}", (*pair, *pair[::-1])).fetchone()
        if stands is not None:
            by = f" by {stands['judge']}" if stands["judge"] else ""
            found = f"{pair[0]!r} and {pair[1]!r} were decided{by} to be {stands['kind']}, by entry {stands['num']}"
            raise InputError(found, f"undo entry {stands['num']} first")
        if has_link and one.verdict == "duplicate":
            refuse_chain(self.originals_of(pair), *pair)

    def undo(self, numbers: Sequence[int], by: str) -> list[LogEntry]:
        """Take decisions back, all of them or none; return the entries that say so."""
        check_name(by)
        at_us, done = time.time_ns() // 1000, list[LogEntry]()
        bulk = secrets.token_hex(4) if len(numbers) > 1 else ""
        with self.write() as connection:
            for number in numbers:
                is_number = 0 < number < rows.INTEGER_LIMIT
                found = connection.execute(f"{_ENTRY} WHERE num = ?", (number if is_number else 0,)).fetchone()
                if found is None:
                    raise UnknownIdError(f"the log has no entry {number}", "list it, and name one of its decisions")
                if found["kind"] not in ("duplicate", "different"):
                    raise InputError(f"entry {number} is no decision: {found['kind']}", "name a decision")
                if found["undone"]:
                    raise InputError(f"entry {number} was undone already", "leave it out")
                done.append(_undo(connection, entry_of(found), by, at_us, bulk))
        return done

    def add_note(self, question_id: str, candidate_id: str, text: str, by: str) -> LogEntry:
        """Store what somebody notes on a pair."""
        check_name(by)
        rows.check_feedback(Feedback(question_id, candidate_id, "different", by))
        if not text.strip() or len(text) > LONGEST_NOTE:
            raise InputError(f"the note has {len(text):,} characters", f"expected a text of at most {LONGEST_NOTE:,}")
        if not rows.is_storable(text):
            raise InputError("the note has a lone surrogate", "decode the text as UTF-8 first")
        at_us = time.time_ns() // 1000
        with self.write() as connection:
            for identifier in (question_id, candidate_id):
                writes.require_question(connection, identifier)
            return _add(connection, LogEntry(0, question_id, candidate_id, "note", by, text=text), at_us)

    def log(
        self, limit: int, before: int = 0, *, pair: tuple[str, str] | None = None, bulk: str = ""
    ) -> list[LogEntry]:
        """Return entries of the log, newest first."""
        asked: list[tuple[str, tuple[object, ...]]] = (
            [("num < ?", (min(before, rows.INTEGER_LIMIT - 1),))] if before else []
        )
        if pair is not None:
            if not all(map(rows.is_storable, pair)):
                return []
            asked.append((OF_PAIR, (*pair, *pair[::-1])))
        if bulk:
            asked.append(("bulk = ?", (bulk if rows.is_storable(bulk) else "?",)))
        where = f" WHERE {' AND '.join(one for one, _ in asked)}" if asked else ""
        values = [value for _, given in asked for value in given]
        values.append(min(limit, rows.INTEGER_LIMIT - 1))
        return [entry_of(row) for row in self.rows(f"{_ENTRY}{where} ORDER BY num DESC LIMIT ?", values)]

    # -- who has taken what ------------------------------------------------------------------------------------

    def take_pairs(self, pairs: Sequence[tuple[str, str]], by: str, until_us: int | None) -> list[Assignment]:
        """Let somebody have pairs, all of them or none."""
        check_name(by)
        if not by.strip():
            raise InputError("a pair is taken by nobody", "say who takes it")
        now_us, taken, seen = time.time_ns() // 1000, list[Assignment](), set[frozenset[str]]()
        with self.write() as connection:
            connection.execute("DELETE FROM assignments WHERE until_us <= ?", (now_us,))
            for pair in pairs:
                if frozenset(pair) in seen:
                    raise InputError(f"the pair {pair[0]!r} and {pair[1]!r} comes twice", "name it once")
                seen.add(frozenset(pair))
                rows.check_feedback(Feedback(*pair, "different", by))
                for identifier in pair:
                    writes.require_question(connection, identifier)
                held = _held(connection, pair, now_us)
                if held is not None and held.by != by:
                    raise InputError(
                        f"{held.by} has taken the pair {pair[0]!r} and {pair[1]!r}{_until(held)}",
                        "ask them to give it back, or wait; nothing was taken",
                    )
                connection.execute(f"DELETE FROM assignments WHERE {OF_PAIR}", (*pair, *pair[::-1]))
                connection.execute("INSERT INTO assignments VALUES (?, ?, ?, ?, ?)", (*pair, by, now_us, until_us))
                taken.append(_assignment((*pair, by, now_us, until_us)))
        return taken

    def give_back(self, pairs: Sequence[tuple[str, str]], by: str | None) -> int:
        """Free pairs that somebody has taken; return how many there were."""
        freed, now_us = 0, time.time_ns() // 1000
        with self.write() as connection:
            for pair in pairs:
                if not all(map(rows.is_storable, pair)):
                    continue
                held = _held(connection, pair, now_us)
                if held is not None and by is not None and held.by != by:
                    raise InputError(f"{held.by} has taken the pair {pair[0]!r} and {pair[1]!r}", "ask them")
                freed += held is not None
                connection.execute(f"DELETE FROM assignments WHERE {OF_PAIR}", (*pair, *pair[::-1]))
        return freed

    def assignments(self) -> list[Assignment]:
        """Return who has taken what, as of now, the oldest first."""
        found = (
            "SELECT question_id, candidate_id, judge, at_us, until_us FROM assignments"
            " WHERE until_us IS NULL OR until_us > ? ORDER BY at_us, question_id, candidate_id"
        )
        return [_assignment(tuple(row)) for row in self.rows(found, (time.time_ns() // 1000,))]

    # -- what is written back ----------------------------------------------------------------------------------

    def decided_duplicates(self, source: str) -> list[LogEntry]:
        """Return the decisions that stand, by which a question is a duplicate of another of the same source."""
        of = "(SELECT 1 FROM questions JOIN sources ON sources.num = source WHERE id = {} AND name = ?)"
        both = f"EXISTS {of.format('question_id')} AND EXISTS {of.format('candidate_id')}"
        found = f"{_ENTRY} WHERE kind = 'duplicate' AND {_STANDS} AND {both} ORDER BY num"
        return [entry_of(row) for row in self.rows(found, (source, source))] if rows.is_storable(source) else []

    def put_writes(self, wanted: Sequence[Write]) -> int:
        """Let things wait to be written that were not asked for before, or were cancelled; return how many."""
        put = (
            f"INSERT INTO outbox ({', '.join(WRITE_COLUMNS)}) VALUES (?, ?, ?, ?, 'waiting', 0, '', ?)"
            " ON CONFLICT (target, question_id, candidate_id, action) DO UPDATE SET state = 'waiting', why = ''"
            " WHERE outbox.state = 'cancelled'"
        )
        now_us = time.time_ns() // 1000
        for one in wanted:
            if not all(map(rows.is_storable, (one.target, one.question_id, one.candidate_id, one.action))):
                raise InputError(f"what is to be written to {one.target!r:.80} is not UTF-8", "decode it first")
        with self.write() as connection:
            return sum(
                connection.execute(put, (one.target, one.question_id, one.candidate_id, one.action, now_us)).rowcount
                for one in wanted
            )

    def outbox(self, target: str = "") -> list[Write]:
        """Return what was asked to be written, to one forum or to all, oldest first."""
        where, values = (" WHERE target = ?", (target,)) if target else ("", ())
        if not rows.is_storable(target):
            return []
        return [_write_of(row) for row in self.rows(f"{_WRITE}{where} ORDER BY num", values)]

    def set_write(self, number: int, state: WriteState, why: str = "", *, is_try: bool = True) -> bool:
        """Note what became of a write; return False where it was cancelled meanwhile, which stays so."""
        if state not in STATES:
            raise InputError(f"the state of a write is {state!r:.80}", f"expected one of {', '.join(STATES)}")
        changed = "UPDATE outbox SET state = ?, why = ?, tries = tries + ?, at_us = ? WHERE num = ?"
        if state != "done":  # what was done was done
            changed += " AND state <> 'cancelled'"
        values = (state, why[:1_000].encode("utf-8", "replace").decode(), int(is_try), time.time_ns() // 1000, number)
        with self.write() as connection:
            return connection.execute(changed, values).rowcount > 0


class _TakenBackError(Exception):
    """Takes a transaction back."""


def refuse_chain(found: dict[str, tuple[str, ...]], duplicate: str, original: str) -> None:
    """Raise InputError, with the chain, where a link would close a circle or lead on to another question.

    Args:
        found: as ``Store.originals_of`` returns it for both.
    """
    if original not in found or duplicate == original or original in found.get(duplicate, ()):
        return
    ways = {original: [duplicate, original]}  # to what the original leads to, the nearest first
    for one in (waiting := [original]):
        for following in found.get(one, ()):
            if following not in ways:
                ways[following] = [*ways[one], following]
                waiting.append(following)
    told = " -> ".join(ways.get(duplicate, ways[waiting[-1]]))
    if duplicate in ways:
        raise InputError(f"the link would close a circle: {told}", f"unlink {original!r} first")
    ends = [one for one in waiting if one not in found]
    hint = f"link {duplicate!r} to {ends[0]!r}" if ends else f"these are a circle: unlink {original!r} first"
    raise InputError(f"{original!r} is a duplicate itself: {told}", hint)


def check_name(by: str) -> None:
    """Raise InputError unless a moderator's name can be stored."""
    if len(by) > LONGEST_NAME or not rows.is_storable(by):
        raise InputError("the moderator's name is too long, or no UTF-8", f"expected at most {LONGEST_NAME} characters")


def check_entry(entry: LogEntry) -> None:
    """Raise InputError unless an entry of another forum's log can be stored."""
    rows.check_feedback(Feedback(entry.question_id, entry.candidate_id, "different", entry.by, entry.at))
    rows.check_link(Link(entry.question_id, entry.candidate_id))
    check_name(entry.by)
    if entry.kind not in KINDS or len(entry.text) > LONGEST_NOTE or not rows.is_storable(entry.text + entry.bulk):
        raise InputError(f"the log's entry {entry.number} cannot be stored", "export the forum again")


def put_entry(
    connection: Connection, entry: LogEntry, numbers: dict[int, int], claimed: Collection[int], held: Collection[Link]
) -> bool:
    """Store an entry of another forum's log unless the same is there; return whether it was new.

    A decision has made its link where both forums say so, and nobody else had made it here.

    Args:
        numbers: of that log → of this one, to which the entry's is added.
        claimed: the numbers of decisions here whose links the same load has just claimed.
        held: the links of the log's decisions that were here before the load.
    """
    known = known_entry(connection, entry)
    if known is not None:
        numbers[entry.number] = known["num"]
        if entry.made_link and known["num"] in claimed:
            connection.execute("UPDATE moderation SET made_link = 1 WHERE num = ?", (known["num"],))
        return False
    made = entry.made_link and Link(entry.question_id, entry.candidate_id) not in held
    values = (*_key(entry), entry.bulk, numbers.get(entry.undoes, 0), int(made))
    numbers[entry.number] = connection.execute(_ADD_ENTRY, values).fetchone()["num"]
    return True


def known_entry(connection: Connection, entry: LogEntry) -> Any:
    """Return number and ``undone`` of the same entry of this forum's log, or None."""
    return connection.execute(
        f"{_ENTRY} WHERE at_us = ? AND kind = ? AND question_id = ? AND candidate_id = ? AND judge = ? AND note = ?",
        _key(entry),
    ).fetchone()


def _key(entry: LogEntry) -> tuple[object, ...]:
    at_us = rows.to_microseconds(entry.at) or 0
    return at_us, entry.kind, entry.question_id, entry.candidate_id, entry.by, entry.text


def entry_of(row: Any) -> LogEntry:
    """Return the entry of a row."""
    return LogEntry(
        row["num"],
        row["question_id"],
        row["candidate_id"],
        row["kind"],
        row["judge"],
        rows.from_microseconds(row["at_us"]),
        row["note"],
        row["bulk"],
        row["undoes"],
        bool(row["made_link"]),
        bool(row["undone"]),
    )


def _add(connection: Connection, entry: LogEntry, at_us: int) -> LogEntry:
    values = (at_us, entry.kind, entry.question_id, entry.candidate_id, entry.by, entry.text, entry.bulk)
    found = connection.execute(_ADD_ENTRY, (*values, entry.undoes, int(entry.made_link))).fetchone()
    return entry_of(connection.execute(f"{_ENTRY} WHERE num = ?", (found["num"],)).fetchone())


def _put_decision(connection: Connection, one: Feedback, at_us: int, bulk: str, *, has_link: bool) -> LogEntry:
    at_us = writes.put_judgement(connection, one, at_us)
    made = False
    if has_link and one.verdict == "duplicate":
        made = writes.put_links(connection, [Link(one.question_id, one.candidate_id)], is_claimed=False) > 0
    pair = (one.question_id, one.candidate_id)
    connection.execute(f"DELETE FROM assignments WHERE {OF_PAIR}", (*pair, *pair[::-1]))
    return _add(connection, LogEntry(0, *pair, one.verdict, one.by, bulk=bulk, made_link=made), at_us)  # type: ignore[arg-type]


def _undo(connection: Connection, decision: LogEntry, by: str, at_us: int, bulk: str) -> LogEntry:
    pair = (decision.question_id, decision.candidate_id)
    if decision.made_link:
        writes.delete_link(connection, Link(*pair))
    before = connection.execute(
        "SELECT question_id, candidate_id, verdict, judge, at_us, draw, probability, propensity FROM feedback"
        f" WHERE {OF_PAIR} ORDER BY at_us DESC, num DESC LIMIT 2",
        (*pair, *pair[::-1]),
    ).fetchall()
    if before and before[0]["at_us"] == rows.to_microseconds(decision.at):  # else it was judged again since
        counted = before[1] if len(before) > 1 else None
        if counted is not None and counted["verdict"] != "withdrawn":
            draw = Draw(counted["draw"], counted["probability"], counted["propensity"])
            again = Feedback(counted[0], counted[1], counted["verdict"], counted["judge"], draw=draw)
        else:
            again = Feedback(*pair, "withdrawn", by)
        writes.put_judgement(connection, again, at_us)
    connection.execute(
        "UPDATE outbox SET state = 'cancelled', at_us = ? WHERE question_id = ? AND candidate_id = ?"
        " AND state IN ('waiting', 'failed')",
        (at_us, *pair),
    )
    return _add(connection, LogEntry(0, *pair, "undone", by, bulk=bulk, undoes=decision.number), at_us)


def _held(connection: Connection, pair: Sequence[str], now_us: int) -> Assignment | None:
    found = connection.execute(
        "SELECT question_id, candidate_id, judge, at_us, until_us FROM assignments"
        f" WHERE {OF_PAIR} AND (until_us IS NULL OR until_us > ?)",
        (*pair, *pair[::-1], now_us),
    ).fetchone()
    return None if found is None else _assignment(tuple(found))


def _assignment(row: tuple[Any, ...]) -> Assignment:
    at = rows.from_microseconds(row[3])
    assert at is not None
    return Assignment(row[0], row[1], row[2], at, rows.from_microseconds(row[4]))


def _until(held: Assignment) -> str:
    return f" until {held.until:%Y-%m-%d %H:%M} UTC" if held.until else ""


def _write_of(row: Any) -> Write:
    return Write(
        row["num"],
        row["target"],
        row["question_id"],
        row["candidate_id"],
        row["action"],
        row["state"],
        row["tries"],
        row["why"],
        rows.from_microseconds(row["at_us"]),
    )
