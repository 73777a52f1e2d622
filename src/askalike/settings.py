"""Settings and queries that check themselves: each field by its annotation, numbers by the bounds that it names.

What does not go together, such as a vector gate of a network that has none, a class of settings refuses by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

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

_Settings = TypeVar("_Settings")


def check_fields(settings: Any, what: str = "") -> None:
    """Check the fields of a frozen dataclass when it is made; NumPy's numbers become Python's, what yields a tuple.

    Args:
        what: what stands before a field's name in a message.

    Raises:
        SettingError: a value of another type than its annotation says, not one of its choices, or out of range.
    """
    kind: Any = type(settings)
    hints = _checked_hints(kind)
    values = {name: getattr(settings, name) for name in hints}
    try:
        fitted = asdict(msgspec.convert(values, _shape(kind)))
    except msgspec.ValidationError:
        fitted = {name: fit(value, hints[name], f"{what}{name}") for name, value in values.items()}
    for name, value in fitted.items():
        if value is not values[name]:
            object.__setattr__(settings, name, value)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(kind)}


@cache
def _checked_hints(kind: Any) -> dict[str, Any]:
    """Return the annotations that are checked; msgspec knows no protocols, and no unions of several dataclasses."""
    return {name: hint for name, hint in _hints(kind).items() if name not in _CHECKED_ELSEWHERE and _is_known(hint)}


@cache
def _shape(kind: Any) -> type[msgspec.Struct]:
    """Return a struct of the checked fields, which msgspec reads at once: a search makes a query."""
    return msgspec.defstruct(kind.__name__, list(_checked_hints(kind).items()))


def _is_known(hint: Any) -> bool:
    try:
        msgspec.convert(None, hint)
    except msgspec.ValidationError:
        return True
    except TypeError:
        return False
    return True


_CHECKED_ELSEWHERE: Final = ("title", "body", "k", "questions")
"""What a search or a store of questions looks at itself, and says what it would take."""


def fit(value: Any, hint: Any, place: str) -> Any:
    """Return a value as an annotation has it.

    Args:
        place: what the value is, for a message.

    Raises:
        SettingError: it does not fit.
    """
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(_plain(value), hint)
    except (msgspec.ValidationError, TypeError, ValueError):
        raise SettingError(f"{place} is {_shown(value)}, but expected {_described(hint)}", "correct it") from None


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
    """Return a value as a message can hold it: TOML allows numbers of thousands of digits."""
    try:
        shown = repr(value)
    except ValueError:
        shown = ""
    is_long = isinstance(value, int) and abs(value) >= 10**30
    return "a number of more than 30 digits" if is_long or not shown else shown[:200]


def _described(hint: Any) -> str:
    origin, kinds = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_described, kinds)))
    if origin is Literal:
        return f"one of: {', '.join(map(str, kinds))}"
    if origin is Mapping:
        return f"a table, in which each is {_described(kinds[1])}"
    if origin in (tuple, frozenset):
        return f"a list, each {_described(kinds[0])}"
    if hint == Finite:
        return "a finite number"
    if origin is Annotated and kinds[0] is str:
        return f"a text of at most {kinds[1].max_length:,} characters"
    if origin is Annotated:
        least, most = (f"{bound:,}" if isinstance(bound, int) else f"{bound:g}" for bound in (kinds[1].ge, kinds[1].le))
        return f"{_NAMES[kinds[0]]} from {least} to {most}"
    return "a table" if is_dataclass(hint) else _NAMES.get(hint, getattr(hint, "__name__", str(hint)))


_NAMES: Final[Mapping[Any, str]] = {
    NoneType: "None",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    datetime: "a datetime",
}


def read_table(stored: Mapping[str, Any], name: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return a table of a recipe by its name.

    Raises:
        SettingError: it is missing and has no default, or is no table.
    """
    table: object = stored.get(name, default)
    if not isinstance(table, Mapping):
        what = "a recipe without it" if table is None else f"{table!r}"
        raise SettingError(f"expected a table [{name}], but found {what}", f"write [{name}] and its settings below")
    return table


def read_settings(kind: type[_Settings], stored: Mapping[str, Any], where: str) -> _Settings:
    """Return settings made of what TOML or JSON holds; those that are absent take their defaults.

    Raises:
        SettingError: a name that is no setting, one that is missing, or a value that cannot be used; names the place.
    """
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    if unknown := sorted(set(stored) - set(known)):
        raise SettingError(f"{where}: {', '.join(unknown)} is unknown, expected only: {', '.join(known)}", "correct it")
    needed = (name for name, entry in known.items() if entry.default is MISSING and entry.default_factory is MISSING)
    if missing := [name for name in needed if name not in stored]:
        raise SettingError(f"{where}: {', '.join(missing)} is missing", f"add {missing[0]}")
    try:
        hints = _checked_hints(cast(Any, kind))
        return kind(**{name: fit(value, hints.get(name, Any), name) for name, value in stored.items()})
    except SettingError as error:
        raise SettingError(f"{where}: {error.message}", error.hint) from error


def read_stored(kind: type[_Settings], stored: Mapping[str, Any], what: str) -> _Settings:
    """Return settings that were stored with a model, all of them; settings within them take their defaults.

    Raises:
        SettingError: a name too many or too few, or a value that cannot be used.
    """
    hints = _hints(cast(Any, kind))
    if set(stored) != set(hints):
        raise SettingError(
            f"{what} are {', '.join(sorted(stored))[:200] or 'none'}, but expected {', '.join(sorted(hints))}",
            "use the config.json that was saved with the model",
        )
    return kind(
        **{
            name: read_settings(hints[name], value, name)
            if is_dataclass(hints[name]) and isinstance(value, Mapping)
            else value
            for name, value in stored.items()
        }
    )
