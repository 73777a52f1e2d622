"""Threads that do the work, so that the event loop never waits for a search; bounded, with a bounded queue.

Enters: functions. Leaves: what they return, or a refusal. May import: its own folder.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from askalike.serve.problem import Refused

__all__ = ["Pool"]

_Found = TypeVar("_Found")


class Pool:
    """Some threads that live as long as the service: each keeps its own connection to the archive.

    Args:
        waiting: so many calls may wait for a thread.
    """

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._futures: set[Future[Any]] = set()

    @property
    def busy(self) -> int:
        """Return how many calls are under way or wait."""
        return len(self._futures)

    async def run(self, call: Callable[[], _Found], timeout_s: float) -> _Found:
        """Return what ``call`` returns.

        A call that takes too long is finished all the same, and nobody hears of it.

        Raises:
            Refused: 503, too many are waiting; 504, it took too long.
        """
        if self.busy >= self._most:
            raise Refused(503, f"{self.busy} requests are waiting already", "try again soon", {"Retry-After": "1"})
        context = contextvars.copy_context()
        future = self._executor.submit(context.run, call)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), timeout_s)
        except TimeoutError as error:
            raise Refused(504, f"it took longer than {timeout_s:g} s", "ask for less, or try again later") from error

    def close(self, wait_s: float) -> bool:
        """Drop what waits; return whether what is under way was done within so many seconds."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        return not wait(self._futures, max(0.0, wait_s)).not_done
