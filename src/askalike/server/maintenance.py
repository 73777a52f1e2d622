"""What a worker does when nobody asks: lets be found what others stored, encodes, compares questions.

Of several workers, whoever holds the lock of a task does it; the others find nothing to do. Work is done in slices, and
hardly any while searches are under way.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from askalike.errors import BusyForumError, ModelNotFoundError
from askalike.server.engine import Engine

LOG: Final = logging.getLogger("askalike.server")

PAUSE_S: Final = 0.5
SLICE_S: Final = 0.2
"""Of comparing, between two pauses while there is something to compare."""
SHORT_PAUSE_S: Final = 0.05
REST: Final = 20
"""While searches are under way, comparing rests so many times as long as it took for each: a slice holds up all."""


class _Stopped(Exception):
    """The service stops."""


class MaintenanceWorker:
    """A thread that keeps a forum's indexes, vectors and pairs in step.

    Args:
        under_way: how many searches are under way; one where somebody is likely to search again.
        turn: held while something is done, so that of several forums one has its turn.
    """

    def __init__(self, engine: Engine, under_way: Callable[[], int], turn: threading.Lock | None = None) -> None:
        self._engine = engine
        self._under_way = under_way
        self._turn = turn or threading.Lock()
        self._rests_until_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, wait_s: float) -> bool:
        """Stop when the slice under way is done; return whether it was within so many seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(max(0.0, wait_s))
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause_s = PAUSE_S
        logged = ""
        while not self._stop.wait(pause_s):
            try:
                with self._having_turn():
                    pause_s = SHORT_PAUSE_S if self.keep() else PAUSE_S
                logged = ""
            except _Stopped:
                return
            except Exception as error:
                if str(error) != logged:
                    logged = str(error)
                    LOG.exception("keeping the forum in step failed")
                pause_s = 10 * PAUSE_S

    @contextlib.contextmanager
    def _having_turn(self) -> Iterator[None]:
        """Wait for the turn, and hold it inside.

        Raises:
            _Stopped: the service stops meanwhile.
        """
        while not self._turn.acquire(timeout=PAUSE_S):
            if self._stop.is_set():
                raise _Stopped
        try:
            if self._stop.is_set():
                raise _Stopped
            yield
        finally:
            self._turn.release()

    def keep(self) -> bool:
        """Do a slice of what is to be done; return whether there is more."""
        forum = self._engine.forum
        if forum.indexes.behind():
            forum.catch_up(is_waiting=False)
        if bool(forum.indexes.upkeep()):
            with contextlib.suppress(BusyForumError):  # another process is at it
                forum.upkeep(progress=_StopProgress(self._stop))
        if forum.vectors.is_behind:
            with contextlib.suppress(BusyForumError, ModelNotFoundError):  # another process is at it
                forum.encode(progress=_StopProgress(self._stop))
        began_s = time.monotonic()
        if self._under_way() and began_s < self._rests_until_s:
            return False
        is_more = forum.pairs.advance(SLICE_S, lambda: self._stop.is_set() or self._under_way() > 0) > 0
        ended_s = time.monotonic()
        self._rests_until_s = ended_s + REST * max(1, self._under_way()) * (ended_s - began_s)
        return is_more


class _StopProgress:
    """Ends the work that tells it how far it is, once the service stops; vectors encoded so far are kept."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def start(self, phase: str, total: int, unit: str) -> None:
        """Begin a phase."""
        self._check()

    def advance(self, count: int) -> None:
        """Go on."""
        self._check()

    def notice(self, text: str) -> None:
        """Take no notice."""

    def _check(self) -> None:
        if self._stop.is_set():
            raise _Stopped
