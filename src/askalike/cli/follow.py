"""``askalike follow`` and ``writeback``: a forum kept in step with one elsewhere, and decisions sent there."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import filelock
import typer

from askalike.agreement import agree, is_agreed
from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import BarProgress, console, messages, print_json, print_records, safe
from askalike.errors import BusyForumError, DatabaseError, SettingError
from askalike.files import held
from askalike.follow.follower import FIRST_REST_S, LONGEST_REST_S, Follower, Rhythm, later_s, preview
from askalike.follow.pace import Pace
from askalike.follow.settings import FollowSettings, kind_of, open_source
from askalike.follow.state import State
from askalike.follow.writeback import RATE, Wanted, WriteBack, open_target, previews
from askalike.forum import Forum
from askalike.store import ForumLayout
from askalike.types import Write
from askalike.web import FailedError

AGREED: Final = "ASKALIKE_FOLLOW"
"""The environment variable that lists what may be followed, whichever forum names it: follow ADDRESS [VARIABLE]."""


WRITEBACK_AGREED: Final = "ASKALIKE_WRITEBACK"
"""The environment variable that lists where to decisions may be written: writeback ADDRESS VARIABLE."""


def follow(
    forum: ForumArgument,
    address: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="What to follow: a Discourse site, or a GitHub repository. Kept.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="discourse or github; default: as the address looks.")
    ] = None,
    key_variable: Annotated[
        str | None,
        typer.Option("--key-variable", help="The environment variable that holds the API key."),
    ] = None,
    username: Annotated[str | None, typer.Option("--username", help="Whose key it is (Discourse).")] = None,
    secret_variable: Annotated[
        str | None,
        typer.Option("--secret-variable", help="The environment variable that holds the webhooks' secret."),
    ] = None,
    private: Annotated[
        list[str] | None,
        typer.Option("--private", help="Follow this category though not everybody may read it; repeatable."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="What its questions belong to; that of a loaded archive, to go on from it."),
    ] = None,
    api: Annotated[
        str | None, typer.Option("--api", help="The address of GitHub's API, for Enterprise servers.")
    ] = None,
    discussions: Annotated[
        bool | None,
        typer.Option(
            "--discussions/--no-discussions", help="Follow GitHub's discussions too; kept.", show_default=False
        ),
    ] = None,
    rate: Annotated[int | None, typer.Option("--rate", help="Requests a minute; 0: no limit.", min=0)] = None,
    every: Annotated[float, typer.Option("--every", help="Seconds between two polls.", min=1)] = 60,
    sweep_hours: Annotated[float, typer.Option("--sweep-hours", help="Hours between two sweeps.", min=0.01)] = 6,
    recheck_days: Annotated[
        float, typer.Option("--recheck-days", help="A thread read so long ago is read again.", min=0.01)
    ] = 7,
    once: Annotated[bool, typer.Option("--once", help="Compare everything once, and end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what --once would do; change nothing.")] = False,
    allow_mass_delete: Annotated[
        bool, typer.Option("--allow-mass-delete", help="Go on when over half of the threads are gone.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Show how following does, and end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Keep a forum in step with one that lives elsewhere.

    A poll finds what is new, a sweep what was moved, closed or deleted; webhooks, which askalike serve takes at
    /v1/follow, make it quick. What is followed is kept in the forum's folder: later, askalike follow FORUM is enough.
    Ctrl-C or SIGTERM ends it; it goes on where it was. While the forum's database is away, also at the start, it is
    tried again.
    """
    layout = ForumLayout(forum)
    if status:
        with State(layout) as state:
            _show(status_of(state, time.time()), as_json)
        return
    given = {
        "key_variable": key_variable,
        "username": username,
        "secret_variable": secret_variable,
        "private": None if private is None else tuple(private),
        "source": source,
        "api": api,
        "discussions": discussions,
        "rate": rate,
    }
    rhythm = Rhythm(every, sweep_hours * 3_600, recheck_days * 86_400)
    with (
        _stopping() as stop,
        _opened(forum, stop, is_patient=not once and not dry_run) as opened,
        _alone(layout.follow_lock, "follows"),
    ):
        if dry_run:
            settings = _settings(_kept(layout), address, kind, given)
            _show(preview(opened, settings, _pausing(stop), stop.is_set), as_json)
            return
        settings = _settings(_kept(layout), address, kind, given)
        with State.create(layout) as state, BarProgress() as progress:
            pace = Pace(settings.rate, state, pause=_pausing(stop))
            followed = open_source(settings, pace)
            state.keep(settings=settings.to_json(), followed_s=time.time())
            try:
                agree(_agreement(settings))
            except OSError as error:
                messages.note(f"--from has to be said each time: {error.filename} cannot be written")
            follower = Follower(
                opened,
                followed,
                state,
                settings.origin,
                rhythm,
                is_mass_delete_allowed=allow_mass_delete,
                is_stopped=stop.is_set,
                pause=stop.wait,
                progress=progress,
            )
            progress.start(f"following {settings.address}", 0, "threads")
            if once:
                is_whole = follower.once()
            else:
                messages.say(f"following {safe(settings.address)}  (Ctrl-C stops)")
                follower.run()
                is_whole = True
            told = status_of(state, time.time())
    _show(told, as_json)
    if not is_whole:
        raise typer.Exit(1)


