"""FAISS, loaded when it is first needed: that takes a fifth of a second, and small forums never need it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def faiss() -> Any:
    """Return the module."""
    return importlib.import_module("faiss")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let FAISS compute on this thread alone, inside: threads that share so little work wait for each other, spinning.

    Measured beside other processes on two cores: centroids in 46 s with two threads, in 3 s with one.
    """
    before = faiss().omp_get_max_threads()
    faiss().omp_set_num_threads(1)  # of this thread's own work
    try:
        yield
    finally:
        faiss().omp_set_num_threads(before)
