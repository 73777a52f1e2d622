"""Settings and queries that check what they are given: types by their annotations, numbers by one table of ranges.

What does not go together, such as a vector gate of a network that has none, a class of settings refuses by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from askalike.errors import SettingError

Range = tuple[float, float]
"""The least and the greatest number that is taken."""

_TINIEST: Final = 1e-12
_BELOW_ONE: Final = (0, 0.999)
_SHARE: Final = (0, 1)
_SIZE: Final = (1, 4_096)
_BATCH: Final = (1, 65_536)
_ROUNDS: Final = (1, 100_000)
_COUNT: Final = (1, 1_000_000_000)
_HELD_OUT: Final = (0, 10_000_000)
_SEED: Final = (0, 2**32 - 1)
_SIAMESE: Final[Mapping[str, Range]] = {
    "kernel_width": (1, 1_000),
    "channels": (1, 1_024),
    "poolings": (1, 100_000),
    "output_size": _SIZE,
}

RANGES: Final[Mapping[str, Mapping[str, Range]]] = {
    "EncoderConfig": {
        "input_size": _SIZE,
        "hidden_size": _SIZE,
        "order": (1, 64),
        "decay": _BELOW_ONE,
        "layers": (1, 16),
    },
    "Manifest": {"format": (1, 1_000_000)},
    "ModelSettings": {"word_limit": (1, 100_000)},
    "Recipe": {"word_limit": (1, 100_000), "gate_bias": (-10, 10), "spread": (0, 10)},
    "WordSettings": {
        "max_size": (1, 10_000_000),
        "min_count": _COUNT,
        "size": _SIZE,
        "epochs": _ROUNDS,
        "workers": (1, 256),
    },
    "Word2VecSettings": {
        "size": _SIZE,
        "window": (1, 1_000),
        "negative": (1, 1_000),
        "epochs": _ROUNDS,
        "sample": _BELOW_ONE,
        "learning_rate": (_TINIEST, 1),
        "last_learning_rate": (_TINIEST, 1),
    },
    "TrainingRun": {"seed": _SEED, "checkpoint_s": (0, 1e9)},
    "StageSettings": {"dropout": _BELOW_ONE, "first_epoch": (0, 100)},
    "LoopSettings": {
        "epochs": _ROUNDS,
        "learning_rate": (_TINIEST, 100),
        "clip": (_TINIEST, 1e12),
        "patience": (0, 100_000),
    },
    "SgdSettings": {"momentum": _BELOW_ONE},
    "DecodingOptions": {"batch_size": _BATCH, "held_out": _HELD_OUT},
    "MaxMarginOptions": {"batch_size": _BATCH, "negatives": (1, 10_000), "margin": (_TINIEST, 1_000)},
    "ContrastiveOptions": {
        "views": (0, 1_000),
        "batch_size": (2, 65_536),
        "temperature": (1e-4, 1_000),
        "hard_negatives": (0, 1_000),
        "topical": _SHARE,
    },
    "ReconstructionOptions": {"batch_size": _BATCH, "held_out": _HELD_OUT},
    "ScqaSettings": {**_SIAMESE, "batch_size": (4, 65_536), "margin": _BELOW_ONE, "held_out": _HELD_OUT},
    "RamnSettings": {"alpha": (0, 0.1), "floor": (1e-9, 1), "mismatch_weight": (0, 10)},
}
"""Name of a class of settings → setting → its range; of a list or table of numbers, that of each. Settings of a class
that a class extends are those of both. Beyond it a training could not begin, or would never end."""

_Settings = TypeVar("_Settings")


def ranges_of(kind: type) -> dict[str, Range]:
    """Return the range of each number of a class of settings."""
    return {name: found for base in reversed(kind.__mro__) for name, found in RANGES.get(base.__name__, {}).items()}


def check_settings(settings: Any, what: str = "") -> None:
    """Check the fields of a dataclass when it is made; settings within settings check themselves.

    Args:
        what: what stands before a setting's name in a message.

    Raises:
        SettingError: a value of another type than its annotation says, not one of its choices, or out of range.
    """
    kind: Any = type(settings)
    check_values(kind, {name: getattr(settings, name) for name in _hints(kind)}, what)


def check_values(kind: type, values: Mapping[str, object], what: str = "") -> None:
    """Check values by the names of a dataclass's fields, as ``check_settings`` does."""
    hints, ranges = _hints(kind), ranges_of(kind)
    for name, value in values.items():
        _check(what + name, value, hints[name], ranges.get(name, (-1e300, 1e300)))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {entry.name: known[entry.name] for entry in fields(kind)}


