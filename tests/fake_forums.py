"""Sites that are written to, for tests: a Discourse and a GitHub, as far as decisions are written to them.

They take the requests that the official descriptions document, with the fields and types that these name, and no
others; what else comes is counted as odd. They fail as they are told, before or after a request has done its work.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jsonschema

GITHUB: dict[str, dict[str, Any]] = {
    "PATCH": {
        "type": "object",
        "properties": {
            "state": {"type": "string", "enum": ["open", "closed"]},
            "state_reason": {"enum": ["completed", "not_planned", "duplicate", "reopened", None]},
        },
        "additionalProperties": False,
    },
    "POST /comments": {
        "type": "object",
        "properties": {"body": {"type": "string"}},
        "required": ["body"],
        "additionalProperties": False,
    },
    "POST /labels": {
        "type": "object",
        "properties": {"labels": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
        "required": ["labels"],
        "additionalProperties": False,
    },
}
"""Bodies as GitHub's official OpenAPI description has them (package @octokit/openapi 23.0.2, api.github.com, under
/repos/{owner}/{repo}/issues/{issue_number}), without fields that are never to be sent, such as a title."""
KEY = "a-secret-key-of-the-site"
Reply = tuple[int, Any, dict[str, str]]


@dataclass
class Thread:
    """A topic or an issue."""

    number: int
    comments: list[dict[str, Any]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    is_closed: bool = False
    is_private: bool = False
    is_discussion: bool = False
    category: int = 1


@dataclass
class FakeForum:
    """What the site holds, what it was asked, and how it fails next.

    Args:
        failures: each taken by the next request that writes: (status, headers, whether it did its work all the same).
            A status of 0 answers nothing at all.
    """

    threads: dict[int, Thread]
    failures: list[tuple[int, dict[str, str], bool]] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    address: str = ""
    answered: threading.Event = field(default_factory=threading.Event)

    @property
    def writes(self) -> list[tuple[str, str, Any]]:
        """Return the requests that write."""
        return [one for one in self.asked if is_write(one[0], one[2])]

    def reply(self, method: str, path: str, headers: Any, body: Any) -> Reply:
        """Answer one request."""
        raise NotImplementedError


class FakeDiscourse(FakeForum):
    """https://docs.discourse.org: ``PUT /t/{id}/status.json``, ``POST /posts.json``, ``GET /t/{id}.json``.

    Category 2 is not for everybody; the key may read it.
    """

    def reply(self, method: str, path: str, headers: Any, body: Any) -> Reply:
        if headers["Api-Key"] != KEY or headers["Api-Username"] != "helper":
            return 403, {"errors": ["You are not permitted to view the requested resource."]}, {}
        if method == "GET" and (found := re.fullmatch(r"/t/([0-9]+)\.json", path)):
            return self._topic(int(found[1]))
        if (method, path) == ("GET", "/site.json"):
            named = ((1, "Help", False), (2, "Staff", True))
            return 200, {"categories": [{"id": n, "name": one, "read_restricted": is_} for n, one, is_ in named]}, {}
        if method == "PUT" and (found := re.fullmatch(r"/t/([0-9]+)/status\.json", path)):
            if not _fits(body, {"status": str, "enabled": str}) or body != {"status": "closed", "enabled": "true"}:
                self.odd.append(json.dumps(body))
            self.threads[int(found[1])].is_closed = True
            return 200, {"success": "OK", "topic_status_update": None}, {}
        if (method, path) == ("POST", "/posts.json"):
            known = {"raw": str, "topic_id": int, "auto_track": bool, "reply_to_post_number": int}
            if not _fits(body, known) or not {"raw", "topic_id"} <= body.keys():
                self.odd.append(json.dumps(body))
            thread = self.threads[body["topic_id"]]
            cooked = re.sub(r"(https?://[^\s<]+)", r'<p><a href="\1">\1</a></p>', re.sub("<!--.*?-->", "", body["raw"]))
            thread.comments.append({"id": 100 + len(thread.comments), "username": "helper", "cooked": cooked})
            return 200, {"id": 1}, {}
        self.odd.append(f"{method} {path}")
        return 404, {"errors": ["The requested URL or resource could not be found."]}, {}

    def _topic(self, number: int) -> Reply:
        thread = self.threads.get(number)
        if thread is None or thread.is_private:
            return 404, {"errors": ["The requested URL or resource could not be found."], "error_type": "not_found"}, {}
        posts = [{"id": 50 + number, "post_number": 1, "username": "asker", "cooked": "<p>?</p>"}]
        posts += [{"post_number": at, "topic_id": number, **one} for at, one in enumerate(thread.comments, 2)]
        stream = {"posts": posts, "stream": [one["id"] for one in posts]}
        shown = {"closed": thread.is_closed, "visible": True, "archetype": "regular", "post_stream": stream}
        return 200, {"id": number, "title": f"Topic {number}", "category_id": thread.category, **shown}, {}


_INPUTS: dict[str, dict[str, Any]] = {
    "addDiscussionComment": {"discussionId": {"type": "string"}, "body": {"type": "string"}},
    "closeDiscussion": {"discussionId": {"type": "string"}, "reason": {"enum": ["DUPLICATE", "OUTDATED", "RESOLVED"]}},
    "addLabelsToLabelable": {
        "labelableId": {"type": "string"},
        "labelIds": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    },
}
"""Mutations and their inputs as GitHub's official GraphQL schema has them (octokit/graphql-schema of 2026-07-22)."""


