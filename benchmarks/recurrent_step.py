"""What a training step of each recurrence takes beside torch's own LSTM: 256 texts of 100 words.

Command: ``python -m benchmarks.recurrent_step``. Forward and backward of one batch, on one thread, by processor time,
in turns in one process: the median of the ratios, and the share of multiplications, which is the limit of the ratio
where nothing else takes time. Writes ``results/recurrent-step.json``.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.networks.recurrent import Gru, Lstm, Rcnn, Recurrent
from askalike.models.encoders.settings import EncoderConfig, Kind
from benchmarks.record import option_parser, processor_s, write

COMMAND: Final = "python -m benchmarks.recurrent_step"
TEXTS, WORDS, INPUT = 256, 100, 200
SIZES: Final = (240, 400)
NETWORKS: Final[dict[Kind, type[Recurrent]]] = {"rcnn": Rcnn, "lstm": Lstm, "gru": Gru}


def own_step(kind: Kind, size: int) -> tuple[Callable[[], None], int]:
    """Return a training step of one of our networks, and its multiplications a word."""
    config = EncoderConfig(kind=kind, input_size=INPUT, hidden_size=size)
    network = NETWORKS[kind](config, {name: torch.randn(shape) * 0.05 for name, shape in config.shapes().items()})
    words, packing = torch.randn(TEXTS * WORDS, INPUT), Packing.of(torch.full((TEXTS,), WORDS))

    def step() -> None:
        network(words.detach().requires_grad_(), packing).square().mean().backward()

    return step, sum(parameter.numel() for parameter in network.parameters() if parameter.ndim == 2)


def torch_step(size: int) -> tuple[Callable[[], None], int]:
    """Return a training step of torch's LSTM, and its multiplications a word."""
    network, words = nn.LSTM(INPUT, size), torch.randn(WORDS, TEXTS, INPUT)

    def step() -> None:
        network(words.detach().requires_grad_())[0].square().mean().backward()

    return step, sum(parameter.numel() for parameter in network.parameters() if parameter.ndim == 2)


def rates(size: int, rounds: int) -> dict[str, Any]:
    """Return each network's times as fast as torch's LSTM, beside the ratio of their multiplications."""
    steps: dict[str, tuple[Callable[[], None], int]] = {"torch": torch_step(size)}
    steps |= {kind: own_step(kind, size) for kind in NETWORKS}
    for step, _ in steps.values():
        step()
    seconds = [{name: processor_s(step) for name, (step, _) in steps.items()} for _ in range(rounds)]
    products = steps["torch"][1]
    return {
        kind: {
            "times_as_fast": round(statistics.median(turn["torch"] / turn[kind] for turn in seconds), 2),
            "fewer_multiplications": round(products / steps[kind][1], 2),
        }
        for kind in NETWORKS
    }


def main() -> None:
    """Measure and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    body = {str(size): rates(size, options.rounds) for size in SIZES}
    print(body)
    write("recurrent-step", COMMAND, {"texts": TEXTS, "words": WORDS, "input": INPUT, "sizes": body})


if __name__ == "__main__":
    main()
