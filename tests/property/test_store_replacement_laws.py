"""A large load in short transactions leaves what the same load leaves in one, whatever others write meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from askalike.errors import AskalikeError, InputError
from askalike.progress import Progress
from askalike.store import ForumLayout
from askalike.store.sqlite import beside, replacement, schema, staging
from askalike.store.sqlite.soundness import stored_faults
from askalike.store.sqlite.store import SqliteStore
from askalike.types import Answer, Feedback, Link, Question, Record, Reject, Source, Thread

DUMP, OTHER = Source("dump", "jsonl"), Source("other", "jsonl")
IDS = [f"q{number}" for number in range(6)]
Step = Callable[[SqliteStore], object]

ids = st.sampled_from(IDS)
titles = st.sampled_from(["one", "two", "three"])
questions = st.builds(Question, ids, titles, st.sampled_from(["", "body " * 30]))
answer_ids = st.sampled_from([f"a{number}" for number in range(5)])
answers = st.builds(Answer, answer_ids, ids, titles)
links = st.builds(Link, st.sampled_from(IDS[:3]), ids, st.sampled_from(["duplicate", "related"])).filter(
    lambda one: one.source_id != one.target_id
)
judgements = st.builds(Feedback, ids, ids, st.sampled_from(["duplicate", "different"])).filter(
    lambda one: one.question_id != one.candidate_id
)


def threads_of(chosen: list[Question], answered: list[Answer]) -> list[Thread]:
    """Return threads as a follower gives them, each question once."""
    unique = list({one.id: one for one in chosen}.values())
    by_id = {one.id: one for one in answered}
    return [Thread(one, tuple(two for two in by_id.values() if two.question_id == one.id)) for one in unique]


steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda one: lambda store: store.put_questions([one]), questions),
    st.builds(lambda one: lambda store: store.put_questions([], [one]), ids),
    st.builds(lambda one: lambda store: store.put_answers([one]), answers),
    st.builds(lambda one: lambda store: store.delete_answers([one]), answer_ids),
    st.builds(lambda one: lambda store: store.put_links([one]), links),
    st.builds(lambda one: lambda store: store.delete_links([one]), links),
    st.builds(lambda one: lambda store: store.add_feedback(one), judgements),
    st.builds(lambda one: lambda store: store.decide([one], has_links=True), judgements),
    st.builds(lambda one: lambda store: store.undo([one], "someone"), st.integers(1, 4)),
    st.builds(lambda one: lambda store: store.put_detected({one: "en"}, []), ids),
    st.builds(
        lambda chosen, answered, gone, source: (
            lambda store: store.replace_threads(threads_of(chosen, answered), gone, source)
        ),
        st.lists(questions, max_size=2),
        st.lists(answers, max_size=3),
        st.lists(ids, max_size=2, unique=True),
        st.sampled_from([DUMP, OTHER]),
    ),
    st.just(lambda store: store.shorten_log()),
)


def loaded(store: SqliteStore, records: list[Record], source: Source, unread: int, allowed: bool) -> tuple[Any, ...]:
    """Load; return the report, or what is wrong, and what was rejected."""
    rejects: list[Reject] = []
    try:
        report = store.load(records, source, rejects.append, unread=lambda: unread, is_mass_delete_allowed=allowed)
    except InputError as error:
        return str(error).split(" ids of ")[-1].split(",")[0], rejects  # how many depends on when that was seen
    return report, sorted(rejects, key=str)


def held(store: SqliteStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, without numbers and moments, which are others each time."""
    left_out = {"num", "at_us", "seq", "value"}
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in ("questions", "answers", "links", "feedback", "moderation", "outbox"):
        columns = [row[1] for row in store.rows(f"PRAGMA table_info({table})") if row[1] not in left_out]
        named = [
            f"(SELECT name FROM sources WHERE num = {table}.source)" if column == "source" else column
            for column in columns
        ]
        found[table] = sorted((tuple(row) for row in store.rows(f"SELECT {', '.join(named)} FROM {table}")), key=repr)
    return found


