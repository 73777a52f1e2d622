"""Threads that do the work, so that the event loop never waits for a search; bounded, with a bounded and fair queue.

What is made of several at once for less, as searches are, is made together of those that wait: a thread takes them all
as soon as it has ended with those before. The more ask at the same moment, the less each costs.
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

MOST_TOGETHER: Final = 8
"""A larger batch adds latency, not throughput."""
LONG_S: Final = 0.25
"""While some are made together the others wait for them; when that takes so long, they wait no longer."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What a pool's ``together`` is asked for, with what others ask for who wait meanwhile."""

    query: Any


@dataclass(slots=True, eq=False)
class _Turn:
    """A call that waits or is under way."""

    answer: asyncio.Future[Any]
    call: Callable[[], Any] | Joined
    is_large: bool
    is_begun: bool = False


class _Queue:
    """Turns that wait: those of each client in their order, and clients one after another."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[_Turn]] = OrderedDict()

    def put(self, client: str, turn: _Turn) -> None:
        """Let a turn wait behind those of its client."""
        self._clients.setdefault(client, deque()).append(turn)

    def next(self, *, with_large: bool = True) -> _Turn | None:
        """Return whose turn it is, None where nobody waits who may have a thread; turns that were given up go."""
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
    """Some threads that live as long as the service: each keeps its own connection to the archive.

    Where calls wait for a thread, clients take turns: one that asks for much waits for itself, and others hardly do.
    Large calls leave a thread to the others, where there are several.

    Args:
        waiting: so many calls may wait for a thread.
        together: makes what is ``Joined``, of several at once.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        waiting: int,
        together: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
    ) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._free = threads
        self._free_large = max(1, threads - 1)
        self._calls, self._joined = _Queue(), _Queue()
        self._together = together
        self._holding: asyncio.TimerHandle | None = None
        self._running: set[Future[Any]] = set()
        self.joins = together is not None
        """Whether it makes what is ``Joined``."""
        self.busy = 0
        """How many calls are under way or wait."""

    async def run(
        self, call: Callable[[], Any] | Joined, timeout_s: float, client: str = "", *, is_large: bool = False
    ) -> Any:
        """Return what ``call`` returns, or ``together`` for what is joined.

        A call that takes too long is finished all the same, and nobody hears of it.

        Args:
            client: whose call it is.
            is_large: it may take far longer than others.

        Raises:
            Refused: 503, too many are waiting; 504, it took too long.
        """
        if self.busy >= self._most:
            raise Refused(503, f"{self.busy} requests are waiting already", "try again soon", {"Retry-After": "1"})
        self.busy += 1
        turn = _Turn(asyncio.get_running_loop().create_future(), call, is_large)
        try:
            (self._joined if isinstance(call, Joined) else self._calls).put(client, turn)
            self._give_turns()
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
        """Return whether what is under way was done within so many seconds."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        return not wait(self._running, max(0.0, wait_s)).not_done

    def _give_turns(self) -> None:
        while self._free > 0:
            turns: list[_Turn] = []
            while self._holding is None and len(turns) < MOST_TOGETHER and (turn := self._joined.next()):
                turns.append(turn)
            if turns:
                self._holding = asyncio.get_running_loop().call_later(LONG_S, self._let_go)
                self._begin(turns, self._holding)
            elif turn := self._calls.next(with_large=bool(self._free_large)):
                self._begin([turn])
            else:
                return

    def _let_go(self) -> None:
        """Let others begin beside those that are made together: these take long."""
        self._holding = None
        self._give_turns()

    def _begin(self, turns: Sequence[_Turn], holding: asyncio.TimerHandle | None = None) -> None:
        """Let a thread make one call, or together what is joined; who waits for it hears where no thread can."""
        for turn in turns:
            turn.is_begun = True
        call = turns[0].call
        if isinstance(call, Joined):
            assert self._together is not None
            work: Callable[[], Sequence[Any]] = partial(
                self._together, [turn.call.query for turn in turns if isinstance(turn.call, Joined)]
            )
        else:
            work = partial(_one, call)
        try:
            future = self._executor.submit(contextvars.copy_context().run, work)
        except RuntimeError as error:  # the pool is closed, or the system starts no more threads
            self._answer(turns, holding, error, ())
            return
        self._free -= 1
        self._free_large -= turns[0].is_large
        self._running.add(future)
        asyncio.wrap_future(future).add_done_callback(partial(self._end, turns, future, holding))

    def _end(
        self,
        turns: Sequence[_Turn],
        work: Future[Sequence[Any]],
        holding: asyncio.TimerHandle | None,
        done: asyncio.Future[Sequence[Any]],
    ) -> None:
        """Let others have the thread, which goes on at once, and answer those who wait for what it made."""
        self._running.discard(work)
        self._free += 1
        self._free_large += turns[0].is_large
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None and len(turns) > 1:  # what is wrong with one is told to that one alone
            for turn in turns:
                self._begin([turn])
            turns = ()
        self._answer(turns, holding, error, () if error is not None else done.result())
        self._give_turns()

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


def _one(call: Callable[[], Any]) -> list[Any]:
    return [call()]
