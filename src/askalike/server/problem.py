"""Why a request is refused: from errors to HTTP statuses, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from askalike import errors

STATUSES: Final[tuple[tuple[type[errors.AskalikeError], int], ...]] = (
    (errors.UnknownIdError, 404),
    (errors.SettingError, 422),
    (errors.InputError, 422),
    (errors.BusyForumError, 503),
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


@dataclass(frozen=True, slots=True)
class Problem:
    """What a refused request is answered with."""

    status: int
    error: str
    hint: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """A request that HTTP itself gives a reason to refuse."""

    def __init__(self, status: int, error: str, hint: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.problem = Problem(status, error, hint, headers or {})


def problem_of(error: BaseException) -> Problem:
    """Return what a request is answered with after an error; of one that nobody foresaw, no more than that."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, errors.AskalikeError):
        status = next(status for kind, status in STATUSES if isinstance(error, kind))
        headers = {"Retry-After": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        return Problem(status, error.message, error.hint, headers)
    return Problem(500, "the service has met an error that it does not know", "its log says more")
