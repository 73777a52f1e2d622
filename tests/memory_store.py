"""A store in memory: the smallest thing that keeps the promises of ``askalike.store.Store``, without a file or SQL."""

from __future__ import annotations

import contextlib
import copy
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from msgspec import structs

from askalike.errors import BusyForumError, InputError, UnknownIdError
from askalike.progress import Progress, SilentProgress
from askalike.store import (
    Change,
    Counts,
    LoadCounts,
    LoadReport,
    Margin,
    Operation,
    Position,
    SourceCounts,
    StoredOutcome,
    refuse_chain,
    rows,
)
from askalike.store.protocol import MANUAL_SOURCE, QUESTIONS, RecordKind
from askalike.store.rows import (
    answer_values,
    check_feedback,
    check_link,
    check_source,
    from_microseconds,
    question_values,
    to_microseconds,
    unknown_id,
)
from askalike.types import (
    Answer,
    Assignment,
    Decided,
    Draw,
    Feedback,
    Link,
    LogEntry,
    Outcome,
    Question,
    Record,
    Refusal,
    Reject,
    Source,
    Thread,
    Verdict,
    Write,
    WriteState,
)


def _in_utc(moment: datetime | None) -> datetime | None:
    return from_microseconds(to_microseconds(moment))


def _order(answer: Answer) -> tuple[bool, int, int, str]:
    return not answer.is_accepted, -(answer.score or 0), to_microseconds(answer.created) or 0, answer.id


@dataclass
class _Tables:
    """All that is stored: records with their source, and the log."""

    questions: dict[str, tuple[int, Question, str]] = field(default_factory=dict)
    answers: dict[str, tuple[Answer, str]] = field(default_factory=dict)
    links: dict[Link, str] = field(default_factory=dict)
    feedback: list[Feedback] = field(default_factory=list)
    log: list[tuple[Operation, RecordKind, str, int | None]] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    outcomes: dict[tuple[int, str, str, str], StoredOutcome] = field(default_factory=dict)
    linked_us: dict[tuple[str, str], int] = field(default_factory=dict)
    moderated: list[LogEntry] = field(default_factory=list)
    taken: dict[frozenset[str], Assignment] = field(default_factory=dict)
    outbox: list[Write] = field(default_factory=list)
    last_num: int = 0

    def add_entry(self, entry: LogEntry) -> LogEntry:
        self.moderated.append(structs.replace(entry, number=len(self.moderated) + 1))
        return self.moderated[-1]

    def judged(self, pair: Collection[str]) -> list[Feedback]:
        held = [one for one in self.feedback if {one.question_id, one.candidate_id} == set(pair)]
        return sorted(held, key=lambda one: one.at or datetime.now(UTC))

    def judge(self, given: Feedback, now: datetime) -> Feedback:
        latest = datetime.max.replace(tzinfo=UTC)
        for one in self.judged((given.question_id, given.candidate_id)):
            assert one.at is not None
            now = max(now, min(one.at, latest - timedelta(microseconds=1)) + timedelta(microseconds=1))
        self.feedback.append(structs.replace(given, at=now))
        return self.feedback[-1]

    def claim(self, link: Link) -> None:
        ends = (link.source_id, link.target_id) if link.kind == "duplicate" else ()
        self.moderated = [
            structs.replace(one, made_link=False) if (one.question_id, one.candidate_id) == ends else one
            for one in self.moderated
        ]

    def put(self, question: Question, source: str) -> Operation | None:
        question_values(question)
        kept = replace(question, created=_in_utc(question.created), closed=_in_utc(question.closed))
        kept = replace(kept, tags=tuple(question.tags))
        known = self.questions.get(question.id)
        if known is not None and rows.digest(question_values(known[1])) == rows.digest(question_values(kept)):
            return None
        operation: Operation = "add" if known is None else "edit"
        if known is None:
            self.last_num += 1
        num, owner = (self.last_num, source) if known is None else (known[0], known[2])
        self.questions[question.id] = (num, kept, owner)
        self.log.append((operation, "question", question.id, num))
        return operation

    def put_answer(self, answer: Answer, source: str) -> Operation | None:
        kept = structs.replace(answer, created=_in_utc(answer.created))
        known = self.answers.get(answer.id)
        if known is not None and known[0] == kept:
            return None
        operation: Operation = "add" if known is None else "edit"
        self.answers[answer.id] = (kept, source if known is None else known[1])
        self.log.append((operation, "answer", answer.id, None))
        return operation

    def put_link(self, link: Link, source: str) -> bool:
        if link in self.links:
            return False
        self.links[link] = source
        if link.kind == "duplicate":
            self.linked_us[link.source_id, link.target_id] = time.time_ns() // 1000
        self.log.append(("add", "link", link.source_id, None))
        return True

    def remove(self, identifier: str) -> None:
        num = self.questions.pop(identifier)[0]
        self.log.append(("delete", "question", identifier, num))

    def require(self, *ids: str) -> None:
        for one in ids:
            if one not in self.questions:
                raise unknown_id("question", one)


