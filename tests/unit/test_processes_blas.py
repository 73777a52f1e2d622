"""One BLAS thread while a forum encodes, and as many as before afterwards."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import ThreadpoolController

from askalike.processes import one_blas_thread


def blas_threads() -> set[int]:
    """Of NumPy's own library; others, which SciPy or torch load, do not multiply here."""
    found = ThreadpoolController().select(user_api="blas").info()
    return {one["num_threads"] for one in found if "numpy" in one["filepath"]} or {one["num_threads"] for one in found}


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
            second_in.wait(10)
        first_out.set()

    def second() -> None:
        first_in.wait(10)
        with one_blas_thread():
            second_in.set()
            first_out.wait(10)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before
