"""The kernels as code for GPUs: Triton's compiler takes them, for which no GPU is needed.

An interpreter takes more than the compiler does, and tells nothing of registers, barriers and shared memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.recurrence_paths import TRITON

if TRITON < (3, 2):
    pytest.skip("triton is not installed, or is too old to be told of constants by name", allow_module_level=True)

PROGRAM = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from askalike.models.encoders.networks import fused, kernels

number, order, gate_size, capability = sys.argv[1], *map(int, sys.argv[2:])
constants = {"order": order, "size": 400, "gate_size": gate_size, "decay": 0.6, "block": 512 if gate_size == 1 else 256}
for kernel, others in ((kernels.forward_steps, {"is_kept": True}), (kernels.forward_steps, {"is_kept": False}),
                       (kernels.backward_steps, {})):
    own = {**constants, **others}
    kinds = {"first": "i32", "last": "i32", "tops": "*i64", "lengths": "*i64"} | dict.fromkeys(own, "constexpr")
    signature = {name: kinds.get(name, "*" + number) for name in kernel.arg_names}
    places = {(kernel.arg_names.index(name),): value for name, value in own.items()}
    source = ASTSource(kernel, signature, constexprs=places)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=fused._OPTIONS)
    assert made.asm["cubin"] and "bar.sync" in made.asm["ptx"]
    print(kernel.__name__, len(made.asm["cubin"]))
"""


@pytest.mark.parametrize(
    ("number", "order", "gate_size", "capability"),
    [("fp32", 2, 400, 75), ("fp32", 2, 1, 80), ("fp32", 1, 0, 90), ("fp64", 3, 400, 90), ("fp64", 2, 1, 90)],
)
def test_the_kernels_compile(number: str, order: int, gate_size: int, capability: int, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, number, str(order), str(gate_size), str(capability)],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("_steps") == 3