def _check(place: str, value: Any, hint: Any, within: Range) -> None:
    origin, kinds = get_origin(hint), get_args(hint)
    if origin is UnionType and kinds[1] is NoneType:
        if value is not None:
            _check(place, value, kinds[0], within)
    elif origin is Literal:
        _expect(isinstance(value, str) and value in kinds, place, value, f"one of: {', '.join(kinds)}")
    elif origin is tuple:
        _expect(isinstance(value, tuple), place, value, "a list")
        for number, one in enumerate(value, start=1):
            _check(f"{place}, number {number},", one, kinds[0], within)
    elif origin is Mapping:
        _expect(isinstance(value, Mapping), place, value, "a table")
        for key, one in value.items():
            _check(f"a name in {place}", key, kinds[0], within)
            _check(f"{place}.{key}", one, kinds[1], within)
    elif hint in (int, float):
        is_number = isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
        is_within = is_number and within[0] <= value <= within[1]  # nan is not
        _expect(is_within, place, value, f"a {'whole ' * (hint is int)}number from {_written(within)}")
    elif is_dataclass(hint):
        _expect(isinstance(value, hint), place, value, "a table")  # type: ignore[arg-type]
    elif hint in _PLAIN:
        _expect(isinstance(value, hint), place, value, _PLAIN[hint])


_PLAIN: Final = {bool: "true or false", str: "a text"}


def _expect(is_met: bool, place: str, value: object, expected: str) -> None:
    if not is_met:
        raise SettingError(f"{place} is {_shown(value)}, but expected {expected}", "correct it")


def _written(within: Range) -> str:
    is_whole = all(isinstance(bound, int) for bound in within)
    return " to ".join(f"{bound:,}" if is_whole else f"{bound:g}" for bound in within)


def _shown(value: object) -> str:
    """Return a value as a message can hold it: TOML allows numbers of thousands of digits."""
    is_long = isinstance(value, int) and abs(value) >= 10**30
    return "a number of more than 30 digits" if is_long else repr(value)[:200]


def check_fields(value: Any) -> None:
    """Check the fields of a value by their annotations; numbers of NumPy become Python's, what yields becomes a tuple.

    Args:
        value: a frozen dataclass or struct.

    Raises:
        SettingError: it names the field, what was given, and what was expected.
    """
    kind: Any = type(value)
    for name, hint, plain, empty in _all_hints(kind):
        given = getattr(value, name)
        if type(given) in plain or (type(given) is empty and not given):  # nearly all: a search makes a query
            continue
        try:
            found = _fitting(given, hint)
        except _UnfitError:
            raise SettingError(
                f"{name} of a {kind.__name__.lower()} is {_shown(given)}", f"expected {_described(hint)}"
            ) from None
        if found is not given and is_dataclass(kind):
            object.__setattr__(value, name, found)


@cache
def _all_hints(kind: Any) -> list[tuple[str, Any, frozenset[Any], Any]]:
    """Return each field with its hint, the types that need no other look, and the type that needs none when empty."""
    found: list[tuple[str, Any, frozenset[Any], Any]] = []
    for name, hint in get_type_hints(kind).items():
        origin = get_origin(hint)
        kinds = get_args(hint) if origin in (Union, UnionType) else (hint,)
        plain = {str if get_origin(one) is Literal else one for one in kinds}
        known = frozenset(one for one in plain if one in (str, bool, int, NoneType) or is_dataclass(one))
        if name not in _SAID_ELSEWHERE:
            found.append((name, hint, known, origin))
    return found


