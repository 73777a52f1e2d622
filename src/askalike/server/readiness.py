"""Whether the service can answer, tried by a search for one of its questions, and not more than once a second.

Who watches a service asks without a key, so that asking must cost next to nothing however often it is done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from askalike.errors import AskalikeError
from askalike.server.pool import Pool
from askalike.server.problem import Refused, problem_of

LOG: Final = logging.getLogger("askalike.server")

FRESH_S: Final = 1.0
LONGEST_S: Final = 5.0


class Readiness:
    """What came of the last trial.

    Args:
        probe: searches; what it raises says what is wrong.
        readers: the threads that do it.
    """

    def __init__(self, probe: Callable[[], None], readers: Pool) -> None:
        self._probe = probe
        self._readers = readers
        self._trying = asyncio.Lock()
        self._tried_s = -FRESH_S
        self._refusal: Refused | None = None

    async def check(self) -> None:
        """Return where the service can answer.

        Raises:
            Refused: 503, with what is wrong.
        """
        async with self._trying:
            if time.monotonic() - self._tried_s >= FRESH_S:
                before, self._refusal = self._refusal, await self._tried()
                self._tried_s = time.monotonic()
                if self._refusal is not None and before is None:
                    LOG.error("not ready: %s", self._refusal)
        if self._refusal is not None:
            raise self._refusal

    async def _tried(self) -> Refused | None:
        try:
            await self._readers.run(self._probe, LONGEST_S)
        except (AskalikeError, Refused) as error:
            found = problem_of(error)
            return Refused(503, found.error, found.hint, {"Retry-After": "1"})
        return None
