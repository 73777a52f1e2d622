"""``askalike config``: a forum's own defaults for the options of commands, kept as TOML in its folder.

::

    [search]
    k = 5
    answered = true

    [site]
    url = "https://forum.example.org/t/{id}"

What is given on the command line counts more. Only options of ``CONFIGURABLE`` have defaults here, none that lets
everyone in. ``site.url`` is of the forum itself: where its own site shows a question.
"""

from __future__ import annotations

import functools
import inspect
import json
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import typer

from askalike.addresses import check_pattern, read_config
from askalike.cli.arguments import ForumArgument, JsonOption, SearchOptions, moment
from askalike.cli.display import print_json, print_whole, safe
from askalike.errors import InputError, SettingError
from askalike.files import replace_whole
from askalike.search import RANKER_NAMES
from askalike.search.settings import THRESHOLDS
from askalike.search.thresholds import parse_minimum
from askalike.store import ForumLayout
from askalike.store.layout import not_found
from askalike.types import Order

CONFIGURABLE: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("search", "similar"),
        tuple(one.name.replace("_", "-") for one in fields(SearchOptions) if one.name != "explain"),
    ),
    "duplicates": ("min", "since", "exact", "limit"),
    "serve": ("host", "port", "workers", "threads", "allow-origin", "rate", "timeout", "outcomes", "rival"),
    "site": ("url",),
}
"""Command → the options that may have a default of the forum's own; ``site`` is no command."""

Settings = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Option:
    """An option of a command: the parameter of its function, and what that takes."""

    name: str
    kind: type
    is_list: bool
    least: float | None
    most: float | None

    def value(self, key: str, given: Any) -> Any:
        """Return a value as the function takes it.

        Raises:
            SettingError: it takes no such value.
        """
        option = key.partition(".")[2]
        if option in ("minimum", "min") and not isinstance(given, list):
            parse_minimum(given := str(given))
        listed = given if isinstance(given, list) else [given]
        numbers = (int, float) if self.kind is float else (self.kind,)
        expected = f"{'a list of ' if self.is_list else ''}{_NAMES[self.kind]}"
        fits = isinstance(given, list) == self.is_list and all(type(one) in numbers for one in listed)
        for one in listed if fits and self.kind in (int, float) else ():
            fits = (self.least is None or one >= self.least) and (self.most is None or one <= self.most)
            expected = f"a number from {self.least or 0} on" if self.most is None else f"{self.least} to {self.most}"
        if fits and option in _CHOICES:
            fits, expected = given in _CHOICES[option], f"one of {', '.join(_CHOICES[option])}"
        if not fits:
            raise SettingError(f"the forum's default of {key} is {_toml(given)}", f"expected {expected}")
        if option in ("before", "after", "since"):
            moment(str(given), key)
        if option == "url":
            check_pattern(str(given), key)
        return given


_NAMES: Final[Mapping[type, str]] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_CHOICES: Final[Mapping[str, Collection[str]]] = {
    "ranker": RANKER_NAMES,
    "threshold": THRESHOLDS,
    "order": get_args(Order),
}
_FUNCTIONS: Final[dict[str, dict[str, _Option]]] = {"site": {"url": _Option("url", str, False, None, None)}}


def _options(function: Callable[..., None]) -> dict[str, _Option]:
    """Return the options of a command's function by their names without dashes."""
    found: dict[str, _Option] = {}
    for parameter in _parameters(function):
        name = parameter.name
        annotated, info = get_args(parameter.annotation)[:2]
        kinds = [type(one) if isinstance(one, str) else one for one in (get_args(annotated) or (annotated,))]  # choices
        kinds = [one for one in kinds if one is not type(None)]
        is_list = get_origin(kinds[0]) is list
        kind = get_args(kinds[0])[0] if is_list else kinds[0]
        named = [info.default, *(info.param_decls or ())]  # typer holds the first word of an option as its default
        for words in (one for one in named if isinstance(one, str) and one.startswith("--")):
            key = words.split("/")[0].removeprefix("--")
            found[key] = _Option(name, kind, is_list, getattr(info, "min", None), getattr(info, "max", None))
    return found


def _parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    """Return the parameters of a command's function, those of ``SearchOptions`` in place of one of that type."""
    found: list[inspect.Parameter] = []
    for one in inspect.signature(function, eval_str=True).parameters.values():
        if one.annotation is SearchOptions:
            kinds = get_type_hints(SearchOptions, include_extras=True)
            found += [
                one.replace(name=it.name, default=it.default, annotation=kinds[it.name]) for it in fields(SearchOptions)
            ]
        else:
            found.append(one)
    return found


