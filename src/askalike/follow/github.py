"""The issues of a repository on GitHub, by its REST API and webhooks: an issue is a question, a comment an answer.

Pull requests are left out. A member's comment "Duplicate of #12", as GitHub reads it, links the issue as a duplicate.
Discussions, which share their numbers with issues, are read through GraphQL where they are asked for: comments and
replies are answers, the category is a tag, and hidden comments are left out.
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
_EVENTS: Final = {
    "issues": "issue",
    "issue_comment": "issue",
    "discussion": "discussion",
    "discussion_comment": "discussion",
}
_REPLIES: Final = 50
"""Of one comment of a discussion; the rest is left out, and named."""
_DISCUSSIONS: Final = """query($owner: String!, $name: String!, $after: String, $order: DiscussionOrder!) {
  repository(owner: $owner, name: $name) { discussions(first: 100, after: $after, orderBy: $order) {
    pageInfo { hasNextPage endCursor }
    nodes { number title updatedAt closed isAnswered category { name } comments { totalCount } } } } }"""
_SAID: Final = "databaseId body createdAt upvoteCount isAnswer isMinimized author { login }"
_DISCUSSION: Final = f"""query($owner: String!, $name: String!, $number: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{ discussion(number: $number) {{
    number title body createdAt closedAt upvoteCount url author {{ login }} category {{ name }}
    labels(first: 20) {{ nodes {{ name }} }}
    comments(first: 100, after: $after) {{ pageInfo {{ hasNextPage endCursor }}
      nodes {{ {_SAID} replies(first: {_REPLIES}) {{ totalCount nodes {{ {_SAID} }} }} }} }} }} }} }}"""


class GitHub:
    """The issues of one repository.

    Args:
        address: such as https://github.com/rust-lang/rust.
        api: of GitHub's API; an Enterprise server has its own.
        has_discussions: follow these too; they need a key.

    Raises:
        SourceError: the address names no repository, or there is no key for discussions.
    """

    kind = "github"

    def __init__(
        self, address: str, pace: Pace, key: str = "", api: str = API, *, has_discussions: bool = False
    ) -> None:
        self.address, self.pace = address.rstrip("/"), pace
        self._repository = urlsplit(self.address).path.strip("/").removesuffix(".git")
        if not _REPOSITORY.fullmatch(self._repository):
            raise SourceError(f"{address} names no repository", "expected one such as https://github.com/OWNER/NAME")
        headers = {"X-GitHub-Api-Version": "2022-11-28", "Accept": "application/vnd.github+json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if has_discussions and not key:
            raise SourceError("GitHub shows discussions to those with a key alone", "name its --key-variable")
        self._site = Site(f"{api.rstrip('/')}/repos/{self._repository}", headers, key, pace)
        self._graph = Site(f"{api.rstrip('/').removesuffix('/v3')}/graphql", headers, key, pace)
        self._has_discussions = has_discussions
        self._discussed: set[str] = set()

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
                path = f"/{name}?{following}"
            if found[name] != since:
                found[f"{name} tag"] = ""  # it belongs to another question
        if self._has_discussions:
            found["discussions"], more = self._active(str(known.get("discussions", "")))
            seen |= more
        yield Piece(found, tuple(seen.values()))

    def _active(self, since: str) -> tuple[str, dict[str, Seen]]:
        """Return the newest change of a discussion, and those that changed since a moment."""
        newest, after, seen = since, None, dict[str, Seen]()
        for _ in range(MOST_PAGES if since else 1):
            rows, after = self._discussions(after, "UPDATED_AT", "DESC")
            newest = max([newest, *(str(row.get("updatedAt") or "") for row in rows)])
            recent = [row for row in rows if since and str(row.get("updatedAt") or "") >= since]
            seen |= {one.id: one for row in recent if (one := self._topic(row)) is not None}
            if after is None or len(recent) < len(rows):
                break
        return newest, seen

    def sweep(self, place: Cursor) -> Piece:
        """Return the issues of a page, oldest first: no change moves them to another page.

        A place that GitHub no longer takes begins again, once.
        """
        if isinstance(place, str):
            found, after = self._discussions(place or None, "CREATED_AT", "ASC")
            return Piece(after, tuple(one for row in found if (one := self._topic(row)) is not None))
        at: dict[str, Any] = place if isinstance(place, dict) else {}
        query = at.get("query", f"state=all&sort=created&direction=asc&per_page={A_PAGE}")
        try:
            rows, headers = self._listed(f"/issues?{query}", {})
        except RefusedError as error:
            if error.status == 422 and "query" in at and "is_second" not in at:
                return Piece({"is_second": True})
            raise refused(error, self._site, "its issues") from error
        seen = tuple(one for row in rows or () if (one := self._seen(row, "issues")) is not None)
        rest = "" if self._has_discussions else None
        following = self._next(headers)
        return Piece(at | {"query": following} if following else rest, seen)

    def _page(self, path: str, headers: Mapping[str, str]) -> tuple[list[dict[str, Any]] | None, Mapping[str, str]]:
        try:
            return self._listed(path, headers)
        except RefusedError as error:
            raise refused(error, self._site, "its issues") from error

    def _listed(self, path: str, headers: Mapping[str, str]) -> tuple[list[dict[str, Any]] | None, Mapping[str, str]]:
        found, told = self._asked(path, headers)
        if found is not None and not isinstance(found, list):
            raise FailedError(f"{self.address} answered a JSON {type(found).__name__}, expected a list")
        return None if found is None else [one for one in found if isinstance(one, dict)], told

    def _discussions(self, after: str | None, field: str, direction: str) -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of discussions as lists show them, and the place of the next."""
        order = {"field": field, "direction": direction}
        listed = object_of(self._graphed(_DISCUSSIONS, after=after, order=order).get("discussions"))
        return nodes_of(listed), place_after(listed)

    def _graphed(self, query: str, **values: Any) -> dict[str, Any]:
        """Return what GraphQL answers about the repository; what is not there is left out.

        Raises:
            FailedError, SourceError: as ``_asked``; or the key does not show this repository.
        """
        try:
            found, _ = self._asked("", method="POST", body=self._asking(query, **values), site=self._graph)
        except RefusedError as error:
            raise refused(error, self._graph, "its discussions") from error
        wrongs = object_of(found).get("errors")
        for wrong in wrongs if isinstance(wrongs, list) else ():
            if object_of(wrong).get("type") != "NOT_FOUND":
                raise FailedError(f"{self._graph.address} answered: {str(object_of(wrong).get('message'))[:200]}")
        repository = object_of(object_of(found).get("data")).get("repository")
        if not isinstance(repository, dict):
            raise SourceError(f"{self._graph.address} shows no {self._repository}", "check that the key may read it")
        return repository

    def _asking(self, query: str, **values: Any) -> dict[str, Any]:
        """Return the body of a question to GraphQL about the repository."""
        owner, _, name = self._repository.partition("/")
        return {"query": query, "variables": {"owner": owner, "name": name, **values}}

    def _topic(self, row: Mapping[str, Any]) -> Seen | None:
        if (found := _number(row.get("number"))) is None:
            return None
        self._discussed.add(found)
        shown = [row.get(one) for one in ("updatedAt", "title", "closed", "isAnswered", "category", "comments")]
        return Seen(found, hashlib.blake2b(json.dumps(shown).encode(), digest_size=12).hexdigest())

    def _asked(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: Any = None,
        site: Site | None = None,
    ) -> tuple[Any, Mapping[str, str]]:
        """Ask the REST API, or another site, and heed what GitHub says of its limits.

        Raises:
            FailedError, SourceError, RefusedError: as ``Site.ask``; a limit that is reached is a FailedError.
        """
        try:
            found, told = (site or self._site).ask(path, headers, method, body)
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
        """Return the query of the next page, as ``Link`` names it; the path there names the repository by a number."""
        for part in headers.get("link", "").split(","):
            place, _, about = part.partition(";")
            query = place.strip().removesuffix(">").partition("?")[2]
            if 'rel="next"' in about and query:
                return query
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
        if identifier in self._discussed and (found := self._read_discussion(identifier)).thread is not None:
            return found
        found = self._read_issue(identifier)
        return self._read_discussion(identifier) if self._has_discussions and not found.is_there else found

    def check_access(self) -> None:
        """List an issue: where a repository was renamed or closed, every issue redirects or is missing."""
        self._page("/issues?per_page=1", {})

    def _read_issue(self, identifier: str) -> Reading:
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
        query: str | None = f"per_page={A_PAGE}"
        for _ in range(MOST_COMMENT_PAGES if issue.get("comments") else 0):
            rows, headers = self._page(f"/issues/{identifier}/comments?{query}", {})
            comments += rows or ()
            if (query := self._next(headers)) is None:
                break
        context = reading_context()
        found = reading_of(_records(issue, comments, context), context)
        left_out = () if query is None or not comments else (f"comments beyond the first {len(comments):,}",)
        return Reading(found.thread, (*found.rejects, *left_out))

    def _read_discussion(self, identifier: str) -> Reading:
        topic: dict[str, Any] = {}
        comments: list[dict[str, Any]] = []
        left_out: list[str] = []
        after: str | None = None
        for page in range(MOST_COMMENT_PAGES):
            topic = object_of(self._graphed(_DISCUSSION, number=int(identifier), after=after).get("discussion"))
            if _number(topic.get("number")) != identifier:
                if page:
                    raise FailedError(f"{self.address}/discussions/{identifier} went away while it was read")
                return Reading(None, is_there=False)
            for one in nodes_of(topic.get("comments")):
                replies = object_of(one.get("replies"))
                comments += [one, *nodes_of(replies)]
                if isinstance(many := replies.get("totalCount"), int) and many > _REPLIES:
                    left_out.append(f"replies beyond the first {_REPLIES} of comment {one.get('databaseId')}")
            if (after := place_after(object_of(topic.get("comments")))) is None:
                break
        else:
            left_out.append(f"comments beyond the first {len(comments):,}")
        issue = {
            "number": topic.get("number"),
            "title": topic.get("title"),
            "body": topic.get("body"),
            "labels": [topic.get("category"), *nodes_of(topic.get("labels"))],
            "created_at": topic.get("createdAt"),
            "closed_at": topic.get("closedAt"),
            "reactions": {"+1": topic.get("upvoteCount")},
            "html_url": topic.get("url"),
            "user": topic.get("author"),
        }
        said = [
            {
                "id": f"d{one.get('databaseId')}",  # comments of issues have numbers of their own
                "body": one.get("body"),
                "created_at": one.get("createdAt"),
                "reactions": {"+1": one.get("upvoteCount")},
                "user": one.get("author"),
                "is_answer": one.get("isAnswer"),
            }
            for one in comments
            if one.get("isMinimized") is not True
        ]
        context = reading_context()
        found = reading_of(_records(issue, said, context), context)
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
        score=whole_number(object_of(issue.get("reactions")).get("+1"), context),
        url=one_line(issue.get("html_url"), "url", context),
        author=one_line(object_of(issue.get("user")).get("login"), "login", context),
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
            score=whole_number(object_of(comment.get("reactions")).get("+1"), context),
            author=one_line(object_of(comment.get("user")).get("login"), "login", context),
            is_accepted=comment.get("is_answer") is True,
        )