def numbers(store: SqliteStore) -> dict[tuple[str, str], int]:
    """Return the number of each question and answer."""
    return {
        (table, row[0]): row[1]
        for table in ("questions", "answers")
        for row in store.rows(f"SELECT id, num FROM {table}")
    }


class Follower:
    """Who has read an archive at some moment, and reads on in its log."""

    def __init__(self, store: SqliteStore) -> None:
        self.cursor = store.last_change()
        self.seen = self._of(store)

    @staticmethod
    def _of(store: SqliteStore) -> dict[int, bytes]:
        return {row[0]: row[1] for row in store.rows("SELECT num, digest FROM questions")}

    def follow(self, store: SqliteStore) -> None:
        """Take each question that was changed in its newest state, as an index does."""
        now = self._of(store)
        for change in store.changes(self.cursor, 10_000):
            self.seen.pop(change.num, None)
            if change.num in now:
                self.seen[change.num] = now[change.num]
        self.cursor = store.last_change()
        assert self.seen == now


class Others:
    """Those who write meanwhile, each step after some pauses of the load."""

    def __init__(self, store: SqliteStore, steps: list[tuple[Step, int]]) -> None:
        self._store, self._waiting, self._pauses = store, list(steps), 0
        self.refused: list[str] = []
        self.followers = [Follower(store)]
        self.numbers: dict[tuple[str, str], int] = {}

    def pause(self, _: float = 0) -> None:
        """Let them write if it is time."""
        self._pauses += 1
        while self._waiting and self._pauses > self._waiting[0][1]:
            self._pauses = 0
            self._act()

    def end(self) -> None:
        """Let them write all that is left."""
        while self._waiting:
            self._act()
        self.numbers = self.numbers or numbers(self._store)

    def take_over(self, store: SqliteStore) -> None:
        """Go on with a copy of the archive."""
        self._store = store

    def go_on(self, left: int) -> int:
        """Let them write until so many steps are left; return how many are."""
        while len(self._waiting) > left:
            self._act()
        return len(self._waiting)

    def _act(self) -> None:
        self.refused.append(tried(self._waiting.pop(0)[0], self._store))
        self.followers.append(Follower(self._store))


@contextlib.contextmanager
def in_parts(others: Others, left_out: int) -> Iterator[None]:
    """Load in short transactions, while others write between them, and at last before the last one."""
    real = replacement.Replacement.fill

    def fill(one: replacement.Replacement, progress: Progress) -> None:
        real(one, progress)
        others.end()

    with (
        mock.patch.object(replacement, "LEAST", 1),
        mock.patch.object(replacement, "SHARE", 0),
        mock.patch.object(replacement, "LEFT", 1),
        mock.patch.object(replacement, "CAUGHT_UP", 2),
        mock.patch.object(replacement, "LEFT_OUT", left_out),
        mock.patch.object(replacement.Replacement, "fill", fill),
        mock.patch.object(beside, "ROWS", 2),
        mock.patch.object(beside, "CHARACTERS", 200),
        mock.patch.object(beside.time, "sleep", others.pause),
    ):
        yield


@contextlib.contextmanager
def at_once(others: Others) -> Iterator[None]:
    """Load in one transaction, after all that others write."""

    def none(*_: object) -> None:
        others.end()

    with mock.patch.object(staging.SqliteStaging, "replacement", none):
        yield


def tried(step: Step, store: SqliteStore) -> str:
    """Do something; return why it was refused."""
    try:
        step(store)
    except AskalikeError as error:
        return type(error).__name__
    return ""


