"""Keeps a forum in step with one that lives elsewhere: reads what events, polls and sweeps name, and stores it."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from askalike.errors import BusyForumError, DatabaseError, InputError, ModelError, SourceError
from askalike.follow.pace import BACKGROUND, POLLED, Pace
from askalike.follow.settings import FollowSettings, open_source
from askalike.follow.source import Reading, Seen, Source
from askalike.follow.state import KEPT_S, LONGEST_WAIT_S, Fate, State, Waiting
from askalike.forum import Forum
from askalike.progress import Progress, SilentProgress
from askalike.readers.values import Unreadable
from askalike.store import ForumLayout, LoadReport
from askalike.types import Source as Origin
from askalike.types import Thread
from askalike.web import FailedError

BATCH: Final = 20
"""Threads that are read, and then stored together."""
FIRST_REST_S: Final = 1.0
LONGEST_REST_S: Final = 120.0
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 3_600.0
_HOPELESS_TRIES: Final = 3
_PATIENCE_S: Final = 120.0
_MOST_FAILURES: Final = 20
"""``once`` ends after so many failures in a row, or after so long, pauses that were asked for not counted."""
_LEAST_MASS: Final = 20
_INDEX_S: Final = 15.0
_LEAST_S: Final = 0.01
_HINT: Final = "look at the forum; if so much was deleted, run again with --allow-mass-delete"


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often what is done.

    Args:
        poll_s: between two polls.
        sweep_s: between the beginnings of two sweeps.
        recheck_s: a thread that was read so long ago is read again.
        check_s: between two looks for events.
    """

    poll_s: float = 60.0
    sweep_s: float = 6 * 3_600.0
    recheck_s: float = 7 * 86_400.0
    check_s: float = 0.5


class MassDeletionError(SourceError):
    """More than half of what is followed seems to be gone."""


