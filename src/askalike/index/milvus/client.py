"""The border to Milvus: one connection, collections of a forum by name, and rows that say which collections answer.

::

    askalike_FORUM_state                the rows, by name; each is replaced whole
    askalike_FORUM_words_FP_GENERATION  words by one analysis        row words_FP
    askalike_FORUM_terms_FP_GENERATION  its terms, with their counts
    askalike_FORUM_vectors_FP_GENERATION  vectors by one model       row vectors_FP
    askalike_FORUM_codes_FP_GENERATION  their codes, of a bit for each direction

FP is the fingerprint of the analysis or the model, so that who asks by one model never gets the answer of another. A
generation is filled beside the one that answers; the row then names it, and the one before is dropped an hour later,
when no search can be under way in it.

What filters ask of a question is kept and asked as digits alone: what anybody wrote is never part of an expression.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
import secrets
import socket
import struct
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import starmap
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EngineError, MissingExtraError, SettingError
from askalike.index.cursor import Cursor
from askalike.store.rows import to_microseconds
from askalike.types import Filters, Question

SERVER: Final = "milvus://"
FILE: Final = "milvus:"
TOKEN_VARIABLE: Final = "ASKALIKE_ENGINE_TOKEN"
"""Names the environment variable of the server's key, or "user:password"."""
TIMEOUT_S: Final = 60
READ_TIMEOUT_S = 10.0
CONNECT_S: Final = 5
KNOCK_S: Final = 0.5
"""A server that does not take a connection for so long is away; pymilvus itself tries for seconds."""
AWAY_S: Final = 5.0
"""So long an engine that was away is not asked again: every call fails at once."""
MOST_FOUND: Final = 16_384
"""Milvus gives no more at once."""
MOST_BYTES: Final = 65_000
"""Of a text in a row."""
ROWS_TOGETHER: Final = 500
DROPPED_AFTER_S: Final = 3_600
UNUSED_AFTER_S: Final = 3_600
FRESH_S: Final = 1.0
"""So old may be what a search knows of the rows that other machines write."""
FORMAT: Final = 1
_DIMENSION: Final = struct.Struct("<If")
"""Of a sparse vector: its number and its value."""
_SEARCH: Final = "/milvus.proto.milvus.MilvusService/Search"


class Rows(NamedTuple):
    """What was found for one vector, best first; ``fields`` has a column for each field, where anything was found."""

    nums: Sequence[int]
    scores: Sequence[float]
    fields: Mapping[str, Sequence[Any]]


Alone = Callable[[str], AbstractContextManager[None]]
"""Keeps other machines from writing the index of this name."""


