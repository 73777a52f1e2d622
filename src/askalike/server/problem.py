"""Why a request is refused: from errors to HTTP statuses, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from askalike import errors
from askalike.files import shortage

STATUSES: Final[tuple[tuple[type[errors.AskalikeError], int], ...]] = (
    (errors.UnknownIdError, 404),
    (errors.SettingError, 422),
    (errors.ConflictError, 409),
    (errors.InputError, 422),
    (errors.BusyForumError, 503),
    (errors.ReadOnlyError, 409),
    (errors.DiskFullError, 507),
    (errors.ShortageError, 503),
    (errors.EngineError, 503),
    (errors.DatabaseError, 503),
    (errors.ForumNotFoundError, 503),
    (errors.DamagedForumError, 500),
    (errors.ForumVersionError, 500),
    (errors.NotLearnedError, 409),
    (errors.EncoderError, 503),
    (errors.MissingExtraError, 501),
    (errors.AskalikeError, 500),
)
"""From an error to a status; the first fitting row counts."""

RETRY_AFTER_S: Final = 2


class Refused(Exception):
    """Why a request is refused: HTTP's status, what is wrong, what to do, and further headers of the answer."""

    def __init__(self, status: int, error: str, hint: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.hint, self.headers = status, error, hint, headers or {}


def refusal_of(error: BaseException) -> Refused:
    """Return what a request is answered with after an error; of one that nobody foresaw, no more than that."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, OSError):  # of any file, such as a module that is imported when it is first used
        error = shortage("the request cannot be answered", error.errno or 0) or error
    if isinstance(error, errors.AskalikeError):
        status = next(status for kind, status in STATUSES if isinstance(error, kind))
        headers = {"Retry-After": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        return Refused(status, error.message, error.hint, headers)
    return Refused(500, "the service has met an error that it does not know", "its log says more")
