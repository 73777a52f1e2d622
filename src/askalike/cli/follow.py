"""``askalike follow``: a forum kept in step with a site, and decisions written back to it."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, NamedTuple

import filelock
import typer

from askalike.agreement import agree, is_agreed
from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import console, print_facts, print_records
from askalike.cli.messages import BarProgress, messages, print_json, safe
from askalike.errors import AskalikeError, BusyForumError, DatabaseError, ForumNotFoundError, SettingError
from askalike.files import holding
from askalike.follow.follower import FIRST_REST_S, LONGEST_REST_S, Follower, Rhythm
from askalike.follow.settings import FollowSettings, kind_of, open_site
from askalike.follow.site import Clock, Pace, Stopped
from askalike.follow.state import State
from askalike.follow.writeback import RATE, WriteBack, WriteSettings, open_target
from askalike.forum import Forum
from askalike.forum.forum import discarding_if_empty
from askalike.readers.values import as_object
from askalike.store import ForumLayout
from askalike.store.values import MANUAL_SOURCE
from askalike.text.settings import TextSettings
from askalike.types import Write
from askalike.web import pause_s

FOLLOW_AGREED: Final = "ASKALIKE_FOLLOW"
"""The environment variable that lists what may be followed, whichever forum names it: follow ADDRESS [VARIABLE]."""
WRITEBACK_AGREED: Final = "ASKALIKE_WRITEBACK"
"""The environment variable that lists where to decisions may be written: writeback ADDRESS VARIABLE."""
COUNTERS: Final = (
    "polls",
    "sweeps",
    "events",
    "events_doubled",
    "questions_added",
    "questions_edited",
    "questions_deleted",
    "answers_changed",
)
WRITE_COLUMNS: Final[Mapping[str, Callable[[Write], str]]] = {
    "question": lambda write: write.question_id,
    "original": lambda write: write.candidate_id,
    "what": lambda write: write.action,
    "state": lambda write: write.state,
    "tries": lambda write: str(write.tries),
    "why": lambda write: write.why,
}

SourceOption = Annotated[
    str | None,
    typer.Option("--source", help="What its questions belong to here; that of a loaded archive, to go on from it."),
]
KeyOption = Annotated[
    str | None, typer.Option("--key-variable", help="The environment variable that holds the API key.")
]
UserOption = Annotated[str | None, typer.Option("--username", help="Whose key it is (Discourse).")]
ApiOption = Annotated[str | None, typer.Option("--api", help="The address of GitHub's API, for an Enterprise server.")]


def follow(
    forum: ForumArgument,
    address: Annotated[
        str | None,
        typer.Option("--from", "--to", help="A Discourse site or a GitHub repository. Kept.", show_default=False),
    ] = None,
    key_variable: KeyOption = None,
    username: UserOption = None,
    secret_variable: Annotated[
        str | None,
        typer.Option("--secret-variable", help="The environment variable that holds the webhooks' secret."),
    ] = None,
    private: Annotated[
        list[str] | None,
        typer.Option("--private", help="Follow this category though not everybody may read it; repeatable."),
    ] = None,
    source: SourceOption = None,
    api: ApiOption = None,
    discussions: Annotated[
        bool | None,
        typer.Option("--discussions/--no-discussions", help="Follow GitHub's discussions too.", show_default=False),
    ] = None,
    rate: Annotated[int | None, typer.Option("--rate", help="Requests a minute; 0: no limit.", min=0)] = None,
    language: Annotated[str, typer.Option("--language", help="Of a forum that is created.")] = "english",
    every: Annotated[float, typer.Option("--every", help="Seconds between two polls.", min=1)] = 60,
    once: Annotated[bool, typer.Option("--once", help="Compare everything once, and end.")] = False,
    allow_mass_delete: Annotated[
        bool, typer.Option("--allow-mass-delete", help="Also delete where over half of the threads are gone.")
    ] = False,
    write_back: Annotated[
        bool, typer.Option("--write-back", help="Show what decisions would be written to the site; follow nothing.")
    ] = False,
    send: Annotated[bool, typer.Option("--send", help="--write-back: write it.")] = False,
    link: Annotated[bool, typer.Option("--link", help="--write-back: a comment that links to the original.")] = False,
    tag: Annotated[str, typer.Option("--tag", help="--write-back: add this label (GitHub).")] = "",
    close: Annotated[bool, typer.Option("--close", help="--write-back: close the duplicate.")] = False,
    text: Annotated[
        str, typer.Option("--text", help="--write-back: of the comment; {original} stands for the original.")
    ] = "",
    retry: Annotated[bool, typer.Option("--retry", help="--send: also what was refused before.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="--send: at most so many writes; 0: all.", min=0)] = 0,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Show how following does (exit code 1 while polls fail), or what --write-back has written, and end.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Keep a forum in step with a site, from its first question on.

    A poll finds what is new, a sweep what was moved, closed or deleted; webhooks, which askalike serve takes at
    /v1/follow, make it quick. What is followed is kept in the forum's folder: later, askalike follow FORUM is enough.
    Ctrl-C or SIGTERM ends it; it goes on where it was. While the forum's database is away, also at the start, it is
    tried again. --write-back goes the other way: it writes the decisions of people that stand (the page's Review), each
    once, and only with --send. Nothing that a person wrote is edited or deleted, and what is undone later stays there.
    """
    layout = ForumLayout(forum)
    if write_back:
        if status:
            with Forum.open(forum) as opened:
                _show_writes(opened.store.outbox(), as_json)
            return
        kept = {"source": source, "key_variable": key_variable, "username": username, "api": api}
        sending = Sending(send, retry, limit, rate or RATE)
        _write_back(layout, address, kept, WriteSettings(link, tag, close, text), sending, as_json)
        return
    if send or link or tag or close or text or retry or limit:
        raise SettingError("options of writing were given without --write-back", "say --write-back too")
    if status:
        with State(layout) as state:
            _show_status(state, as_json)
            if _is_failing(state):
                raise typer.Exit(1)
        return
    options = {
        "key_variable": key_variable,
        "username": username,
        "secret_variable": secret_variable,
        "private": None if private is None else tuple(private),
        "source": source,
        "api": api,
        "discussions": discussions,
        "rate": rate,
    }
    settings = _follow_settings(layout, address, options)
    is_new = not layout.is_forum()
    with (
        _stoppable() as clock,
        _opened(forum, language, clock, is_patient=not once) as opened,
        discarding_if_empty(opened) if is_new else nullcontext(),  # its site may refuse
    ):
        with _sole_process(layout.follow_lock, "follows"), State.create(layout) as state, BarProgress() as progress:
            site = open_site(settings, Pace(settings.rate, clock))
            state.put(settings=settings.to_json())
            try:
                agree(_agreement(settings))
            except OSError as error:
                messages.note(f"--from has to be said each time: {error.filename} cannot be written")
            follower = Follower(
                opened,
                site,
                state,
                settings.origin,
                Rhythm(every),
                is_mass_delete_allowed=allow_mass_delete,
                progress=progress,
            )
            progress.start(f"following {settings.address}", 0, "threads")
            if once:
                is_complete = follower.once()
            else:
                messages.say(f"following {safe(settings.address)}  (Ctrl-C stops)")
                follower.run()
                is_complete = True
        with State(layout) as state:
            _show_status(state, as_json)
    if not is_complete:
        raise typer.Exit(1)


