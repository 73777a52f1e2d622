"""The names of the files in a forum's folder, in one frozen place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from askalike.errors import ForumError, ForumNotFoundError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What the folder of one of several forums may be called, which is part of its address."""


class _Place:
    """A path in a forum's folder; nothing need be there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: ForumLayout | None, _: object = None) -> Path:
        return Path(self._name) if layout is None else layout.folder / self._name


@dataclass(frozen=True, slots=True)
class ForumLayout:
    """Where things are in a forum's folder.

    ::

        FORUM/
          archive.json        in place of archive.sqlite: the PostgreSQL database that holds the same
          engine.json         the engine that finds questions in place of lexical/ and the vectors' indexes, if one does
          archive.sqlite      questions, answers, links, judgements, change log: the only thing that cannot be rebuilt
          lexical/            word index, rebuilt from the archive at need
          model/              the forum's own model, where it has one
          encoder.json        the text encoder that was named for the forum, where one was
          reranker.json       what puts the best hits in its order, where something was named
          vectors/            the questions' vectors and the model that made them, rebuilt from the archive at need
          loading.lock        held by who loads an archive; loading.sqlite: what was read of it so far
          index.lock          held by the one process that writes indexes
          pairs.sqlite        pairs that may ask the same, made anew at need; pairs.lock: held by who compares
          follow.sqlite       what follows a living forum: its cursor, what it holds, webhooks that came; follow.lock:
                              held by who follows; writeback.lock: by who writes decisions back
          keys.json           hashes of the keys of the service, where some were made
          parts.json          which questions train, stop and test models, once one was trained
          learned.json        the duplicate links that the forum's own model has learned from
          training/           what a training of the own model that was stopped goes on from
          training/NAME/      the same of what a ranker learns
          rejects.jsonl       records of the last load that could not be read
    """

    folder: Path

    archive = _Place("archive.sqlite")
    attached = _Place("archive.json")
    engine = _Place("engine.json")
    lexical = _Place("lexical")
    model = _Place("model")
    encoder = _Place("encoder.json")
    reranker = _Place("reranker.json")
    vectors = _Place("vectors")
    follow = _Place("follow.sqlite")
    follow_lock = _Place("follow.lock")
    writeback_lock = _Place("writeback.lock")
    lock = _Place("index.lock")
    pairs = _Place("pairs.sqlite")
    pairs_lock = _Place("pairs.lock")
    keys = _Place("keys.json")
    parts = _Place("parts.json")
    learned = _Place("learned.json")
    training = _Place("training")
    rejects = _Place("rejects.jsonl")

    def __post_init__(self) -> None:
        """Raise ForumError where the folder's name is no UTF-8: not every store below can open such a path."""
        try:
            str(self.folder).encode()
        except UnicodeEncodeError as error:
            raise ForumError(
                f"the forum's path {str(self.folder)!r} is not UTF-8", "choose a folder with another name"
            ) from error

    def is_forum(self) -> bool:
        """Return whether the folder holds a forum, or stands for one in a database."""
        return self.archive.is_file() or self.attached.is_file()


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
