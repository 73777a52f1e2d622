"""Settings of a training: tables of TOML to settings; those of the loop, which raise SettingError if unusable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, Literal, TypeVar, get_args

from askalike.errors import SettingError
from askalike.models.encoders.settings import check_choice, check_number, check_whole
from askalike.training.bounds import check_bounds

_Settings = TypeVar("_Settings")


def table(stored: Mapping[str, Any], name: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return a table by its name.

    Raises:
        SettingError: it is missing and has no default, or is no table.
    """
    found: object = stored.get(name, default)
    if not isinstance(found, Mapping):
        what = "a recipe without it" if found is None else f"{found!r}"
        raise SettingError(f"expected a table [{name}], but found {what}", f"write [{name}] and its settings below")
    return found


def made(kind: type[_Settings], stored: Mapping[str, Any], where: str) -> _Settings:
    """Return ``kind`` made of a table.

    Raises:
        SettingError: a name that is no setting, one that is missing, or a value that cannot be used; names the place.
    """
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    if unknown := sorted(set(stored) - set(known)):
        raise SettingError(f"{where}: {', '.join(unknown)} is unknown, expected only: {', '.join(known)}", "correct it")
    for name, entry in known.items():
        if name not in stored and entry.default is MISSING and entry.default_factory is MISSING:
            raise SettingError(f"{where}: {name} is missing", f"add {name}")
    for name, value in stored.items():
        default = known[name].default
        wanted: Any = {bool: bool, int: int, float: (int, float), str: str, tuple: list}.get(type(default))
        if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
            expected = "list" if wanted is list else type(default).__name__
            raise SettingError(f"{where}: {name} is {value!r}, but expected a {expected}", "correct it")
    check_bounds(kind, stored, where)
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()})
    except SettingError as error:
        raise SettingError(f"{where}: {error.message}", error.hint) from error


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
        check_whole("epochs", self.epochs, 1)
        check_number("learning_rate", self.learning_rate, above=0)
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_number("clip", self.clip, above=0)
        check_whole("patience", self.patience, 0)

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

    def __post_init__(self) -> None:
        LoopSettings.__post_init__(self)  # a class with slots is made twice, and super() knows the first
        check_number("momentum", self.momentum, least=0, below=1)