class Sending(NamedTuple):
    """Whether to write, what was refused too, how many at most (0: all), and how many requests a minute."""

    is_sent: bool
    has_retries: bool
    limit: int
    rate: int


def _write_back(
    layout: ForumLayout,
    address: str | None,
    options: dict[str, Any],
    write_settings: WriteSettings,
    sending: Sending,
    as_json: bool,
) -> None:
    """Show what would be written, or write it."""
    with Forum.open(layout.folder) as opened, _stoppable() as clock:
        store = opened.store
        settings = _merged_settings(_stored_settings(layout), address, options)
        back = WriteBack(store, settings, write_settings)
        if not sending.is_sent:
            _show_waiting(back, back.waiting()[: sending.limit or None], as_json)
            others = [name for name in store.sources() if name not in (settings.origin.name, MANUAL_SOURCE)]
            if left := sum(len(store.decided_duplicates(name)) for name in others):
                messages.note(f"left out: {left:,} decisions on questions of {safe(', '.join(others))}; see --source")
            try:
                open_target(settings, Pace(sending.rate, clock))
            except AskalikeError as error:
                messages.note(f"--send would be refused: {safe(str(error))}")
            return
        agreement = f"writeback {settings.address} {settings.key_variable}"
        if address is None and not is_agreed(agreement, WRITEBACK_AGREED):
            raise SettingError(
                f"the forum's folder names {settings.address}, to which you have not said to write",
                f"if it is what you want, say --to {settings.address}",
            )
        target = open_target(settings, Pace(sending.rate, clock))
        with _sole_process(layout.writeback_lock, "writes back"), store.lock("writeback"), BarProgress() as progress:
            with suppress(OSError):
                agree(agreement)
            writes = back.send(target, sending.limit, is_retried=sending.has_retries, progress=progress)
        waits = len(back.waiting())
    _show_writes(writes, as_json)
    if any(write.state != "done" for write in writes) or (waits and not sending.limit):
        raise typer.Exit(1)


def _opened(path: Path, language: str, clock: Clock, *, is_patient: bool) -> Forum:
    """Return the forum, a new one where there is none.

    While its database is away, as when a machine starts, it is tried again, less and less often.
    """
    for failures in itertools.count():
        try:
            return Forum.open(path)
        except ForumNotFoundError:
            return Forum.create(path, text=TextSettings.of(language))
        except DatabaseError as error:
            if not is_patient:
                raise
            if not failures:
                often = f"at least every {LONGEST_REST_S * 1.25:.0f} s"
                messages.note(f"{safe(str(error))}; tried again until it answers, {often}")
        try:
            clock.pause(pause_s(FIRST_REST_S, failures, longest_s=LONGEST_REST_S))
        except Stopped as stop:
            raise typer.Exit from stop
    raise AssertionError


