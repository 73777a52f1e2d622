"""The names of the files in a forum's folder, in one frozen place; whether it still is where it was."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from askalike.errors import ForumError, ForumNotFoundError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What the folder of one of several forums may be called, which is part of its address."""


@dataclass(frozen=True, slots=True)
class ForumLayout:
    """Where things are in a forum's folder.

    ::

        FORUM/
          archive.json        in place of archive.sqlite: the PostgreSQL database that holds the same
          engine.json         the engine that finds questions in place of lexical/ and the vectors' indexes, if one does
          archive.sqlite      questions, answers, links, judgements, change log: the only thing that cannot be rebuilt
          lexical/            word index, rebuilt from the archive at need
          lexical.next/       one that is to take its place, made by who holds words.lock; lexical.replaced/: the one
                              before, for a moment
          model/              the forum's own model, where it has one
          encoder.json        the text encoder that was named for the forum, where one was
          reranker.json       what puts the best hits in its order, where something was named
          vectors/            the questions' vectors and the model that made them, rebuilt from the archive at need
          loading.lock        held by who loads an archive; loading.sqlite: what was read of it so far
          index.lock          held by the one process that writes indexes
          pairs.sqlite        pairs that may ask the same, made anew at need; pairs.lock: held by who compares
          follow.sqlite       what follows a living forum: its cursor, what it holds, webhooks that came; follow.lock:
                              held by who follows
          keys.json           hashes of the keys of the service, where some were made
          parts.json          which questions train, stop and test models, once one was trained
          learned.json        the marks that the forum's own model has learned
          training/           what a training of the own model that was stopped goes on from
          training/NAME/      the same of what a ranker learns
          rejects.jsonl       records of the last load that could not be read
    """

    folder: Path

    def __post_init__(self) -> None:
        """Raise ForumError where the folder's name is no UTF-8: not every store below can open such a path."""
        try:
            str(self.folder).encode()
        except UnicodeEncodeError as error:
            raise ForumError(
                f"the forum's path {str(self.folder)!r} is not UTF-8", "choose a folder with another name"
            ) from error

    @property
    def archive(self) -> Path:
        """Return the SQLite file."""
        return self.folder / "archive.sqlite"

    @property
    def attached(self) -> Path:
        """Return the file that names the database that holds the forum's records; it need not be there."""
        return self.folder / "archive.json"

    @property
    def engine(self) -> Path:
        """Return the file that names the engine that finds questions; it need not be there."""
        return self.folder / "engine.json"

    def is_forum(self) -> bool:
        """Return whether the folder holds a forum, or stands for one in a database."""
        return self.archive.is_file() or self.attached.is_file()

    @property
    def lexical(self) -> Path:
        """Return the folder of the lexical index."""
        return self.folder / "lexical"

    @property
    def model(self) -> Path:
        """Return the folder of the forum's own model; it need not be there."""
        return self.folder / "model"

    @property
    def encoder(self) -> Path:
        """Return the file that names the forum's text encoder; it need not be there."""
        return self.folder / "encoder.json"

    @property
    def reranker(self) -> Path:
        """Return the file that names the forum's reranker; it need not be there."""
        return self.folder / "reranker.json"

    @property
    def vectors(self) -> Path:
        """Return the folder of the sets of vectors."""
        return self.folder / "vectors"

    @property
    def follow(self) -> Path:
        """Return the file of what follows a living forum; it need not be there."""
        return self.folder / "follow.sqlite"

    @property
    def follow_lock(self) -> Path:
        """Return the file that who follows a living forum locks."""
        return self.folder / "follow.lock"

    @property
    def writeback_lock(self) -> Path:
        """Return the file that who writes decisions back to a living forum locks."""
        return self.folder / "writeback.lock"

    @property
    def lock(self) -> Path:
        """Return the file that the writer of the indexes locks."""
        return self.folder / "index.lock"

    @property
    def words_lock(self) -> Path:
        """Return the file that who makes a word index beside the one that answers locks."""
        return self.folder / "words.lock"

    @property
    def pairs(self) -> Path:
        """Return the file of the pairs that may ask the same; it need not be there."""
        return self.folder / "pairs.sqlite"

    @property
    def pairs_lock(self) -> Path:
        """Return the file that who compares questions locks."""
        return self.folder / "pairs.lock"

    @property
    def keys(self) -> Path:
        """Return the file of the service's keys; it need not be there."""
        return self.folder / "keys.json"

    @property
    def parts(self) -> Path:
        """Return the file that keeps the parts of the duplicate links; it need not be there."""
        return self.folder / "parts.json"

    @property
    def learned(self) -> Path:
        """Return the file that says what the own model has learned; it need not be there."""
        return self.folder / "learned.json"

    @property
    def training(self) -> Path:
        """Return the folder that a training of the forum's own model works in; it need not be there."""
        return self.folder / "training"

    @property
    def rejects(self) -> Path:
        """Return the file that keeps what the last load could not read."""
        return self.folder / "rejects.jsonl"


class OpenedFile:
    """The file that a forum was opened by: its archive, or what names its database.

    A folder that is moved, deleted or replaced while it is open belongs to another forum, or to none: to go on there
    would mix two forums, or leave files where a new forum is to be.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._identity: Final = identity(path)

    def check(self) -> None:
        """Return where the file is the one that was opened.

        Raises:
            ForumNotFoundError: it is not.
        """
        if identity(self._path) != self._identity:
            raise ForumNotFoundError(f"{self._path} was moved, deleted or replaced while it was open", "open it again")


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another under the same name, None where there is none."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def forum_names(folder: Path) -> list[str]:
    """Return the names of the forums in a folder, in order; none where the folder is a forum itself."""
    if not folder.is_dir() or ForumLayout(folder).is_forum():
        return []
    return sorted(path.name for path in folder.iterdir() if holds_forum(folder, path.name))


def holds_forum(folder: Path, name: str) -> bool:
    """Return whether a folder of forums has one of this name."""
    return NAME.fullmatch(name) is not None and ForumLayout(folder / name).is_forum()


def not_found(archive: Path) -> ForumNotFoundError:
    """Return the error that there is no archive file at this path, with what to do about it."""
    folder = archive.parent
    if names := forum_names(folder):
        return ForumNotFoundError(
            f"there is no forum at {folder}, but in it: {', '.join(names[:6])}", f"name {folder / names[0]}"
        )
    if folder.is_dir() and any(folder.iterdir()):  # nothing is ever indexed into it
        return ForumNotFoundError(
            f"there is no forum at {folder}: it holds other files and no {archive.name}",
            f"put {archive.name} back from a backup, or index into a new folder",
        )
    return ForumNotFoundError(f"there is no forum at {folder}", 'create one with "askalike index ARCHIVE --into FORUM"')