def _opened(path: Path, stop: threading.Event, *, is_patient: bool) -> Forum:
    """Open the forum; while its database is away, as when a machine starts, try again, less and less often.

    Raises:
        DatabaseError: the database is away, and is not waited for.
    """
    told = ""
    for failures in itertools.count():
        try:
            return Forum.open(path)
        except DatabaseError as error:
            if not is_patient:
                raise
            if told != str(error):
                told = str(error)
                messages.note(
                    f"{safe(told)}; tried again until it answers, at least every {LONGEST_REST_S * 1.25:.0f} s"
                )
        if stop.wait(later_s(FIRST_REST_S, failures, LONGEST_REST_S, None)):
            raise typer.Exit
    raise AssertionError


def _kept(layout: ForumLayout) -> dict[str, Any]:
    if not layout.follow.is_file():
        return {}
    with State(layout) as state:
        return (state.value("settings") or {}) | {"has_begun": state.value("cursor") is not None}


def _settings(kept: dict[str, Any], address: str | None, kind: str | None, given: dict[str, Any]) -> FollowSettings:
    """Return what is to be followed: what was kept, with what is given now.

    Raises:
        SettingError: nothing was said so far, or another address than before.
    """
    if address is None and not kept:
        raise SettingError(
            "this forum follows nothing yet", "say what with --from, such as --from https://forum.example.org"
        )
    changes = {name: value for name, value in given.items() if value is not None}
    if address is not None:
        found: Any = kind or kind_of(address)
        whole = address.rstrip("/")
        if kept.get("address") != whole and kept.pop("has_begun", False):
            raise SettingError(
                f"this forum follows {kept.get('address')}, and {whole} was given",
                "use a forum of its own for it, or delete follow.sqlite in the forum's folder",
            )
        kept = kept if kept.get("address") == whole else {}
        return FollowSettings.of_json({**kept, "address": whole, "kind": found, **changes})
    settings = FollowSettings.of_json({**kept, **changes})
    if not is_agreed(_agreement(settings), AGREED):
        variable = f" --key-variable {settings.key_variable}" if settings.key_variable else ""
        raise SettingError(
            f"the forum's folder names {settings.address}, which you have not said to follow",
            f"if it is what you want, say --from {settings.address}{variable}",
        )
    return settings


def _agreement(settings: FollowSettings) -> str:
    """Return what a user agrees to: a folder from elsewhere must not send this user's keys to its own address."""
    return " ".join(filter(None, ("follow", settings.address, settings.key_variable)))