class FakeGitHub(FakeForum):
    """https://docs.github.com/rest/issues: issues, their comments in pages of two, labels; discussions by GraphQL."""

    labels = ("duplicate",)
    graph_error: str = ""

    def reply(self, method: str, path: str, headers: Any, body: Any) -> Reply:
        if headers["Authorization"] != f"Bearer {KEY}":
            return 401, {"message": "Bad credentials"}, {}
        if path == "/graphql":
            return self._graph(body)
        place = r"/repos/own/name/issues/([0-9]+)(/comments|/labels)?(?:\?per_page=100)?(&after=Y3Vy%3D&page=2)?"
        found = re.fullmatch(place, path)
        thread = self.threads.get(int(found[1])) if found else None
        if found is None or thread is None or thread.is_private or thread.is_discussion:
            return 404, {"message": "Not Found"}, {}
        if method == "GET" and found[2] == "/comments":
            by_number = f"https://api.github.com/repositories/1300192/issues/{found[1]}/comments?per_page=100"
            more = f'<{by_number}&after=Y3Vy%3D&page=2>; rel="next", <{by_number}&page=9>; rel="last"'
            is_first = len(thread.comments) > 2 and not found[3]
            page = thread.comments[:2] if not found[3] else thread.comments[2:]
            return 200, page, {"Link": more} if is_first else {}
        if method == "GET" and not found[2]:
            return 200, self._issue(thread), {}
        jsonschema.validate(body, GITHUB[f"{method} {found[2] or ''}".strip()])
        if method == "PATCH":
            thread.is_closed = True
            return 200, self._issue(thread), {}
        if method == "POST" and found[2] == "/comments":
            made = {"id": 900 + len(thread.comments), "author_association": "NONE", **body}
            thread.comments.append(made)
            return 201, made, {}
        if method == "POST" and found[2] == "/labels":
            thread.labels += [one for one in body["labels"] if one not in thread.labels]
            return 200, [{"name": one} for one in thread.labels], {}
        self.odd.append(f"{method} {path}")
        return 405, {"message": "no"}, {}

    def _graph(self, body: Any) -> Reply:
        given = body["variables"]
        if body["query"].startswith("query"):
            assert (given["owner"], given["name"]) == ("own", "name")
            thread = self.threads.get(given["number"])
            label = {"id": f"L_{given['label']}"} if given["label"] in self.labels else None
            if thread is None or thread.is_private or not thread.is_discussion:
                errors = [{"type": "NOT_FOUND", "message": "Could not resolve to a Discussion"}]
                return 200, {"data": {"repository": {"label": label, "discussion": None}}, "errors": errors}, {}
            start = int(given["after"] or 0)
            rows = [{"databaseId": one["id"], **one} for one in thread.comments[start : start + 2]]
            more = {"hasNextPage": len(thread.comments) > start + 2, "endCursor": str(start + 2)}
            shown = {
                "id": f"D_{thread.number}",
                "number": thread.number,
                "closed": thread.is_closed,
                "labels": {"nodes": [{"name": one} for one in thread.labels]},
                "comments": {"pageInfo": more, "nodes": rows},
            }
            return 200, {"data": {"repository": {"label": label, "discussion": shown}}}, {}
        if self.graph_error:
            return 200, {"data": None, "errors": [{"type": self.graph_error, "message": "no"}]}, {}
        ((name, properties),) = [one for one in _INPUTS.items() if f"{one[0]}(input: $input)" in body["query"]]
        wanted = given["input"]
        jsonschema.validate(
            wanted,
            {"properties": properties, "required": list(properties), "additionalProperties": False, "type": "object"},
        )
        thread = self.threads[int(wanted.get("discussionId", wanted.get("labelableId")).removeprefix("D_"))]
        if name == "addDiscussionComment":
            made = {"id": 900 + len(thread.comments), "authorAssociation": "NONE", "body": wanted["body"]}
            thread.comments.append(made)
        elif name == "closeDiscussion":
            assert wanted["reason"] == "DUPLICATE"
            thread.is_closed = True
        else:
            thread.labels += [one.removeprefix("L_") for one in wanted["labelIds"]]
        return 200, {"data": {name: {}}}, {}

    def _issue(self, thread: Thread) -> dict[str, Any]:
        state = "closed" if thread.is_closed else "open"
        return {"number": thread.number, "state": state, "labels": [{"name": one} for one in thread.labels]}


def is_write(method: str, body: Any) -> bool:
    """Return whether a request writes: GraphQL asks by POST, too."""
    return method != "GET" and not (isinstance(body, dict) and str(body.get("query", "")).startswith("query"))


def _fits(body: Any, known: dict[str, type]) -> bool:
    return isinstance(body, dict) and all(name in known and type(one) is known[name] for name, one in body.items())


@contextmanager
def served(forum: FakeForum) -> Iterator[str]:
    """Serve a forum; give its address."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(size)
            if content and self.headers["Content-Type"] != "application/json":
                forum.odd.append(str(self.headers["Content-Type"]))
            body = json.loads(content) if content else None
            forum.asked.append((self.command, self.path, body))
            failing = forum.failures.pop(0) if forum.failures and is_write(self.command, body) else None
            if failing is None:
                status, said, headers = forum.reply(self.command, self.path, self.headers, body)
            else:
                if failing[2]:
                    forum.reply(self.command, self.path, self.headers, body)
                status, said, headers = failing[0], {"message": "failing", "errors": ["failing"]}, failing[1]
            forum.answered.set()
            if not status:
                threading.Event().wait(30)
                return
            raw = json.dumps(said).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names of the standard library

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    forum.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield forum.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
