"""A table of a TOML file into a dataclass of settings; what is wrong is said with its place.

Enters: tables. Leaves: settings. May import: errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from askalike.errors import SettingError
from askalike.train.bounds import check_bounds

__all__ = ["made", "table"]

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
