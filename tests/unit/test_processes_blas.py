"""One BLAS thread while a forum encodes, and as many as before afterwards; work in threads, side by side."""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import count

import pytest
from threadpoolctl import ThreadpoolController

from askalike.processes import one_blas_thread, side_by_side


def blas_threads() -> set[int]:
    """Of NumPy's own library; others, which SciPy or torch load, do not multiply here."""
    pools = ThreadpoolController().select(user_api="blas").info()
    return {pool["num_threads"] for pool in pools if "numpy" in pool["filepath"]} or {
        pool["num_threads"] for pool in pools
    }


def test_threads_are_one_inside_and_set_back_after() -> None:
    before = blas_threads()
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_an_error_inside_sets_the_threads_back() -> None:
    before = blas_threads()
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert blas_threads() == before


def test_several_threads_at_once_leave_the_threads_as_they_were() -> None:
    before = blas_threads()
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with one_blas_thread():
            first_in.set()
            second_in.wait(120)
        first_out.set()

    def second() -> None:
        first_in.wait(120)
        with one_blas_thread():
            second_in.set()
            first_out.wait(120)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


KEPT = """
import os
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.pop(name, None)
import numpy, threading
from threadpoolctl import threadpool_info
from askalike.processes import keep_one_native_thread, one_blas_thread
keep_one_native_thread()
with one_blas_thread():
    pass
import faiss  # it brings libraries of its own
thread = threading.Thread(target=lambda: print({one["num_threads"] for one in threadpool_info()}))
thread.start()
thread.join()
"""


def test_a_program_with_threads_of_its_own_keeps_one_for_good() -> None:
    output = subprocess.run([sys.executable, "-c", KEPT], check=True, capture_output=True, text=True)
    assert output.stdout == "{1}\n"


def test_what_is_made_side_by_side_keeps_its_order() -> None:
    met = threading.Barrier(2, timeout=120)  # the first two items run together, or this test fails

    def square(number: int) -> int:
        if number < 2:
            met.wait()
        return number**2

    assert list(side_by_side(square, range(50), 2)) == [number**2 for number in range(50)]


def test_one_item_and_one_thread_need_no_other_thread() -> None:
    def own(_: int) -> bool:
        return threading.current_thread() is threading.main_thread()

    assert list(side_by_side(own, range(1), 4)) == [True]
    assert list(side_by_side(own, range(3), 1)) == [True] * 3
    assert list(side_by_side(own, range(0), 4)) == []
    assert not any(side_by_side(own, range(3), 4))


def test_an_error_is_raised_in_its_place_and_ends_the_work() -> None:
    begun: list[int] = []

    def failing(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise ValueError("the fourth")
        return number

    results = side_by_side(failing, count(), 2)  # without end: only some items are taken ahead
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="the fourth"):
        next(results)
    assert max(begun) <= 3 + 5
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("side by side")]


def test_who_stops_reading_leaves_no_thread() -> None:
    results = side_by_side(abs, count(), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("side by side")]
