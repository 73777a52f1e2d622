"""The archive of a new forum, in a folder that holds nothing yet."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from askalike.errors import BusyForumError, ForumExistsError, ForumNotFoundError
from askalike.files import Owned, remove_owned
from askalike.index.vector_set import OWNED as VECTOR_FILES
from askalike.index.words.mark import OWNED as LEXICAL_FILES
from askalike.store import Archive, Layout, is_loading
from askalike.text.settings import TextSettings

_FORUM = Owned(
    r"(archive|pairs|loading)\.sqlite(-wal|-shm|-journal)?|(index|pairs|loading)\.lock|rejects\.jsonl"
    r"|encoder\.json(\.\d+\.tmp)?",
    (("lexical", LEXICAL_FILES), ("vectors", VECTOR_FILES)),
)
"""What a forum's folder holds before anything was learned or keys were made."""


def new_archive(layout: Layout, text: TextSettings) -> Archive:
    """Return the archive of a new forum, with its text settings stored.

    Raises:
        ForumExistsError: the folder holds something already.
    """
    folder = layout.folder
    if layout.archive.exists():
        with contextlib.suppress(ForumNotFoundError):
            Archive(layout.archive).close()
            raise ForumExistsError(f"there is a forum at {folder} already", "open it, or choose another folder")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ForumExistsError(f"{folder} exists and is not empty", "choose another folder for the forum")
    return Archive.create(layout.archive, {name: json.dumps(value) for name, value in text.to_json().items()})


def discard_if_empty(archive: Archive, folder: Path) -> bool:
    """Close a forum's archive and delete its folder, unless it holds a question or another process writes to it.

    Return whether the folder is gone.
    """
    archive.connection.execute("PRAGMA busy_timeout = 0")
    with contextlib.suppress(BusyForumError), archive.write():
        if not archive.count_questions() and not is_loading(archive):
            remove_owned(folder, _FORUM)  # with the lock held: nobody can begin to fill it
    archive.close()
    return not folder.exists()