@contextmanager
def _alone(lock: Path, does: str) -> Iterator[None]:
    """Hold the lock of who follows, or writes back.

    Raises:
        BusyForumError: another process does.
    """
    try:
        with held(filelock.FileLock(lock), 0):
            yield
    except filelock.Timeout as error:
        raise BusyForumError(
            f"another process {does} with this forum", "end it first; --status shows how it does"
        ) from error


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Give what is set when the process is told to stop: it then ends with whole work."""
    stop = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        stop.set()

    before = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _pausing(stop: threading.Event) -> Any:
    def pause(seconds: float) -> None:
        if stop.wait(seconds):
            raise FailedError("told to stop")

    return pause


def writeback(
    forum: ForumArgument,
    address: Annotated[
        str | None, typer.Option("--to", help="Where to; default: what this forum follows.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="discourse or github; default: as the address looks.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", help="What its questions belong to here; default: as they are followed.")
    ] = None,
    link: Annotated[bool, typer.Option("--link", help="Write a comment that links to the original.")] = False,
    tag: Annotated[str, typer.Option("--tag", help="Add this label (GitHub).")] = "",
    close: Annotated[bool, typer.Option("--close", help="Close the duplicate.")] = False,
    text: Annotated[str, typer.Option("--text", help="Of the comment; {original} stands for the original.")] = "",
    send: Annotated[bool, typer.Option("--send", help="Write; without it, each request is shown.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="--send: also what was refused before.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="At most so many writes; 0: all.", min=0)] = 0,
    key_variable: Annotated[
        str, typer.Option("--key-variable", help="--send: the environment variable that holds the API key.")
    ] = "",
    username: Annotated[str, typer.Option("--username", help="Whose key it is (Discourse).")] = "system",
    api: Annotated[
        str | None, typer.Option("--api", help="The address of GitHub's API, for Enterprise servers.")
    ] = None,
    rate: Annotated[int, typer.Option("--rate", help="Requests a minute.", min=1)] = RATE,
    status: Annotated[bool, typer.Option("--status", help="Show what was written, waits or failed, and end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write decisions back to the forum that is followed.

    Only decisions of people that stand (the page's Review), each once. Without --send, nothing leaves this machine:
    each request is shown. Nothing that a person wrote is edited or deleted, and what is undone later stays there.
    """
    layout = ForumLayout(forum)
    wanted = Wanted(link, tag, close, text)
    with Forum.open(forum) as opened, _stopping() as stop:
        store = opened.store
        if status:
            _show_writes(store.outbox(), as_json)
            return
        settings = _target_settings(
            _kept(layout),
            address,
            kind,
            {"source": source, "key_variable": key_variable, "username": username, "api": api},
        )
        actions = wanted.actions

        def is_discussion(identifier: str) -> bool:
            held = opened.store.questions_by_id([identifier]).get(identifier)
            return held is not None and "/discussions/" in held.url

        if not send:
            target = open_target(settings, Pace(0, _NoLedger()), text, needs_key=False, is_discussion=is_discussion)
            asked = WriteBack(store, target, settings.origin.name).waiting(actions)
            _show_requests(list(previews(target, asked[: limit or None])), as_json)
            return
        what = " ".join(("writeback", settings.address, settings.key_variable))
        if address is None and not is_agreed(what, WRITEBACK_AGREED):
            raise SettingError(
                f"the forum's folder names {settings.address}, to which you have not said to write",
                f"if it is what you want, say --to {settings.address}",
            )
        with (
            _alone(layout.writeback_lock, "writes back"),
            store.lock("writeback"),
            State.create(layout) as state,
            BarProgress() as progress,
        ):
            target = open_target(settings, Pace(rate, state, pause=_pausing(stop)), text, is_discussion=is_discussion)
            with contextlib.suppress(OSError):
                agree(what)
            sender = WriteBack(
                store, target, settings.origin.name, is_stopped=stop.is_set, pause=stop.wait, progress=progress
            )
            done = sender.send(actions, limit, is_retried=retry)
    _show_writes(done, as_json)
    if any(one.state != "done" for one in done) or stop.is_set():
        raise typer.Exit(1)


