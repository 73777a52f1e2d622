"""How long the stages of a search take: measured where they happen, told to whoever asked for it.

>>> with collecting() as seconds:
...     with stage("rank"):
...         pass
>>> list(seconds)
['rank']
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, get_args

Stage = Literal["lexical", "vector", "rank", "answer"]
"""Candidates by words; encoding and candidates by meaning; joining and re-ranking; records, answers, explanations."""

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)

_collected: ContextVar[dict[str, float] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[dict[str, float]]:
    """Give the seconds that each stage takes, in this thread, until the end."""
    seconds: dict[str, float] = {}
    token = _collected.set(seconds)
    try:
        yield seconds
    finally:
        _collected.reset(token)


@contextmanager
def stage(name: Stage) -> Iterator[None]:
    """Count what happens inside to a stage; where nobody collects, nothing is measured."""
    seconds = _collected.get()
    if seconds is None:
        yield
        return
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
