"""Settings and queries that check themselves: each field by its annotation, numbers by the bounds that it names.

What does not go together, such as a vector gate of a network that has none, a class of settings refuses by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from inspect import signature
from numbers import Integral, Real
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from askalike.errors import SettingError

Size = Annotated[int, Meta(ge=1, le=4_096)]
BatchSize = Annotated[int, Meta(ge=1, le=65_536)]
Epochs = Annotated[int, Meta(ge=1, le=100_000)]
HeldOut = Annotated[int, Meta(ge=0, le=10_000_000)]
BelowOne = Annotated[float, Meta(ge=0, le=0.999)]
Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]

_CHECKED_ELSEWHERE: Final = ("title", "body", "k", "options", "stages", "progress")
"""What a search looks at itself, and what msgspec does not know: unions of dataclasses, protocols."""

_Settings = TypeVar("_Settings")


def check_fields(settings: Any, what: str = "") -> None:
    """Check the fields of a frozen dataclass when it is made; NumPy's numbers become Python's, what yields a tuple.

    Args:
        what: what stands before a field's name in a message.

    Raises:
        SettingError: a value of another type than its annotation says, not one of its choices, or out of range.
    """
    kind: Any = type(settings)
    shape = _shape(kind)
    values = {name: getattr(settings, name) for name in shape.__struct_fields__}
    try:
        fitted = asdict(msgspec.convert(values, shape))
    except msgspec.ValidationError:
        hints = _hints(kind)
        fitted = {name: fit(value, hints[name], f"{what}{name}") for name, value in values.items()}
    for name, value in fitted.items():
        if value is not values[name]:
            object.__setattr__(settings, name, value)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(kind)}


@cache
def _shape(kind: Any) -> type[msgspec.Struct]:
    """Return a struct of the checked fields, which msgspec reads at once: a search makes a query."""
    checked = [(name, hint) for name, hint in _hints(kind).items() if name not in _CHECKED_ELSEWHERE]
    return msgspec.defstruct(kind.__name__, checked)


def fit(value: Any, hint: Any, place: str) -> Any:
    """Return a value as an annotation has it.

    Args:
        place: what the value is, for a message.

    Raises:
        SettingError: it does not fit.
    """
    try:
        return msgspec.convert(_plain(value), hint)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise SettingError(f"{place} is {_shown(value)}, but {_expected(error, hint)}", "correct it") from None


def _plain(value: Any) -> Any:
    """Return Python's own value for one of NumPy or pandas, a list for what yields; others as they are."""
    if isinstance(value, bool | str | bytes | Mapping) or value is None:
        return str(value) if isinstance(value, str) else value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, datetime):
        return datetime.combine(value.date(), value.timetz()) if value == value else None  # pandas' NaT is not
    if isinstance(value, Integral | Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return [_plain(element) for element in value] if isinstance(value, Iterable) else value


def _shown(value: object) -> str:
    """Return a value as a message can hold it."""
    try:
        return f"{value!r:.200}"
    except ValueError:
        return "a number of thousands of digits"


def _expected(error: Exception, hint: Any) -> str:
    """Return what msgspec expected, with the choices where it names none."""
    reason = str(error)
    if not reason.startswith("Invalid"):
        return reason[:1].lower() + reason[1:]
    choices = [choice for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal for choice in get_args(kind)]
    return f"expected one of: {', '.join(map(str, choices))}" if choices else "expected a datetime"


def read_settings(kind: type[_Settings], stored: object, where: str) -> _Settings:
    """Return settings made of what TOML or JSON holds, also settings within them; what is absent takes its default.

    Raises:
        SettingError: no table, a name that is no setting, one that is missing, or a value that cannot be used.
    """
    hints = _hints(cast(Any, kind))
    if not isinstance(stored, Mapping):
        raise SettingError(f"{where} is {_shown(stored)}, but expected a table of: {', '.join(hints)}", "correct it")
    try:
        signature(kind).bind(**stored)
    except TypeError as error:
        raise SettingError(f"{where}: {error}; its settings are: {', '.join(hints)}", "correct it") from None
    values = {
        name: read_settings(hints[name], value, name)
        if is_dataclass(hints[name]) and isinstance(value, Mapping)
        else value
        for name, value in stored.items()
    }
    try:
        return kind(**values)
    except SettingError as error:
        raise SettingError(f"{where}: {error.message}", error.hint) from error