class Follower:
    """One forum that follows one source; the only one that does at a time.

    Args:
        origin: what the questions belong to in the forum.
        is_stopped: asked between two pieces of work.
        clock: seconds since 1970.
        pause: waits so many seconds, or less.
    """

    def __init__(
        self,
        forum: Forum,
        source: Source,
        state: State,
        origin: Origin,
        rhythm: Rhythm | None = None,
        *,
        is_mass_delete_allowed: bool = False,
        is_stopped: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], object] = time.sleep,
        progress: Progress | None = None,
    ) -> None:
        self._forum, self._source, self._state, self._origin = forum, source, state, origin
        self._rhythm = rhythm or Rhythm()
        self._is_mass_delete_allowed = is_mass_delete_allowed
        self._is_stopped, self._clock, self._pause = is_stopped, clock, pause
        self._progress = progress or SilentProgress()
        self._failures, self._failing_s, self._rest_until_s = 0, 0.0, 0.0
        self._is_patient = True
        self._poll_s = 0.0
        self._is_behind, self._indexed_s = True, 0.0
        self._forgot_s = 0.0
        self._is_sweep_next = False
        self._turned_s = 0.0

    def run(self) -> None:
        """Follow until told to stop, also while what is followed does not answer: it is asked less and less often.

        Raises:
            SourceError: the forum that is followed refuses, or seems to have lost half of its threads.
        """
        while not self._is_stopped():
            wait_s = self.turn()
            if wait_s > 0 and not self._is_stopped():
                self._pause(min(wait_s, self._rhythm.check_s))

    def once(self) -> bool:
        """Poll, sweep everything, read what is new, and end; return whether nothing was left that failed.

        Raises:
            SourceError: as ``run``; or it has not answered for two minutes.
            BusyForumError: another process has written to the forum for so long.
        """
        self._poll_s, self._is_patient = 0.0, False
        self._state.keep(sweep=self._next_sweep())
        while not self._is_stopped():
            wait_s = self.turn(is_rechecking=False)
            is_listed = self._poll_s > 0 and not self._state.value("sweep")["is_on"]
            if wait_s > 0 and is_listed and not self._state.unread(_HOPELESS_TRIES):
                self._index(is_due=True)
                self._encode()
                return not sum(self._state.waiting())
            if wait_s > 0:
                self._pause(min(wait_s, self._rhythm.check_s))
        return False

    def turn(self, *, is_rechecking: bool = True) -> float:
        """Do the most urgent piece of work; return the seconds until there is more, 0 for at once.

        Raises:
            SourceError: as ``run``.
        """
        now = self._clock()
        if (back_s := self._turned_s - now) > 0:  # the clock was set back: what is due goes back with it
            self._rest_until_s -= back_s
            self._failing_s -= back_s
            self._poll_s -= back_s
            self._indexed_s -= back_s
            self._forgot_s -= back_s
        self._turned_s = now
        if (rest_s := self._rest_until_s - now) > 0:
            return max(rest_s, _LEAST_S)
        try:
            return self._work(is_rechecking)
        except FailedError as error:
            return self._rest(error, error.pause_s)
        except (BusyForumError, DatabaseError) as error:
            return self._rest(error, None)
        except SourceError as error:
            self._state.keep(error=str(error), error_s=self._clock())
            raise

    def _work(self, is_rechecking: bool) -> float:
        now = self._clock()
        if self._state.has_urgent(now):
            self._read(0)
        elif now >= self._poll_s:
            self._poll()
        elif self._source.pace.wait_s(POLLED) == 0 and self._state.take(1, now, 1):
            self._read(1)
        elif (room_s := self._source.pace.wait_s(BACKGROUND, BATCH)) > 0:
            self._index(is_due=False)
            return max(min(room_s, self._poll_s - now), _LEAST_S)
        elif self._state.take(1, now):
            self._read(3)
        elif not self._look(now, is_rechecking):
            return self._idle(self._poll_s - now)
        self._index(is_due=False)
        return 0.0

    # -- lists -------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        now = self._clock()
        for piece in self._source.poll(self._state.value("cursor")):
            self._delete(piece.gone)
            self._state.find(piece.seen, 1, self._clock(), cursor=piece.cursor)
            if piece.is_sweep_due:
                sweep = self._state.value("sweep")
                is_on = sweep is not None and sweep["is_on"]
                self._state.keep(sweep=sweep | {"is_again": True} if is_on else self._next_sweep())
        self._poll_s = now + self._rhythm.poll_s
        self._state.keep(polled_s=now)
        self._state.count("polls")
        self._succeeded()

    def _next_sweep(self) -> dict[str, Any]:
        number = (self._state.value("sweep") or {}).get("number", 0) + 1
        return {"number": number, "place": None, "is_on": True, "began_s": self._clock()}

    def _is_sweeping(self, now: float) -> bool:
        sweep = self._state.value("sweep")
        if sweep is None or (not sweep["is_on"] and not 0 <= now - sweep["began_s"] < self._rhythm.sweep_s):
            sweep = self._next_sweep()
            self._state.keep(sweep=sweep)
        return bool(sweep["is_on"])

    def _sweep(self) -> None:
        sweep = self._state.value("sweep")
        piece = self._source.sweep(sweep["place"])
        self._delete(piece.gone)
        sweep |= {"place": piece.cursor}
        if piece.cursor is None:
            sweep["is_on"] = False
        kept = {} if piece.cursor is None else {"sweep": sweep}  # the last piece is listed again after a kill
        self._state.find(piece.seen, 2, self._clock(), number=sweep["number"], **kept)
        self._succeeded()
        if piece.cursor is None:
            self._finish_sweep(sweep)

    def _finish_sweep(self, sweep: dict[str, Any]) -> None:
        """Look for what the sweep has not seen: each is asked for by itself."""
        seen = self._state.swept(sweep["number"])
        missing = [one for one in self._forum.store.ids_of(self._origin.name) if one not in seen]
        self._state.find([Seen(one) for one in missing], 2, self._clock())
        sweep |= {"ended_s": self._clock(), "missing": len(missing)}
        self._state.keep(sweep=self._next_sweep() if sweep.get("is_again") else sweep, gone=0, swept=sweep)
        self._state.count("sweeps")

    def _delete(self, gone: Sequence[str]) -> None:
        if gone:
            self._state.forget(gone)  # before they are deleted, so that one that comes back after a kill is stored
            self._store([], list(gone))

    # -- threads -----------------------------------------------------------------------------------------------

    def _read(self, last: Any) -> None:
        """Read some threads and store them; an event that comes meanwhile is not kept waiting."""
        began_s = self._clock()
        done: list[tuple[Waiting, Reading]] = []
        kept: list[tuple[Waiting, Fate, Sequence[str]]] = []
        failure: FailedError | None = None
        for one in self._state.take(BATCH, began_s, last):
            if done and (self._is_stopped() or (last and self._is_kept_waiting(POLLED if last == 1 else BACKGROUND))):
                break
            try:
                reading = self._source.read(one.id)
            except Unreadable as error:
                kept.append((one, "held", (str(error),)))
            except FailedError as error:
                retry_s = later_s(_FIRST_RETRY_S, one.tries, _LONGEST_RETRY_S, error.pause_s)
                self._state.postpone(one, self._clock() + retry_s, str(error))
                if error.status in (0, 429, 503):
                    failure = error
                    break
            else:
                done.append((one, reading))
                self._succeeded()
        if not all(reading.is_there for _, reading in done):
            self._source.check_access()
        threads = [reading.thread for _, reading in done if reading.thread is not None]
        refused = self._store(threads, [one.id for one, reading in done if reading.thread is None])
        if last <= 1:
            self._index(is_due=True)
        for one, reading in done:
            unstorable = (refused[one.id],) if one.id in refused else ()
            fate: Fate = "held" if reading.thread is not None else "hidden" if reading.is_there else "gone"
            kept.append((one, fate, (*reading.rejects, *unstorable)))
        self._state.finish(kept, began_s, self._clock())
        self._progress.advance(len(kept))
        if failure is not None:
            raise failure

    def _is_kept_waiting(self, share: float) -> bool:
        return self._state.has_urgent(self._clock()) or self._source.pace.wait_s(share) > 0

    def _store(self, threads: list[Thread], gone: list[str]) -> dict[str, str]:
        """Store threads, together if that can be; return those that cannot be stored, with the reason.

        Raises:
            MassDeletionError: too many are gone.
        """
        if not threads and not gone:
            return {}
        self._check_mass(gone)
        refused: dict[str, str] = {}
        try:
            self._count(self._forum.replace_threads(threads, gone, self._origin))
        except InputError:
            for thread in threads:
                try:
                    self._count(self._forum.replace_threads([thread], [], self._origin))
                except InputError as error:
                    refused[thread.question.id] = str(error)
            self._count(self._forum.replace_threads([], gone, self._origin))
        return refused

    def _check_mass(self, gone: list[str]) -> None:
        before = self._state.value("gone") or 0
        if self._is_mass_delete_allowed or before + len(gone) <= _LEAST_MASS:
            return
        held = self._forum.store.ids_of(self._origin.name)
        lost = before + len(set(gone) & set(held))
        if lost > max(_LEAST_MASS, (before + len(held)) / 2):
            found = f"{lost:,} of {before + len(held):,} threads of {self._source.address} seem to be gone"
            raise MassDeletionError(found, _HINT)

    def _count(self, report: Any) -> None:
        deleted = report.questions.deleted
        if deleted:
            self._state.keep(gone=(self._state.value("gone") or 0) + deleted)
        changed = 0
        for counts in (report.questions, report.answers, report.links):
            changed += counts.added + counts.edited + counts.deleted
        if changed:
            self._is_behind = True
            with self._state.write():
                self._state.count("questions_added", report.questions.added)
                self._state.count("questions_edited", report.questions.edited)
                self._state.count("questions_deleted", deleted)
                self._state.count(
                    "answers_changed", report.answers.added + report.answers.edited + report.answers.deleted
                )

    def _look(self, now: float, is_rechecking: bool) -> bool:
        """Sweep a piece, or ask for threads that were read long ago, in turn; return whether there was something."""
        self._is_sweep_next = not self._is_sweep_next
        for is_sweep in (self._is_sweep_next, not self._is_sweep_next):
            if is_sweep and self._is_sweeping(now):
                self._sweep()
                return True
            is_recheck = not is_sweep and is_rechecking
            if is_recheck and self._state.ask_again(now - self._rhythm.recheck_s, BATCH, now):
                return True
        return False

    # -- between two pieces of work ----------------------------------------------------------------------------

    def _idle(self, wait_s: float) -> float:
        self._index(is_due=True)
        self._encode()
        now = self._clock()
        if now >= self._forgot_s + 3_600:
            self._state.forget_before(now - KEPT_S)
            self._forgot_s = now
        return max(wait_s, _LEAST_S)

    def _index(self, *, is_due: bool) -> None:
        """Let searches find what was stored: soon, or at once."""
        if self._is_behind and (is_due or self._clock() >= self._indexed_s + _INDEX_S):
            self._forum.catch_up(is_waiting=False)
            self._is_behind, self._indexed_s = self._forum.indexes.behind() > 0, self._clock()

    def _encode(self) -> None:
        """Encode what waits, where there is a model; what cannot be encoded is found by words."""
        try:
            if self._forum.vectors.is_behind:
                self._forum.encode()
        except (BusyForumError, ModelError) as error:
            self._progress.notice(f"found by words alone so far: {error}")

    def _succeeded(self) -> None:
        if self._failures > 1:
            self._progress.notice(f"{self._source.address} answers again")
        self._failures = 0

    def _rest(self, error: FailedError | BusyForumError | DatabaseError, asked_s: float | None) -> float:
        """Ask nothing for a while; the first of several failures is told."""
        if self._is_stopped():
            return _LEAST_S
        now = self._clock()
        rest_s = later_s(FIRST_REST_S, self._failures, LONGEST_REST_S, asked_s)
        if not self._failures:
            self._failing_s = now
            often = f"until it answers, at least every {LONGEST_REST_S * 1.25:.0f} s"
            self._progress.notice(f"{error}; asked again {often if self._is_patient else f'for {_PATIENCE_S:.0f} s'}")
        self._failures += 1
        self._failing_s += rest_s if asked_s is not None else 0.0
        self._rest_until_s = now + rest_s
        self._state.keep(error=str(error), error_s=now)
        if not self._is_patient and (now - self._failing_s > _PATIENCE_S or self._failures > _MOST_FAILURES):
            if isinstance(error, (BusyForumError, DatabaseError)):
                raise error
            hint = "check the address, and that it answers; then run the same again: it goes on where it was"
            raise SourceError(f"{error}; tried {self._failures} times in a row", hint)
        return rest_s


