"""How an objective is made smaller: the settings of the training loop, which raise SettingError if unusable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from askalike.settings import check_settings

Schedule = Literal["constant", "linear"]
LOWER_IS_BETTER: Final = ("perplexity", "held-out loss")
"""How the names of measures begin of which a lower one is better."""

_WARMUP: Final = 0.05  # share of the steps in which a linear schedule rises


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How an objective is made smaller.

    Args:
        epochs: at most so many, ≥ 1.
        learning_rate: Adam's, or that of SGD.
        schedule: ``constant``, or ``linear``: rises over the first twentieth of all steps, then falls to zero.
        clip: greatest length of the gradient of all parameters together.
        patience: epochs without a better dev measure after which the stage ends; 0 runs all epochs and keeps the last.
        stop_on: the dev measure, higher is better; one whose name begins as ``LOWER_IS_BETTER`` says counts the other
            way.
    """

    epochs: int = 10
    learning_rate: float = 1e-3
    schedule: Schedule = "constant"
    clip: float = 5.0
    patience: int = 3
    stop_on: str = "mrr"

    def __post_init__(self) -> None:
        check_settings(self)

    def rate(self, done: float) -> float:
        """Return the learning rate when a share ``done`` of all steps, in [0, 1), is done.

        >>> LoopSettings(learning_rate=1.0, schedule="linear").rate(0.525)
        0.5
        """
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * min((done + 1e-9) / _WARMUP, (1 - done) / (1 - _WARMUP))


@dataclass(frozen=True, slots=True)
class SgdSettings(LoopSettings):
    """How an objective is made smaller by stochastic gradient descent (SGD) in place of Adam.

    ::

        m ← μ m + g,   x ← x - η m

    Args:
        momentum: μ in [0, 1).
    """

    momentum: float = 0.0
