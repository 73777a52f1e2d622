"""Settings are looked at once, where they are made: whole numbers, numbers, choices.

Enters: a setting's name and value. Leaves: nothing, or an error. May import: errors.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from askalike.errors import SettingError

__all__ = ["check_choice", "check_number", "check_whole"]


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number ≥ ``least``.

    Raises:
        SettingError: names the setting, its value and what is expected.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SettingError(f"{name} is {value!r}, but expected a whole number ≥ {least}", f"set {name}")


def check_number(
    name: str,
    value: object,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Refuse what is not a finite number with ``least`` ≤ value ≤ ``most`` and ``above`` < value < ``below``.

    Raises:
        SettingError: names the setting, its value and what is expected.
    """
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and least <= number <= most and above < number < below):
        bounds = [(least, "≥"), (above, ">"), (most, "≤"), (below, "<")]
        wanted = " and ".join(f"{sign} {bound:g}" for bound, sign in bounds if math.isfinite(bound))
        raise SettingError(f"{name} is {value!r}, but expected a finite number {wanted}".rstrip(), f"set {name}")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse what is not one of the choices.

    Raises:
        SettingError: names the setting, its value and the choices.
    """
    if not isinstance(value, str) or value not in choices:
        raise SettingError(f"{name} is {value!r}, but expected one of: {', '.join(choices)}", f"set {name}")
