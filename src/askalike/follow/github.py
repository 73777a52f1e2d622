"""The issues of a repository on GitHub, by its REST API and webhooks: an issue is a question, a comment an answer.

Pull requests are left out. A member's comment "Duplicate of #12", as GitHub reads it, links the issue as a duplicate;
so does one with the address of an issue of the same repository. Discussions, which share their numbers with issues, are
read through GraphQL where they are asked for: comments and replies are answers, the category is a tag, and hidden
comments are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from askalike.errors import SourceError
from askalike.follow.site import (
    MAX_LIST_PAGES,
    Api,
    Cursor,
    Listing,
    Pace,
    Reading,
    id_text,
    stamp_of,
    thread_reading,
)
from askalike.readers.frame import ReadContext
from askalike.readers.values import Unreadable, as_object, as_objects, identifier, read_answer, read_question
from askalike.types import Link, Record
from askalike.web import FailedError, RefusedError

API: Final = "https://api.github.com"
PAGE_SIZE: Final = 100
MAX_COMMENT_PAGES: Final = 50
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_GONE: Final = (404, 410)
_MEMBERS: Final = ("OWNER", "MEMBER", "COLLABORATOR")
_EVENTS: Final = {
    "issues": "issue",
    "issue_comment": "issue",
    "discussion": "discussion",
    "discussion_comment": "discussion",
}
_REPLIES: Final = 50
"""Of one comment of a discussion; the rest is left out, and named in its rejects."""
_DISCUSSIONS: Final = """query($owner: String!, $name: String!, $after: String, $order: DiscussionOrder!) {
  repository(owner: $owner, name: $name) { discussions(first: 100, after: $after, orderBy: $order) {
    pageInfo { hasNextPage endCursor }
    nodes { number title updatedAt closed isAnswered category { name } comments { totalCount } } } } }"""
_FIELDS: Final = "databaseId body createdAt upvoteCount isAnswer isMinimized author { login } authorAssociation"
_DISCUSSION: Final = f"""query($owner: String!, $name: String!, $number: Int!, $label: String!, $after: String) {{
  repository(owner: $owner, name: $name) {{ label(name: $label) {{ id }} discussion(number: $number) {{
    id number title body createdAt closed closedAt upvoteCount url author {{ login }} category {{ name }}
    labels(first: 100) {{ nodes {{ name }} }}
    comments(first: 100, after: $after) {{ pageInfo {{ hasNextPage endCursor }}
      nodes {{ {_FIELDS} replies(first: {_REPLIES}) {{ totalCount nodes {{ {_FIELDS} }} }} }} }} }} }} }}"""


class GitHub:
    """The issues of one repository.

    Args:
        address: such as https://github.com/rust-lang/rust.
        api: of GitHub's API; an Enterprise server has its own.
        has_discussions: follow these too; they need a key.

    Raises:
        SourceError: the address names no repository, or there is no key for discussions.
    """

    def __init__(
        self, address: str, pace: Pace, key: str = "", api: str = API, *, has_discussions: bool = False
    ) -> None:
        self.address, self.pace = address.rstrip("/"), pace
        self.repository = repository_of(self.address)
        if not _REPOSITORY.fullmatch(self.repository):
            raise SourceError(f"{address} names no repository", "expected one such as https://github.com/OWNER/NAME")
        if has_discussions and not key:
            raise SourceError("GitHub shows discussions to those with a key alone", "name its --key-variable")
        headers = {"X-GitHub-Api-Version": "2022-11-28", "Accept": "application/vnd.github+json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self.api = Api(f"{api.rstrip('/')}/repos/{self.repository}", headers, key, pace)
        self._graph = Api(f"{api.rstrip('/').removesuffix('/v3')}/graphql", headers, key, pace)
        self._has_discussions = has_discussions
        self._discussions: set[str] = set()
        host, name = re.escape(urlsplit(self.address).netloc.removeprefix("www.")), re.escape(self.repository)
        place = rf"(?:(?:{name})?#|https?://(?:www\.)?{host}/{name}/(?:issues|discussions)/)"
        self._duplicate = re.compile(rf"\s*duplicate\s+of\s+{place}([1-9][0-9]{{0,9}})\b", re.IGNORECASE)

    # -- lists -------------------------------------------------------------------------------------------------

    def poll(self, cursor: Cursor) -> Listing:
        """Return the issues that changed since the cursor, also by a new comment."""
        known = as_object(cursor)
        since, tag = str(known.get("issues", "")), str(known.get("tag", ""))
        order = f"asc&since={quote(since, safe='')}" if since else "desc"
        query: str | None = f"state=all&sort=updated&per_page={PAGE_SIZE}&direction={order}"
        newest, stamps = since, dict[str, str]()
        for page in range(MAX_LIST_PAGES if since else 1):
            # GitHub answers the same page with a 304 while nothing has changed.
            rows, headers = self.page(f"/issues?{query}", {"If-None-Match": tag} if tag and not page else {})
            if rows is None:
                break
            tag = tag if page else headers.get("etag", "")
            newest = max([newest, *(str(row.get("updated_at") or "") for row in rows)])
            stamps |= _issue_stamps(rows) if since else {}
            if (query := next_query(headers)) is None:
                break
        place = {"issues": newest, "tag": tag if newest == since else ""}
        if self._has_discussions:
            place["discussions"], changed = self._changed_discussions(str(known.get("discussions", "")))
            stamps |= changed
        return Listing(place, stamps)

    def _changed_discussions(self, since: str) -> tuple[str, dict[str, str]]:
        """Return the newest change of a discussion, and the stamps of those that changed since a moment."""
        newest, after, stamps = since, None, dict[str, str]()
        for _ in range(MAX_LIST_PAGES if since else 1):
            rows, after = self._discussion_page(after, "UPDATED_AT", "DESC")
            newest = max([newest, *(str(row.get("updatedAt") or "") for row in rows)])
            recent = [row for row in rows if since and str(row.get("updatedAt") or "") >= since]
            stamps |= self._discussion_stamps(recent)
            if after is None or len(recent) < len(rows):
                break
        return newest, stamps

    def sweep(self, cursor: Cursor) -> Listing:
        """Return the issues of a page, oldest first: no change moves them to another page.

        A place that GitHub no longer takes begins again, once.
        """
        if isinstance(cursor, str):
            rows, after = self._discussion_page(cursor or None, "CREATED_AT", "ASC")
            return Listing(after, self._discussion_stamps(rows))
        place = as_object(cursor)
        query = place.get("query", f"state=all&sort=created&direction=asc&per_page={PAGE_SIZE}")
        try:
            issues, headers = self._rows(f"/issues?{query}", {})
        except RefusedError as error:
            if error.status == 422 and "query" in place and "is_second" not in place:
                return Listing({"is_second": True})
            raise self.api.refusal(error, "its issues") from error
        stamps = _issue_stamps(issues or ())
        following = next_query(headers)
        rest = "" if self._has_discussions else None
        return Listing(place | {"query": following} if following else rest, stamps)

    def page(self, path: str, headers: Mapping[str, str]) -> tuple[list[dict[str, Any]] | None, Mapping[str, str]]:
        """Return the rows of a page of a list, None where nothing has changed, and the answer's headers."""
        try:
            return self._rows(path, headers)
        except RefusedError as error:
            raise self.api.refusal(error, "its issues") from error

    def _rows(self, path: str, headers: Mapping[str, str]) -> tuple[list[dict[str, Any]] | None, Mapping[str, str]]:
        rows, answered = self.api.ask(path, headers)
        if rows is not None and not isinstance(rows, list):
            raise FailedError(f"{self.address} answered a JSON {type(rows).__name__}, expected a list")
        return None if rows is None else as_objects(rows), answered

    # -- GraphQL -----------------------------------------------------------------------------------------------

    def graphql(self, query: str, variables: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return the data that GraphQL answers, and its errors: type and message.

        Raises:
            FailedError, SourceError: as ``Api.ask``; or the key shows no discussions.
        """
        try:
            answer, _ = self._graph.ask("", method="POST", body={"query": query, "variables": dict(variables)})
        except RefusedError as error:
            raise self._graph.refusal(error, "its discussions") from error
        errors = as_objects(as_object(answer).get("errors"))
        problems = [(str(error.get("type")), str(error.get("message"))[:200]) for error in errors]
        return as_object(as_object(answer).get("data")), problems

    def ask_repository(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return what GraphQL answers about the repository; what is not there is left out.

        Raises:
            FailedError, SourceError: as ``graphql``; or the key does not show this repository.
        """
        owner, _, name = self.repository.partition("/")
        data, problems = self.graphql(query, {"owner": owner, "name": name, **variables})
        for kind, message in problems:
            if kind != "NOT_FOUND":
                raise FailedError(f"{self._graph.address} answered: {message}")
        repository = data.get("repository")
        if not isinstance(repository, dict):
            raise SourceError(f"{self._graph.address} shows no {self.repository}", "check that the key may read it")
        return repository

    def _discussion_page(
        self, after: str | None, field: str, direction: str
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of discussions as lists show them, and the place of the next."""
        order = {"field": field, "direction": direction}
        connection = as_object(self.ask_repository(_DISCUSSIONS, after=after, order=order).get("discussions"))
        return as_objects(connection.get("nodes")), next_place(connection)

    def _discussion_stamps(self, rows: list[dict[str, Any]]) -> dict[str, str]:
        fields = ("updatedAt", "title", "closed", "isAnswered", "category", "comments")
        stamps = {
            number: stamp_of([row.get(name) for name in fields])
            for row in rows
            if (number := id_text(row.get("number")))
        }
        self._discussions |= stamps.keys()
        return stamps

    # -- one issue ---------------------------------------------------------------------------------------------

    def read(self, identifier: str) -> Reading:
        """Return an issue with all its comments; none where it was deleted, moved, or is a pull request."""
        if not id_text(identifier):
            return Reading(None, is_there=False)
        if identifier in self._discussions and (reading := self._read_discussion(identifier)).thread is not None:
            return reading
        reading = self._read_issue(identifier)
        return self._read_discussion(identifier) if self._has_discussions and not reading.is_there else reading

    def check_access(self) -> None:
        """List an issue: where a repository was renamed or closed, every issue redirects or is missing."""
        self.page("/issues?per_page=1", {})

    def issue(self, identifier: str) -> dict[str, Any]:
        """Return an issue; raise RefusedError where it is not there, or was moved to another repository."""
        issue, _ = self.api.ask(f"/issues/{identifier}")
        if not isinstance(issue, dict) or id_text(issue.get("number")) != identifier:
            raise FailedError(f"{self.address}/issues/{identifier} answered something else than this issue")
        return issue

    def comments(self, identifier: str) -> tuple[list[dict[str, Any]], bool]:
        """Return the comments of an issue, and whether there are more."""
        comments: list[dict[str, Any]] = []
        query: str | None = f"per_page={PAGE_SIZE}"
        for _ in range(MAX_COMMENT_PAGES):
            rows, headers = self.page(f"/issues/{identifier}/comments?{query}", {})
            comments += rows or ()
            if (query := next_query(headers)) is None:
                return comments, False
        return comments, True

    def _read_issue(self, identifier: str) -> Reading:
        try:
            issue = self.issue(identifier)
        except RefusedError as error:
            if error.status in _GONE or 300 <= error.status < 400:
                return Reading(None, is_there=False)
            raise FailedError(f"{self.address}/issues/{identifier} {error}") from error
        if "pull_request" in issue:
            return Reading(None, is_there=False)
        comments, has_more = self.comments(identifier) if issue.get("comments") else ([], False)
        context = ReadContext()
        left_out = (f"comments beyond the first {len(comments):,}",) if has_more else ()
        return thread_reading(self._records(issue, comments, context), context, *left_out)

    def discussion_pages(self, identifier: str, label: str = "") -> Iterator[dict[str, Any]]:
        """Yield a discussion with a label, once for each page of its comments; nothing where there is none."""
        after: str | None = None
        for page in range(MAX_COMMENT_PAGES):
            answer = self.ask_repository(_DISCUSSION, number=int(identifier), label=label, after=after)
            discussion = as_object(answer.get("discussion"))
            if id_text(discussion.get("number")) != identifier:
                if page:
                    raise FailedError(f"{self.address}/discussions/{identifier} went away while it was read")
                return
            yield {"label": as_object(answer.get("label")), "discussion": discussion}
            if (after := next_place(as_object(discussion.get("comments")))) is None:
                return

    def _read_discussion(self, identifier: str) -> Reading:
        topic: dict[str, Any] = {}
        comments: list[dict[str, Any]] = []
        left_out: list[str] = []
        for page in self.discussion_pages(identifier):
            topic = page["discussion"]
            for comment in as_objects(as_object(topic.get("comments")).get("nodes")):
                replies = as_object(comment.get("replies"))
                comments += [comment, *as_objects(replies.get("nodes"))]
                if isinstance(total := replies.get("totalCount"), int) and total > _REPLIES:
                    left_out.append(f"replies beyond the first {_REPLIES} of comment {comment.get('databaseId')}")
        if not topic:
            return Reading(None, is_there=False)
        if next_place(as_object(topic.get("comments"))) is not None:
            left_out.append(f"comments beyond the first {len(comments):,}")
        issue = {
            "number": topic.get("number"),
            "title": topic.get("title"),
            "body": topic.get("body"),
            "labels": [topic.get("category"), *as_objects(as_object(topic.get("labels")).get("nodes"))],
            "created_at": topic.get("createdAt"),
            "closed_at": topic.get("closedAt"),
            "reactions": {"+1": topic.get("upvoteCount")},
            "html_url": topic.get("url"),
            "user": topic.get("author"),
        }
        shown = [
            {
                "id": f"d{comment.get('databaseId')}",  # comments of issues have numbers of their own
                "body": comment.get("body"),
                "created_at": comment.get("createdAt"),
                "reactions": {"+1": comment.get("upvoteCount")},
                "user": comment.get("author"),
                "is_answer": comment.get("isAnswer"),
            }
            for comment in comments
            if comment.get("isMinimized") is not True
        ]
        context = ReadContext()
        return thread_reading(self._records(issue, shown, context), context, *left_out)

    def _records(
        self, issue: Mapping[str, Any], comments: list[dict[str, Any]], context: ReadContext
    ) -> Iterator[Record]:
        """Yield an issue, its comments and its links, as GitHub's API gives them; raise Unreadable for the issue."""
        number = identifier(issue.get("number"), "number")
        fields = {
            "title": issue.get("title"),
            "body": issue.get("body"),
            "tags": issue.get("labels"),
            "closed": issue.get("closed_at"),
            "url": issue.get("html_url"),
            **_written(issue),
        }
        yield read_question(number, fields, "markdown", context)
        for comment in comments:
            original = self.duplicate_of(comment)
            if original and original != number:
                yield Link(number, original, "duplicate")
            fields = {"body": comment.get("body"), "accepted": comment.get("is_answer"), **_written(comment)}
            try:
                yield read_answer(identifier(comment.get("id"), "comment's id"), number, fields, "markdown", context)
            except Unreadable as error:
                context.reject("comments", 0, str(comment.get("id"))[:40], str(error))

    def duplicate_of(self, comment: Mapping[str, Any]) -> str:
        """Return the issue of this repository of which a member's comment says that its own is a duplicate, or ""."""
        match = self._duplicate.match(str(comment.get("body") or ""))
        return match[1] if match and comment.get("author_association") in _MEMBERS else ""


def _written(row: Mapping[str, Any]) -> dict[str, object]:
    """Return who wrote an issue or a comment, when, and how it is liked, under our names."""
    likes = as_object(row.get("reactions")).get("+1")
    return {"created": row.get("created_at"), "score": likes, "author": as_object(row.get("user")).get("login")}


def repository_of(address: str) -> str:
    """Return the owner and name that an address of the web names.

    >>> repository_of("https://github.com/rust-lang/rust.git")
    'rust-lang/rust'
    """
    return urlsplit(address).path.strip("/").removesuffix(".git")


def event_ids(kind: str, payload: Any) -> tuple[str, ...]:
    """Return the issues and discussions that a webhook's payload is about.

    Args:
        kind: as ``X-GitHub-Event`` says it.

    >>> event_ids("issues", {"action": "edited", "issue": {"number": 3}}), event_ids("ping", {"zen": "…"})
    (('3',), ())
    """
    issue = as_object(as_object(payload).get(_EVENTS.get(kind, "")))
    number = id_text(issue.get("number"))
    return (number,) if number and "pull_request" not in issue else ()


def next_query(headers: Mapping[str, str]) -> str | None:
    """Return the query of the next page, as ``Link`` names it; the path there names the repository by a number."""
    for part in headers.get("link", "").split(","):
        place, _, about = part.partition(";")
        query = place.strip().removesuffix(">").partition("?")[2]
        if 'rel="next"' in about and query:
            return query
    return None


def next_place(connection: Mapping[str, Any]) -> str | None:
    """Return the place of the next page of a connection of GraphQL's."""
    page = as_object(connection.get("pageInfo"))
    place = page.get("endCursor")
    return place if page.get("hasNextPage") is True and isinstance(place, str) and place else None


def _issue_stamps(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {
        number: stamp_of([row.get(name) for name in ("updated_at", "comments", "state", "title")])
        for row in rows
        if "pull_request" not in row and (number := id_text(row.get("number")))
    }
