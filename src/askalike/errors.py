"""Every error that askalike raises on purpose, in one tree.

::

    AskalikeError
    ├── InputError              a file or record given by the user cannot be used
    │   ├── FormatError         the format is unknown, ambiguous or not what was said
    │   ├── UnsafeInputError    the input asks for something that is never done (entities, paths outside, bombs)
    │   ├── ConflictError       somebody has decided otherwise, or the same, on a pair of questions
    │   └── DamagedInputError   truncated, mis-encoded or empty: names file and line
    ├── SettingError            an option or argument has a value that cannot be used
    ├── ForumError              a forum's folder
    │   ├── ForumNotFoundError  there is no forum at this path
    │   ├── ForumExistsError    there is something at this path already
    │   ├── ForumVersionError   written by another, incompatible version
    │   ├── DamagedForumError   a stored file is damaged
    │   ├── BusyForumError      another process is writing
    │   ├── ReadOnlyError       its files may not be written
    │   ├── DiskFullError       the disk has no room for what is to be written
    │   ├── ShortageError       the system gives no more file handles or memory
    │   ├── EngineError         the engine that finds a forum's questions does not answer
    │   ├── DatabaseError       the server that holds a forum's records does not answer, or gives no access
    │   └── NotLearnedError     it has no vectors, or has not learned the ranker that was named
    ├── ModelError              a trained model's folder
    │   ├── ModelNotFoundError  there is no model at this path
    │   ├── ModelExistsError    there is something else at this path already
    │   ├── ModelVersionError   written by another, incompatible version
    │   ├── DamagedModelError   a file of the model is damaged, missing or does not fit the others
    │   └── EncoderError        an encoder of texts is not there, does not answer, or gave something else than vectors
    ├── SourceError             a forum that is followed refuses, or answers something else than was expected
    ├── UnknownIdError          a question or answer id that the forum does not hold
    ├── EvaluationError         gold and run do not fit each other, or a measure is not defined
    └── MissingExtraError       an optional dependency is not installed

A message says what was found, what was expected, and what to do. ``hint`` holds the last part on its own, so that
the command line and the service can show it apart.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any


class AskalikeError(Exception):
    """The root of all errors that askalike raises on purpose.

    Args:
        message: what was found and what was expected.
        hint: what the reader can do about it; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InputError(AskalikeError):
    """A file or record given by the user cannot be used."""


class FormatError(InputError):
    """The format is unknown, ambiguous, or not what was said."""


class UnsafeInputError(InputError):
    """The input asks for something that is never done: entities, paths outside its folder, bombs."""


class ConflictError(InputError):
    """Somebody has decided otherwise, or the same, on a pair of questions, or has undone a decision."""


class DamagedInputError(InputError):
    """The input is truncated, mis-encoded or empty; the message names file and line."""


class SettingError(AskalikeError):
    """An option or argument has a value that cannot be used."""


class ForumError(AskalikeError):
    """A forum's folder cannot be used as asked."""


class ForumNotFoundError(ForumError):
    """There is no forum at this path."""


class ForumExistsError(ForumError):
    """There is something at this path already."""


class ForumVersionError(ForumError):
    """The forum was written by another, incompatible version."""


class DamagedForumError(ForumError):
    """A stored file of the forum is damaged."""


class BusyForumError(ForumError):
    """Another process is writing to the forum."""


class ReadOnlyError(ForumError):
    """The forum's files may be read and not written; what is in them is sound."""


class DiskFullError(ForumError):
    """The disk has no room for what is to be written; what is on it can be read."""


class ShortageError(ForumError):
    """The system gives no more file handles or memory; what is on disk is sound."""


class EngineError(ForumError):
    """The engine that finds a forum's questions does not answer, or lacks them; nothing that is stored is lost."""


class DatabaseError(ForumError):
    """The server that holds a forum's records does not answer, or gives no access; nothing is acknowledged."""


class NotLearnedError(ForumError):
    """The forum has no vectors, or has not learned the ranker that was named."""


class ModelError(AskalikeError):
    """A trained model's folder cannot be used as asked."""


class ModelNotFoundError(ModelError):
    """There is no model at this path."""


class ModelExistsError(ModelError):
    """There is something else than a model at this path."""


class ModelVersionError(ModelError):
    """The model was written by another, incompatible version."""


class DamagedModelError(ModelError):
    """A file of the model is damaged, missing, or does not fit the others."""


class EncoderError(ModelError):
    """An encoder of texts is not there, does not answer, or gave something else than vectors."""


class SourceError(AskalikeError):
    """A forum that is followed refuses, or answers something else than was expected."""


class UnknownIdError(AskalikeError):
    """A question or answer id that the forum does not hold."""


class EvaluationError(AskalikeError):
    """Gold and run do not fit each other, or a measure is not defined for them."""


class MissingExtraError(AskalikeError):
    """An optional dependency is not installed.

    Args:
        extra: of this package, that brings it.
    """

    def __init__(self, message: str, extra: str) -> None:
        super().__init__(message, install_command(extra))


def optional_module(name: str, missing: str, extra: str) -> Any:
    """Return a module of a package that an extra brings.

    Args:
        missing: the message where it is not installed.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(missing, extra) from error


def install_command(extra: str) -> str:
    """Return what installs the packages of an extra, wherever this package was installed from."""
    from importlib import metadata  # which loads much

    try:
        required = metadata.requires("askalike") or []
    except metadata.PackageNotFoundError:  # it is imported from a folder that was never installed
        required = []
    rows = (row.partition(";") for row in required)
    packages = [f'"{name.strip()}"' for name, _, marker in rows if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    if not packages:
        return f"install askalike again, with its extra: askalike[{extra}]"
    return f"pip install {' '.join(packages)}  # askalike[{extra}]"
