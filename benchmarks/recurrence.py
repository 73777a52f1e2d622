"""A training step of the RCNN beside one of ``torch.nn.LSTM`` of the same sizes, in turn, in the same run.

Command: ``OMP_WAIT_POLICY=PASSIVE python -m benchmarks.recurrence``, on a machine that does nothing else.
A step is forward, backward and Adam's update on 256 texts of 100 words, 200 → 400 dimensions, with the last state as
the vector; the RCNN has order 2 and a vector gate, and runs through the public module, packing included. Both run
with two threads. The LSTM gets its fastest input, a padded batch, also where texts have different lengths. The GEMM
rate is that of a square product in the same run; a system's share of it counts the arithmetic that it cannot avoid.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from askalike.models.encoders.networks.encoder import build
from askalike.models.encoders.settings import EncoderConfig
from benchmarks.record import write

BATCH, WORDS, INPUT, SIZE = 256, 100, 200, 400
THREADS, ROUNDS = 2, 10
COMMAND = "OMP_WAIT_POLICY=PASSIVE python -m benchmarks.recurrence"
TOKEN_FLOPS = {"rcnn": 2 * (3 * SIZE * INPUT + SIZE * SIZE), "lstm": 2 * (4 * SIZE * INPUT + 4 * SIZE * SIZE)}
"""Forward. Backward takes as much for the weights, and for the states what the recurrent product took."""
BACK_FLOPS = {
    "rcnn": TOKEN_FLOPS["rcnn"] + 2 * SIZE * SIZE,
    "lstm": TOKEN_FLOPS["lstm"] + 8 * SIZE * SIZE,
}


class LastLstm(nn.Module):
    """torch's LSTM, with the state after the last word as the vector."""

    def __init__(self) -> None:
        super().__init__()
        self.core = nn.LSTM(INPUT, SIZE)

    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Return (B, D)."""
        states: Tensor = self.core(inputs)[0]
        return states[lengths - 1, torch.arange(len(lengths))]


def systems() -> dict[str, nn.Module]:
    """Return the two modules."""
    return {"rcnn": build(EncoderConfig("rcnn", INPUT, SIZE, order=2)), "lstm": LastLstm()}


def batch(is_ragged: bool) -> tuple[Tensor, Tensor]:
    """Return word vectors (T, B, D_in) and lengths (B,): all 100, or evenly spread over 1 … 100."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, WORDS + 1, (BATCH,), generator=generator) if is_ragged else torch.full((BATCH,), WORDS)
    return torch.randn(WORDS, BATCH, INPUT, generator=generator), lengths


def forward(module: nn.Module, inputs: Tensor, lengths: Tensor) -> None:
    """Encode without gradient."""
    with torch.no_grad():
        module(inputs, lengths)


def step(module: nn.Module, adam: torch.optim.Optimizer, inputs: Tensor, lengths: Tensor) -> None:
    """Do one step of training."""
    adam.zero_grad(set_to_none=True)
    module(inputs, lengths).square().mean().backward()
    adam.step()


def in_turn(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every work in every round, after two rounds to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 2):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            if number > 1:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def gemm_rate() -> float:
    """Return the FLOPs a second of a product of two 2048 × 2048 matrices, the best of five."""
    left, right, out = (torch.randn(2048, 2048) for _ in range(3))

    def multiply() -> None:
        torch.mm(left, right, out=out)

    seconds = in_turn({"gemm": multiply}, 5)["gemm"]
    return 2 * 2048**3 / min(seconds)


def compared(seconds: dict[str, list[float]], tokens: int, flops: dict[str, int], rate: float) -> dict[str, Any]:
    """Return what is reported of one comparison."""
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    pairs = sorted(lstm / rcnn for rcnn, lstm in zip(seconds["rcnn"], seconds["lstm"], strict=True))
    return {
        "ratio_of_medians": round(medians["lstm"] / medians["rcnn"], 2),
        "pairwise_ratios": {
            "lowest": round(pairs[0], 2),
            "median": round(statistics.median(pairs), 2),
            "highest": round(pairs[-1], 2),
        },
        "rounds": len(pairs),
        **{
            name: {
                "median_s": round(median, 4),
                "lowest_s": round(min(seconds[name]), 4),
                "highest_s": round(max(seconds[name]), 4),
                "tokens_per_s": round(tokens / median),
                "share_of_gemm_rate": round(tokens * flops[name] / median / rate, 3),
            }
            for name, median in medians.items()
        },
    }


def peak_kb() -> int:
    """Return the peak of this process' memory; getrusage would give the parent's where that was higher."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    if found is None:
        sys.exit("/proc/self/status has no VmHWM: measure on Linux")
    return int(found[1])


def peak_mb(name: str) -> int:
    """Return by how many MB three steps in a process of their own raise its memory's peak."""
    program = f"from benchmarks.recurrence import print_memory; print_memory({name!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout)


def print_memory(name: str) -> None:
    """Print by how many MB three steps raise the peak of this process."""
    torch.set_num_threads(THREADS)
    module, (inputs, lengths) = systems()[name], batch(is_ragged=False)
    before = peak_kb()
    adam = torch.optim.Adam(module.parameters())
    for _ in range(3):
        step(module, adam, inputs, lengths)
    print((peak_kb() - before) // 1024)


def main() -> None:
    """Measure and write the result."""
    torch.set_num_threads(THREADS)
    modules = systems()
    adams = {name: torch.optim.Adam(module.parameters()) for name, module in modules.items()}
    rates = [gemm_rate()]
    measured: dict[str, dict[str, list[float]]] = {}
    for label, is_ragged in (("", False), ("_ragged", True)):
        inputs, lengths = batch(is_ragged)
        measured[f"forward{label}"] = in_turn(
            {name: partial(forward, module, inputs, lengths) for name, module in modules.items()}, ROUNDS
        )
        measured[f"step{label}"] = in_turn(
            {name: partial(step, module, adams[name], inputs, lengths) for name, module in modules.items()},
            ROUNDS // 2 if is_ragged else ROUNDS,
        )
    rates.append(gemm_rate())
    flops = {"forward": TOKEN_FLOPS, "step": {name: TOKEN_FLOPS[name] + BACK_FLOPS[name] for name in TOKEN_FLOPS}}
    words = {False: BATCH * WORDS, True: int(batch(is_ragged=True)[1].sum())}
    write(
        "recurrence",
        COMMAND,
        {
            "torch": torch.__version__,
            "threads": THREADS,
            "batch": {"texts": BATCH, "words": WORDS, "input": INPUT, "size": SIZE, "ragged_tokens": words[True]},
            "gemm_gflops_per_s": {"before": round(rates[0] / 1e9, 1), "after": round(rates[1] / 1e9, 1)},
            "parameters": {name: sum(p.numel() for p in module.parameters()) for name, module in modules.items()},
            **{
                name: compared(found, words["ragged" in name], flops[name.removesuffix("_ragged")], max(rates))
                for name, found in measured.items()
            },
            "peak_mb_of_three_steps": {name: peak_mb(name) for name in modules},
        },
    )


if __name__ == "__main__":
    main()
