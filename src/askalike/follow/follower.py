"""Keeps a forum in step with a site: reads what events, polls and sweeps name, and stores it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from askalike.errors import BusyForumError, DatabaseError, InputError, ModelError, SourceError
from askalike.follow.settings import Site
from askalike.follow.site import Reading, Stopped
from askalike.follow.state import EVENTS_KEPT_S, LONGEST_WAIT_S, Rank, State, Waiting
from askalike.forum import Forum
from askalike.progress import Progress, SilentProgress
from askalike.readers.values import Unreadable
from askalike.store import LoadReport
from askalike.types import Source, Thread
from askalike.web import FailedError, pause_s

BATCH: Final = 20
"""Threads that are read, and then stored together."""
FIRST_REST_S: Final = 1.0
LONGEST_REST_S: Final = 120.0
PATIENCE_S: Final = 120.0
MAX_FAILURES: Final = 20
"""``once`` ends after so many failures in a row, or after so long, pauses that the site asked for not counted."""
HOPELESS_TRIES: Final = 3
"""``once`` does not wait for a thread that failed so often."""
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 3_600.0
_INDEX_S: Final = 15.0
_SHORTEST_WAIT_S: Final = 0.01
_WITHHELD: Final = (
    "nothing more of it is deleted. Look at the site; if so much was deleted, run with --allow-mass-delete"
)


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


class Follower:
    """One forum that follows one site; the only one that does at a time.

    What seems to be gone is deleted, but never more than half of what the site held at its last sweep, unless that is
    allowed: such threads stay, and are asked for again in each sweep.

    Args:
        origin: what the questions belong to in the forum.
    """

    def __init__(
        self,
        forum: Forum,
        site: Site,
        state: State,
        origin: Source,
        rhythm: Rhythm | None = None,
        *,
        is_mass_delete_allowed: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._forum, self._site, self._state, self._origin = forum, site, state, origin
        self._rhythm = rhythm or Rhythm()
        self._is_mass_delete_allowed = is_mass_delete_allowed
        self._clock = site.pace.clock
        self._progress = progress or SilentProgress()
        self._is_once = False
        self._failures, self._failing_since_s = 0, 0.0
        now_s = self._clock.steady()
        self._rest_until_s = self._next_poll_s = self._next_cleaning_s = now_s
        self._is_behind, self._next_index_s = True, now_s
        self._is_sweep_next = self._is_withholding = self._has_polled = False
        self._size: int | None = None

    def run(self) -> None:
        """Follow until told to stop, also while the site does not answer: it is asked less and less often.

        Raises:
            SourceError: the site refuses.
        """
        try:
            while True:
                self._clock.pause(min(self.turn(), self._rhythm.check_s))
        except Stopped:
            return

    def once(self) -> bool:
        """Poll, sweep everything, read what is new, and end; return whether nothing is left to do.

        Raises:
            SourceError: as ``run``; or the site has not answered for two minutes.
            BusyForumError: another process has written to the forum for so long.
        """
        self._is_once = True
        self._state.put(sweep=self._next_sweep())
        try:
            while True:
                wait_s = self.turn()
                is_listed = self._has_polled and not self._state.get("sweep")["is_on"]
                if wait_s > 0 and is_listed and not sum(self._state.waiting(HOPELESS_TRIES)):
                    self._index(is_due=True)
                    self._encode()
                    return not sum(self._state.waiting()) and not self._is_withholding
                self._clock.pause(min(wait_s, self._rhythm.check_s))
        except Stopped:
            return False

    def turn(self) -> float:
        """Do the most urgent piece of work; return the seconds until there is more, 0 for at once.

        Raises:
            SourceError: as ``run``.
        """
        if (rest_s := self._rest_until_s - self._clock.steady()) > 0:
            return max(rest_s, _SHORTEST_WAIT_S)
        try:
            return self._work()
        except FailedError as error:
            return self._rest(error, error.pause_s)
        except (BusyForumError, DatabaseError) as error:
            return self._rest(error, None)
        except SourceError as error:
            self._state.put(error=str(error), error_s=self._clock.now())
            raise

    def _work(self) -> float:
        now_s = self._clock.now()
        if (wait_s := self._site.pace.wait_s()) > _INDEX_S:
            self._index(is_due=True)
            return wait_s
        if self._state.due(1, now_s, rank=0):
            self._read(0)
        elif self._is_poll_due():
            self._poll()
        elif self._state.due(1, now_s, rank=1):
            self._read(1)
        elif self._state.due(1, now_s):
            self._read(3)
        elif not self._sweep_or_recheck(now_s):
            return self._idle()
        self._index(is_due=False)
        return 0.0

    def _is_poll_due(self) -> bool:
        return self._clock.steady() >= self._next_poll_s

    # -- lists -------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        began_s = self._clock.steady()
        listing = self._site.poll(self._state.get("cursor"))
        self._delete(listing.hidden)
        self._state.add_listed(listing.stamps, 1, self._clock.now(), cursor=listing.cursor, polled_s=self._clock.now())
        if listing.is_sweep_due:
            sweep = self._state.get("sweep")
            is_on = sweep is not None and sweep["is_on"]
            self._state.put(sweep=sweep | {"is_again": True} if is_on else self._next_sweep())
        self._next_poll_s = began_s + self._rhythm.poll_s
        self._has_polled = True
        self._state.count(polls=1)
        self._end_failures()

    def _sweep_or_recheck(self, now_s: float) -> bool:
        """Sweep a piece, or queue threads that were read long ago, in turn; return whether there was something."""
        self._is_sweep_next = not self._is_sweep_next
        for is_sweep in (self._is_sweep_next, not self._is_sweep_next):
            if is_sweep and (sweep := self._current_sweep(now_s))["is_on"]:
                self._sweep(sweep)
                return True
            is_recheck = not is_sweep and not self._is_once
            if is_recheck and self._state.queue_old(now_s - self._rhythm.recheck_s, BATCH, now_s):
                return True
        return False

    def _next_sweep(self) -> dict[str, Any]:
        number = (self._state.get("sweep") or {}).get("number", 0) + 1
        return {"number": number, "place": None, "is_on": True, "began_s": self._clock.now()}

    def _current_sweep(self, now_s: float) -> dict[str, Any]:
        sweep: dict[str, Any] | None = self._state.get("sweep")
        if sweep is None or (not sweep["is_on"] and not 0 <= now_s - sweep["began_s"] < self._rhythm.sweep_s):
            sweep = self._next_sweep()
            self._state.put(sweep=sweep)
        return sweep

    def _sweep(self, sweep: dict[str, Any]) -> None:
        if sweep["place"] is None:
            self._is_withholding = False
        listing = self._site.sweep(sweep["place"])
        self._delete(listing.hidden)
        is_over = listing.cursor is None
        sweep |= {"place": listing.cursor, "is_on": not is_over}
        place = {} if is_over else {"sweep": sweep}  # the last piece is listed again after a kill
        self._state.add_listed(listing.stamps, 2, self._clock.now(), sweep_number=sweep["number"], **place)
        self._end_failures()
        if is_over:
            self._finish_sweep(sweep)

    def _finish_sweep(self, sweep: dict[str, Any]) -> None:
        """Queue the threads that the sweep has not listed: each is asked for by itself."""
        listed = self._state.swept(sweep["number"])
        ids = self._forum.store.ids_of(self._origin.name)
        missing = [identifier for identifier in ids if identifier not in listed]
        self._state.add_listed(dict.fromkeys(missing, ""), 2, self._clock.now())
        sweep |= {"ended_s": self._clock.now(), "missing": len(missing)}
        self._state.put(sweep=self._next_sweep() if sweep.get("is_again") else sweep, gone=0, swept=sweep)
        self._state.count(sweeps=1)
        self._size = len(ids)

    # -- threads -----------------------------------------------------------------------------------------------

    def _read(self, rank: Rank) -> None:
        """Read some threads of this rank or a more urgent one, and store them.

        Events and polls that come meanwhile are not kept waiting. A thread that cannot be read stays as it was, and
        keeps no other from being read.
        """
        began_s = self._clock.now()
        readings: list[tuple[Waiting, Reading]] = []
        done: list[tuple[Waiting, bool, Sequence[str]]] = []
        failure: FailedError | None = None
        for thread in self._state.due(BATCH, began_s, rank):
            if readings and rank and (self._state.due(1, self._clock.now(), rank=0) or self._is_poll_due()):
                break
            try:
                reading = self._site.read(thread.id)
            except Unreadable as error:
                done.append((thread, True, (str(error),)))
            except FailedError as error:
                retry_s = pause_s(_FIRST_RETRY_S, thread.tries, error.pause_s, _LONGEST_RETRY_S, LONGEST_WAIT_S)
                self._state.postpone(thread, self._clock.now() + retry_s, str(error))
                if error.status in (0, 429, 503):
                    failure = error
                    break
            else:
                readings.append((thread, reading))
                self._end_failures()
        if not all(reading.is_there for _, reading in readings):
            self._site.check_access()
        refused = self._store(readings)
        if rank <= 1:
            self._index(is_due=True)
        for thread, reading in readings:
            is_hidden = reading.is_there and bool(thread.stamp) and not self._is_withholding
            is_remembered = reading.thread is not None or is_hidden
            reasons = (refused[thread.id],) if thread.id in refused else ()
            done.append((thread, is_remembered, (*reading.rejects, *reasons)))
        self._state.finish(done, began_s, self._clock.now())
        self._progress.advance(len(done))
        if failure is not None:
            raise failure

    def _store(self, readings: Sequence[tuple[Waiting, Reading]]) -> dict[str, str]:
        """Store threads, together if that can be; return those that cannot be stored, with the reason."""
        threads = [reading.thread for _, reading in readings if reading.thread is not None]
        gone = self._deletable([waiting.id for waiting, reading in readings if reading.thread is None])
        refused: dict[str, str] = {}
        if not threads and not gone:
            return refused
        try:
            self._replace(threads, gone)
        except InputError:
            for thread in threads:
                try:
                    self._replace([thread], [])
                except InputError as error:
                    refused[thread.question.id] = str(error)
            self._replace([], gone)
        return refused

    def _replace(self, threads: Sequence[Thread], gone: Sequence[str]) -> None:
        """Store threads as the site has them, each question with its language, and delete those that are gone."""
        tag = self._forum.indexes.language_tagger()
        tagged = [replace(thread, question=tag(thread.question)) for thread in threads]
        self._count(self._forum.store.replace_threads(tagged, gone, self._origin))

    def _delete(self, hidden: Sequence[str]) -> None:
        """Delete threads that a list says are not for everybody."""
        if gone := self._deletable(hidden):
            self._state.forget(gone)  # before they are deleted, so that one that comes back after a kill is stored
            self._replace([], gone)

    def _deletable(self, ids: Sequence[str]) -> list[str]:
        """Return which of these the forum holds; none of them where half of it would go with what went before."""
        gone = list(self._forum.store.questions_by_id(ids)) if ids else []
        before = self._state.get("gone") or 0
        lost = before + len(gone)
        if not gone or self._is_mass_delete_allowed or lost <= 1:
            return gone
        if self._size is None:
            self._size = before + len(self._forum.store.ids_of(self._origin.name))
        if lost <= self._size / 2:
            return gone
        if not self._is_withholding:
            self._is_withholding = True
            why = f"{lost:,} of {self._size:,} threads of {self._site.address} seem to be gone; {_WITHHELD}"
            self._state.put(error=why, error_s=self._clock.now())
            self._progress.notice(why)
        return []

    def _count(self, report: LoadReport) -> None:
        questions, answers, links = report.questions, report.answers, report.links
        answers_changed = answers.added + answers.edited + answers.deleted
        changed = questions.added + questions.edited + questions.deleted + answers_changed
        if changed or links.added or links.edited or links.deleted:
            self._is_behind = True
        self._state.count(
            gone=questions.deleted,
            questions_added=questions.added,
            questions_edited=questions.edited,
            questions_deleted=questions.deleted,
            answers_changed=answers_changed,
        )
        if self._size is not None:
            self._size += questions.added

    # -- between two pieces of work ----------------------------------------------------------------------------

    def _idle(self) -> float:
        self._index(is_due=True)
        self._encode()
        if self._clock.steady() >= self._next_cleaning_s:
            self._state.forget_before(self._clock.now() - EVENTS_KEPT_S)
            self._next_cleaning_s = self._clock.steady() + 3_600
        return max(self._next_poll_s - self._clock.steady(), _SHORTEST_WAIT_S)

    def _index(self, *, is_due: bool) -> None:
        """Let searches find what was stored: soon, or at once."""
        if self._is_behind and (is_due or self._clock.steady() >= self._next_index_s):
            self._forum.catch_up(is_waiting=False)
            self._is_behind, self._next_index_s = self._forum.indexes.behind() > 0, self._clock.steady() + _INDEX_S

    def _encode(self) -> None:
        """Encode what waits, where there is a model; what cannot be encoded is found by words."""
        try:
            if self._forum.indexes.state().is_behind:
                self._forum.encode()
        except (BusyForumError, ModelError) as error:
            self._progress.notice(f"found by words alone so far: {error}")

    def _end_failures(self) -> None:
        if self._failures > 1:
            self._progress.notice(f"{self._site.address} answers again")
        self._failures = 0

    def _rest(self, error: FailedError | BusyForumError | DatabaseError, asked_s: float | None) -> float:
        """Ask nothing for a while, and return how long; the first of several failures is told."""
        now_s = self._clock.steady()
        rest_s = pause_s(FIRST_REST_S, self._failures, asked_s, LONGEST_REST_S, LONGEST_WAIT_S)
        if not self._failures:
            self._failing_since_s = now_s
            often = (
                f"for {PATIENCE_S:.0f} s"
                if self._is_once
                else f"until it answers, at least every {1.25 * LONGEST_REST_S:.0f} s"
            )
            self._progress.notice(f"{error}; asked again {often}")
        self._failures += 1
        self._failing_since_s += rest_s if asked_s is not None else 0.0
        self._rest_until_s = now_s + rest_s
        self._state.put(error=str(error), error_s=self._clock.now())
        if self._is_once and (now_s - self._failing_since_s > PATIENCE_S or self._failures > MAX_FAILURES):
            if isinstance(error, (BusyForumError, DatabaseError)):
                raise error
            hint = "check the address, and that it answers; then run the same again: it goes on where it was"
            raise SourceError(f"{error}; tried {self._failures} times in a row", hint)
        return rest_s