def later_s(first_s: float, failures: int, longest_s: float, asked_s: float | None) -> float:
    """Return how long to wait after failures: what was asked for, or twice as long each time, and not all at once."""
    if asked_s is not None:
        return min(max(asked_s, 0.0), LONGEST_WAIT_S)
    return min(longest_s, first_s * 2.0 ** min(failures, 20)) * random.uniform(0.75, 1.25)


class _Trial:
    """A forum in which nothing is changed, though everything seems to be."""

    def __init__(self, forum: Forum) -> None:
        self._forum = forum
        self.done = LoadReport()
        self.behind = 0
        self.vectors = forum.vectors

    def replace_threads(self, threads: Sequence[Thread], gone: Sequence[str], source: Origin) -> LoadReport:
        found = self._forum.replace_threads(threads, gone, source, is_trial=True)
        for name in ("questions", "answers", "links"):
            counts, more = getattr(self.done, name), getattr(found, name)
            for what in ("added", "edited", "deleted", "unchanged"):
                setattr(counts, what, getattr(counts, what) + getattr(more, what))
        return found

    def ids_of(self, source: str) -> list[str]:
        return self._forum.store.ids_of(source)

    def catch_up(self, *, is_waiting: bool = True) -> None:
        """Do nothing: nothing was changed."""

    def encode(self) -> None:
        """Do nothing."""


def preview(
    forum: Forum, settings: FollowSettings, pause: Callable[[float], None], is_stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Return what one comparison with what is followed would change.

    Raises:
        SourceError: it refuses, or seems to have lost half of its threads.
    """
    trial: Any = _Trial(forum)
    with tempfile.TemporaryDirectory(prefix="askalike-") as folder, State.create(ForumLayout(Path(folder))) as state:
        pace = Pace(settings.rate, state, pause=pause)
        source = open_source(settings, pace)
        follower = Follower(trial, source, state, settings.origin, is_stopped=is_stopped, pause=pause)
        is_whole = follower.once()
        rejected, newest = state.rejects()
        return {
            "address": settings.address,
            "is_dry_run": True,
            "is_whole": is_whole,
            **{
                f"{name}_{what}": getattr(getattr(trial.done, name), what)
                for name in ("questions", "answers", "links")
                for what in ("added", "edited", "deleted")
            },
            "requests": state.value("requests") or 0,
            "rejected": rejected,
            "first_rejects": [{"id": one, "reason": reason} for one, reason in newest],
        }
