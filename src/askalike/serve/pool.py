"""Threads that do the work, so that the event loop never waits for a search; bounded, with a bounded and fair queue."""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from askalike.serve.problem import Refused

_Found = TypeVar("_Found")


class Pool:
    """Some threads that live as long as the service: each keeps its own connection to the archive.

    Where calls wait for a thread, clients take turns: one that asks for much waits for itself, and others hardly do.

    Args:
        waiting: so many calls may wait for a thread.
    """

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._free = threads
        self._turns: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._running: set[Future[Any]] = set()
        self.busy = 0
        """How many calls are under way or wait."""

    async def run(self, call: Callable[[], _Found], timeout_s: float, client: str = "") -> _Found:
        """Return what ``call`` returns.

        A call that takes too long is finished all the same, and nobody hears of it.

        Args:
            client: whose call it is.

        Raises:
            Refused: 503, too many are waiting; 504, it took too long.
        """
        if self.busy >= self._most:
            raise Refused(503, f"{self.busy} requests are waiting already", "try again soon", {"Retry-After": "1"})
        self.busy += 1
        try:
            async with asyncio.timeout(timeout_s):
                await self._turn(client)
                return await asyncio.wrap_future(self._submit(call))
        except TimeoutError as error:
            raise Refused(504, f"it took longer than {timeout_s:g} s", "ask for less, or try again later") from error

    def close(self, wait_s: float) -> bool:
        """Return whether what is under way was done within so many seconds."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        return not wait(self._running, max(0.0, wait_s)).not_done

    async def _turn(self, client: str) -> None:
        """Return when a thread is free, and it is this client's turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.setdefault(client, deque()).append(turn)
        self._give_turns()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self.busy -= 1
            else:
                self._end()
            raise

    def _submit(self, call: Callable[[], _Found]) -> Future[_Found]:
        loop = asyncio.get_running_loop()
        future = self._executor.submit(contextvars.copy_context().run, call)
        self._running.add(future)

        def ended(done: Future[_Found]) -> None:
            self._running.discard(done)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._end)

        future.add_done_callback(ended)
        return future

    def _end(self) -> None:
        """Take note that a thread is free again."""
        self.busy -= 1
        self._free += 1
        self._give_turns()

    def _give_turns(self) -> None:
        while self._free and self._turns:
            client, turns = self._turns.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._turns[client] = turns  # behind all others
            if not turn.done():  # nobody waits for one that was given up
                self._free -= 1
                turn.set_result(None)
