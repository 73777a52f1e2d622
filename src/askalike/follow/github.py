"""The issues of a repository on GitHub, by its REST API and webhooks: an issue is a question, a comment an answer.

Pull requests are left out. A member's comment "Duplicate of #12", as GitHub reads it, links the issue as a duplicate.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from askalike.errors import SourceError
from askalike.follow.pace import Pace
from askalike.follow.source import Cursor, Piece, Reading, Seen, Site, reading_context, reading_of, refused
from askalike.readers.frame import ReadContext
from askalike.readers.values import check_has_text, identifier, moment, one_line, tags, text, whole_number
from askalike.types import Answer, Link, Question, Record
from askalike.web import FailedError, RefusedError

API: Final = "https://api.github.com"
SITE: Final = "https://github.com"
A_PAGE: Final = 100
MOST_PAGES: Final = 10
"""Of a list, in one poll: the next goes on behind them."""
MOST_COMMENT_PAGES: Final = 50
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}")
_GONE: Final = (301, 404, 410)
"""An issue that was moved to another repository redirects."""
_DUPLICATE: Final = re.compile(r"\s*duplicate of #([1-9][0-9]{0,9})\b", re.IGNORECASE)
_MEMBERS: Final = ("OWNER", "MEMBER", "COLLABORATOR")
_EVENTS: Final = ("issues", "issue_comment")


class GitHub:
    """The issues of one repository.

    Args:
        address: such as https://github.com/rust-lang/rust.
        api: of GitHub's API; an Enterprise server has its own.

    Raises:
        SourceError: the address names no repository.
    """

    kind = "github"
    are_lists_whole = False

    def __init__(self, address: str, pace: Pace, key: str = "", api: str = API) -> None:
        self.address, self.pace = address.rstrip("/"), pace
        self._repository = urlsplit(self.address).path.strip("/").removesuffix(".git")
        if not _REPOSITORY.fullmatch(self._repository):
            raise SourceError(f"{address} names no repository", "expected one such as https://github.com/OWNER/NAME")
        headers = {"X-GitHub-Api-Version": "2022-11-28", "Accept": "application/vnd.github+json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._site = Site(f"{api.rstrip('/')}/repos/{self._repository}", headers, key, pace)

    # -- lists -------------------------------------------------------------------------------------------------

    def poll(self, cursor: Cursor) -> Iterator[Piece]:
        """Yield the issues that changed since the cursor, and those of which a comment did."""
        known: dict[str, Any] = cursor if isinstance(cursor, dict) else {}
        found: dict[str, Any] = {}
        seen: dict[str, Seen] = {}
        for name, sort in (("issues", "state=all&"), ("issues/comments", "")):
            since, tag = str(known.get(name, "")), str(known.get(f"{name} tag", ""))
            found[name], found[f"{name} tag"] = since, tag
            path = f"/{name}?{sort}sort=updated&per_page={A_PAGE}&direction=" + (
                f"asc&since={quote(since, safe='')}" if since else "desc"
            )
            for page in range(MOST_PAGES if since else 1):
                rows, headers = self._page(path, {"If-None-Match": tag} if tag and not page else {})
                if rows is None:
                    break
                if not page:
                    found[f"{name} tag"] = headers.get("etag", "")
                found[name] = max([found[name], *(str(row.get("updated_at") or "") for row in rows)])
                if since:
                    seen |= {one.id: one for row in rows if (one := self._seen(row, name)) is not None}
                if (following := self._next(headers)) is None:
                    break
                path = following
            if found[name] != since:
                found[f"{name} tag"] = ""  # it belongs to another question
        yield Piece(found, tuple(seen.values()))

    def sweep(self, place: Cursor) -> Piece:
        """Return the issues of a page, oldest first: no change moves them to another page."""
        page = place if isinstance(place, int) else 1
        rows, headers = self._page(f"/issues?state=all&sort=created&direction=asc&per_page={A_PAGE}&page={page}", {})
        seen = tuple(one for row in rows or () if (one := self._seen(row, "issues")) is not None)
        return Piece(page + 1 if self._next(headers) else None, seen)

    def _page(self, path: str, headers: Mapping[str, str]) -> tuple[list[dict[str, Any]] | None, Mapping[str, str]]:
        try:
            found, told = self._asked(path, headers)
        except RefusedError as error:
            raise refused(error, self._site, "its issues") from error
        if found is not None and not isinstance(found, list):
            raise FailedError(f"{self.address} answered a JSON {type(found).__name__}, expected a list")
        return None if found is None else [one for one in found if isinstance(one, dict)], told

    def _asked(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", body: Any = None
    ) -> tuple[Any, Mapping[str, str]]:
        """Ask, and heed what GitHub says of its limits.

        Raises:
            FailedError, SourceError, RefusedError: as ``Site.ask``; a limit that is reached is a FailedError.
        """
        try:
            found, told = self._site.ask(path, headers, method, body)
        except RefusedError as error:
            if error.status == 403 and (
                error.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in error.headers
            ):
                self._heed(error.headers)
                asked = error.headers.get("retry-after", "")
                raise FailedError(
                    f"{self.address} {error}", float(asked) if asked.isdecimal() else None, 429
                ) from error
            raise
        self._heed(told)
        return found, told

    def _heed(self, headers: Mapping[str, str]) -> None:
        reset = headers.get("x-ratelimit-reset", "")
        if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
            self.pace.close_until(float(reset[:12]) + 1)

    def _next(self, headers: Mapping[str, str]) -> str | None:
        """Return the path of the next page, as ``Link`` names it; another site's is none."""
        for part in headers.get("link", "").split(","):
            place, _, about = part.partition(";")
            place = place.strip().removeprefix("<").removesuffix(">")
            if 'rel="next"' in about and place.startswith(f"{self._site.address}/"):
                return place.removeprefix(self._site.address)
        return None

    def _seen(self, row: Mapping[str, Any], name: str) -> Seen | None:
        if name == "issues":
            if "pull_request" in row or (found := _number(row.get("number"))) is None:
                return None
            shown = [row.get(one) for one in ("updated_at", "comments", "state", "title")]
            return Seen(found, hashlib.blake2b(json.dumps(shown).encode(), digest_size=12).hexdigest())
        found = _number(str(row.get("issue_url", "")).rpartition("/")[2])
        return Seen(found) if found else None

    # -- one issue ---------------------------------------------------------------------------------------------

    def read(self, identifier: str) -> Reading:
        """Return an issue with all its comments; none where it was deleted, moved, or is a pull request."""
        if not _NUMBER.fullmatch(identifier):
            return Reading(None, is_there=False)
        try:
            issue, _ = self._asked(f"/issues/{identifier}")
        except RefusedError as error:
            if error.status in _GONE:
                return Reading(None, is_there=False)
            raise FailedError(f"{self.address}/issues/{identifier} {error}") from error
        except SourceError as error:
            if "leads to" in error.message:
                return Reading(None, is_there=False)
            raise
        if not isinstance(issue, dict) or _number(issue.get("number")) != identifier:
            raise FailedError(f"{self.address}/issues/{identifier} answered something else than this issue")
        if "pull_request" in issue:
            return Reading(None, is_there=False)
        comments: list[dict[str, Any]] = []
        path: str | None = f"/issues/{identifier}/comments?per_page={A_PAGE}"
        for _ in range(MOST_COMMENT_PAGES if issue.get("comments") else 0):
            rows, headers = self._page(path or "", {})
            comments += rows or ()
            if (path := self._next(headers)) is None:
                break
        context = reading_context()
        found = reading_of(_records(issue, comments, context), context)
        left_out = () if path is None or not comments else (f"comments beyond the first {len(comments):,}",)
        return Reading(found.thread, (*found.rejects, *left_out))


