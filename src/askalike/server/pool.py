"""Threads that do the work, so that the event loop never waits for a search; bounded, with a bounded and fair queue."""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from askalike.server.problem import Refused

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class _Turn:
    given: asyncio.Future[None]
    is_large: bool


class Pool:
    """Some threads that live as long as the service: each keeps its own connection to the archive.

    Where calls wait for a thread, clients take turns: one that asks for much waits for itself, and others hardly do.
    Large calls leave a thread to the others, where there are several.

    Args:
        waiting: so many calls may wait for a thread.
    """

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._free = threads
        self._free_large = max(1, threads - 1)
        self._turns: OrderedDict[str, deque[_Turn]] = OrderedDict()
        self._running: set[Future[Any]] = set()
        self.busy = 0
        """How many calls are under way or wait."""

    async def run(
        self, call: Callable[[], _Found], timeout_s: float, client: str = "", *, is_large: bool = False
    ) -> _Found:
        """Return what ``call`` returns.

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
        is_begun = False
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                if self._turns or not self._free or (is_large and not self._free_large):
                    await self._wait(_Turn(loop.create_future(), is_large), client)
                else:
                    self._free -= 1
                    self._free_large -= is_large
                is_begun = True
                future = self._executor.submit(contextvars.copy_context().run, call)
                self._running.add(future)
                found = asyncio.wrap_future(future)
                found.add_done_callback(partial(self._end, is_large, future))
                return await asyncio.shield(found)  # the call has its thread until it ends, whoever waits for it
        except TimeoutError as error:
            if not is_begun:
                hint = "nothing was done; try again later"
                raise Refused(504, f"it waited longer than {timeout_s:g} s", hint) from error
            hint = "ask for less, or try again later; what it writes may be stored all the same"
            raise Refused(504, f"it took longer than {timeout_s:g} s", hint) from error

    def close(self, wait_s: float) -> bool:
        """Return whether what is under way was done within so many seconds."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        return not wait(self._running, max(0.0, wait_s)).not_done

    async def _wait(self, turn: _Turn, client: str) -> None:
        """Return when a thread is free, and it is this client's turn."""
        self._turns.setdefault(client, deque()).append(turn)
        self._give_turns()
        try:
            await turn.given
        except asyncio.CancelledError:
            if turn.given.cancelled():
                self.busy -= 1
            else:
                self._end(turn.is_large)
            raise

    def _end(self, is_large: bool, done: Future[Any] | None = None, _: object = None) -> None:
        """Take note that a thread is free again: ``done``, where one was taken, has ended."""
        if done is not None:
            self._running.discard(done)
        self.busy -= 1
        self._free += 1
        self._free_large += is_large
        if self._turns:
            self._give_turns()

    def _give_turns(self) -> None:
        while self._free and (client := self._next_client()) is not None:
            turns = self._turns.pop(client)
            turn = turns.popleft()
            if turns:
                self._turns[client] = turns  # behind all others
            self._free -= 1
            self._free_large -= turn.is_large
            turn.given.set_result(None)

    def _next_client(self) -> str | None:
        """Return whose turn it is, None where nobody who waits may have a thread; turns that were given up go."""
        for client, turns in list(self._turns.items()):
            while turns and turns[0].given.done():
                turns.popleft()
            if not turns:
                del self._turns[client]
            elif self._free_large or not turns[0].is_large:
                return client
        return None