class _NoLedger:
    """Of who sends no request."""

    def requests(self, since_s: float) -> list[float]:
        """Return none."""
        return []

    def add_request(self, at_s: float, before_s: float) -> None:
        """Remember nothing."""


def _target_settings(
    kept: dict[str, Any], address: str | None, kind: str | None, given: dict[str, Any]
) -> FollowSettings:
    """Return where to write: what is followed, or the address that is given.

    Raises:
        SettingError: neither is there, or no source is known for it.
    """
    if address is None and not kept:
        raise SettingError("this forum follows nothing", "say where to write with --to ADDRESS --source SOURCE")
    if address is not None:
        found: Any = kind or kind_of(address)
        whole = address.rstrip("/")
        kept = kept if kept.get("address") == whole else {"address": whole, "kind": found}
    changes = {name: value for name, value in given.items() if value is not None}
    return FollowSettings.of_json({**kept, **changes, "secret_variable": ""})


def _show_requests(found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for one in found:
        request = one["request"]
        console.print(safe(f"{request['method']} {request['url']}"), markup=False, soft_wrap=True)
        console.print(f"  {safe(json.dumps(request['body'], ensure_ascii=False))}", markup=False, soft_wrap=True)
    console.print(f"{len(found)} writes; nothing was sent. --send sends each that is not there yet.", markup=False)


WRITE_COLUMNS: Final[Mapping[str, Callable[[Write], str]]] = {
    "question": lambda one: one.question_id,
    "original": lambda one: one.candidate_id,
    "what": lambda one: one.action,
    "state": lambda one: one.state,
    "tries": lambda one: str(one.tries),
    "why": lambda one: one.why,
}


def _show_writes(found: list[Write], as_json: bool) -> None:
    print_records(found, Write, "jsonl" if as_json else None, WRITE_COLUMNS)


def status_of(state: State, now_s: float) -> dict[str, Any]:
    """Return how following does."""
    lags = sorted(state.lags_s())
    rejected, newest = state.rejects()
    sweep = state.value("swept") or {}
    running = state.value("sweep") or {}
    settings = state.value("settings") or {}
    counts = {
        name: state.value(name) or 0
        for name in (
            "requests",
            "polls",
            "sweeps",
            "events",
            "events_doubled",
            "questions_added",
            "questions_edited",
            "questions_deleted",
            "answers_changed",
        )
    }
    return {
        "address": settings.get("address", ""),
        "kind": settings.get("kind", ""),
        "threads_known": state.known(),
        "waiting": dict(zip(("events", "polled", "swept", "old"), state.waiting(), strict=True)),
        "last_poll": _moment(state.value("polled_s")),
        "last_sweep": _moment(sweep.get("ended_s")),
        "is_sweeping": bool(running.get("is_on")),
        "requests_last_minute": len(state.requests(now_s - 60)),
        **counts,
        "event_lag_s": {f"p{share}": round(_share(lags, share), 3) for share in (50, 99)} if lags else None,
        "failing": [{"id": one, "tries": tries, "why": why} for one, tries, why in state.failing()],
        "rejected": rejected,
        "first_rejects": [{"id": one, "reason": reason} for one, reason in newest],
        "last_error": {"at": _moment(state.value("error_s")), "error": state.value("error")}
        if state.value("error")
        else None,
    }


def _share(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _show(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    for name, value in told.items():
        if isinstance(value, dict):
            value = " · ".join(f"{one} {safe(str(what))}" for one, what in value.items())
        elif isinstance(value, list):
            value = "".join(f"\n  {' · '.join(safe(str(part)) for part in one.values())}" for one in value) or "none"
        elif value is None:
            value = "never"
        else:
            value = safe(str(value))
        console.print(f"{name.replace('_', ' '):<22}{value}", markup=False, soft_wrap=True)
