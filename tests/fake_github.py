"""A repository on GitHub for tests: its issues by the REST API, its discussions by GraphQL, its webhooks.

Answers have the fields, headers and statuses of GitHub's recorded answers (the packages @octokit/fixtures and
@octokit/webhooks-examples on npm), and bodies of writes have to fit its OpenAPI description (@octokit/openapi) and
its GraphQL schema. Links name the repository by its number, the previous page first; large lists want the cursor of the
page before; limits are answered with or without headers; an issue that was moved redirects.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jsonschema
from tests.fake_site import Answer, Request, as_json

REST_BODIES: dict[str, dict[str, Any]] = {
    "PATCH": {
        "properties": {
            "state": {"enum": ["open", "closed"]},
            "state_reason": {"enum": ["completed", "not_planned", "duplicate", "reopened", None]},
        },
    },
    "POST comments": {"properties": {"body": {"type": "string"}}, "required": ["body"]},
    "POST labels": {
        "properties": {"labels": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
        "required": ["labels"],
    },
}
MUTATIONS: dict[str, dict[str, Any]] = {
    "addDiscussionComment": {"discussionId": {"type": "string"}, "body": {"type": "string"}},
    "closeDiscussion": {"discussionId": {"type": "string"}, "reason": {"enum": ["DUPLICATE", "OUTDATED", "RESOLVED"]}},
    "addLabelsToLabelable": {
        "labelableId": {"type": "string"},
        "labelIds": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    },
}
SECONDARY_LIMIT = (
    403,
    {"X-RateLimit-Remaining": "4870", "X-RateLimit-Limit": "5000"},
    b'{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}',
)
PAGE_SIZE = 2
MAX_BARE_PAGES = 1
"""So many pages of a list are given by number alone, without the cursor of the page before."""
DAY = "2026-01-{:02}T00:00:00Z"


class FakeGitHub:
    """One repository.

    Args:
        key: that is asked for; "" for none.
    """

    def __init__(self, repository: str = "own/name", key: str = "") -> None:
        self.repository, self.key = repository, key
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.discussions: dict[int, dict[str, Any]] = {}
        self.labels = ("duplicate",)
        self.asked: list[Request] = []
        self.refusals: list[Answer] = []
        """Each answers the next request."""
        self.write_failures: list[tuple[Answer, bool]] = []
        """Each answers the next request that writes; whether that did its work all the same."""
        self.graph_errors: list[dict[str, str]] = []
        self.are_cursors_refused = False

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.asked if is_write(request)]

    # -- what it holds -----------------------------------------------------------------------------------------

    def add_issue(self, number: int, *comments: str, title: str = "", updated: str = "", **more: Any) -> None:
        place = f"https://api.github.com/repos/{self.repository}/issues/{number}"
        self.issues[number] = {
            "url": place,
            "html_url": f"https://github.com/{self.repository}/issues/{number}",
            "id": 1000 + number,
            "number": number,
            "title": title or f"Issue {number}",
            "user": {"login": "ann", "type": "User"},
            "labels": [{"id": 7, "name": "bug", "color": "663399"}],
            "state": "open",
            "state_reason": None,
            "locked": False,
            "comments": len(comments),
            "created_at": DAY.format(1),
            "updated_at": updated or DAY.format(number),
            "closed_at": None,
            "author_association": "MEMBER",
            "body": f"body of {number}",
            "reactions": {"total_count": 2, "+1": 2},
        } | more
        self.comments[number] = []
        for body in comments:
            self.add_comment(number, body)

    def add_comment(self, number: int, body: str, at: str = DAY.format(2), **more: Any) -> None:
        rows = self.comments[number]
        comment = {"id": number * 100 + len(rows), "body": body, "user": {"login": "bob"}, "created_at": at}
        comment |= {"updated_at": at, "author_association": "MEMBER", "reactions": {"+1": 1}, **more}
        rows.append(comment)
        self.issues[number]["comments"] = len(rows)

    def add_discussion(self, number: int, *, title: str = "", updated: str = "", **more: Any) -> None:
        self.discussions[number] = {
            "id": f"D_{number}",
            "number": number,
            "title": title or f"Discussion {number}",
            "body": f"body of {number}",
            "createdAt": f"2026-01-01T00:00:{number:02}Z",
            "updatedAt": updated or DAY.format(number),
            "closed": False,
            "closedAt": None,
            "isAnswered": False,
            "upvoteCount": 3,
            "url": f"https://github.com/{self.repository}/discussions/{number}",
            "author": {"login": "ann"},
            "category": {"name": "Q&A"},
            "labels": {"nodes": [{"name": "wifi"}]},
            "comments": [],
        } | more

    def add_discussion_comment(self, number: int, comment_id: int, body: str, *replies: Any, **more: Any) -> None:
        self.discussions[number]["comments"].append(discussion_comment(comment_id, body, *replies, **more))

    # -- answers -----------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        if self.refusals:
            return self.refusals.pop(0)
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return as_json({"message": "Bad credentials"}, 401)
        failure, is_done = self.write_failures.pop(0) if self.write_failures and is_write(request) else (None, True)
        done = self._answer(request) if is_done else None
        return failure or done or as_json({}, 500)

    def _answer(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        if parts.path == "/graphql":
            return as_json(self._graph(request.body))
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        words = parts.path.removeprefix(f"/repos/{self.repository}/issues").strip("/").split("/")
        if words == [""]:
            return self._page(parts.path, query, list(self.issues.values()), request)
        issue = self.issues.get(int(words[0]))
        if issue is None:
            return as_json({"message": "Not Found", "documentation_url": "https://docs.github.com"}, 404)
        if issue.get("moved"):
            place = "https://api.github.com/repositories/1/issues/9"
            return as_json({"message": "Moved Permanently", "url": place}, 301, Location=place)
        if request.method != "GET":
            return self._write(request, issue, words[1] if len(words) == 2 else "")
        if len(words) == 2:
            return self._page(parts.path, query, self.comments[issue["number"]], request)
        return as_json(issue)

    def _write(self, request: Request, issue: dict[str, Any], what: str) -> Answer:
        schema = REST_BODIES[f"{request.method} {what}".strip()]
        jsonschema.validate(request.body, {"type": "object", "additionalProperties": False, **schema})
        if what == "comments":
            self.add_comment(issue["number"], request.body["body"], author_association="NONE")
            return as_json(self.comments[issue["number"]][-1], 201)
        if what == "labels":
            issue["labels"] += [{"name": name} for name in request.body["labels"]]
            return as_json(issue["labels"])
        issue |= request.body
        return as_json(issue)

    def _page(self, path: str, query: dict[str, str], rows: list[dict[str, Any]], request: Request) -> Answer:
        name = "updated_at" if query.get("sort") == "updated" else "created_at"
        rows = sorted(rows, key=lambda row: (row[name], row.get("number", row.get("id"))))
        rows = [row for row in rows if row["updated_at"] >= query.get("since", "") and not row.get("moved")]
        rows = rows[::-1] if query.get("direction") == "desc" else rows
        page = int(query.get("page", 1))
        if self.are_cursors_refused if "after" in query else page > MAX_BARE_PAGES:
            message = "Pagination with the page parameter is not supported for large datasets"
            return as_json({"message": message}, 422)
        shown = rows[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
        tag = f'W/"{hashlib.sha256(json.dumps([shown, query]).encode()).hexdigest()}"'
        if request.headers.get("if-none-match") == tag:
            return 304, {"ETag": tag}, b""
        place = f"https://api.github.com/repositories/1300192{path.removeprefix(f'/repos/{self.repository}')}"
        more = urlencode({key: value for key, value in query.items() if key not in ("page", "after")})
        links = [f'<{place}?{more}&page={page - 1}>; rel="prev"'] if page > 1 else []
        if len(rows) > page * PAGE_SIZE:
            links += [f'<{place}?{more}&after=Y3Vyc29yOnYyOpHO%3D%3D&page={page + 1}>; rel="next"']
        return as_json(shown, ETag=tag, **({"Link": ", ".join(links)} if links else {}))

    # -- GraphQL -----------------------------------------------------------------------------------------------

    def _graph(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.graph_errors:
            return {"errors": self.graph_errors, "data": None}
        variables = body["variables"]
        if body["query"].startswith("mutation"):
            return {"data": self._mutate(body["query"], variables["input"])}
        assert f"{variables['owner']}/{variables['name']}" == self.repository
        first = int(variables["after"] or 0)
        name = variables.get("label")
        repository: dict[str, Any] = {"label": {"id": f"L_{name}"} if name in self.labels else None}
        if "number" in variables:
            discussion = self.discussions.get(variables["number"])
            if discussion is None:
                problem = {"type": "NOT_FOUND", "message": "Could not resolve to a Discussion"}
                return {"data": {"repository": repository | {"discussion": None}}, "errors": [problem]}
            shown = discussion | {"comments": _connection(discussion["comments"], first)}
            return {"data": {"repository": repository | {"discussion": shown}}}
        order = variables["order"]
        field = {"UPDATED_AT": "updatedAt", "CREATED_AT": "createdAt"}[order["field"]]
        rows = sorted(self.discussions.values(), key=lambda row: (row[field], row["number"]))
        rows = rows[::-1] if order["direction"] == "DESC" else rows
        shown_rows = [row | {"comments": {"totalCount": len(row["comments"])}} for row in rows]
        return {"data": {"repository": {"discussions": _connection(shown_rows, first)}}}

    def _mutate(self, query: str, values: dict[str, Any]) -> dict[str, Any]:
        ((name, properties),) = [item for item in MUTATIONS.items() if f"{item[0]}(input: $input)" in query]
        jsonschema.validate(
            values,
            {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False},
        )
        discussion = self.discussions[int(values.get("discussionId", values.get("labelableId")).removeprefix("D_"))]
        if name == "addDiscussionComment":
            comments = discussion["comments"]
            comments.append(discussion_comment(900 + len(comments), values["body"], authorAssociation="NONE"))
        elif name == "closeDiscussion":
            discussion["closed"] = True
        else:
            discussion["labels"]["nodes"] += [{"name": node.removeprefix("L_")} for node in values["labelIds"]]
        return {name: {}}

    # -- webhooks ----------------------------------------------------------------------------------------------

    def webhook(
        self, kind: str, number: int, secret: str, delivery: str = "1", repository: str = "", **more: Any
    ) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of an event about an issue or a discussion."""
        subject = self.issues.get(number) or self.discussions.get(number) or {"number": number}
        payload = {"action": "edited", kind.partition("_")[0].removesuffix("s"): subject, "sender": {"login": "ann"}}
        payload |= {"repository": {"id": 1300192, "full_name": repository or self.repository}, **more}
        content = json.dumps(payload).encode()
        return signed(content, kind, secret, delivery), content


def signed(content: bytes, kind: str, secret: str, delivery: str = "1") -> dict[str, str]:
    """Return the headers of a webhook."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/044aadd",
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": kind,
        "X-Hub-Signature-256": f"sha256={hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()}",
    }


def is_write(request: Request) -> bool:
    """Return whether a request writes: GraphQL asks by POST, too."""
    return request.method != "GET" and not str(request.body.get("query", "")).startswith("query")


def discussion_comment(number: int, body: str, *replies: dict[str, Any], **more: Any) -> dict[str, Any]:
    comment = {"databaseId": number, "body": body, "createdAt": DAY.format(2), "upvoteCount": 1, "isAnswer": False}
    comment |= {"isMinimized": False, "author": {"login": "bob"}, "authorAssociation": "MEMBER", **more}
    return {"replies": {"totalCount": len(replies), "nodes": list(replies)}} | comment


def _connection(rows: list[dict[str, Any]], first: int) -> dict[str, Any]:
    """Return two of some rows, as GraphQL pages them."""
    page = {"hasNextPage": first + PAGE_SIZE < len(rows), "endCursor": str(first + PAGE_SIZE)}
    return {"nodes": rows[first : first + PAGE_SIZE], "pageInfo": page}
