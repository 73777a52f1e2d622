"""The store of a new forum, in a folder that holds nothing yet."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from askalike.errors import ForumExistsError, ForumNotFoundError
from askalike.files import Owned, remove_owned
from askalike.index.vector_set import OWNED as VECTOR_FILES
from askalike.index.words.index import OWNED as LEXICAL_FILES
from askalike.store import ForumLayout, Store, create_store, open_store
from askalike.text.settings import TextSettings

_FORUM = Owned(
    r"(archive|pairs|loading)\.sqlite(-wal|-shm|-journal)?|(index|pairs|loading)\.lock|rejects\.jsonl",
    (("lexical", LEXICAL_FILES), ("vectors", VECTOR_FILES)),
)
"""What a forum's folder holds before anything was learned or keys were made."""


def new_store(layout: ForumLayout, text: TextSettings) -> Store:
    """Return the store of a new forum, with its text settings stored.

    Raises:
        ForumExistsError: the folder holds something already.
    """
    folder = layout.folder
    if layout.archive.exists():
        with contextlib.suppress(ForumNotFoundError):
            open_store(layout).close()
            raise ForumExistsError(f"there is a forum at {folder} already", "open it, or choose another folder")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ForumExistsError(f"{folder} exists and is not empty", "choose another folder for the forum")
    return create_store(layout, {name: json.dumps(value) for name, value in text.to_json().items()})


def discard_if_empty(store: Store, folder: Path) -> bool:
    """Close a forum's store and delete its folder, unless it holds a question or another process writes to it.

    Return whether the folder is gone.
    """
    with store.held_if_empty() as is_empty:
        if is_empty:
            remove_owned(folder, _FORUM)  # with the lock held: nobody can begin to fill it
    store.close()
    return not folder.exists()
