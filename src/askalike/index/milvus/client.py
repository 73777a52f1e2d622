"""The border to Milvus: one connection, a forum's collections by name, and rows that say how far each index has come.

::

    askalike_FORUM_state        the rows, by name; each is replaced whole
    askalike_FORUM_words_FP     words by one analysis, searched by Milvus' BM25 function
    askalike_FORUM_terms_FP     in how many questions each of its terms is
    askalike_FORUM_vectors_FP   vectors by one model

FP is the fingerprint of the analysis or the model, so that who asks by one model never gets the answer of another.
What filters ask of a question is kept and asked as digits alone: what anybody wrote is never part of an expression.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import socket
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from math import ceil
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EngineError, SettingError, optional_module
from askalike.index.cursor import Cursor
from askalike.store.rows import to_microseconds
from askalike.types import Filters

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
MAX_FOUND: Final = 16_384
"""Milvus gives no more rows at once."""
MAX_BYTES: Final = 65_000
"""Of a text in a row."""
BATCH: Final = 500
"""Rows that are sent together."""
UNUSED_AFTER_S: Final = 3_600
FRESH_S: Final = 1.0
"""So old may be what a search knows of the rows that other machines write."""
FORMAT: Final = 2
NOTHING: Final[dict[str, Any]] = {"name": "nothing", "dimensions": 2}
"""A field of vectors for collections without one, since Milvus asks for one."""

Row = Mapping[str, Any]
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

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of ``pymilvus.MilvusClient``.

        Raises:
            EngineError: the engine does not answer, or refuses.
        """
        client = self._connected()
        # whole seconds: pymilvus takes others for no limit, and asks a server that is away for minutes
        timeout_s = ceil(READ_TIMEOUT_S if name in ("search", "query") else TIMEOUT_S)
        try:
            with self._explained():
                return getattr(client, name)(*arguments, timeout=timeout_s, **named)
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
        with self._guard:
            client, self._client = self._client, None
        if client is not None:
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
        pymilvus, alias = _pymilvus(), uuid.uuid4().hex  # an alias that is shared goes on with a lost connection
        for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "pymilvus"]:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # it logs each error that it raises
        if not self.address.startswith(SERVER):
            path = Path(self.address.removeprefix(FILE))
            if not path.parent.is_dir():
                raise EngineError(f"{self.address} cannot be opened: there is no folder {path.parent}", "make it first")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # how it looks for its own version is deprecated
                try:
                    import milvus_lite  # noqa: F401
                except ImportError as error:
                    hint = 'pip install milvus-lite "setuptools<81"; or name the address of a server'
                    raise EngineError(f"{self.address} cannot be opened: Milvus Lite is not installed", hint) from error
                return pymilvus.MilvusClient(str(path), alias=alias)
        parts = urlsplit(self.address)
        address = str(parts.hostname), parts.port or 19530
        try:
            socket.create_connection(address, KNOCK_S).close()
        except OSError as error:
            raise self._away(error.strerror or str(error)) from error
        uri = f"{'https' if parts.query else 'http'}://{address[0]}:{address[1]}"
        return pymilvus.MilvusClient(uri, token=self._token, timeout=CONNECT_S, alias=alias)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import grpc

        try:
            yield
        except (_pymilvus().MilvusException, grpc.RpcError) as error:
            inner = error.__cause__ if isinstance(error.__cause__, grpc.RpcError) else error
            details = inner.details() if isinstance(inner, grpc.RpcError) else getattr(error, "message", "")
            reason = str(details or error).strip().partition("\n")[0][:300]
            if "Open local milvus failed" in reason:
                raise EngineError(
                    f"{self.address} cannot be opened: another process has it open, or it is no file of Milvus Lite",
                    "one process at a time uses Milvus Lite; several need a server",
                ) from error
            raise self._away(reason) from error

    def _away(self, reason: str) -> EngineError:
        hint = "start it; what is stored meanwhile is kept, and found when it is back"
        return EngineError(f"the engine {self.address} does not answer: {reason}", hint)

    # -- rows that say how far an index has come -------------------------------------------------------------------

    def row(self, name: str, *, is_fresh: bool = False) -> dict[str, Any] | None:
        """Return a row, as it was less than a second ago; None where there is none."""
        return self.rows(is_fresh=is_fresh).get(name)

    def rows(self, *, is_fresh: bool = False) -> dict[str, dict[str, Any]]:
        """Return all rows by their names, as they were less than a second ago."""
        known = self._rows
        if is_fresh or known is None or time.monotonic() - known[0] > FRESH_S:
            known = self._rows = (time.monotonic(), self._read_rows())
        return known[1]

    def _read_rows(self) -> dict[str, dict[str, Any]]:
        state = f"{self._prefix}state"
        try:
            rows = self.call("query", state, filter='name != ""', output_fields=["name", "content"], limit=1_000)
        except EngineError:
            if self.call("has_collection", state):
                raise
            return {}
        return {row["name"]: json.loads(row["content"]) for row in rows}

    def keep_row(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a row."""
        if not self.call("has_collection", f"{self._prefix}state"):
            schema, index = self.schema("name", "VARCHAR", max_length=200)
            add_field(schema, "content", "VARCHAR", max_length=MAX_BYTES)
            add_vector(schema, index, **NOTHING)
            self.create("state", schema, index, "Strong")
        row = {"name": name, "content": json.dumps(content), NOTHING["name"]: [0.0, 0.0]}
        self.call("upsert", f"{self._prefix}state", [row])
        if self._rows is not None:
            self._rows[1][name] = dict(content)

    def forget_row(self, name: str) -> None:
        """Remove a row, where there is one."""
        if self.call("has_collection", f"{self._prefix}state"):
            self.call("delete", f"{self._prefix}state", ids=[name])
        self._rows = None

    def touch(self, name: str) -> None:
        """Note that an index is in use, in a row of its own: the index's row is written by its writer alone."""
        used = self.row(f"used_{name}")
        if used is None or self.clock() - used["at"] > UNUSED_AFTER_S / 6:
            self.keep_row(f"used_{name}", {"at": self.clock()})

    def sweep(self, kept: Iterable[str]) -> None:
        """Drop the vectors that no machine has asked or followed for an hour, but those of these rows."""
        rows = dict(self.rows(is_fresh=True))
        for name, row in rows.items():
            used = rows.get(f"used_{name}", {"at": 0.0})["at"]
            if name.startswith("vectors_") and name not in kept and self.clock() - used > UNUSED_AFTER_S:
                self._forget(name, row)

    def forget(self, kind: str) -> None:
        """Drop every index of a kind, whatever its state."""
        for name, row in dict(self.rows(is_fresh=True)).items():
            if name.startswith(f"{kind}_"):
                self._forget(name, row)

    def _forget(self, name: str, row: Row) -> None:
        self.forget_row(name)
        for collection in row["collections"]:
            self.drop(collection)

    # -- collections -----------------------------------------------------------------------------------------------

    def schema(self, key: str, kind: str, **more: Any) -> tuple[Any, Any]:
        """Return the fields, with a key, and the indexes of a collection that is to be made."""
        client = self._connected()
        schema, index = client.create_schema(auto_id=False, enable_dynamic_field=False), client.prepare_index_params()
        add_field(schema, key, kind, is_primary=True, **more)
        return schema, index

    def create(self, name: str, schema: Any, index: Any, consistency: str = "Session") -> None:
        """Make an empty collection."""
        full = f"{self._prefix}{name}"
        self.call("create_collection", full, schema=schema, consistency_level=consistency)
        self.call("create_index", full, index, sync=False)  # waiting for it takes half a second, of nothing
        self.call("load_collection", full)

    def drop(self, name: str) -> None:
        """Remove a collection, where it is."""
        self.call("drop_collection", f"{self._prefix}{name}")

    def upsert(self, name: str, rows: Iterable[Row]) -> None:
        """Add rows, or replace those with their numbers."""
        for part in _parts(list(rows), BATCH):
            self.call("upsert", f"{self._prefix}{name}", list(part))

    def delete(self, name: str, nums: Sequence[int]) -> None:
        """Remove rows; nothing happens where there is none."""
        for part in _parts(nums, MAX_FOUND):
            self.call("delete", f"{self._prefix}{name}", ids=list(part))

    def get(self, name: str, nums: Sequence[int], fields: Sequence[str]) -> list[Row]:
        """Return the rows with these numbers that are there."""
        rows: list[Row] = []
        for part in _parts(nums, MAX_FOUND):  # by "ids" the schema is asked for each time
            among, columns = listed("num in", part), ["num", *fields]
            rows += self.call("query", f"{self._prefix}{name}", filter=among, output_fields=columns, limit=len(part))
        return rows

    def count(self, name: str, condition: str = "") -> int:
        """Return how many rows satisfy a condition."""
        counts = self.call("query", f"{self._prefix}{name}", filter=condition, output_fields=["count(*)"])
        return int(counts[0]["count(*)"])

    def numbers(self, name: str, condition: str = "") -> list[int]:
        """Return the numbers of all rows that satisfy a condition, ascending."""
        wanted = condition or "num >= 0"
        rows = self.call(
            "query_iterator", f"{self._prefix}{name}", batch_size=MAX_FOUND, filter=wanted, output_fields=["num"]
        )
        numbers: list[int] = []
        with self._explained():
            while batch := rows.next():
                numbers += (int(row["num"]) for row in batch)
            rows.close()
        return sorted(numbers)

    def search(
        self, name: str, field: str, queries: Sequence[Any], limit: int, condition: str = ""
    ) -> list[list[tuple[int, float]]]:
        """Return the numbers and scores of the best rows for each query, best first; ties by number."""
        answers = self.call(
            "search", f"{self._prefix}{name}", queries, filter=condition, limit=min(limit, MAX_FOUND), anns_field=field
        )
        ranked = ([(int(row["id"]), float(row["distance"])) for row in rows] for rows in answers)
        return [sorted(rows, key=lambda row: (-row[1], row[0])) for rows in ranked]

    def flush(self, name: str) -> None:
        """Seal what was written; it can be found, and survives, without."""
        self.call("flush", f"{self._prefix}{name}")


def add_field(schema: Any, name: str, kind: str, **more: Any) -> None:
    """Add a field to a collection's schema."""
    schema.add_field(name, getattr(_pymilvus().DataType, kind), **more)


def add_vector(schema: Any, index: Any, name: str, dimensions: int) -> None:
    """Add a field of vectors, which Milvus indexes as it thinks best."""
    add_field(schema, name, "FLOAT_VECTOR", dim=dimensions)
    index.add_index(name, index_type="AUTOINDEX", metric_type="COSINE")


def add_terms(schema: Any, index: Any, name: str, k1: float, b: float) -> None:
    """Add a field of terms between spaces, and let Milvus make of it what its BM25 function searches."""
    pymilvus = _pymilvus()
    add_field(
        schema, name, "VARCHAR", max_length=65_535, enable_analyzer=True, analyzer_params={"tokenizer": "whitespace"}
    )
    add_field(schema, f"{name}_bm25", "SPARSE_FLOAT_VECTOR")
    schema.add_function(
        pymilvus.Function(
            name=f"{name}_bm25",
            function_type=pymilvus.FunctionType.BM25,
            input_field_names=[name],
            output_field_names=[f"{name}_bm25"],
        )
    )
    params = {"bm25_k1": k1, "bm25_b": b}
    index.add_index(f"{name}_bm25", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=params)


def _parts(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _pymilvus() -> Any:
    return optional_module("pymilvus", "Milvus is asked through pymilvus, which is not installed", "milvus")


def is_refusal(error: BaseException | None) -> bool:
    """Return whether the engine answered, and does not do what it was asked for."""
    code = getattr(error, "code", None)
    return isinstance(code, int) and code >= 100


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
        if self._row is None or self._row.get("format") != FORMAT:
            return Cursor(0, 0, is_complete=False, fingerprint=self._fingerprint if self._row is None else "")
        return Cursor(**self._row["cursor"])

    @property
    def entries(self) -> int:
        """Return how many entries it had at the last commit."""
        return 0 if self._row is None else int(self._row["entries"])

    @property
    def collection(self) -> str:
        """Return the name of its entries' collection.

        Raises:
            EngineError: the engine has lost it.
        """
        return str(self._content["collections"][0])

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all entries, ascending."""
        return np.array([] if self._row is None else self.milvus.numbers(self.collection), np.int64)

    def refresh(self) -> None:
        """See what another machine (or this one) has committed, as of a second ago."""
        self._row = self.milvus.row(self.name)

    def reopen(self) -> None:
        """See what is there now."""
        self._row = self.milvus.row(self.name, is_fresh=True)

    def commit(self, cursor: Cursor) -> None:
        """Write the cursor, after everything that it covers."""
        if cursor.is_complete and not self.cursor.is_complete:
            for name in self._content["collections"]:
                self.milvus.flush(name)
        row = {**self._content, "cursor": asdict(cursor), "entries": self.milvus.count(self.collection)}
        self.milvus.keep_row(self.name, row)
        self._row = row

    def _begin(self, applied: int, collections: Mapping[str, tuple[Any, Any]], **more: Any) -> None:
        """Make empty collections of these fields and indexes, and a row that names them, in place of those before."""
        self.milvus.forget_row(self.name)  # first: it names nothing that is not there
        for name, (schema, index) in collections.items():
            self.milvus.drop(name)
            self.milvus.create(name, schema, index)
        cursor = Cursor(applied, scanned=0, is_complete=False, fingerprint=self._fingerprint)
        row = {"format": FORMAT, "collections": list(collections), "cursor": asdict(cursor), "entries": 0, **more}
        self._row = row
        self.milvus.keep_row(self.name, self._row)

    @property
    def _content(self) -> dict[str, Any]:
        if self._row is None:
            raise EngineError(
                f"the engine {self.milvus.address} does not hold this forum's {self.name.partition('_')[0]}",
                'they are made anew from the store by the service, or by "askalike reindex FORUM"',
            )
        return self._row


UNDATED: Final = -(1 << 62)
MAX_TAGS: Final = 3_000
"""Of one question; more are not kept."""


def add_conditions(schema: Any) -> None:
    """Add the fields that ``fields_of`` fills."""
    add_field(schema, "tags", "VARCHAR", max_length=65_535)  # Milvus Lite cannot answer where no row has an array
    add_field(schema, "created_us", "INT64")


def fields_of(tags: Iterable[str], created_us: int | None) -> dict[str, Any]:
    """Return the fields that filters ask for: exact tags and a moment.

    >>> fields_of((), None)
    {'tags': ',', 'created_us': -4611686018427387904}
    """
    keys = list(dict.fromkeys(map(tag_key, tags)))[:MAX_TAGS]
    return {
        "tags": "".join([",", *(f"{key}," for key in keys)]),
        "created_us": UNDATED if created_us is None else created_us,
    }


def tag_key(tag: str) -> str:
    """Return a tag, upper case or lower, as 16 digits."""
    return hashlib.blake2b(tag.casefold().encode(errors="surrogatepass"), digest_size=8).hexdigest()


def has_tag(tag: str) -> str:
    """Return an expression over the tags of a row."""
    return f'tags like "%,{tag_key(tag)},%"'


def condition(filters: Filters) -> list[str]:
    """Return what tags and dates ask for, but for tags that must not be there: Milvus Lite knows no "not"."""
    parts = list(map(has_tag, filters.tags))
    if filters.after is not None:
        parts.append(f"created_us >= {to_microseconds(filters.after)}")
    if filters.before is not None:
        parts += [f"created_us > {UNDATED}", f"created_us < {to_microseconds(filters.before)}"]
    return parts


def listed(what: str, nums: Iterable[int]) -> str:
    """Return an expression over numbers.

    >>> listed("num in", [3, 1])
    'num in [3,1]'
    """
    return f"{what} [{','.join(str(int(num)) for num in nums)}]"