def configured(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes what its forum's configuration says for options that were not given."""
    command = function.__name__
    options = _FUNCTIONS[command] = _options(function)
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *_parameters(function)]
    has_search = "options" in inspect.signature(function).parameters

    @functools.wraps(function)
    def with_defaults(ctx: typer.Context, **given: Any) -> None:
        for key, value in load_config(given["forum"]).get(command, {}).items():
            source = ctx.get_parameter_source(options[key].name)
            if source is None or source.name == "DEFAULT":
                given[options[key].name] = options[key].value(f"{command}.{key}", value)
        if has_search:
            given["options"] = SearchOptions(**{one.name: given.pop(one.name) for one in fields(SearchOptions)})
        function(**given)

    with_defaults.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_defaults.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_defaults


def load_config(forum: Path) -> Settings:
    """Return a forum's configuration: command → option → value.

    Raises:
        InputError: the file cannot be read, or names a command or an option that has no default there.
    """
    path = ForumLayout(forum).config
    found: Settings = read_config(path)
    for command, options in found.items():
        for key in options if isinstance(options, dict) else ("",):
            if key not in CONFIGURABLE.get(command, ()):
                name = f"{command}.{key}" if key else command
                raise InputError(f"{path} names {name!r}", f"expected {_choices(command)}")
    return found


def config(
    forum: ForumArgument,
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="An option of a command, as search.k, or site.url; all if omitted.",
            show_default=False,
            autocompletion=lambda incomplete: [
                name
                for command, options in CONFIGURABLE.items()
                for name in (f"{command}.{option}" for option in options)
                if name.startswith(incomplete)
            ],
        ),
    ] = "",
    value: Annotated[
        list[str] | None, typer.Argument(metavar="VALUE", help="Its new default.", show_default=False)
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Take the forum's own default away.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show or set a forum's own defaults for options.

    They are kept in config.toml in the forum's folder, and count where an option is not given: of search, similar,
    duplicates and serve. site.url is where the forum's site shows a question, as https://forum.example.org/t/{id}:
    links of page, widget, library and commands lead there. A service reads it when it starts.
    """
    if not ForumLayout(forum).is_forum():
        raise not_found(ForumLayout(forum).archive)
    held = load_config(forum)
    command, _, option = key.partition(".")
    if key and option not in CONFIGURABLE.get(command, ()):
        raise SettingError(f"{key!r} has no default in a forum", f"expected {_choices(command)}")
    if ((unset or value) and not key) or (unset and value):
        raise SettingError("expected a key and either values or --unset", "such as: config FORUM search.k 5")
    if unset:
        held.get(command, {}).pop(option, None)
        _save(forum, held)
    elif value:
        chosen, read = _FUNCTIONS[command][option], [_read(one) for one in value]
        if chosen.kind is str:
            read = list(value)
        if not chosen.is_list and len(read) > 1:
            raise SettingError(f"{key} takes one value, and got {len(read)}", "give one")
        given = chosen.value(key, read if chosen.is_list else read[0])
        held.setdefault(command, {})[option] = given
        _save(forum, held)
    _show(held, command if key else "", option, as_json=as_json)


def _show(held: Settings, command: str, option: str, *, as_json: bool) -> None:
    shown = {name: dict(options) for name, options in held.items() if options and command in ("", name)}
    if option:
        shown = {name: {option: options[option]} for name, options in shown.items() if option in options}
    if as_json:
        print_json(shown)
        return
    for name, options in shown.items():
        for key, value in options.items():
            print_whole(safe(f"{name}.{key} = {_toml(value)}"))
    if not shown:
        print_whole("The forum has no default of its own here.")


def _read(text: str) -> object:
    """Return the number or truth value that a word of the command line is in TOML, or the word itself."""
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text
    return found if isinstance(found, bool | int | float) else text


def _toml(value: object) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value)).replace("\x7f", "\\u007f")


def _save(forum: Path, held: Settings) -> None:
    parts = [f"[{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in held[name].items()) for name in held]
    replace_whole(ForumLayout(forum).config, "\n".join(parts).encode())


def _choices(command: str) -> str:
    if command in CONFIGURABLE:
        return f"one of {', '.join(f'{command}.{option}' for option in CONFIGURABLE[command])}"
    return f"an option of {', '.join(CONFIGURABLE)}, such as search.k"