class Milvus:
    """What one forum has in a Milvus; any thread may ask, and the connection is made when it is first needed.

    Args:
        address: as ``choice.check_engine`` gives it.
        forum: a name that no other forum has.
        token: the server's key, or "".
        clock: seconds since 1970.
    """

    def __init__(self, address: str, forum: str, token: str = "", clock: Callable[[], float] = time.time) -> None:
        self.address = address
        self.clock = clock
        self._prefix = f"askalike_{forum}_"
        self._token = token
        self._guard = threading.Lock()
        self._client: Any = None
        self._failed: tuple[float, EngineError] | None = None
        self._rows: tuple[float, dict[str, dict[str, Any]]] | None = None
        self._search: tuple[Any, Any] | None = None
        self._secret = [("authorization", base64.b64encode(token.encode()).decode())] if token else []

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of ``pymilvus.MilvusClient``.

        Raises:
            EngineError: the engine does not answer, or refuses.
        """
        client = self._connected()
        # whole seconds: pymilvus takes others for no limit, and asks a server that is away for minutes
        timeout_s = ceil(READ_TIMEOUT_S if name in ("search", "query") else TIMEOUT_S)
        return self._answered(lambda: getattr(client, name)(*arguments, timeout=timeout_s, **named))

    def _answered(self, answer: Callable[[], Any]) -> Any:
        try:
            with self._explained():
                return answer()
        except EngineError as error:
            if not is_refusal(error.__cause__):  # another connection is made, when the engine is asked again
                self.close()
                self._failed = (time.monotonic(), error)
            raise

    @property
    def is_up(self) -> bool:
        """Return whether the engine answers; asked at most every second, and not while it is known to be away."""
        try:
            self.row("")
        except EngineError:
            return False
        return True

    def close(self) -> None:
        """Close the connection; a later call makes another."""
        self._close(self._client)

    def _close(self, client: Any) -> None:
        """Close a connection, unless it was replaced meanwhile."""
        with self._guard:
            if client is None or self._client is not client:
                return
            self._client = None
        client.close()

    def _connected(self) -> Any:
        with self._guard:
            if self._client is None:
                if self._failed is not None and time.monotonic() - self._failed[0] < AWAY_S:
                    raise self._failed[1]
                try:
                    with self._explained():
                        self._client = self._connect()
                except EngineError as error:
                    self._failed = (time.monotonic(), error)
                    raise
                self._failed = None
            return self._client

    def _connect(self) -> Any:
        _pymilvus()
        _be_silent()
        if not self.address.startswith(SERVER):
            path = Path(self.address.removeprefix(FILE))
            if not path.parent.is_dir():
                raise EngineError(f"{self.address} cannot be opened: there is no folder {path.parent}", "make it first")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # how it looks for its own version is deprecated
                try:
                    import milvus_lite  # noqa: F401
                except ImportError as error:
                    raise MissingExtraError(
                        "Milvus Lite is not installed", 'pip install milvus-lite "setuptools<81"'
                    ) from error
                return _pymilvus().MilvusClient(str(path), alias=uuid.uuid4().hex)
        parts = urlsplit(self.address)
        scheme = "https" if parts.query else "http"
        address = f"{scheme}://{parts.hostname}:{parts.port or 19530}"
        try:
            socket.create_connection((str(parts.hostname), parts.port or 19530), KNOCK_S).close()
        except OSError as error:
            raise self._away(error.strerror or str(error)) from error
        alias = uuid.uuid4().hex  # one that is shared goes on with a connection that was lost
        return _pymilvus().MilvusClient(address, token=self._token, timeout=CONNECT_S, alias=alias)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        pymilvus, failed = _pymilvus(), _rpc_errors()[0]
        try:
            yield
        except (pymilvus.MilvusException, failed) as error:
            inner = error.__cause__ if isinstance(error.__cause__, failed) else error
            details = inner.details() if isinstance(inner, failed) else getattr(error, "message", "")
            what = str(details or error).strip().partition("\n")[0][:300]
            if "Open local milvus failed" in what:
                raise EngineError(
                    f"{self.address} cannot be opened: another process has it open, or it is no file of Milvus Lite",
                    "one process at a time uses Milvus Lite; several need a server",
                ) from error
            raise self._away(what) from error

    def _away(self, what: str) -> EngineError:
        hint = "start it; what is stored meanwhile is kept, and found when it is back"
        return EngineError(f"the engine {self.address} does not answer: {what}", hint)

    # -- rows that say which collections answer --------------------------------------------------------------------

    def row(self, name: str, *, is_fresh: bool = False) -> dict[str, Any] | None:
        """Return a row, as it was less than a second ago; None where there is none."""
        known = self._rows
        if is_fresh or known is None or time.monotonic() - known[0] > FRESH_S:
            known = self._rows = (time.monotonic(), self._read())
        return known[1].get(name)

    def _read(self) -> dict[str, dict[str, Any]]:
        name = f"{self._prefix}state"
        try:
            rows = self.call("query", name, filter='name != ""', output_fields=["name", "content"], limit=1_000)
        except EngineError:
            if self.call("has_collection", name):
                raise
            return {}
        return {row["name"]: json.loads(row["content"]) for row in rows}

    def keep_row(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a row."""
        state = f"{self._prefix}state"
        if not self.call("has_collection", state):
            types = _pymilvus().DataType
            fields = [("content", types.VARCHAR, {"max_length": MOST_BYTES})]
            self._create(state, ("name", types.VARCHAR, {"max_length": 200}), fields, _nothing(), "Strong")
        self.call("upsert", state, [{"name": name, "content": json.dumps(content), "nothing": [0.0, 0.0]}])
        if self._rows is not None:
            self._rows[1][name] = dict(content)

    def forget_row(self, name: str) -> None:
        """Remove a row, where there is one."""
        state = f"{self._prefix}state"
        if self.call("has_collection", state):
            self.call("delete", state, ids=[name])
        self._rows = None

    # -- collections -----------------------------------------------------------------------------------------------

    def create(self, name: str, fields: Sequence[tuple[str, Any, dict[str, Any]]], vector: _Vector) -> None:
        """Make an empty collection whose rows are known by a number."""
        self._create(f"{self._prefix}{name}", ("num", _pymilvus().DataType.INT64, {}), fields, vector, "Session")

    def _create(
        self,
        name: str,
        key: tuple[str, Any, dict[str, Any]],
        fields: Sequence[tuple[str, Any, dict[str, Any]]],
        vector: _Vector,
        consistency: str,
    ) -> None:
        client = self._connected()
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(key[0], key[1], is_primary=True, **key[2])
        for field, kind, more in (*fields, (vector.name, vector.kind, vector.more)):
            schema.add_field(field, kind, **more)
        index = client.prepare_index_params()
        index.add_index(vector.name, index_type=vector.index, metric_type=vector.metric)
        self.call("create_collection", name, schema=schema, consistency_level=consistency)
        self.call("create_index", name, index, sync=False)  # waiting for it takes half a second, of nothing
        self.call("load_collection", name)

    def upsert(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows, or replace those with their numbers."""
        listed = list(rows)
        for start in range(0, len(listed), ROWS_TOGETHER):
            self.call("upsert", f"{self._prefix}{name}", listed[start : start + ROWS_TOGETHER])

    def delete(self, name: str, nums: Sequence[int]) -> None:
        """Remove rows; nothing happens where there is none."""
        for start in range(0, len(nums), MOST_FOUND):
            self.call("delete", f"{self._prefix}{name}", ids=list(nums[start : start + MOST_FOUND]))

    def get(self, name: str, nums: Sequence[int], fields: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the rows with these numbers that are there."""
        rows: list[Mapping[str, Any]] = []
        for start in range(0, len(nums), MOST_FOUND):
            among = ",".join(map(str, nums[start : start + MOST_FOUND]))  # by "ids" the schema is asked for each time
            wanted = f"num in [{among}]"
            rows += self.call("query", f"{self._prefix}{name}", filter=wanted, output_fields=["num", *fields])
        return rows

    def count(self, name: str, condition: str = "") -> int:
        """Return how many rows satisfy a condition."""
        counts = self.call("query", f"{self._prefix}{name}", filter=condition, output_fields=["count(*)"])
        return int(counts[0]["count(*)"])

    def numbers(self, name: str, condition: str = "") -> list[int]:
        """Return the numbers of all rows that satisfy a condition, ascending."""
        size, last = self.count(name, _within(0, 1 << 62, condition)), 1 << 20
        while size and self.count(name, f"num >= {last}"):
            last <<= 4
        return self._numbers(name, condition, (0, last), size)

    def _numbers(self, name: str, condition: str, among: tuple[int, int], size: int) -> list[int]:
        """Return so many numbers of a range, which is halved until they fit into an answer."""
        if not size:
            return []
        first, last = among
        if size <= MOST_FOUND // 2:
            wanted = _within(first, last, condition)
            rows = self.call("query", f"{self._prefix}{name}", filter=wanted, output_fields=["num"], limit=MOST_FOUND)
            return sorted(int(row["num"]) for row in rows)
        middle = (first + last) // 2
        before = self.count(name, _within(first, middle, condition))
        return [
            *self._numbers(name, condition, (first, middle), before),
            *self._numbers(name, condition, (middle, last), size - before),
        ]

    def search(
        self, name: str, vectors: Sequence[Any], limit: int, condition: str = "", fields: Sequence[str] = ()
    ) -> list[Rows]:
        """Return the rows of the greatest inner product with each vector."""
        request = self._request(name, vectors, limit, condition, fields)
        client, ask = self._asking()
        return self._found(request, client, lambda: ask(request, READ_TIMEOUT_S, self._secret))

    def begin_search(
        self,
        name: str,
        vectors: Sequence[Any],
        limit: int,
        condition: str = "",
        fields: Sequence[str] = (),
        metric: str = "IP",
    ) -> Callable[[], list[Rows]]:
        """Ask what ``search`` asks, and return what waits for the answer; the engine is at it meanwhile.

        Args:
            metric: what of the collection's vectors; of codes ("HAMMING") those that differ least are found.
        """
        request = self._request(name, vectors, limit, condition, fields, metric)
        client, ask = self._asking()
        future = ask.future(request, READ_TIMEOUT_S, self._secret)
        return lambda: self._found(request, client, future.result)

    def _found(self, request: Any, client: Any, answer: Callable[[], Any]) -> list[Rows]:
        """Return the rows of an answer.

        A server that was started again is asked through another connection; so is one whose connection was closed
        meanwhile, since another call saw that it was lost.
        """
        failed, cancelled = _rpc_errors()
        try:
            response = answer()
        except (failed, cancelled) as error:
            self._close(client)
            if isinstance(error, failed) and error.code().name not in ("UNAVAILABLE", "CANCELLED"):
                with self._explained():
                    raise
            response = self._answered(lambda: self._asking()[1](request, READ_TIMEOUT_S, self._secret))
        return _rows_of(self._answered(lambda: _checked(response)))

    def _asking(self) -> tuple[Any, Any]:
        """Return a client, and what sends searches through its connection.

        Of pymilvus's way, which takes a millisecond of processor time for each search, the messages and the connection
        are taken, and its checks, its layers around the connection and the rows as objects left out.
        """
        client = self._connected()
        with self._guard:
            if self._search is None or self._search[0] is not client:
                from pymilvus.grpc_gen.milvus_pb2 import SearchRequest, SearchResults

                channel = client._get_connection()._channel
                send = channel.unary_unary(_SEARCH, SearchRequest.SerializeToString, SearchResults.FromString)
                self._search = (client, send)
            return self._search

    def _request(
        self,
        name: str,
        vectors: Sequence[Any],
        limit: int,
        condition: str,
        fields: Sequence[str],
        metric: str = "IP",
    ) -> Any:
        return search_request(f"{self._prefix}{name}", vectors, limit, condition, fields, metric)

    def flush(self, name: str) -> None:
        """Seal what was written; it can be found, and survives, without."""
        self.call("flush", f"{self._prefix}{name}")

    def drop(self, names: Iterable[str]) -> None:
        """Remove collections, where they are."""
        for name in names:
            self.call("drop_collection", f"{self._prefix}{name}")

    def drop_later(self, names: Sequence[str]) -> None:
        """Let collections be removed by ``sweep``, when no search can be under way in them."""
        self.keep_row(f"gone_{secrets.token_hex(4)}", {"collections": list(names), "since": self.clock()})

    def sweep(self) -> None:
        """Drop what was replaced an hour ago."""
        self.row("", is_fresh=True)
        rows = {} if self._rows is None else dict(self._rows[1])
        for name, row in rows.items():
            if name.startswith("gone_") and self.clock() - row["since"] > DROPPED_AFTER_S:
                self.drop(row["collections"])
                self.forget_row(name)

    def sweep_vectors(self, kept: Iterable[str]) -> None:
        """Drop vectors that no machine has asked or followed for an hour.

        Args:
            kept: names of rows that stay.
        """
        self.row("", is_fresh=True)
        rows = {} if self._rows is None else dict(self._rows[1])
        for name, row in rows.items():
            if name.startswith("vectors_") and name not in kept:
                used = rows.get(f"used_{name}", {"at": 0.0})["at"]
                if self.clock() - used > UNUSED_AFTER_S:
                    self.forget_row(name)
                    self.drop(row["collections"])

    def touch(self, name: str) -> None:
        """Note that an index is in use, in a row of its own: the index's row is written by its writer alone."""
        used = self.row(f"used_{name}")
        if used is None or self.clock() - used["at"] > UNUSED_AFTER_S / 6:
            self.keep_row(f"used_{name}", {"at": self.clock()})

    def forget(self, kind: str) -> None:
        """Drop every index of a kind, whatever its state."""
        self.row("", is_fresh=True)
        for name, row in ({} if self._rows is None else dict(self._rows[1])).items():
            if name.startswith(f"{kind}_"):
                self.forget_row(name)
                self.drop(row["collections"])


@dataclass(frozen=True, slots=True)
class _Vector:
    """The field of a collection that is searched."""

    name: str
    kind: Any
    index: str
    more: dict[str, Any]
    metric: str = "IP"


def _within(first: int, last: int, condition: str) -> str:
    return " and ".join(filter(None, [f"num >= {first} and num < {last}", condition]))


def dense(name: str, dimensions: int) -> _Vector:
    """Return a field of vectors that are all compared."""
    return _Vector(name, _pymilvus().DataType.FLOAT_VECTOR, "FLAT", {"dim": max(2, dimensions)})


def sparse(name: str) -> _Vector:
    """Return a field of sparse vectors."""
    return _Vector(name, _pymilvus().DataType.SPARSE_FLOAT_VECTOR, "SPARSE_INVERTED_INDEX", {})


def bits(name: str, size: int) -> _Vector:
    """Return a field of codes, of so many bits."""
    return _Vector(name, _pymilvus().DataType.BINARY_VECTOR, "BIN_FLAT", {"dim": size}, "HAMMING")


def _nothing() -> _Vector:
    """Return the field of vectors that every collection has to have."""
    return dense("nothing", 2)


def text_field(name: str) -> tuple[str, Any, dict[str, Any]]:
    """Return a field of text."""
    return name, _pymilvus().DataType.VARCHAR, {"max_length": 65_535}


def number_field(name: str) -> tuple[str, Any, dict[str, Any]]:
    """Return a field of whole numbers."""
    return name, _pymilvus().DataType.INT64, {}


def _pymilvus() -> Any:
    try:
        import pymilvus
    except ImportError as error:
        raise MissingExtraError("Milvus is asked through pymilvus, which is not installed", "milvus") from error
    return pymilvus


def _be_silent() -> None:
    """Let pymilvus write nothing to the log, in which it tells each error before it raises it."""
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "pymilvus"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def is_refusal(error: BaseException | None) -> bool:
    """Return whether the engine answered, and does not do what it was asked for."""
    code = getattr(error, "code", None)
    return isinstance(code, int) and code >= 100


def _checked(answer: Any) -> Any:
    """Return an answer that says that it is one; raise MilvusException else."""
    from pymilvus.client.utils import check_status

    check_status(answer.status)
    return answer


def _rows_of(answer: Any) -> list[Rows]:
    """Return the rows of an answer, for each vector those that were found for it."""
    results = answer.results
    nums, scores = list(results.ids.int_id.data), list(results.scores)
    columns: dict[str, list[Any]] = {}
    for column in results.fields_data:
        values = column.scalars
        columns[column.field_name] = list(values.string_data.data or values.long_data.data)
    rows, done = [], 0
    for size in list(results.topks) or [0] * results.num_queries:
        part = slice(done, done + size)
        rows.append(Rows(nums[part], scores[part], {name: column[part] for name, column in columns.items()}))
        done += size
    return rows


def search_request(
    name: str, vectors: Sequence[Any], limit: int, condition: str, fields: Sequence[str], metric: str
) -> Any:
    """Return the message that pymilvus makes of a search, in a third of its time.

    Args:
        vectors: codes as bytes, sparse vectors as dicts, others as arrays.
    """
    from pymilvus.client.ts_utils import get_collection_ts, get_eventually_ts
    from pymilvus.grpc_gen.common_pb2 import DslType, KeyValuePair, PlaceholderGroup, PlaceholderType, PlaceholderValue
    from pymilvus.grpc_gen.milvus_pb2 import SearchRequest

    if isinstance(vectors[0], bytes):
        kind, values = PlaceholderType.BinaryVector, list(vectors)
    elif isinstance(vectors[0], dict):
        kind = PlaceholderType.SparseFloatVector
        values = [b"".join(starmap(_DIMENSION.pack, sorted(vector.items()))) for vector in vectors]
    else:
        kind, values = PlaceholderType.FloatVector, [vector.astype("<f4").tobytes() for vector in vectors]
    group = PlaceholderGroup(placeholders=[PlaceholderValue(tag="$0", type=kind, values=values)])
    settings = (
        ("topk", str(limit)),
        ("round_decimal", "-1"),
        ("ignore_growing", "False"),
        ("metric_type", metric),
        ("params", f'{{"metric_type":"{metric}"}}'),
    )
    return SearchRequest(
        collection_name=name,
        output_fields=fields,
        guarantee_timestamp=get_collection_ts(name) or get_eventually_ts(),  # what this machine has written is seen
        use_default_consistency=True,
        nq=len(vectors),
        dsl=condition,
        dsl_type=DslType.BoolExprV1,
        placeholder_group=group.SerializeToString(),
        search_params=[KeyValuePair(key=key, value=value) for key, value in settings],
    )


def _rpc_errors() -> tuple[Any, Any]:
    """Return what a call fails with, and what one fails with that is waited for while its connection is closed."""
    import grpc

    return grpc.RpcError, grpc.FutureCancelledError


class MilvusIndex:
    """An index in Milvus as one that follows a store: its row, and the collections that the row names.

    Args:
        name: of its row.
        fingerprint: of what makes its entries.
        alone: keeps other machines from writing it.
    """

    def __init__(self, milvus: Milvus, name: str, fingerprint: str, alone: Alone = lambda _: nullcontext()) -> None:
        if not re.fullmatch(r"\w+", name):
            raise SettingError(f"{name!r} is no name of an index", "expected letters, digits and underscores")
        self.milvus = milvus
        self.name = name
        self._fingerprint = fingerprint
        self._alone = alone
        self._row: dict[str, Any] | None = None

    @property
    def exists(self) -> bool:
        """Return whether it was begun, as of the last look."""
        return self._row is not None

    @property
    def cursor(self) -> Cursor:
        """Return how far it has come, as of the last look; nowhere where the engine has lost it."""
        if self._row is None:
            return Cursor(0, 0, is_complete=False, fingerprint=self._fingerprint)
        return Cursor.from_json(self._row["cursor"], FORMAT)

    @property
    def entries(self) -> int:
        """Return how many entries it had at the last commit."""
        return 0 if self._row is None else int(self._row["entries"])

    def count(self) -> int:
        """Return how many entries it has, committed or not."""
        return 0 if self._row is None else self.milvus.count(self.collection)

    @property
    def collection(self) -> str:
        """Return the name of its entries' collection.

        Raises:
            EngineError: the engine has lost it.
        """
        return str(self._held()["collections"][0])

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all entries, ascending."""
        return np.array([] if self._row is None else self.milvus.numbers(self.collection), np.int64)

    def refresh(self) -> None:
        """See what another machine (or this one) has committed, as of a second ago."""
        self._row = self.milvus.row(self.name)

    def reopen(self) -> None:
        """See what is there now."""
        self._row = self.milvus.row(self.name, is_fresh=True)

    def _begin(self, applied: int, collections: Sequence[str], **more: Any) -> None:
        """Name new collections in the row; those before are dropped later."""
        before = self.milvus.row(self.name, is_fresh=True)
        cursor = Cursor(applied, scanned=0, is_complete=False, fingerprint=self._fingerprint)
        self._row = {
            "collections": list(collections),
            "cursor": cursor.to_json(FORMAT),
            "entries": 0,
            **more,
        }
        self.milvus.keep_row(self.name, self._row)
        if before is not None:
            self.milvus.drop_later(before["collections"])
        self.milvus.sweep()

    def _keep(self, **changed: Any) -> None:
        row = {**self._held(), **changed}
        self.milvus.keep_row(self.name, row)
        self._row = row

    def _held(self) -> dict[str, Any]:
        if self._row is None:
            raise EngineError(
                f"the engine {self.milvus.address} does not hold this forum's {self.name.partition('_')[0]}",
                'they are made anew from the store by the service, or by "askalike reindex FORUM"',
            )
        return self._row


def generation(name: str, fingerprint: str) -> str:
    """Return a name for a new collection."""
    return f"{name}_{fingerprint}_{secrets.token_hex(4)}"


UNDATED: Final = -(1 << 62)
MOST_TAGS: Final = 3_000
"""Of one question; more do not fit into a field."""


def conditions_of(question: Question) -> dict[str, Any]:
    """Return a question's fields that filters ask for."""
    return fields_of(question.tags, to_microseconds(question.created))


def fields_of(tags: Iterable[str], created_us: int | None) -> dict[str, Any]:
    """Return the fields of exact tags and a moment.

    >>> fields_of((), None)
    {'tags': ',', 'created_us': -4611686018427387904}
    """
    keys = list(dict.fromkeys(map(tag_key, tags)))[:MOST_TAGS]
    return {
        "tags": "".join([",", *(f"{key}," for key in keys)]),
        "created_us": UNDATED if created_us is None else created_us,
    }


def tag_key(tag: str) -> str:
    """Return a tag, upper case or lower, as 16 digits."""
    return hashlib.blake2b(tag.casefold().encode(errors="surrogatepass"), digest_size=8).hexdigest()


def condition(filters: Filters) -> str:
    """Return what tags and dates ask for; tags that must not be there are looked at in what was found."""
    parts = [f'tags like "%,{tag_key(tag)},%"' for tag in filters.tags]
    if filters.after is not None:
        parts.append(f"created_us >= {to_microseconds(filters.after)}")
    if filters.before is not None:
        parts.extend((f"created_us > {UNDATED}", f"created_us < {to_microseconds(filters.before)}"))
    return " and ".join(parts)


def listed(what: str, nums: Collection[int]) -> str:
    """Return an expression over numbers.

    >>> listed("num in", [3, 1])
    'num in [3,1]'
    """
    return f"{what} [{','.join(str(int(num)) for num in nums)}]"


def has_one(tags: str, keys: Collection[str]) -> bool:
    """Return whether a row has one of these tags."""
    return any(f",{key}," in tags for key in keys)