def settled(store: SqliteStore, fresh: list[tuple[str, ...]]) -> None:
    """Check that a file is whole, and has the tables that it was made with."""
    assert not list(stored_faults(ForumLayout(store.path.parent), *[lambda _: None] * 3))
    assert not store.rows("PRAGMA foreign_key_check")
    store.check()
    assert shape(store) == fresh
    for table, column in (("questions", "num"), ("answers", "num"), ("changes", "seq")):
        given = store.rows("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
        highest = store.rows(f"SELECT coalesce(max({column}), 0) FROM {table}")[0][0]
        assert len(given) <= 1
        assert (given[0][0] if given else 0) >= highest


def shape(store: SqliteStore) -> list[tuple[str, ...]]:
    """Return what a file is made of, whatever its indexes are called."""
    found = store.rows("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    plain = [(row[0], row[1], row[2].replace('"', "").replace("_2 ON", " ON")) for row in found]
    return sorted((kind, sql if kind == "index" else f"{name}: {sql}") for kind, name, sql in plain)


def made(path: Path, before: list[Step], first: list[Record]) -> None:
    """Make the archive that both loads begin with."""
    with contextlib.closing(SqliteStore.create(path, {})) as store:
        with contextlib.suppress(InputError):
            store.load(first, DUMP, lambda _: None)
        with contextlib.suppress(InputError):
            store.load([*first[::2], Question("apart", "kept")], OTHER, lambda _: None)
        for step in before:
            tried(step, store)


@contextlib.contextmanager
def beginning(before: list[Step], first: list[Record]) -> Iterator[Path]:
    """Give a folder in which loads begin with the archive in "made"; nothing is synchronised."""
    no_sync = ["synchronous = OFF" if one.startswith("synchronous") else one for one in schema._SETTINGS]
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(schema, "_SETTINGS", no_sync):
        path = Path(folder)
        made(path / "made" / "archive.sqlite", before, first)
        yield path


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(st.one_of(questions, answers, links), max_size=10),
    before=st.lists(steps, max_size=6),
    records=st.lists(st.one_of(questions, questions, answers, links, judgements), min_size=1, max_size=12),
    has_log=st.booleans(),
    meanwhile=st.lists(st.tuples(steps, st.integers(0, 4)), max_size=8),
    source=st.sampled_from([DUMP, DUMP, OTHER]),
    unread=st.sampled_from([0, 0, 1]),
    allowed=st.booleans(),
    left_out=st.sampled_from([1_000_000, 1]),
)
def test_short_transactions_leave_what_one_leaves(
    first: list[Record],
    before: list[Step],
    records: list[Record],
    has_log: bool,
    meanwhile: list[tuple[Step, int]],
    source: Source,
    unread: int,
    allowed: bool,
    left_out: int,
) -> None:
    with beginning(before, first) as path:
        outcomes = {}
        for name in ("untouched", "several", "one"):
            shutil.copytree(path / "made", path / name)
            with (
                contextlib.closing(SqliteStore(path / name / "archive.sqlite")) as store,
                contextlib.closing(SqliteStore(path / name / "archive.sqlite")) as theirs,
            ):
                log: list[Record] = list(store.log(100)[::-1]) if has_log else []
                others = Others(theirs, meanwhile)
                fresh = shape(store)
                way = in_parts(others, left_out) if name == "several" else at_once(others)
                with way:
                    told = loaded(store, [*records, *log], source, unread, allowed) if name != "untouched" else None
                others.end()
                now = numbers(theirs)
                assert {key: now[key] for key in now if key in others.numbers} == {
                    key: number for key, number in others.numbers.items() if key in now
                }
                for one in others.followers:
                    one.follow(theirs)
                settled(theirs, fresh)
                state, counts, sources = held(theirs), theirs.counts(), sorted(theirs.sources())
                again = loaded(store, [*records, *log], source, unread, allowed) if name != "untouched" else None
                settled(store, fresh)
                outcomes[name] = (others.refused, state, counts, told, again, sources, held(theirs))
        is_refused = isinstance(outcomes["several"][3][0], str)
        if is_refused:
            for several, untouched in zip(outcomes["several"][:3], outcomes["untouched"][:3], strict=True):
                assert several == untouched
        if isinstance(outcomes["one"][3][0], str) or not is_refused:  # else others have ended what refused it
            assert outcomes["several"] == outcomes["one"]


class KilledError(BaseException):
    """As a process that is killed: what it leaves is in a copy."""


@contextlib.contextmanager
def killed(folder: Path, others: Others, after: int) -> Iterator[Path]:
    """Kill a load at one of its pauses, at the latest before the last transaction; give a copy of the files then."""
    copy, left = folder.with_name(f"{folder.name} left"), [after]
    fill, begin = replacement.Replacement.fill, staging.SqliteStaging.replacement

    def kill() -> None:
        copy.mkdir()
        for one in folder.glob("archive.sqlite*"):
            if not one.name.endswith("-shm"):
                shutil.copy(one, copy)
        raise KilledError

    def pause(_: float) -> None:
        others.pause()
        left[0] -= 1
        if not left[0]:
            kill()

    def filled(one: replacement.Replacement, progress: Progress) -> None:
        fill(one, progress)
        kill()

    def begun(one: staging.SqliteStaging, gone: Any) -> Any:
        return begin(one, gone) or kill()

    with (
        mock.patch.object(replacement.Replacement, "fill", filled),
        mock.patch.object(staging.SqliteStaging, "replacement", begun),
        mock.patch.object(beside.time, "sleep", pause),
    ):
        yield copy


records = st.lists(st.one_of(questions, questions, answers, links, judgements), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(st.one_of(questions, answers, links), max_size=10),
    before=st.lists(steps, max_size=4),
    kills=st.lists(st.tuples(st.one_of(st.none(), records), st.integers(1, 60)), min_size=1, max_size=3),
    last=records,
    meanwhile=st.lists(st.tuples(steps, st.integers(0, 9)), max_size=8),
    source=st.sampled_from([DUMP, DUMP, OTHER]),
    unread=st.sampled_from([0, 0, 1]),
    left_out=st.sampled_from([1_000_000, 1]),
)
def test_a_load_after_killed_ones_leaves_what_it_leaves_alone(
    first: list[Record],
    before: list[Step],
    kills: list[tuple[list[Record] | None, int]],
    last: list[Record],
    meanwhile: list[tuple[Step, int]],
    source: Source,
    unread: int,
    left_out: int,
) -> None:
    with beginning(before, first) as path:
        outcomes, left = {}, len(meanwhile)
        for name in ("untouched", "several", "one"):
            place = path / name
            shutil.copytree(path / "made", place)
            store, theirs = (SqliteStore(place / "archive.sqlite") for _ in range(2))
            others, fresh = Others(theirs, meanwhile), shape(store)
            for records, after in kills if name == "several" else ():
                tried_before = last if records is None else records
                with (
                    in_parts(others, left_out),
                    killed(place, others, after) as copy,
                    contextlib.suppress(KilledError),
                ):
                    loaded(store, tried_before, source, unread, True)
                if copy.exists():  # else the load was refused
                    store.close(), theirs.close()
                    place = copy
                    store, theirs = (SqliteStore(place / "archive.sqlite") for _ in range(2))
                    others.take_over(theirs)
            told: Any = None
            left = others.go_on(left)  # before the last load reads
            with in_parts(others, left_out) if name == "several" else at_once(others):
                told = loaded(store, last, source, unread, True) if name != "untouched" else None
            if told and not isinstance(told[0], str):
                told[0].resumed = 0
            others.end()
            for one in others.followers:
                one.follow(theirs)
            settled(theirs, fresh)
            outcomes[name] = (others.refused, held(theirs), theirs.counts(), told, sorted(theirs.sources()))
            store.close(), theirs.close()
        is_refused = isinstance(outcomes["several"][3][0], str)
        if is_refused:
            assert outcomes["several"][:3] == outcomes["untouched"][:3]
        if isinstance(outcomes["one"][3][0], str) or not is_refused:  # else others have ended what refused it
            assert outcomes["several"] == outcomes["one"]
