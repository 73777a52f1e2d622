"""Threads that do the work, so that the event loop never waits for a search; with a bounded, fair queue.

Searches that wait run as one batch, which costs less than one after the other: a thread takes all of them as soon as
the batch before is done.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from askalike.server.problem import Refused

MAX_BATCH: Final = 8
"""A larger batch adds latency, not throughput."""
MAX_HOLD_S: Final = 0.25
"""Batched calls wait for the batch under way; after this time they start beside it."""


@dataclass(frozen=True, slots=True)
class Batched:
    """What a caller asks of the pool's ``batch``, which answers all callers that wait at once."""

    query: Any


@dataclass(slots=True, eq=False)
class _Turn:
    """A call that waits or runs."""

    answer: asyncio.Future[Any]
    call: Callable[[], Any] | Batched
    is_large: bool
    is_begun: bool = False


class _Queue:
    """Waiting turns: first in, first out for each client, and clients in rotation."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[_Turn]] = OrderedDict()

    def put(self, client: str, turn: _Turn) -> None:
        """Append a turn to those of its client."""
        self._clients.setdefault(client, deque()).append(turn)

    def next(self, *, with_large: bool = True) -> _Turn | None:
        """Return the next turn that may have a thread, or None; turns that were given up are dropped."""
        for client, turns in list(self._clients.items()):
            while turns and turns[0].answer.done():
                turns.popleft()
            if not turns:
                del self._clients[client]
            elif with_large or not turns[0].is_large:
                turn = turns.popleft()
                del self._clients[client]
                if turns:
                    self._clients[client] = turns  # behind all others
                return turn
        return None


class Pool:
    """Threads that live as long as the service, each with its own connection to the archive.

    Clients take turns, so that one that sends many calls delays its own. Large calls leave one thread to the others.

    Args:
        waiting: calls that may wait for a thread.
        batch: runs the arguments of several ``Batched`` calls at once.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        waiting: int,
        batch: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
    ) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._free = threads
        self._free_large = max(1, threads - 1)
        self._single, self._batched = _Queue(), _Queue()
        self._batch = batch
        self._holding: asyncio.TimerHandle | None = None
        self._running: set[Future[Any]] = set()
        self.batches = batch is not None
        """Whether it takes ``Batched`` calls."""
        self.busy = 0
        """Calls that run or wait."""

    async def run(
        self, call: Callable[[], Any] | Batched, timeout_s: float, client: str = "", *, is_large: bool = False
    ) -> Any:
        """Return the result of a call, or of its part in a batch.

        A call that exceeds its time is finished all the same; its result is dropped.

        Args:
            client: in whose turn it waits.
            is_large: it may take far longer than others.

        Raises:
            Refused: 503, too many are waiting; 504, it took too long.
        """
        if self.busy >= self._most:
            raise Refused(503, f"{self.busy} requests are waiting already", "try again soon", {"Retry-After": "1"})
        self.busy += 1
        turn = _Turn(asyncio.get_running_loop().create_future(), call, is_large)
        try:
            (self._batched if isinstance(call, Batched) else self._single).put(client, turn)
            self._start_waiting()
            async with asyncio.timeout(timeout_s):
                return await turn.answer
        except TimeoutError as error:
            if not turn.is_begun:
                hint = "nothing was done; try again later"
                raise Refused(504, f"it waited longer than {timeout_s:g} s", hint) from error
            hint = "ask for less, or try again later; what it writes may be stored all the same"
            raise Refused(504, f"it took longer than {timeout_s:g} s", hint) from error
        finally:
            if not turn.is_begun:
                self.busy -= 1

    def close(self, wait_s: float) -> bool:
        """Take no more calls; return whether those that run ended within ``wait_s``."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        return not wait(self._running, max(0.0, wait_s)).not_done

    def _start_waiting(self) -> None:
        while self._free > 0:
            turns: list[_Turn] = []
            while self._holding is None and len(turns) < MAX_BATCH and (turn := self._batched.next()):
                turns.append(turn)
            if turns:
                self._holding = asyncio.get_running_loop().call_later(MAX_HOLD_S, self._stop_holding)
                self._start(turns, self._holding)
            elif turn := self._single.next(with_large=bool(self._free_large)):
                self._start([turn])
            else:
                return

    def _stop_holding(self) -> None:
        """Start others beside the batch under way, which takes long."""
        self._holding = None
        self._start_waiting()

    def _start(self, turns: Sequence[_Turn], holding: asyncio.TimerHandle | None = None) -> None:
        """Run one call or one batch in a thread; its callers get the error where none can be started."""
        for turn in turns:
            turn.is_begun = True
        call = turns[0].call
        if isinstance(call, Batched):
            assert self._batch is not None
            work: Callable[[], Sequence[Any]] = partial(
                self._batch, [turn.call.query for turn in turns if isinstance(turn.call, Batched)]
            )
        else:
            work = partial(_call_alone, call)
        try:
            future = self._executor.submit(contextvars.copy_context().run, work)
        except RuntimeError as error:  # the pool is closed, or the system starts no more threads
            self._answer(turns, holding, error, ())
            return
        self._free -= 1
        self._free_large -= turns[0].is_large
        self._running.add(future)
        asyncio.wrap_future(future).add_done_callback(partial(self._finish, turns, future, holding))

    def _finish(
        self,
        turns: Sequence[_Turn],
        work: Future[Sequence[Any]],
        holding: asyncio.TimerHandle | None,
        done: asyncio.Future[Sequence[Any]],
    ) -> None:
        """Give the thread to the next turn, and the results to the callers."""
        self._running.discard(work)
        self._free += 1
        self._free_large += turns[0].is_large
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None and len(turns) > 1:  # each alone, so that one that fails fails for its caller alone
            for turn in turns:
                self._start([turn])
            turns = ()
        self._answer(turns, holding, error, () if error is not None else done.result())
        self._start_waiting()

    def _answer(
        self,
        turns: Sequence[_Turn],
        holding: asyncio.TimerHandle | None,
        error: BaseException | None,
        values: Sequence[Any],
    ) -> None:
        self.busy -= len(turns)
        if holding is not None and holding is self._holding:
            holding.cancel()
            self._holding = None
        for place, turn in enumerate(turns):
            if turn.answer.done():  # nobody waits for it any more
                continue
            if error is None:
                turn.answer.set_result(values[place])
            else:
                turn.answer.set_exception(error)


def _call_alone(call: Callable[[], Any]) -> list[Any]:
    return [call()]
