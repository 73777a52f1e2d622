"""One request and its reply: what is read of it, within bounds of size, depth and time."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import inspect

from askalike.operations import JSON
from askalike.server.guards import client_of, rate_key
from askalike.server.problem import Refused
from askalike.server.settings import Network

_Body = TypeVar("_Body", bound=msgspec.Struct)

LONGEST_NAME: Final = 100
"""Characters of a field's name that a refusal repeats."""
_FAULT: Final = re.compile(r"(?P<fault>.*?)(?: - at `(?:key in )?\$\.?(?P<field>.*)`)?", re.DOTALL)
"""How msgspec says what is wrong, and where."""
_UNKNOWN: Final = "Object contains unknown field `"
_NO_CHOICE: Final = "Invalid enum value "


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered."""

    content: bytes
    media: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Request:
    """One request, as ASGI brings it.

    Args:
        proxies: whose word on the client's address counts.

    Attributes:
        path: percent-encoded, since an id may hold a slash.
        client: the address that it counts for.
        client_key: under what that client's requests are counted.
        route: the name of what answers, for the log; "" until that is known.
        values: the values of the path's names.
        query: a checked struct, None where the route takes no query.
        body: a checked struct, None where the route takes no body.
        rights: what its key may do: "read", "write".
        key_name: of its key, which some routes keep.
    """

    def __init__(self, scope: Mapping[str, Any], receive: Any, proxies: Sequence[Network] = ()) -> None:
        self.method: str = scope["method"]
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        self.path = raw.partition(b"?")[0].decode("latin-1")
        self.query_string: bytes = scope["query_string"]
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        self.headers = dict(reversed(headers))  # of a name that comes twice, the first
        peer, forwarded = scope.get("client"), ",".join(value for name, value in headers if name == "x-forwarded-for")
        self.client = client_of(peer[0], forwarded, proxies) if peer else ""
        self.client_key = rate_key(self.client)
        self.route = ""
        self.values: Mapping[str, str] = {}
        self.query: Any = None
        self.body: Any = None
        self.rights: frozenset[str] = frozenset()
        self.key_name = ""
        self._receive = receive

    async def read_body(self, most_bytes: int, timeout_s: float, types: Sequence[str] = (JSON,)) -> bytes:
        """Return the body.

        Args:
            types: of the content that are taken.

        Raises:
            Refused: 415, it is of another type; 413, it is too large; 408, it comes too slowly.
        """
        self._check_type(types)
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > most_bytes:
            raise _too_large(most_bytes)
        content = bytearray()
        try:
            async with asyncio.timeout(timeout_s):
                is_more = True
                while is_more:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the client went away")
                    content += message.get("body", b"")
                    is_more = message.get("more_body", False)
                    if len(content) > most_bytes:
                        raise _too_large(most_bytes)
        except TimeoutError as error:
            raise Refused(408, f"the body did not come within {timeout_s:g} s", "send it at once") from error
        return bytes(content)

    def _check_type(self, types: Sequence[str]) -> None:
        """Refuse a body of another type: one that a page's form can send could come from any site."""
        sent = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if sent not in types:
            raise Refused(415, f"the content type is {sent[:100]!r}", f"expected {' or '.join(types)}")
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "the body is compressed", "send it as it is")


def _too_large(most_bytes: int) -> Refused:
    hint = "send less; index an archive with askalike index"
    return Refused(413, f"the body is larger than {most_bytes} bytes", hint)


def parse_body(kind: type[_Body], content: bytes) -> _Body:
    """Return what JSON holds; reading ends at the first value that does not fit.

    Raises:
        Refused: 400, it is not UTF-8 or not JSON; 422, a value does not fit.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise _unfit(kind, error, "the body") from error
    except msgspec.DecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}", "send one JSON object") from error
    except UnicodeDecodeError as error:
        raise Refused(400, "the body is not UTF-8", "encode it as UTF-8") from error


def parse_query(kind: type[_Body] | None, query: bytes) -> _Body | None:
    """Return what a query string holds; a name without a value counts as left out.

    Raises:
        Refused: 400, it is not UTF-8, or a name comes twice; 422, a value does not fit.
    """
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50, encoding="utf-8"
        )
    except ValueError as error:
        raise Refused(400, f"the query string cannot be read: {error}", "percent-encode it as UTF-8") from error
    values = dict(pairs)
    if len(values) < len(pairs):
        raise Refused(400, "a name comes twice in the query string", "name each once")
    if kind is None:
        return None
    try:
        return msgspec.convert({name: value for name, value in values.items() if value}, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _unfit(kind, error, "the query string") from error


def path_values(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a path whose parts are percent-encoded.

    Raises:
        Refused: 400, one is not UTF-8.
    """
    try:
        return {name: unquote(value, errors="strict") for name, value in values.items()}
    except UnicodeDecodeError as error:
        raise Refused(400, "the path is not UTF-8", "percent-encode it as UTF-8") from error


def _unfit(kind: type[msgspec.Struct], error: msgspec.ValidationError, whole: str) -> Refused:
    """Return the refusal of a value that does not fit, with the names or the values that are taken in its place.

    Args:
        whole: what was read.
    """
    parts = _FAULT.fullmatch(str(error))
    fault, field = (parts["fault"], parts["field"] or "") if parts else (str(error), "")
    expected, hint = _type_at(kind, field), "see /openapi.json"
    if fault.startswith(_UNKNOWN):
        name = fault.removeprefix(_UNKNOWN)[:-1][:LONGEST_NAME]
        fault = f"`{name}` is not a field"
    elif fault.startswith(_NO_CHOICE):
        name = fault.removeprefix(_NO_CHOICE)[1:-1][:LONGEST_NAME]
        fault = f"{name!r} is not a value that it may have"
    else:
        name = ""
    choices: list[str] = []
    if isinstance(expected, inspect.LiteralType):
        choices = [str(value) for value in expected.values]
        hint = f"expected one of {', '.join(choices)}; {hint}"
    elif isinstance(expected, inspect.StructType):
        choices = [field.encode_name for field in expected.fields]
        hint = f"the fields are {', '.join(choices)}; {hint}"
    if near := difflib.get_close_matches(name, choices, 1):
        hint = f"did you mean {near[0]}? {hint}"
    return Refused(422, f"{field[:LONGEST_NAME] or whole}: {fault}", hint)


def _type_at(kind: type[msgspec.Struct], path: str) -> inspect.Type:
    """Return the type that a path such as ``draw.by`` or ``fields[0]`` leads to, as msgspec writes it."""
    node = _bare(inspect.type_info(kind))
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(node, inspect.StructType):
            node = _bare(next(field.type for field in node.fields if field.encode_name == part))
        elif isinstance(node, inspect.VarTupleType):
            node = _bare(node.item_type)
    return node


def _bare(node: inspect.Type) -> inspect.Type:
    """Return a type without its bounds, and of one that may be null the other."""
    while isinstance(node, inspect.Metadata | inspect.UnionType):
        node = node.type if isinstance(node, inspect.Metadata) else node.types[0]
    return node