def duplicate_of(comment: Mapping[str, Any]) -> str:
    """Return the issue of which a member's comment says that its own is a duplicate, or ""."""
    found = _DUPLICATE.match(str(comment.get("body") or ""))
    return found[1] if found and comment.get("author_association") in _MEMBERS else ""


def event_ids(kind: str, payload: Any) -> tuple[str, ...]:
    """Return the issues and discussions that a webhook's payload is about.

    Args:
        kind: as ``X-GitHub-Event`` says it.

    >>> event_ids("issues", {"action": "edited", "issue": {"number": 3}}), event_ids("ping", {"zen": "…"})
    (('3',), ())
    """
    issue = object_of(object_of(payload).get(_EVENTS.get(kind, "")))
    found = None if "pull_request" in issue else _number(issue.get("number"))
    return (found,) if found else ()


def nodes_of(value: object) -> list[dict[str, Any]]:
    """Return the nodes of a connection."""
    found = object_of(value).get("nodes")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def place_after(connection: Mapping[str, Any]) -> str | None:
    """Return the place of a connection's next page."""
    page = object_of(connection.get("pageInfo"))
    found = page.get("endCursor")
    return found if page.get("hasNextPage") is True and isinstance(found, str) and found else None


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return str(value) if _NUMBER.fullmatch(str(value)) else None