def _sole_process(lock: Path, does: str) -> AbstractContextManager[None]:
    """Hold the lock of the one that follows, or writes back."""
    busy = BusyForumError(f"another process {does} with this forum", "end it first; --status shows how it does")
    return holding(filelock.FileLock(lock), 0, busy)


@contextmanager
def _stoppable() -> Iterator[Clock]:
    """Give the clock of a process that ends with whole work when it is told to stop."""
    stop = threading.Event()

    def pause(seconds: float) -> None:
        if stop.wait(seconds):
            raise Stopped

    def end(_: int, __: FrameType | None) -> None:
        stop.set()

    handlers = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield Clock(pause=pause)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


# -- settings --------------------------------------------------------------------------------------------------


def _stored_settings(layout: ForumLayout) -> dict[str, Any]:
    if not layout.follow.is_file():
        return {}
    with State(layout) as state:
        return as_object(state.get("settings"))


def _merged_settings(kept: dict[str, Any], address: str | None, options: dict[str, Any]) -> FollowSettings:
    """Return what was kept for this address, or for the one that is kept, with the options that are given."""
    if address is None and not kept:
        raise SettingError(
            "this forum follows nothing yet", "name the site's address, such as https://forum.example.org"
        )
    if address is not None:
        address = address.rstrip("/")
        is_kept = kept.get("address") == address
        kept = kept if is_kept else {"address": address, "kind": kind_of(address, options["api"])}
    return FollowSettings.from_json(kept | {name: value for name, value in options.items() if value is not None})


def _follow_settings(layout: ForumLayout, address: str | None, options: dict[str, Any]) -> FollowSettings:
    """Return what is to be followed."""
    kept = _stored_settings(layout)
    settings = _merged_settings(kept, address, options)
    if kept and kept.get("address") != settings.address:
        with State(layout) as state:
            if state.get("cursor") is not None:
                raise SettingError(
                    f"this forum follows {kept.get('address')}, and {settings.address} was given",
                    f"use a forum of its own for it, or delete {layout.follow.name} in the forum's folder",
                )
    if address is None and not is_agreed(_agreement(settings), FOLLOW_AGREED):
        variable = f" --key-variable {settings.key_variable}" if settings.key_variable else ""
        raise SettingError(
            f"the forum's folder names {settings.address}, which you have not said to follow",
            f"if it is what you want, say --from {settings.address}{variable}",
        )
    return settings


def _agreement(settings: FollowSettings) -> str:
    """Return what a user agrees to: a folder from elsewhere must not send this user's keys to its own address."""
    return " ".join(filter(None, ("follow", settings.address, settings.key_variable)))


# -- what is shown ---------------------------------------------------------------------------------------------


def _show_waiting(back: WriteBack, writes: list[Write], as_json: bool) -> None:
    rows = [
        {
            "question": write.question_id,
            "candidate": write.candidate_id,
            "action": write.action,
            "comment": back.comment(write),
        }
        for write in writes
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        line = f"{row['question']} {row['action']} {row['comment'] or '(original: ' + row['candidate'] + ')'}"
        console.print(safe(line), markup=False, soft_wrap=True)
    console.print(f"{len(rows)} writes; nothing was sent. --send sends each that is not there yet.", markup=False)


def _show_writes(writes: list[Write], as_json: bool) -> None:
    print_records(writes, Write, "jsonl" if as_json else None, WRITE_COLUMNS)


def _status(state: State) -> dict[str, Any]:
    """Return how following does."""
    settings, sweep, lags = as_object(state.get("settings")), as_object(state.get("sweep")), sorted(state.lags_s())
    rejected, newest = state.rejects()
    error = state.get("error")
    return {
        "address": settings.get("address", ""),
        "kind": settings.get("kind", ""),
        "threads_known": state.known(),
        "waiting": dict(zip(("events", "polled", "swept", "old"), state.waiting(), strict=True)),
        "last_poll": _moment(state.get("polled_s")),
        "last_sweep": _moment(as_object(state.get("swept")).get("ended_s")),
        "is_sweeping": bool(sweep.get("is_on")),
        **{name: state.get(name) or 0 for name in COUNTERS},
        "event_lag_s": {f"p{part}": round(lags[(len(lags) - 1) * part // 100], 3) for part in (50, 99)}
        if lags
        else None,
        "failing": [{"id": thread, "tries": tries, "why": why} for thread, tries, why in state.failing()],
        "rejected": rejected,
        "first_rejects": [{"id": thread, "reason": reason} for thread, reason in newest],
        "last_error": {"at": _moment(state.get("error_s")), "error": error} if error else None,
        "is_failing": _is_failing(state),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _is_failing(state: State) -> bool:
    """Return whether the last error came after the last poll that succeeded."""
    return bool(state.get("error")) and (_moment(state.get("error_s")) or "") > (_moment(state.get("polled_s")) or "")


def _show_status(state: State, as_json: bool) -> None:
    (print_json if as_json else print_facts)(_status(state))
