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
from urllib.parse import parse_qs

from askalike.errors import BusyForumError, ForumError
from askalike.follow import discourse, github
from askalike.follow.state import State
from askalike.readers.values import as_object
from askalike.store import ForumLayout

MAX_BYTES: Final = 1_000_000
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
TYPES: Final = (JSON, FORM)
"""The content types of webhooks: who sends them is known by a signature, so a page's form cannot."""
_MAX_FIELDS: Final = 10
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
    if len(content) > MAX_BYTES:
        raise WebhookError(413, f"the webhook has more than {MAX_BYTES:,} bytes", "the poll finds what it is about")
    try:
        with State(layout, is_durable=True) as state:
            return _received(state, {name.lower(): value for name, value in headers.items()}, content, clock)
    except BusyForumError as error:
        raise WebhookError(503, error.message, "send it again later") from error
    except ForumError as error:
        raise WebhookError(404, error.message, error.hint) from error


def _received(state: State, headers: Mapping[str, str], content: bytes, clock: Callable[[], float]) -> Outcome:
    settings = as_object(state.get("settings"))
    variable, dialect = str(settings.get("secret_variable") or ""), _DIALECTS.get(str(settings.get("kind")))
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
    payload = _payload(headers.get("content-type", ""), content)
    if dialect is _DIALECTS["github"]:
        _check_repository(payload, str(settings.get("address")))
    ids = dialect.ids(headers.get(dialect.kind, ""), payload)
    if not state.add_event(event, ids, clock()):
        return "known"
    return "kept" if ids else "ignored"


def _payload(content_type: str, content: bytes) -> Any:
    """Return the JSON of a webhook, which GitHub sends as a form unless it is told otherwise."""
    try:
        if content_type.partition(";")[0].strip().lower() == FORM:
            form = parse_qs(content.decode(), strict_parsing=True, max_num_fields=_MAX_FIELDS)
            return json.loads(form["payload"][0])
        return json.loads(content)
    except (ValueError, RecursionError, KeyError) as error:
        hint = "send application/json, or a form with the JSON as its payload"
        raise WebhookError(400, "the webhook is not JSON, or nested too deep", hint) from error


def _check_repository(payload: Any, address: str) -> None:
    """Raise WebhookError where a webhook is about another repository, whose issues have the same numbers."""
    repository = as_object(as_object(payload).get("repository")).get("full_name")
    followed = github.repository_of(address)
    if isinstance(repository, str) and repository.lower() != followed.lower():
        hint = f"send it to a forum that follows {repository[:100]}, or leave it out of this webhook"
        raise WebhookError(403, f"this forum follows {followed}, not {repository[:100]!r}", hint)


def _check(dialect: _Dialect, headers: Mapping[str, str], content: bytes, secret: str) -> None:
    """Raise WebhookError unless whoever knows the secret signed the content."""
    signature = headers.get(dialect.signature, "")
    expected = "sha256=" + hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    if not _SIGNATURE.fullmatch(signature):
        raise WebhookError(401, f"{dialect.signature} is missing, or no sha256 signature", "give the webhook a secret")
    if not hmac.compare_digest(signature.encode(), expected.encode()):
        raise WebhookError(403, "the signature is not by this forum's secret", "give both sides the same secret")
