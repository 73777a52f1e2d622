"""The ways in which the recurrence can be run, for tests that hold for each of them.

``cpu``: torch's operations. ``cpu-rounded``: the same with a round number of rows, as in bfloat16. ``triton``: the
fused kernels on the CPU, in Triton's interpreter. ``cuda``: the fused kernels on a GPU. ``cuda-torch``: torch's
operations there, as where Triton is missing.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from askalike.models.encoders.networks import backward, forward, recurrence, rounding  # noqa: E402
from askalike.models.encoders.networks.lanes import side_by_side  # noqa: E402

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is imported, which torch does at its first use


def _release() -> tuple[int, ...]:
    """Return major and minor number of the triton that is installed, or nothing."""
    if find_spec("triton") is None:
        return ()
    return tuple(map(int, import_module("triton").__version__.split(".")[:2]))


TRITON: Final = _release()


def _missing() -> dict[str, str]:
    """Return the paths that cannot be run here, with the reason."""
    found = {}
    if torch.cuda.is_available():
        found["triton"] = "there is a GPU, for which the kernels are compiled: see cuda"
    else:
        found |= dict.fromkeys(("cuda", "cuda-torch"), "there is no GPU that torch can use")
        if TRITON and TRITON < (3, 7):
            found["triton"] = "before 3.7, triton's interpreter does not work with NumPy of today"
    if not TRITON:
        found |= dict.fromkeys(("triton", "cuda"), "triton is not installed")
    return found


MISSING: Final = _missing()
PATHS: Final = [path for path in ("cpu", "cpu-rounded", "triton", "cuda", "cuda-torch") if path not in MISSING]


def enter(path: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the recurrence go this way; return the device for its tensors."""
    is_fused = path in ("triton", "cuda")
    monkeypatch.setattr(recurrence, "path_of", lambda words: recurrence.FUSED if is_fused else recurrence.BY_TORCH)
    if path == "cpu-rounded":
        monkeypatch.setattr(rounding, "GRAIN", 2)
        for module in (forward, backward):
            monkeypatch.setattr(module, "is_rounding", lambda _: True)
    if path == "triton":  # the interpreter knows one thread; lanes of a GPU's tensors do not run in others either
        for module in (forward, backward):
            monkeypatch.setattr(module, "side_by_side", lambda works, _: side_by_side(works, torch.device("meta")))
    return torch.device("cuda" if path.startswith("cuda") else "cpu")
