"""One request, taken apart and checked: what a route's function gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, ValidationError

from askalike.server.problem import Refused

_Model = TypeVar("_Model", bound=BaseModel)

MOST_TOLD: Final = 3
LONGEST_NAME: Final = 100
"""Of a field that a request names, in the answer."""
MOST_VALUES: Final = 10_000
"""Values in one JSON text: several times what the largest request needs."""
_BEGINS: Final = (b"[", b"{", b",")
"""Before every value but the first is one of these, outside of texts."""


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked.

    Args:
        path: the values of the path's names.
        query: a checked model, None where the route takes no query.
        body: a checked model, None where the route takes no body.
        may: what the request's key may do: "read", "write".
    """

    path: Mapping[str, str]
    query: Any
    body: Any
    may: frozenset[str]


def parse_json(content: bytes, depth: int) -> Any:
    """Return what JSON holds, in time that is linear in its length.

    Raises:
        Refused: 400, it is not UTF-8, not JSON, nested deeper than ``depth``, has too many values, or holds NaN or a
            number without end.
    """
    if values_in(content) > MOST_VALUES:
        raise Refused(400, f"the JSON has more than {MOST_VALUES} values", "send a flat object")
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8 at byte {error.start + 1}", "encode it as UTF-8") from error
    except RecursionError as error:  # the parser's own limit, far above ours
        raise _too_deep(depth) from error
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {error}", "send one JSON object") from error
    level = [found]
    for _ in range(depth):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    if any(isinstance(one, dict | list) for one in level):
        raise _too_deep(depth)
    return found


def values_in(content: bytes) -> int:
    """Return how many values JSON holds at most, before it is read: a MB of brackets takes the parser 0.2 s.

    Exact where it matters; of short ones, what texts hold counts too.

    >>> values_in(b'{"a": [1, 2]}')
    4
    """
    found = sum(map(content.count, _BEGINS))
    if found <= MOST_VALUES:
        return 1 + found
    unescaped = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    texts = unescaped.count(b'"') // 2
    if texts > 2 * MOST_VALUES:  # at least every other one is a value, and not the name of one
        return texts // 2
    outside = b"".join(unescaped.split(b'"')[::2])
    return 1 + sum(map(outside.count, _BEGINS))


def _too_deep(depth: int) -> Refused:
    return Refused(400, f"the JSON is nested deeper than {depth}", "send a flat object")


def checked(model: type[_Model], found: Any) -> _Model:
    """Return a value that satisfies a model.

    Raises:
        Refused: 422; the message names the fields, never their values.
    """
    try:
        return model.model_validate(found)
    except ValidationError as error:
        found_wrong = error.errors(include_url=False, include_context=False, include_input=False)[:MOST_TOLD]
        told = [f"{'.'.join(map(str, one['loc']))[:LONGEST_NAME] or 'the body'}: {one['msg']}" for one in found_wrong]
        names = ", ".join(model.model_fields)
        raise Refused(422, "; ".join(told), f"the fields are {names}; see /openapi.json") from error


def parse_query(model: type[_Model] | None, query: bytes) -> _Model | None:
    """Return what a query string holds.

    Raises:
        Refused: 400, it is not UTF-8, or a name comes twice; 422, a value does not fit.
    """
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50, encoding="utf-8"
        )
    except ValueError as error:
        raise Refused(400, f"the query string cannot be read: {error}", "percent-encode it as UTF-8") from error
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused(400, "a name comes twice in the query string", "name each once")
    if model is None:
        return None
    return checked(model, {name: value for name, value in found.items() if value})


def path_values(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a path whose parts are percent-encoded.

    Raises:
        Refused: 400, one is not UTF-8.
    """
    try:
        return {name: unquote(str(value), errors="strict") for name, value in values.items()}
    except UnicodeDecodeError as error:
        raise Refused(400, "the path is not UTF-8", "percent-encode it as UTF-8") from error


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