_SAID_ELSEWHERE: Final = ("title", "body", "k", "questions")
"""What a search or a store of questions looks at itself, and says what it would take."""


class _UnfitError(Exception):
    """A value is not of a type."""


def _fitting(value: Any, hint: Any) -> Any:
    """Return a value as a type has it, or raise _UnfitError."""
    origin, kinds = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _first_fitting(value, kinds)
    if origin is frozenset or (origin is tuple and kinds[-1] is ...):
        return origin(_all_fitting(value, kinds[0]))
    if hint in _FITTING:
        if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
            value = value.item()  # a number of NumPy
        return _FITTING[hint](value)
    wanted_kind: Any = str if origin is Literal else origin or hint
    return value if not isinstance(wanted_kind, type) or isinstance(value, wanted_kind) else _refuse()


def _first_fitting(value: Any, kinds: Sequence[Any]) -> Any:
    for kind in kinds:
        try:
            return _fitting(value, kind)
        except _UnfitError:
            continue
    return _refuse()


def _all_fitting(value: Any, kind: Any) -> Any:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        _refuse()
    try:
        listed = value if isinstance(value, list | tuple) else list(value)
    except TypeError:  # a number of NumPy
        _refuse()
    if isinstance(kind, type) and kind is not float and all(type(one) is kind for one in listed):
        return listed
    return [_fitting(one, kind) for one in listed]


def _refuse() -> Any:
    raise _UnfitError


def _whole(value: Any) -> int:
    return _refuse() if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        _refuse()
    return float(value) if -1e300 <= value <= 1e300 else _refuse()  # nan is not


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) and value == value else _refuse()  # pandas' NaT is not


def _plain(kind: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kind) else _refuse()


_FITTING: Final[Mapping[Any, Callable[[Any], Any]]] = {
    Any: lambda value: value,
    NoneType: lambda value: value if value is None else _refuse(),
    bool: _plain(bool),
    int: _whole,
    float: _number,
    str: _plain(str),
    datetime: _moment,
}
_NAMES: Final[Mapping[Any, str]] = {
    NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    datetime: "a datetime",
}


def _described(hint: Any) -> str:
    origin, kinds = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_described, kinds)))
    if origin is frozenset or (origin is tuple and kinds[-1] is ...):
        return f"several, each {_described(kinds[0])}"
    if origin is Literal:
        return f"one of {', '.join(map(str, kinds))}"
    return _NAMES.get(hint, getattr(hint, "__name__", str(hint)))


def read_table(stored: Mapping[str, Any], name: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return a table of a recipe by its name.

    Raises:
        SettingError: it is missing and has no default, or is no table.
    """
    found: object = stored.get(name, default)
    if not isinstance(found, Mapping):
        what = "a recipe without it" if found is None else f"{found!r}"
        raise SettingError(f"expected a table [{name}], but found {what}", f"write [{name}] and its settings below")
    return found


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
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    try:
        check_values(kind, values)
        return kind(**values)
    except SettingError as error:
        raise SettingError(f"{where}: {error.message}", error.hint) from error


def read_stored(kind: type[_Settings], stored: Mapping[str, Any], what: str) -> _Settings:
    """Return settings that were stored with a model, all of them; settings within them take their defaults.

    Raises:
        SettingError: a name too many or too few, or a value that cannot be used.
    """
    made: Any = kind
    hints = _hints(made)
    if set(stored) != set(hints):
        raise SettingError(
            f"{what} are {', '.join(sorted(stored))[:200] or 'none'}, but expected {', '.join(sorted(hints))}",
            "use the config.json that was saved with the model",
        )
    values = {}
    for name, value in stored.items():
        is_nested = is_dataclass(hints[name]) and isinstance(value, Mapping)
        read = read_settings(hints[name], value, name) if is_nested else value
        values[name] = tuple(read) if isinstance(read, list) else read
    return kind(**values)
