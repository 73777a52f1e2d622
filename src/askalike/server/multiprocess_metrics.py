"""Where the workers of one service tell each other what they have counted, so that any of them can tell all.

A file without a name, which ends with the last process that has it open, however that ends.
"""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any, Final

EVERY_S: Final = 1.0
PLACE_BYTES: Final = 4_000_000
"""Between the beginnings of two workers' texts; what is not written takes no room."""
HEAD_BYTES: Final = 8
"""The text's length and its checksum: one that is read while it is written fits neither."""


class MultiprocessMetrics:
    """A text for each worker, of which each process writes its own.

    It can be handed to a process that is being started, with ``place`` set to that process's number.

    Args:
        workers: how many there are.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.place = 0
        self._told_s = -EVERY_S
        self._descriptor = -1
        if workers > 1:
            with tempfile.TemporaryFile() as file:
                self._descriptor = os.dup(file.fileno())

    def publish(self, text: Callable[[], str]) -> None:
        """Tell the others, where that was not done just now."""
        now = time.monotonic()
        if self.workers == 1 or now - self._told_s < EVERY_S:
            return
        self._told_s = now
        content = text().encode()[: PLACE_BYTES - HEAD_BYTES]
        head = len(content).to_bytes(4, "big") + zlib.crc32(content).to_bytes(4, "big")
        os.pwrite(self._descriptor, head + content, self.place * PLACE_BYTES)

    def others(self) -> list[str]:
        """Return what the others told last."""
        return [text for place in range(self.workers) if place != self.place and (text := self._read(place))]

    def _read(self, place: int) -> str:
        start = place * PLACE_BYTES
        head = os.pread(self._descriptor, HEAD_BYTES, start)
        content = os.pread(self._descriptor, int.from_bytes(head[:4], "big"), start + HEAD_BYTES)
        is_whole = zlib.crc32(content) == int.from_bytes(head[4:], "big")
        return content.decode() if is_whole else ""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_descriptor": reduction.DupFd(self._descriptor)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._descriptor = state["_descriptor"].detach()
