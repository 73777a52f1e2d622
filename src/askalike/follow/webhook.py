"""Takes webhooks: checks who signed them, and keeps what they name before they are acknowledged."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from askalike.errors import BusyForumError, ForumError
from askalike.follow import discourse, github
from askalike.follow.state import State
from askalike.store import ForumLayout

MOST_BYTES: Final = 1_000_000
_EVENT_ID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_SIGNATURE: Final = re.compile(r"sha256=[0-9a-f]{64}")

Outcome = Literal["kept", "known", "ignored"]
"""``known``: the same event came before. ``ignored``: it is about nothing that is followed, such as a ping."""


class WebhookError(Exception):
    """A webhook is refused.

    Args:
        status: of HTTP.
    """

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What a site calls the headers of its webhooks, in lower case, and how their payloads name threads."""

    signature: str
    event: str
    kind: str
    ids: Callable[[str, Any], tuple[str, ...]]


_DIALECTS: Final[Mapping[str, _Dialect]] = {
    "discourse": _Dialect(
        "x-discourse-event-signature", "x-discourse-event-id", "x-discourse-event-type", discourse.event_ids
    ),
    "github": _Dialect("x-hub-signature-256", "x-github-delivery", "x-github-event", github.event_ids),
}


def is_configured(layout: ForumLayout) -> bool:
    """Return whether a forum follows anything: without that, it takes no webhook."""
    return layout.follow.is_file()


def receive(
    layout: ForumLayout, headers: Mapping[str, str], content: bytes, clock: Callable[[], float] = time.time
) -> Outcome:
    """Keep a webhook; what it names is on disk when this returns.

    Args:
        headers: found whatever the case of their names.
        content: the body as it came, which the signature is of.

    Raises:
        WebhookError: it is not to be acknowledged.
    """
    if len(content) > MOST_BYTES:
        raise WebhookError(413, f"the webhook has more than {MOST_BYTES:,} bytes", "the poll finds what it is about")
    try:
        with State(layout, is_durable=True) as state:
            return _received(state, {name.lower(): value for name, value in headers.items()}, content, clock)
    except BusyForumError as error:
        raise WebhookError(503, error.message, "send it again later") from error
    except ForumError as error:
        raise WebhookError(404, error.message, error.hint) from error


def _received(state: State, headers: Mapping[str, str], content: bytes, clock: Callable[[], float]) -> Outcome:
    settings = state.value("settings") or {}
    variable, dialect = settings.get("secret_variable"), _DIALECTS.get(str(settings.get("kind")))
    if not variable or dialect is None:
        hint = "name the variable of its secret: askalike follow FORUM --secret-variable NAME"
        raise WebhookError(404, "this forum takes no webhooks", hint)
    secret = os.environ.get(variable, "")
    if not secret:
        raise WebhookError(503, f"the environment of the service has no {variable}", "set it to the webhook's secret")
    _check(dialect, headers, content, secret)
    event = headers.get(dialect.event, "")
    if not _EVENT_ID.fullmatch(event):
        raise WebhookError(400, f"{dialect.event} is {event[:40]!r}", "expected the id of an event")
    try:
        payload = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise WebhookError(400, "the webhook is not JSON, or nested too deep", "send application/json") from error
    ids = dialect.ids(headers.get(dialect.kind, ""), payload)
    if not state.receive(event, ids, clock()):
        return "known"
    return "kept" if ids else "ignored"


def _check(dialect: _Dialect, headers: Mapping[str, str], content: bytes, secret: str) -> None:
    """Raise WebhookError unless whoever knows the secret signed the content."""
    given = headers.get(dialect.signature, "")
    wanted = "sha256=" + hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    if not _SIGNATURE.fullmatch(given):
        raise WebhookError(401, f"{dialect.signature} is missing, or no sha256 signature", "give the webhook a secret")
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        raise WebhookError(403, "the signature is not by this forum's secret", "give both sides the same secret")
