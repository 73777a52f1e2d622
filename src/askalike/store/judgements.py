"""What people say of pairs, in SQL: judgements, the log of decisions, and what is written back to a site.

A pair has one decision that stands at most: who thinks otherwise undoes it first. Nothing is taken out of the log, but
with a question that a person deletes. A decision is a judgement too, at the same moment, and may make a duplicate link;
undoing it lets the judgement before count again, and takes the link back that nobody else has made.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, get_args

from msgspec import structs

from askalike.errors import ConflictError, InputError, UnknownIdError
from askalike.store import rows, writes
from askalike.store.database import BATCH, Connection, Database
from askalike.store.writes import OF_PAIR
from askalike.types import Draw, Feedback, Link, LogEntry, LogKind, Verdict, Write, WriteState

LOG_COLUMNS: Final = ("question_id", "candidate_id", "kind", "judge", "at_us", "undoes", "made_link")
WRITE_COLUMNS: Final = ("target", "question_id", "candidate_id", "action", "state", "tries", "why", "at_us")
KINDS: Final[tuple[LogKind, ...]] = get_args(LogKind)
STATES: Final[tuple[WriteState, ...]] = get_args(WriteState)
LONGEST_NAME: Final = 200

_STANDS: Final = (
    "kind IN ('duplicate', 'different')"
    " AND NOT EXISTS (SELECT 1 FROM moderation AS later WHERE later.undoes = moderation.num)"
)
HERE: Final = "EXISTS (SELECT 1 FROM questions WHERE id = {})"
BOTH_HERE: Final = f"{HERE.format('question_id')} AND {HERE.format('candidate_id')}"
_FEEDBACK: Final = "num, question_id, candidate_id, verdict, judge, at_us, draw, probability"
_ENTRY: Final = (
    f"SELECT num, {', '.join(LOG_COLUMNS)},"
    " EXISTS (SELECT 1 FROM moderation AS later WHERE later.undoes = moderation.num) AS undone FROM moderation"
)
_ADD_ENTRY: Final = (
    f"INSERT INTO moderation ({', '.join(LOG_COLUMNS)}) VALUES ({', '.join('?' * len(LOG_COLUMNS))}) RETURNING num"
)
_WRITE: Final = f"SELECT num, {', '.join(WRITE_COLUMNS)} FROM outbox"


class JudgementStore(Database):
    """The judgements on pairs, and what moderators do with them."""

    def originals_of(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return what these questions, and all that they lead to, are duplicates of: ids, ascending.

        Questions that are no duplicates are left out, and so are originals that are not there.
        """
        target_ids: dict[str, dict[str, None]] = {}  # two batches may lead to one question
        for row in self._rows_of_ids(
            "WITH RECURSIVE reached(id) AS (SELECT id FROM questions WHERE id IN ({wanted})"
            f" UNION SELECT target_id FROM reached {self.ordered_join} links"
            " ON source_id = reached.id WHERE kind = 'duplicate')"
            f" SELECT DISTINCT source_id, target_id FROM reached {self.ordered_join} links ON source_id = reached.id"
            f" {self.ordered_join} questions ON questions.id = target_id WHERE kind = 'duplicate'"
            " ORDER BY source_id, target_id",
            ids,
        ):
            target_ids.setdefault(row["source_id"], {})[row["target_id"]] = None
        return {source: tuple(targets) for source, targets in target_ids.items()}

    # -- judgements --------------------------------------------------------------------------------------------

    def add_judgement(self, judgement: Feedback) -> Feedback:
        """Store a person's judgement on two questions; return it with its moment.

        Raises:
            UnknownIdError: one of the questions is not there.
            InputError: they are the same question.
        """
        [stored] = self.add_judgements([judgement])
        return stored

    def add_judgements(self, judgements: Sequence[Feedback]) -> list[Feedback]:
        """Store judgements in one transaction; return them with their moments.

        Raises:
            UnknownIdError, InputError: as ``add_judgement``; nothing is stored then.
        """
        for judgement in judgements:
            rows.check_feedback(judgement)
        now_us = time.time_ns() // 1000
        stored = []
        with self.write() as connection:
            for judgement in judgements:
                for identifier in (judgement.question_id, judgement.candidate_id):
                    writes.require_question(connection, identifier)
                at_us = writes.put_judgement(connection, judgement, now_us)
                stored.append(structs.replace(judgement, at=rows.from_microseconds(at_us)))
        return stored

    def all_judgements(self) -> Iterator[Feedback]:
        """Yield every judgement on questions that are there, as they were stored, without holding them all."""
        last = 0
        wanted = f"SELECT {_FEEDBACK} FROM feedback WHERE num > ? AND {BOTH_HERE} ORDER BY num LIMIT ?"
        while batch := self.rows(wanted, (last, BATCH)):
            yield from map(_feedback_of, batch)
            last = batch[-1]["num"]

    def judgements(self) -> list[Feedback]:
        """Return the newest judgement on each pair, whichever way round it was given, oldest first; none withdrawn.

        The newest is that of the latest moment; of one moment, that which was stored last.
        """
        newest: dict[frozenset[str], Feedback] = {}
        for judgement in sorted(self.all_judgements(), key=lambda judgement: rows.to_microseconds(judgement.at) or 0):
            pair = frozenset((judgement.question_id, judgement.candidate_id))
            newest.pop(pair, None)  # so that the order is that of the newest
            newest[pair] = judgement
        return [judgement for judgement in newest.values() if judgement.verdict != "withdrawn"]

    def judgements_on(self, identifier: str) -> dict[str, Verdict]:
        """Return each question that was judged beside this one, either way round, with the verdict that counts."""
        if not rows.is_storable(identifier):
            return {}
        entries = self.rows(
            "SELECT CASE WHEN question_id = ? THEN candidate_id ELSE question_id END, verdict FROM feedback"
            f" WHERE (question_id = ? OR candidate_id = ?) AND {BOTH_HERE} ORDER BY at_us, num",
            (identifier,) * 3,
        )
        return {other: verdict for other, verdict in dict(entries).items() if verdict != "withdrawn"}

    def judgement_version(self) -> tuple[int, int]:
        """Return a value that changes when a judgement comes, and when one stops or begins to count."""
        newest, count = self.rows(f"SELECT coalesce(max(num), 0), count(*) FROM feedback WHERE {BOTH_HERE}")[0]
        return newest, count

    # -- decisions ---------------------------------------------------------------------------------------------

    def decide(self, decision: Feedback, *, has_link: bool = True) -> LogEntry:
        """Store a person's decision on a pair, which is a judgement too, and return its entry in the log.

        Who repeats a decision of their own that stands, with its link, gets its entry, and nothing changes.

        Args:
            has_link: a duplicate is linked to its original, which searches then show in its place.

        Raises:
            UnknownIdError: a question is not there.
            ConflictError: the pair was decided before.
            InputError: the link would close a circle or lead to a duplicate; the message has the chain.
        """
        at_us = time.time_ns() // 1000
        with self.write() as connection:
            if (repeated := self._check_decision(connection, decision, has_link=has_link)) is not None:
                return repeated
            at_us = writes.put_judgement(connection, decision, at_us)
            pair = (decision.question_id, decision.candidate_id)
            made_link = False
            if has_link and decision.verdict == "duplicate":
                made_link = writes.put_manual_links(connection, [Link(*pair)], is_claimed=False) > 0
            entry = LogEntry(0, *pair, decision.verdict, decision.by, made_link=made_link)  # type: ignore[arg-type]
            return _add(connection, entry, at_us)

    def _check_decision(self, connection: Connection, decision: Feedback, *, has_link: bool) -> LogEntry | None:
        """Return the entry that a decision repeats; raise InputError or UnknownIdError unless it can be stored."""
        rows.check_feedback(decision)
        check_name(decision.by)
        if decision.verdict == "withdrawn":
            raise InputError("a decision is duplicate or different", "undo the decision that is to be taken back")
        pair = (decision.question_id, decision.candidate_id)
        for identifier in pair:
            writes.require_question(connection, identifier)
        stands = connection.execute(f"{_ENTRY} WHERE {OF_PAIR} AND {_STANDS}", (*pair, *pair[::-1])).fetchone()
        if stands is not None:
            standing = entry_of(stands)
            is_same = (standing.kind, standing.by) == (decision.verdict, decision.by)
            if is_same and decision.verdict == "different":
                return standing
            is_linked = not has_link or pair[1] in self.originals_of(pair[:1]).get(pair[0], ())
            if is_same and is_linked and pair == (standing.question_id, standing.candidate_id):
                return standing
            message = f"{pair[0]!r} and {pair[1]!r} were decided{_by(standing)} to be {standing.kind}"
            raise ConflictError(f"{message}, by entry {standing.number}", f"undo entry {standing.number} first")
        if has_link and decision.verdict == "duplicate":
            refuse_chain(self.originals_of(pair), *pair)
        return None

    def undo(self, number: int, by: str = "") -> LogEntry:
        """Undo a decision, and return the entry that says so.

        The judgement before it counts again, unless the pair was judged since. The link that it made goes, unless a
        person, a load or a forum that is followed has made it too. What was written to another forum stays there; what
        waits to be is cancelled. Who repeats their own gets the entry that says so, and nothing changes.

        Raises:
            UnknownIdError: the log has no such entry.
            ConflictError: somebody else has undone it.
            InputError: it is no decision.
        """
        check_name(by)
        at_us = time.time_ns() // 1000
        with self.write() as connection:
            is_number = 0 < number < rows.INTEGER_LIMIT
            row = connection.execute(f"{_ENTRY} WHERE num = ?", (number if is_number else 0,)).fetchone()
            if row is None:
                raise UnknownIdError(f"the log has no entry {number}", "list it, and name one of its decisions")
            if row["kind"] not in ("duplicate", "different"):
                raise InputError(f"entry {number} is no decision: {row['kind']}", "name a decision")
            if row["undone"]:
                undoing = entry_of(connection.execute(f"{_ENTRY} WHERE undoes = ?", (number,)).fetchone())
                if undoing.by == by:
                    return undoing
                message = f"entry {number} was undone already{_by(undoing)}, by entry {undoing.number}"
                raise ConflictError(message, "nothing is left to undo; decide on the pair anew")
            return _undo(connection, entry_of(row), by, at_us)

    def log(self, limit: int, before: int = 0, *, pair: tuple[str, str] | None = None) -> list[LogEntry]:
        """Return entries of the log, newest first.

        Args:
            before: only those with smaller numbers; 0 for all.
            pair: only those on this pair, either way round.
        """
        conditions: list[str] = []
        values: list[object] = []
        if before:
            conditions.append("num < ?")
            values.append(min(before, rows.INTEGER_LIMIT - 1))
        if pair is not None:
            if not all(map(rows.is_storable, pair)):
                return []
            conditions.append(OF_PAIR)
            values += (*pair, *pair[::-1])
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        values.append(min(limit, rows.INTEGER_LIMIT - 1))
        return [entry_of(row) for row in self.rows(f"{_ENTRY}{where} ORDER BY num DESC LIMIT ?", values)]

    # -- what is written back ----------------------------------------------------------------------------------

    def decided_duplicates(self, source: str) -> list[LogEntry]:
        """Return the decisions that stand, by which a question is a duplicate of another of the same source."""
        of = "(SELECT 1 FROM questions JOIN sources ON sources.num = source WHERE id = {} AND name = ?)"
        both = f"EXISTS {of.format('question_id')} AND EXISTS {of.format('candidate_id')}"
        wanted = f"{_ENTRY} WHERE kind = 'duplicate' AND {_STANDS} AND {both} ORDER BY num"
        return [entry_of(row) for row in self.rows(wanted, (source, source))] if rows.is_storable(source) else []

    def put_writes(self, wanted: Sequence[Write]) -> int:
        """Let things wait to be written that were not asked for before, or were cancelled; return how many."""
        put = (
            f"INSERT INTO outbox ({', '.join(WRITE_COLUMNS)}) VALUES (?, ?, ?, ?, 'waiting', 0, '', ?)"
            " ON CONFLICT (target, question_id, candidate_id, action) DO UPDATE SET state = 'waiting', why = ''"
            " WHERE outbox.state = 'cancelled'"
        )
        now_us = time.time_ns() // 1000
        for task in wanted:
            if not all(map(rows.is_storable, (task.target, task.question_id, task.candidate_id, task.action))):
                raise InputError(f"what is to be written to {task.target!r:.80} is not UTF-8", "decode it first")
        with self.write() as connection:
            return sum(
                connection.execute(
                    put, (task.target, task.question_id, task.candidate_id, task.action, now_us)
                ).rowcount
                for task in wanted
            )

    def outbox(self, target: str = "") -> list[Write]:
        """Return what was asked to be written, to one forum or to all, oldest first."""
        where, values = (" WHERE target = ?", (target,)) if target else ("", ())
        if not rows.is_storable(target):
            return []
        return [_write_of(row) for row in self.rows(f"{_WRITE}{where} ORDER BY num", values)]

    def set_write(self, number: int, state: WriteState, why: str = "", *, is_try: bool = True) -> bool:
        """Note what became of a write; return False where it was cancelled meanwhile, which stays so unless done."""
        if state not in STATES:
            raise InputError(f"the state of a write is {state!r:.80}", f"expected one of {', '.join(STATES)}")
        changed = "UPDATE outbox SET state = ?, why = ?, tries = tries + ?, at_us = ? WHERE num = ?"
        if state != "done":  # what was done was done
            changed += " AND state <> 'cancelled'"
        values = (state, why[:1_000].encode("utf-8", "replace").decode(), int(is_try), time.time_ns() // 1000, number)
        with self.write() as connection:
            return connection.execute(changed, values).rowcount > 0


def refuse_chain(originals: dict[str, tuple[str, ...]], duplicate: str, original: str) -> None:
    """Raise InputError, with the chain, where a link would close a circle or lead on to another question.

    Args:
        originals: as ``Store.originals_of`` returns it for both.
    """
    if original not in originals or duplicate == original or original in originals.get(duplicate, ()):
        return
    before = {original: duplicate}  # of what the original leads to, nearest first, the question that leads to it
    for name in (waiting := [original]):
        for following in originals.get(name, ()):
            if following not in before:
                before[following] = name
                waiting.append(following)
    names = [duplicate if duplicate in before else waiting[-1]]
    while names[-1] != original:
        names.append(before[names[-1]])
    way = " -> ".join([duplicate, *reversed(names)])
    if duplicate in before:
        raise InputError(f"the link would close a circle: {way}", f"unlink {original!r} first")
    ends = [name for name in waiting if name not in originals]
    hint = f"link {duplicate!r} to {ends[0]!r}" if ends else f"these are a circle: unlink {original!r} first"
    raise InputError(f"{original!r} is a duplicate itself: {way}", hint)


def _by(entry: LogEntry) -> str:
    return f" by {entry.by}" if entry.by else ""


def check_name(by: str) -> None:
    """Raise InputError unless a moderator's name can be stored."""
    if len(by) > LONGEST_NAME or not rows.is_storable(by):
        raise InputError("the moderator's name is too long, or no UTF-8", f"expected at most {LONGEST_NAME} characters")


def check_entry(entry: LogEntry) -> None:
    """Raise InputError unless an entry of another forum's log can be stored."""
    rows.check_feedback(Feedback(entry.question_id, entry.candidate_id, "different", entry.by, entry.at))
    rows.check_link(Link(entry.question_id, entry.candidate_id))
    check_name(entry.by)
    if entry.kind not in KINDS:
        raise InputError(f"the log's entry {entry.number} cannot be stored", "export the forum again")


def put_entry(
    connection: Connection, entry: LogEntry, numbers: dict[int, int], claimed: Collection[int], links: Collection[Link]
) -> bool:
    """Store an entry of another forum's log unless the same is there; return whether it was new.

    A decision has made its link where both forums say so, and nobody else had made it here.

    Args:
        numbers: of that log → of this one, to which the entry's is added.
        claimed: the numbers of decisions here whose links the same load has just claimed.
        links: those of the log's decisions that were here before the load.
    """
    known = known_entry(connection, entry)
    if known is not None:
        numbers[entry.number] = known["num"]
        if entry.made_link and known["num"] in claimed:
            connection.execute("UPDATE moderation SET made_link = 1 WHERE num = ?", (known["num"],))
        return False
    is_new_link = entry.made_link and Link(entry.question_id, entry.candidate_id) not in links
    values = (*_key(entry), numbers.get(entry.undoes, 0), int(is_new_link))
    numbers[entry.number] = connection.execute(_ADD_ENTRY, values).fetchone()["num"]
    return True


def known_entry(connection: Connection, entry: LogEntry) -> Any:
    """Return number and ``undone`` of the same entry of this forum's log, or None."""
    return connection.execute(
        f"{_ENTRY} WHERE question_id = ? AND candidate_id = ? AND kind = ? AND judge = ? AND at_us = ?",
        _key(entry),
    ).fetchone()


def _key(entry: LogEntry) -> tuple[object, ...]:
    return entry.question_id, entry.candidate_id, entry.kind, entry.by, rows.to_microseconds(entry.at) or 0


def entry_of(row: Any) -> LogEntry:
    """Return the entry of a row of ``_ENTRY``."""
    number, question, candidate, kind, judge, at_us, undoes, made_link, undone = row
    at = rows.from_microseconds(at_us)
    return LogEntry(number, question, candidate, kind, judge, at, undoes, bool(made_link), bool(undone))


def _feedback_of(row: Any) -> Feedback:
    _, question, candidate, verdict, judge, at_us, *draw = row
    return Feedback(question, candidate, verdict, judge, rows.from_microseconds(at_us), Draw(*draw))


def _add(connection: Connection, entry: LogEntry, at_us: int) -> LogEntry:
    entry = structs.replace(entry, at=rows.from_microseconds(at_us))
    row = connection.execute(_ADD_ENTRY, (*_key(entry), entry.undoes, int(entry.made_link))).fetchone()
    return structs.replace(entry, number=row["num"])


def _undo(connection: Connection, decision: LogEntry, by: str, at_us: int) -> LogEntry:
    pair = (decision.question_id, decision.candidate_id)
    if decision.made_link:
        writes.delete_link(connection, Link(*pair))
    newest = f"SELECT {_FEEDBACK} FROM feedback WHERE {OF_PAIR} ORDER BY at_us DESC, num DESC LIMIT 2"
    judged = list(map(_feedback_of, connection.execute(newest, (*pair, *pair[::-1])).fetchall()))
    if judged and judged[0].at == decision.at:  # else it was judged again since
        counted = next((judgement for judgement in judged[1:] if judgement.verdict != "withdrawn"), None)
        writes.put_judgement(connection, counted or Feedback(*pair, "withdrawn", by), at_us)
    connection.execute(
        "UPDATE outbox SET state = 'cancelled', at_us = ? WHERE question_id = ? AND candidate_id = ?"
        " AND state IN ('waiting', 'failed')",
        (at_us, *pair),
    )
    return _add(connection, LogEntry(0, *pair, "undone", by, undoes=decision.number), at_us)


def _write_of(row: Any) -> Write:
    number, target, question, candidate, action, state, tries, why, at_us = row
    at = rows.from_microseconds(at_us)
    return Write(number, target, question, candidate, action, state, tries, why, at)
