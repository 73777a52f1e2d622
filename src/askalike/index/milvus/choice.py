"""Which engine finds a forum's questions: ``engine.json`` in its folder, and what this user has agreed to.

A folder may come from anybody: an engine that it names is called only where this user has named it before, by a command
or in ``ASKALIKE_ENGINES``. Addresses hold no secrets; the server's key is in ``ASKALIKE_ENGINE_TOKEN``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from askalike import agreement
from askalike.errors import EngineError, ForumError, SettingError
from askalike.files import remove_file
from askalike.index.milvus.client import FILE, SERVER, TOKEN_VARIABLE, Milvus
from askalike.store import ForumLayout, Store

AGREED_VARIABLE: Final = "ASKALIKE_ENGINES"
LOCAL: Final = "local"


def check_engine(address: str) -> str:
    """Return the address of an engine as it is kept: "milvus://HOST[:PORT]", or "milvus:PATH.db" for Milvus Lite.

    >>> check_engine("milvus://search.example.org")
    'milvus://search.example.org'

    Raises:
        SettingError: it is none, or holds a password.
    """
    expected = "expected milvus://HOST[:PORT], milvus:PATH.db for Milvus Lite, or local"
    if address.startswith(SERVER):
        try:
            parts = urlsplit(address)
            has_password, host, _ = "@" in parts.netloc, parts.hostname, parts.port
        except ValueError as error:
            raise SettingError(f"{address[:200]!r} is no address: {error}", expected) from error
        if has_password:
            raise SettingError("the engine's address holds a user or password", f"set {TOKEN_VARIABLE} instead")
        if not host or parts.path.strip("/") or parts.fragment or parts.query not in ("", "secure=true"):
            raise SettingError(f"{address[:200]!r} is no engine's address", expected)
        return address
    if address.startswith(FILE) and address.endswith(".db") and len(address) > len(FILE) + len(".db"):
        return f"{FILE}{Path(address.removeprefix(FILE)).expanduser().absolute()}"
    raise SettingError(f"{address[:200]!r} is no engine's address", expected)


def name_engine(layout: ForumLayout, store: Store, address: str) -> None:
    """Let an engine find the forum's questions from now on, or the machine itself where it is "local".

    Raises:
        SettingError: it is no address, or holds a password.
        EngineError: it does not answer and is not the one that is named already; nothing is changed.
        MissingExtraError: its client is not installed.
        ForumError: it cannot be written down.
    """
    try:
        if address == LOCAL:
            remove_file(layout.engine)
            return
        address = check_engine(address)
        if not _is_named(layout, address):  # one that is named already may be away just now
            _engine(address, store).row("", is_fresh=True)
        agreement.write_named(layout.engine, "engine", address)
    except OSError as error:
        raise ForumError(f"{error.filename} cannot be written: {error.strerror}", "check its rights") from error


def named_engine(layout: ForumLayout) -> str:
    """Return the address of the forum's engine; "" where its own machine finds its questions.

    Raises:
        ForumError: what names it cannot be read.
    """
    if not layout.engine.is_file():
        return ""
    try:
        return check_engine(agreement.read_named(layout.engine, "engine"))
    except (OSError, ValueError, RecursionError, SettingError) as error:
        again = f'write it again with "askalike reindex {layout.folder} --engine ADDRESS"'
        raise ForumError(f"{layout.engine} cannot be read: {error}", again) from error


def _is_named(layout: ForumLayout, address: str) -> bool:
    try:
        return named_engine(layout) == address
    except ForumError:  # what cannot be read is written anew
        return False


def engine_of(layout: ForumLayout, store: Store) -> Milvus | None:
    """Return the forum's engine, None where its own machine finds its questions; nothing is called yet.

    Raises:
        ForumError: what names it cannot be read.
        EngineError: the user has not agreed to it.
    """
    address = named_engine(layout)
    if not address:
        return None
    if not agreement.is_agreed(address, AGREED_VARIABLE):
        raise EngineError(
            f"the forum {layout.folder} names the engine {address}, which you have not agreed to use",
            f'agree with "askalike reindex {layout.folder} --engine {address}" or {AGREED_VARIABLE}="{address}"',
        )
    return _engine(address, store)


def _engine(address: str, store: Store) -> Milvus:
    return Milvus(address, store.identity(), os.environ.get(TOKEN_VARIABLE, ""))