class MemoryStore:
    """``store.Store`` for one process."""

    name = "memory"

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._margin: Margin | None = None
        self._now = _Tables()
        self._is_loading = False

    @contextlib.contextmanager
    def _write(self) -> Iterator[_Tables]:
        changed = copy.deepcopy(self._now)
        yield changed
        self._now = changed

    def close(self) -> None:
        pass

    def settings(self) -> dict[str, str]:
        return dict(self._settings)

    def identity(self) -> str:
        return f"memory{id(self):x}"

    def margin(self) -> Margin | None:
        return self._margin

    def put_margin(self, margin: Margin) -> None:
        self._margin = margin

    def alone(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def sources(self) -> tuple[str, ...]:
        return tuple(self._now.sources)

    def source_counts(self) -> list[SourceCounts]:
        now = self._now
        return [
            SourceCounts(
                name,
                now.sources[name],
                sum(held[2] == name for held in now.questions.values()),
                sum(held[1] == name for held in now.answers.values()),
                sum(held == name for held in now.links.values()),
            )
            for name in now.sources
        ]

    def delete_source(self, name: str) -> SourceCounts:
        if self._is_loading:
            raise BusyForumError("another load is under way", "wait until it has finished")
        counts = next((one for one in self.source_counts() if one.name == name), None)
        if counts is None:
            raise unknown_id("source", name)
        with self._write() as tables:
            for one in [key for key, held in tables.questions.items() if held[2] == name]:
                tables.remove(one)
            tables.answers = {key: held for key, held in tables.answers.items() if held[1] != name}
            tables.links = {link: held for link, held in tables.links.items() if held != name}
            del tables.sources[name]
        return counts

    # -- records -----------------------------------------------------------------------------------------------

    def question(self, identifier: str) -> Question:
        self._now.require(identifier)
        return self._now.questions[identifier][1]

    def questions_by_id(self, ids: Sequence[str]) -> dict[str, Question]:
        return {one: self._now.questions[one][1] for one in ids if one in self._now.questions}

    def questions_by_num(self, nums: Sequence[int]) -> dict[int, Question]:
        return {num: question for num, question in self.all_questions() if num in set(nums)}

    def ids_by_num(self, nums: Iterable[int]) -> dict[int, str]:
        wanted = set(nums)
        return {num: question.id for num, question in self.all_questions() if num in wanted}

    def nums_by_id(self, ids: Iterable[str]) -> dict[str, int]:
        return {one: self._now.questions[one][0] for one in ids if one in self._now.questions}

    def language_counts(self) -> dict[str, int]:
        found = Counter(question.language for _, question in self.all_questions() if question.language)
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    def put_detected(self, languages: Mapping[str, str], changed: Collection[str]) -> None:
        for identifier, language in languages.items():
            num, question, source = self._now.questions[identifier]
            if question.is_language_detected or not question.language:
                question = replace(question, language=language, is_language_detected=bool(language))
            self._now.questions[identifier] = (num, question, source)
            if identifier in changed:
                self._now.log.append(("edit", "question", identifier, num))

    def put_settings(self, settings: Mapping[str, str]) -> None:
        self._settings |= settings

    def numbers(
        self, *, is_answered: bool | None = None, is_closed: bool | None = None, languages: Sequence[str] = ()
    ) -> list[int]:
        answered = self.answer_counts(list(self._now.questions))
        return [
            num
            for num, question in self.all_questions()
            if is_answered in (None, question.id in answered)
            and is_closed in (None, question.closed is not None)
            and (not languages or question.language in languages)
        ]

    def all_questions(self, after: int = 0) -> Iterator[tuple[int, Question]]:
        held = sorted(self._now.questions.values(), key=lambda one: one[0])
        return ((num, question) for num, question, _ in held if num > after)

    def count_questions(self, after: int = 0) -> int:
        return len(list(self.all_questions(after)))

    def newest(self, limit: int, after: Position | None = None) -> list[tuple[Position, Question]]:
        def order(position: Position) -> tuple[bool, int, int]:
            return position[0] is None, -(position[0] or 0), -position[1]

        placed: list[tuple[Position, Question]] = [
            ((to_microseconds(question.created), num), question) for num, question in self.all_questions()
        ]
        found = sorted(placed, key=lambda one: order(one[0]))
        return [one for one in found if after is None or order(one[0]) > order(after)][:limit]

    def answers_of(self, ids: Sequence[str]) -> dict[str, list[Answer]]:
        found: dict[str, list[Answer]] = {}
        for answer, _ in self._now.answers.values():
            if answer.question_id in self._now.questions and answer.question_id in ids:
                found.setdefault(answer.question_id, []).append(answer)
        for held in found.values():
            held.sort(
                key=lambda one: (not one.is_accepted, -(one.score or 0), to_microseconds(one.created) or 0, one.id)
            )
        return found

    def answer_counts(self, ids: Sequence[str]) -> dict[str, int]:
        return {one: len(answers) for one, answers in self.answers_of(ids).items()}

    def links(self) -> list[Link]:
        here = self._now.questions
        held = [one for one in self._now.links if one.source_id in here and one.target_id in here]
        return sorted(held, key=lambda one: (one.source_id, one.target_id, one.kind))

    def links_of(self, identifier: str) -> list[Link]:
        return [one for one in self.links() if identifier in (one.source_id, one.target_id)]

    def originals_of(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        waiting = list(ids)
        while waiting:
            one = waiting.pop()
            if one not in found:
                found[one] = tuple(
                    link.target_id for link in self._now.links if (link.source_id, link.kind) == (one, "duplicate")
                )
                waiting += found[one]
        here = {one: tuple(sorted(to for to in targets if to in self._now.questions)) for one, targets in found.items()}
        return {one: targets for one, targets in here.items() if targets}

    def counts(self) -> Counts:
        answers = self.answer_counts(list(self._now.questions))
        links = self.links()
        moments = [to_microseconds(one.created) for _, one in self.all_questions() if one.created is not None]
        judged = len(list(self.all_feedback()))
        return Counts(
            questions=len(self._now.questions),
            answers=sum(answers.values()),
            duplicates=sum(one.kind == "duplicate" for one in links),
            related=sum(one.kind == "related" for one in links),
            questions_with_answer=len(answers),
            first_us=min((one for one in moments if one is not None), default=None),
            last_us=max((one for one in moments if one is not None), default=None),
            judgements=judged,
            answers_without_question=len(self._now.answers) - sum(answers.values()),
            links_without_question=len(self._now.links) - len(links),
            judgements_without_question=len(self._now.feedback) - judged,
        )

    def unreadable_dates(self) -> Iterator[str]:
        return iter(())

    def check(self) -> None:
        pass

    # -- outcomes of suggestions -------------------------------------------------------------------------------

    def add_outcomes(self, session: str, outcomes: Sequence[Outcome], at_us: int) -> int:
        added, day = 0, at_us // rows.DAY_US
        with self._write() as tables:
            for one in outcomes:
                subject = rows.title_digest(one.title) if one.kind == "asked" else one.question
                key = (day, session, one.kind, subject)
                if one.kind != "asked" and subject not in tables.questions:
                    continue
                if key not in tables.outcomes:
                    told = (at_us, 0, one.place, one.team, one.propensity)
                    tables.outcomes[key] = StoredOutcome(session, one.kind, subject, *told)
                if not session or not tables.outcomes[key].times:
                    tables.outcomes[key] = replace(tables.outcomes[key], times=tables.outcomes[key].times + 1)
                    added += 1
        return added

    def put_helped(self, times: Mapping[str, int]) -> None:
        with self._write() as tables:
            for one, count in times.items():
                tables.outcomes[0, "", "helped", one] = StoredOutcome("", "helped", one, 0, count, 0, "", 1.0)

    def helped(self, identifier: str | None = None) -> tuple[int, int]:
        held = [one for one in self._now.outcomes.values() if one.kind == "helped"]
        held = [one for one in held if identifier in (None, one.subject)]
        return sum(one.times for one in held), len({one.subject for one in held})

    def outcome_days(self, first: int, last: int) -> list[int]:
        return sorted({day for day, *_ in self._now.outcomes if first <= day <= last})

    def outcomes(self, day: int) -> list[StoredOutcome]:
        held = [one for key, one in self._now.outcomes.items() if key[0] == day]
        return sorted(held, key=lambda one: (one.session, one.at_us, one.place, one.kind, one.subject))

    def asked_between(self, first_us: int, last_us: int) -> list[tuple[str, str, int]]:
        dated = [(to_microseconds(one.created), num, one) for num, one in self.all_questions()]
        held = [(us, num, one) for us, num, one in dated if us is not None and first_us <= us < last_us]
        return [(one.id, one.title, us) for us, _, one in sorted(held, key=lambda row: row[:2])]

    def duplicates_marked(self, first_us: int, last_us: int) -> dict[tuple[str, str], int]:
        now = self._now
        moments = [
            ((link.source_id, link.target_id), now.linked_us.get((link.source_id, link.target_id), 0))
            for link in now.links
            if link.kind == "duplicate"
        ]
        moments += [
            ((one.question_id, one.candidate_id), to_microseconds(one.at) or 0)
            for one in now.feedback
            if one.verdict == "duplicate"
        ]
        found: dict[tuple[str, str], int] = {}
        for pair, us in moments:
            if first_us <= us < last_us:
                found[pair] = min(us, found.get(pair, us))
        return found

    # -- the change log ----------------------------------------------------------------------------------------

    def last_change(self) -> int:
        return len(self._now.log)

    def changes(self, after: int, limit: int, kinds: Collection[RecordKind] = QUESTIONS) -> list[Change]:
        found: list[Change] = []
        for seq, (operation, kind, identifier, known) in enumerate(self._now.log, 1):
            num = known if kind == "question" else self.nums_by_id([identifier]).get(identifier)
            if seq > after and kind in kinds and num is not None:
                found.append(Change(seq, operation, num, kind))
        return found[:limit]

    def count_changes(self, after: int) -> int:
        return len(self.changes(after, len(self._now.log)))

    # -- changes -----------------------------------------------------------------------------------------------

    def add_questions(self, questions: Sequence[Question], links: Sequence[Link] = ()) -> None:
        with self._write() as tables:
            for question in questions:
                if question.id in tables.questions:
                    raise InputError(f"the id {question.id!r} is taken already")
                tables.put(question, MANUAL_SOURCE)
            self._put_links(tables, links)

    def edit_questions(self, questions: Sequence[Question]) -> None:
        self._now.require(*(question.id for question in questions))
        self.put_questions(questions)

    def put_questions(self, questions: Sequence[Question], gone: Sequence[str] = ()) -> dict[str, Operation]:
        done: dict[str, Operation] = {}
        with self._write() as tables:
            tables.sources[MANUAL_SOURCE] = "manual"
            for question in questions:
                if operation := tables.put(question, MANUAL_SOURCE):
                    done.setdefault(question.id, operation)
            for one in dict.fromkeys(gone):
                tables.require(one)
                tables.remove(one)
                tables.answers = {key: held for key, held in tables.answers.items() if held[0].question_id != one}
                tables.links = {
                    link: source for link, source in tables.links.items() if one not in (link.source_id, link.target_id)
                }
                for name in ("feedback", "moderated", "outbox"):
                    kept = [it for it in getattr(tables, name) if one not in (it.question_id, it.candidate_id)]
                    setattr(tables, name, kept)
                tables.taken = {pair: held for pair, held in tables.taken.items() if one not in pair}
        return done

    def add_answers(self, answers: Sequence[Answer]) -> None:
        if taken := [answer.id for answer in answers if answer.id in self._now.answers]:
            raise InputError(f"the answer id {taken[0]!r} is taken already")
        self.put_answers(answers)

    def put_answers(self, answers: Sequence[Answer]) -> dict[str, Operation]:
        done: dict[str, Operation] = {}
        with self._write() as tables:
            for answer in answers:
                answer_values(answer)
                tables.require(answer.question_id)
                if operation := tables.put_answer(answer, MANUAL_SOURCE):
                    done.setdefault(answer.id, operation)
        return done

    def delete_answers(self, ids: Sequence[str]) -> None:
        with self._write() as tables:
            for one in ids:
                if one not in tables.answers:
                    raise unknown_id("answer", one)
                del tables.answers[one]
                tables.log.append(("delete", "answer", one, None))

    def put_links(self, links: Sequence[Link]) -> int:
        with self._write() as tables:
            return self._put_links(tables, links)

    def _put_links(self, tables: _Tables, links: Sequence[Link]) -> int:
        for link in links:
            check_link(link)
            tables.require(link.source_id, link.target_id)
            tables.claim(link)
        return sum(tables.put_link(link, MANUAL_SOURCE) for link in links)

    def mark(self, duplicate: str, original: str) -> bool:
        check_link(Link(duplicate, original))
        refuse_chain(self.originals_of([original, duplicate]), duplicate, original)
        return self.put_links([Link(duplicate, original)]) > 0

    def delete_links(self, links: Sequence[Link]) -> int:
        with self._write() as tables:
            held = [link for link in links if tables.links.pop(link, None) is not None]
            tables.log += [("delete", "link", link.source_id, None) for link in held]
        return len(held)

    def replace_threads(
        self, threads: Sequence[Thread], gone: Sequence[str], source: Source, *, is_trial: bool = False
    ) -> LoadReport:
        check_source(source)
        report, before, name = LoadReport(), copy.deepcopy(self._now), source.name
        with self._write() as tables:
            tables.sources.setdefault(name, source.format)
            owners = {
                one.id: tables.questions[one.id][2]
                for one in (t.question for t in threads)
                if one.id in tables.questions
            }
            owners |= {
                one.id: tables.answers[one.id][1] for t in threads for one in t.answers if one.id in tables.answers
            }
            if foreign := {one for one in owners.values() if one != name}:
                raise InputError(f"came from {foreign}")
            for thread in threads:
                _Load._count(report.questions, tables.put(thread.question, name))
            for answer in (one for thread in threads for one in thread.answers):
                answer_values(answer)
                _Load._count(report.answers, tables.put_answer(answer, name))
            for link in (one for thread in threads for one in thread.links):
                check_link(link)
                report.links.added += tables.put_link(link, name)
                tables.claim(link)
            left = [one for one in gone if one in tables.questions and tables.questions[one][2] == name]
            for one in left:
                tables.remove(one)
            report.questions.deleted = len(left)
            whole = {**{t.question.id: t for t in threads}, **{one: Thread(Question(one, "")) for one in left}}
            for key, (answer, owner) in list(tables.answers.items()):
                if owner == name and answer.question_id in whole and answer not in whole[answer.question_id].answers:
                    kept = {one.id for one in whole[answer.question_id].answers}
                    if key not in kept:
                        del tables.answers[key]
                        tables.log.append(("delete", "answer", key, None))
                        report.answers.deleted += 1
            for link, owner in list(tables.links.items()):
                if owner == name and link.source_id in whole and link not in whole[link.source_id].links:
                    del tables.links[link]
                    tables.log.append(("delete", "link", link.source_id, None))
                    report.links.deleted += 1
        if is_trial:
            self._now = before
        return report

    def ids_of(self, source: str) -> list[str]:
        return [one for one, (_, _, owner) in self._now.questions.items() if owner == source]

    # -- judgements --------------------------------------------------------------------------------------------

    def add_feedback(self, given: Feedback) -> Feedback:
        check_feedback(given)
        with self._write() as tables:
            tables.require(given.question_id, given.candidate_id)
            stored = tables.judge(given, datetime.now(UTC))
            tables.log += [("add", "feedback", one, None) for one in (given.question_id, given.candidate_id)]
        return stored

    def all_feedback(self) -> Iterator[Feedback]:
        here = self._now.questions
        return (one for one in self._now.feedback if one.question_id in here and one.candidate_id in here)

    def judgements(self) -> list[Feedback]:
        held = sorted(self.all_feedback(), key=lambda one: one.at or datetime.now(UTC))
        newest = {frozenset((one.question_id, one.candidate_id)): one for one in held}
        return [one for one in held if one in newest.values() and one.verdict != "withdrawn"]

    def judgements_on(self, identifier: str) -> dict[str, Verdict]:
        found: dict[str, Verdict] = {}
        for one in self.judgements():
            if identifier in (one.question_id, one.candidate_id):
                found[one.candidate_id if one.question_id == identifier else one.question_id] = one.verdict
        return found

    def judgement_version(self) -> tuple[int, int]:
        held = list(self.all_feedback())
        return max((self._now.feedback.index(one) + 1 for one in held), default=0), len(held)

    # -- moderation --------------------------------------------------------------------------------------------

    def decide(self, given: Sequence[Feedback], *, has_links: bool, is_preview: bool = False) -> Decided:
        before, entries, refused, at = self._now, list[LogEntry](), list[Refusal](), datetime.now(UTC)
        bulk = f"bulk{len(before.moderated)}" if len(given) > 1 else ""
        pairs = [frozenset((one.question_id, one.candidate_id)) for one in given]
        for place, (one, pair) in enumerate(zip(given, pairs, strict=True)):
            ends, held = (one.question_id, one.candidate_id), self._now.taken.get(pair)
            stands = [
                it for it in self.log(10**6, pair=ends) if it.kind in ("duplicate", "different") and not it.undone
            ]
            try:
                check_feedback(one)
                self._now.require(*ends)
                if one.verdict == "withdrawn" or pair in pairs[:place]:
                    raise InputError("withdrawn, or twice")
                if held is not None and held.by != one.by and (held.until is None or held.until > at):
                    raise InputError(f"{held.by} has taken it")
                if stands:
                    raise InputError(f"decided by entry {stands[0].number}")
                if has_links and one.verdict == "duplicate":
                    refuse_chain(self.originals_of(ends), *ends)
            except (InputError, UnknownIdError) as error:
                refused.append(Refusal(*ends, error.message, error.hint))
                continue
            with self._write() as tables:
                judged = tables.judge(one, at)
                made = has_links and one.verdict == "duplicate" and bool(tables.put_link(Link(*ends), MANUAL_SOURCE))
                tables.taken.pop(pair, None)
                entry = LogEntry(0, *ends, one.verdict, one.by, judged.at, "", bulk, 0, made)  # type: ignore[arg-type]
                entries.append(tables.add_entry(entry))
        if refused or is_preview:
            self._now = before
            entries = [structs.replace(one, number=0, bulk="", at=None) for one in entries]
        return Decided(tuple(entries), tuple(refused), not refused and not is_preview)

    def undo(self, numbers: Sequence[int], by: str) -> list[LogEntry]:
        done = list[LogEntry]()
        with self._write() as tables:
            for number in numbers:
                if not 0 < number <= len(tables.moderated):
                    raise UnknownIdError(f"the log has no entry {number}")
                one = tables.moderated[number - 1]
                if one.kind not in ("duplicate", "different") or one.undone:
                    raise InputError("no decision, or undone")
                ends = {one.question_id, one.candidate_id}
                tables.moderated[number - 1] = structs.replace(one, undone=True)
                if one.made_link:
                    tables.links.pop(Link(one.question_id, one.candidate_id), None)
                judged = tables.judged(ends)
                if judged and judged[-1].at == one.at:
                    gone = Feedback(one.question_id, one.candidate_id, "withdrawn", by)
                    again = judged[-2] if len(judged) > 1 and judged[-2].verdict != "withdrawn" else gone
                    tables.judge(again, datetime.now(UTC))
                tables.outbox = [
                    structs.replace(it, state="cancelled")
                    if {it.question_id, it.candidate_id} == ends and it.state in ("waiting", "failed")
                    else it
                    for it in tables.outbox
                ]
                entry = LogEntry(0, one.question_id, one.candidate_id, "undone", by, datetime.now(UTC), undoes=number)
                done.append(tables.add_entry(structs.replace(entry, bulk="undo" if len(numbers) > 1 else "")))
        return done

    def add_note(self, question_id: str, candidate_id: str, text: str, by: str) -> LogEntry:
        check_feedback(Feedback(question_id, candidate_id, "different", by))
        if not text.strip() or len(text) > 10_000:
            raise InputError("the note is empty or too long")
        with self._write() as tables:
            tables.require(question_id, candidate_id)
            return tables.add_entry(LogEntry(0, question_id, candidate_id, "note", by, datetime.now(UTC), text))

    def log(
        self, limit: int, before: int = 0, *, pair: tuple[str, str] | None = None, bulk: str = ""
    ) -> list[LogEntry]:
        return [
            one
            for one in reversed(self._now.moderated)
            if (not before or one.number < before)
            and (pair is None or {one.question_id, one.candidate_id} == set(pair))
            and bulk in ("", one.bulk)
        ][:limit]

    def take_pairs(self, pairs: Sequence[tuple[str, str]], by: str, until_us: int | None) -> list[Assignment]:
        now = datetime.now(UTC)
        with self._write() as tables:
            if len(set(map(frozenset, pairs))) < len(pairs):
                raise InputError("a pair comes twice")
            for pair in pairs:
                tables.require(*pair)
                held = tables.taken.get(frozenset(pair))
                if not by.strip() or (held and held.by != by and (held.until is None or held.until > now)):
                    raise InputError("taken, or by nobody")
                tables.taken[frozenset(pair)] = Assignment(*pair, by, now, from_microseconds(until_us))
            return [tables.taken[frozenset(pair)] for pair in pairs]

    def give_back(self, pairs: Sequence[tuple[str, str]], by: str | None) -> int:
        with self._write() as tables:
            taken = [one for pair in pairs if (one := tables.taken.pop(frozenset(pair), None)) is not None]
            held = [one for one in taken if one.until is None or one.until > datetime.now(UTC)]
            if by is not None and any(one.by != by for one in held):
                raise InputError("somebody else has taken one")
            return len(held)

    def assignments(self) -> list[Assignment]:
        now = datetime.now(UTC)
        return [one for one in self._now.taken.values() if one.until is None or one.until > now]

    def decided_duplicates(self, source: str) -> list[LogEntry]:
        owned = set(self.ids_of(source))
        held = [one for one in self._now.moderated if one.kind == "duplicate" and not one.undone]
        return [one for one in held if {one.question_id, one.candidate_id} <= owned]

    def put_writes(self, wanted: Sequence[Write]) -> int:
        def key(one: Write) -> tuple[str, ...]:
            return one.target, one.question_id, one.candidate_id, one.action

        added = 0
        with self._write() as tables:
            for one in wanted:
                places = [place for place, it in enumerate(tables.outbox) if key(it) == key(one)]
                if not places:
                    tables.outbox.append(structs.replace(one, number=len(tables.outbox) + 1))
                elif tables.outbox[places[0]].state == "cancelled":
                    tables.outbox[places[0]] = structs.replace(tables.outbox[places[0]], state="waiting", why="")
                else:
                    continue
                added += 1
        return added

    def outbox(self, target: str = "") -> list[Write]:
        return [one for one in self._now.outbox if target in ("", one.target)]

    def set_write(self, number: int, state: WriteState, why: str = "", *, is_try: bool = True) -> bool:
        with self._write() as tables:
            one = tables.outbox[number - 1]
            if one.state == "cancelled" and state != "done":
                return False
            tables.outbox[number - 1] = structs.replace(one, state=state, why=why, tries=one.tries + is_try)
        return True

    # -- loads -------------------------------------------------------------------------------------------------

    def is_loading(self) -> bool:
        return self._is_loading

    @contextlib.contextmanager
    def held_if_empty(self) -> Iterator[bool]:
        yield not self._now.questions and not self._is_loading

    def load(
        self,
        records: Iterable[Record],
        source: Source,
        reject: Callable[[Reject], None],
        *,
        unread: Callable[[], int] = lambda: 0,
        is_mass_delete_allowed: bool = False,
        progress: Progress = SilentProgress(),  # noqa: B008 - it holds nothing
    ) -> LoadReport:
        check_source(source)
        if self._is_loading:
            raise BusyForumError("another load is under way")
        self._is_loading = True
        try:
            load = _Load(source, reject)
            for record in records:
                load.take(record)
            with self._write() as tables:
                load.apply(tables, unread(), is_mass_delete_allowed)
            return load.report
        finally:
            self._is_loading = False


def _link_of(entry: LogEntry) -> Link:
    return Link(entry.question_id, entry.candidate_id)


class _Load:
    def __init__(self, source: Source, reject: Callable[[Reject], None]) -> None:
        self.source, self._reject, self.report = source, reject, LoadReport()
        self.questions: dict[str, Question] = {}
        self.answers: dict[str, Answer] = {}
        self.links: dict[Link, None] = {}
        self.judgements: list[Feedback] = []
        self.log: list[LogEntry] = []
        self.unstorable = 0

    def refuse(self, counts: LoadCounts, identifier: str, reason: str) -> None:
        counts.rejected += 1
        self._reject(Reject(self.source.name, 0, identifier, reason))

    def take(self, record: Record) -> None:
        if isinstance(record, Feedback):
            try:
                check_feedback(record)
                self.judgements.append(record)
            except InputError as error:
                self.unstorable += 1
                self.refuse(self.report.judgements, str(record.question_id), str(error))
            return
        if isinstance(record, LogEntry):
            self.log.append(record)
            return
        if isinstance(record, Link):
            try:
                check_link(record)
                self.links[record] = None
            except InputError as error:
                self.unstorable += 1
                self.refuse(self.report.links, str(record.source_id), str(error))
            return
        counts = self.report.questions if isinstance(record, Question) else self.report.answers
        try:
            if isinstance(record, Question):
                question_values(record)
                is_new = self.questions.setdefault(record.id, record) is record
            else:
                answer_values(record)
                is_new = self.answers.setdefault(record.id, record) is record
        except InputError as error:
            self.unstorable += 1
            self.refuse(counts, str(record.id), str(error))
            return
        if not is_new:
            self.refuse(counts, record.id, "a record with this id came before in the same archive")

    def apply(self, tables: _Tables, unread: int, is_mass_delete_allowed: bool) -> None:
        name, report = self.source.name, self.report
        owners = {source for _, _, source in tables.questions.values()}
        if not self.questions and not (self.links and owners and name not in owners):
            missing = "links alone, and the forum holds no question" if self.links and not owners else "no question"
            raise InputError(f"{name} holds {missing}")
        before = copy.deepcopy(tables)
        gone = [one for one, held in tables.questions.items() if held[2] == name and one not in self.questions]
        held_before = sum(source == name for _, _, source in tables.questions.values())
        gone_answers = [one for one, held in tables.answers.items() if held[1] == name and one not in self.answers]
        gone_links = [one for one, source in tables.links.items() if source == name and one not in self.links]
        if unread or self.unstorable:
            report.questions.kept, report.answers.kept, report.links.kept = map(len, (gone, gone_answers, gone_links))
            gone, gone_answers, gone_links = [], [], []
        if len(gone) > max(5, held_before / 2) and not is_mass_delete_allowed:
            raise InputError(
                f"{len(gone)} of the {held_before} questions that came from {name} are not in it any longer"
            )
        tables.sources[name] = self.source.format
        for question in self.questions.values():
            self._count(report.questions, tables.put(question, name))
            known = before.questions.get(question.id)
            if known is not None and known[2] != name and tables.questions[question.id][1] != known[1]:
                raise InputError(f"1 ids of {name}, such as {question.id!r}, came from {known[2]}")
        for one in gone:
            tables.remove(one)
        report.questions.deleted = len(gone)
        for answer in self.answers.values():
            if answer.question_id in tables.questions:
                self._count(report.answers, tables.put_answer(answer, name))
            else:
                tables.answers.pop(answer.id, None)
                self.refuse(report.answers, answer.id, f"its question {answer.question_id!r} is not in the forum")
        for one in gone_answers:
            report.answers.deleted += tables.answers.pop(one, None) is not None
        self._put_links(tables, before)
        for link in gone_links:
            del tables.links[link]
        report.links.deleted = len(gone_links)
        self._put_judgements(tables)
        self._put_log(tables, before)
        there = tables.questions
        report.links_without_question = sum(
            link.source_id not in there or link.target_id not in there for link in self.links
        )

    def _put_links(self, tables: _Tables, before: _Tables) -> None:
        undone = self._undone(before)
        for link in self.links:
            if link in before.links or link not in undone:
                self._count(self.report.links, "add" if tables.put_link(link, self.source.name) else None)
                tables.claim(link)

    def _put_log(self, tables: _Tables, before: _Tables) -> None:
        numbers: dict[int, int] = {}
        for one in self.log:
            if known := self._known(before, one):
                numbers[one.number] = known.number
                if one.made_link and known.made_link:
                    tables.moderated[known.number - 1] = structs.replace(known, made_link=True)
            else:
                made = one.made_link and _link_of(one) not in before.links
                new = structs.replace(one, made_link=made, undoes=numbers.get(one.undoes, 0))
                numbers[one.number] = tables.add_entry(new).number
            self._count(self.report.log, None if known else "add")

    def _undone(self, tables: _Tables) -> set[Link]:
        known = [self._known(tables, one) for one in self.log if one.made_link]
        return {_link_of(one) for one in known if one and one.undone}

    @staticmethod
    def _known(tables: _Tables, entry: LogEntry) -> LogEntry | None:
        def key(one: LogEntry) -> tuple[object, ...]:
            return one.at, one.kind, one.question_id, one.candidate_id, one.by, one.text

        return next((one for one in tables.moderated if key(one) == key(entry)), None)

    def _put_judgements(self, tables: _Tables) -> None:
        said = [structs.replace(one, at=None, draw=Draw()) for one in tables.feedback]
        for one in self.judgements:
            is_new = (structs.replace(one, draw=Draw()) if one.at is None else one) not in [*tables.feedback, *said]
            if is_new:
                tables.feedback.append(structs.replace(one, at=_in_utc(one.at or datetime.now(UTC))))
            self._count(self.report.judgements, "add" if is_new else None)

    @staticmethod
    def _count(counts: LoadCounts, operation: Operation | None) -> None:
        counts.added += operation == "add"
        counts.edited += operation == "edit"
        counts.unchanged += operation is None