def _records(issue: Mapping[str, Any], comments: list[dict[str, Any]], context: ReadContext) -> Iterator[Record]:
    """Yield an issue, its comments and its links, as GitHub's API gives them; raise Unreadable for the issue."""
    number = identifier(issue.get("number"), "number")
    title, body = one_line(issue.get("title"), "title", context), text(issue.get("body"), "body", context)
    check_has_text(title, body, "markdown")
    yield Question(
        id=number,
        title=title,
        body=body,
        markup="markdown",
        tags=tags(issue.get("labels"), context),
        created=moment(issue.get("created_at"), context),
        closed=moment(issue.get("closed_at"), context),
        score=whole_number(_object(issue.get("reactions")).get("+1"), context),
        url=one_line(issue.get("html_url"), "url", context),
        author=one_line(_object(issue.get("user")).get("login"), "login", context),
    )
    for comment in comments:
        said = text(comment.get("body"), "body", context)
        original = duplicate_of(comment)
        if original and original != number:
            yield Link(number, original, "duplicate")
        if not said.strip():
            context.reject("comments", 0, str(comment.get("id"))[:40], "a comment is empty")
            continue
        yield Answer(
            id=identifier(comment.get("id"), "comment's id"),
            question_id=number,
            body=said,
            markup="markdown",
            created=moment(comment.get("created_at"), context),
            score=whole_number(_object(comment.get("reactions")).get("+1"), context),
            author=one_line(_object(comment.get("user")).get("login"), "login", context),
        )


def duplicate_of(comment: Mapping[str, Any]) -> str:
    """Return the issue of which a member's comment says that its own is a duplicate, or ""."""
    found = _DUPLICATE.match(str(comment.get("body") or ""))
    return found[1] if found and comment.get("author_association") in _MEMBERS else ""


def event_ids(kind: str, payload: Any) -> tuple[str, ...]:
    """Return the issues that a webhook's payload is about.

    Args:
        kind: as ``X-GitHub-Event`` says it.

    >>> event_ids("issues", {"action": "edited", "issue": {"number": 3}}), event_ids("ping", {"zen": "…"})
    (('3',), ())
    """
    if kind not in _EVENTS:
        return ()
    issue = _object(_object(payload).get("issue"))
    found = None if "pull_request" in issue else _number(issue.get("number"))
    return (found,) if found else ()


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return str(value) if _NUMBER.fullmatch(str(value)) else None
