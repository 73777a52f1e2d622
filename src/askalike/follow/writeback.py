"""Writes decisions back to the forum that they are about: a link to the original, a tag, and that it is closed.

What is to be written waits in the forum's store, and each thing is looked for before it is written, so that a process
that is killed at any moment writes nothing twice. Nothing that a person wrote is edited or deleted; what is undone here
after it was written stays there.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from askalike.errors import SettingError, SourceError
from askalike.follow.discourse import Discourse
from askalike.follow.github import MOST_COMMENT_PAGES, GitHub, duplicate_of, nodes_of, object_of, place_after
from askalike.follow.pace import Pace
from askalike.follow.settings import FollowSettings
from askalike.progress import Progress, SilentProgress
from askalike.store import Store
from askalike.types import Write
from askalike.web import FailedError, RefusedError, pause_s

RATE: Final = 20
"""Requests a minute: Discourse and GitHub both slow down who writes faster."""
ORIGINAL: Final = "{original}"
MOST_TRIES: Final = 5
"""In one run; what still fails then waits for the next."""
LONGEST_ASKED_S: Final = 900.0
"""A site that asks to wait for longer ends the run."""
_TAG: Final = re.compile(r"[^,\s][^,]{0,49}")
_FIRST_PAUSE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written of each decision.

    Args:
        text: of the comment that links to the original, which ``{original}`` stands for; "" for the site's own way.
    """

    has_link: bool = False
    tag: str = ""
    is_closed: bool = False
    text: str = ""

    def __post_init__(self) -> None:
        if self.text and ORIGINAL not in self.text:
            raise SettingError(f"the text names no {ORIGINAL}", f"put {ORIGINAL} where the original is to be named")
        if self.tag and not _TAG.fullmatch(self.tag):
            raise SettingError(f"{self.tag!r} is no tag", "expected up to 50 characters without a comma")

    @property
    def actions(self) -> tuple[str, ...]:
        """Return what is done with each, closing last.

        Raises:
            SettingError: nothing is.
        """
        found = ("link",) * self.has_link + (f"tag {self.tag}",) * bool(self.tag) + ("close",) * self.is_closed
        if not found:
            raise SettingError("nothing is to be written", "say --link, --tag TAG or --close, or several")
        return found


@dataclass(frozen=True, slots=True)
class Request:
    """A request that writes.

    Args:
        path: of the API, behind its address.
        is_graph: it goes to GitHub's GraphQL, which has one address.
    """

    method: str
    path: str
    body: dict[str, Any]
    is_graph: bool = False


class Target(Protocol):
    """A forum that is written to.

    Every method but ``request`` raises FailedError where another try may succeed, RefusedError where none will for
    this write, and SourceError where none will for any.
    """

    address: str
    api: str
    pace: Pace

    @abstractmethod
    def url(self, request: Request) -> str:
        """Return where a request goes."""

    @abstractmethod
    def reads(self, write: Write) -> tuple[Request, ...]:
        """Return the requests by which ``found`` looks, as far as they are known before."""

    @abstractmethod
    def found(self, write: Write) -> str:
        """Look whether a write is done; return by what, "" where it is to be done.

        Raises:
            RefusedError: the question or its original is not there.
        """

    @abstractmethod
    def request(self, write: Write) -> Request:
        """Return the request that does a write; SettingError where the site has none."""

    @abstractmethod
    def send(self, request: Request) -> None:
        """Send a request."""


class DiscourseTarget(Discourse):
    """Topics: a post that links to the original, and that they are closed.

    Args:
        username: whose key it is: what they have posted is not posted again.
    """

    def __init__(self, address: str, pace: Pace, key: str, username: str, text: str = "") -> None:
        super().__init__(address, pace, key, username)
        self.api, self._username = self.address, username
        self._text = text or f"This asks the same as {ORIGINAL}"

    def url(self, request: Request) -> str:
        """Return the address behind the site's."""
        return self.api + request.path

    def reads(self, write: Write) -> tuple[Request, ...]:
        """Return the two topics, and the categories, which are read once."""
        paths = (f"/t/{write.candidate_id}.json", f"/t/{write.question_id}.json", "/site.json")
        return tuple(Request("GET", one, {}) for one in paths)

    def found(self, write: Write) -> str:
        """Look into both topics, and whether those who read the one may read the other."""
        original = self._topic(write.candidate_id)
        topic = self._topic(write.question_id)
        if self._categories is None:
            self._read_categories()
        if not self._is_public(original) and original.get("category_id") != topic.get("category_id"):
            raise RefusedError(f"topic {write.candidate_id} is in a category that is not public", 0, b"", {})
        if write.action == "close":
            return "closed already" if topic.get("closed") is True else ""
        self._add_posts(write.question_id, topic)
        stream = topic.get("post_stream")
        base = f"(?:{re.escape(self.address)}|{re.escape(urlsplit(self.address).path)})"
        place = re.compile(rf'href="{base}/t/(?:[^/"]+/)?{write.candidate_id}(?:[/?#][^"]*)?"')
        for post in stream["posts"] if isinstance(stream, dict) else ():
            is_own = str(post.get("username", "")).lower() == self._username.lower()
            if is_own and not post.get("deleted_at") and place.search(str(post.get("cooked", ""))):
                return f"post {post.get('id')} links there"
        return ""

    def _topic(self, identifier: str) -> dict[str, Any]:
        if not re.fullmatch(r"[1-9][0-9]{0,17}", identifier):
            raise RefusedError(f"{identifier!r} is no topic of a Discourse", 0, b"", {})
        try:
            topic, _ = self._site.ask(f"/t/{identifier}.json")
        except RefusedError as error:
            raise RefusedError(f"topic {identifier} {error}", error.status, error.content, error.headers) from error
        if not isinstance(topic, dict) or str(topic.get("id")) != identifier:
            raise FailedError(f"{self.address}/t/{identifier}.json answered something else than this topic")
        if topic.get("archetype", "regular") != "regular" or topic.get("visible") is False or topic.get("deleted_at"):
            raise RefusedError(f"topic {identifier} is not listed, or deleted", 0, b"", {})
        return topic

    def request(self, write: Write) -> Request:
        """Return a new post, or a new status."""
        if write.action == "close":
            return Request("PUT", f"/t/{write.question_id}/status.json", {"status": "closed", "enabled": "true"})
        if write.action != "link":
            raise SettingError(
                "Discourse's documented API sets all tags of a topic at once, and could take a person's away",
                "leave out --tag",
            )
        text = self._text.replace(ORIGINAL, f"{self.address}/t/{write.candidate_id}")
        return Request("POST", "/posts.json", {"topic_id": int(write.question_id), "raw": text, "auto_track": False})

    def send(self, request: Request) -> None:
        """Send a request."""
        self._site.ask(request.path, method=request.method, body=request.body)


_DISCUSSED: Final = """query($owner: String!, $name: String!, $number: Int!, $label: String!, $after: String) {
  repository(owner: $owner, name: $name) { label(name: $label) { id } discussion(number: $number) {
    id number closed labels(first: 100) { nodes { name } }
    comments(first: 100, after: $after) { pageInfo { hasNextPage endCursor }
      nodes { databaseId body authorAssociation } } } } }"""
_COMMENT: Final = """mutation($input: AddDiscussionCommentInput!) {
  addDiscussionComment(input: $input) { comment { databaseId } } }"""
_CLOSE: Final = """mutation($input: CloseDiscussionInput!) {
  closeDiscussion(input: $input) { discussion { closed } } }"""
_LABEL: Final = """mutation($input: AddLabelsToLabelableInput!) {
  addLabelsToLabelable(input: $input) { clientMutationId } }"""
_LATER: Final = ("RATE_LIMITED", "LOADING", "None", "INTERNAL", "SERVICE_UNAVAILABLE")
"""Errors of GraphQL after which another try may succeed."""


@dataclass(frozen=True, slots=True)
class _Discussion:
    """A discussion, by the names that GraphQL has for it and for the label that is to be added; "" where none is."""

    node: str
    label: str


class GitHubTarget(GitHub):
    """Issues and discussions: a comment "Duplicate of #12", a label, and that they are closed as a duplicate.

    Discussions, which share their numbers with issues, are written to through GraphQL.

    Args:
        is_discussion: whether a question is one, as far as the forum knows: what is shown before anything is asked.
    """

    def __init__(
        self,
        address: str,
        pace: Pace,
        key: str,
        api: str,
        text: str = "",
        is_discussion: Callable[[str], bool] = lambda _: False,
    ) -> None:
        super().__init__(address, pace, key, api)
        self.api, self._key = self._site.address, key
        self._text = text or f"Duplicate of {ORIGINAL}"
        self._is_discussion = is_discussion
        self._met: dict[str, _Discussion | None] = {}

    def url(self, request: Request) -> str:
        """Return the address behind the repository's, or that of GraphQL."""
        return self._graph.address if request.is_graph else self.api + request.path

    def reads(self, write: Write) -> tuple[Request, ...]:
        """Return the two issues or discussions, and the comments where one is to be added."""
        return *self._reads(write.candidate_id, ""), *self._reads(write.question_id, write.action)

    def _reads(self, identifier: str, action: str) -> Iterator[Request]:
        if self._is_discussion(identifier):
            yield Request("POST", "", self._asking(_DISCUSSED, number=int(identifier), label=_label(action)), True)
            return
        yield Request("GET", f"/issues/{identifier}", {})
        if action == "link":
            yield Request("GET", f"/issues/{identifier}/comments?per_page=100", {})

    def found(self, write: Write) -> str:
        """Look into both, and the comments of the duplicate."""
        self._thread(write.candidate_id)
        issue = self._thread(write.question_id, write)
        if isinstance(issue, str):
            return issue
        if write.action == "close":
            return "closed already" if issue.get("state") == "closed" else ""
        if write.action != "link":
            labels = issue.get("labels")
            names = [one.get("name") if isinstance(one, dict) else one for one in labels or ()]
            return "labelled already" if _label(write.action) in names else ""
        query: str | None = "per_page=100"
        for _ in range(MOST_COMMENT_PAGES):
            rows, headers = self._page(f"/issues/{write.question_id}/comments?{query}", {})
            for row in rows or ():
                if self._marker(write) in str(row.get("body")) or duplicate_of(row) == write.candidate_id:
                    return f"comment {row.get('id')} says so"
            if (query := self._next(headers)) is None:
                return ""
        raise RefusedError(f"issue {write.question_id} has more comments than are looked through", 0, b"", {})

    def _thread(self, identifier: str, write: Write | None = None) -> dict[str, Any] | str:
        """Return an issue; of a discussion, by what a write of it is done, "" where it is to be done.

        Raises:
            RefusedError: there is neither.
        """
        if not re.fullmatch(r"[1-9][0-9]{0,9}", identifier):
            raise RefusedError(f"{identifier!r} is no issue", 0, b"", {})
        if self._met.get(identifier) is None:
            try:
                found = self._issue(identifier)
                self._met[identifier] = None
                return found
            except RefusedError as error:
                if error.status not in (404, 410) or not self._key:
                    raise
                missing = error
        else:
            missing = RefusedError(f"discussion {identifier} is there no longer", 404, b"", {})
        done = self._discussion(identifier, write)
        if done is None:
            raise missing
        return done

    def _discussion(self, identifier: str, write: Write | None) -> str | None:
        """Look into a discussion; return by what a write is done, "" where it is to be done, None without one."""
        action = "" if write is None else write.action
        after: str | None = None
        for _ in range(MOST_COMMENT_PAGES):
            found = self._graphed(_DISCUSSED, number=int(identifier), label=_label(action), after=after)
            topic = object_of(found.get("discussion"))
            if str(topic.get("number")) != identifier or not isinstance(node := topic.get("id"), str):
                return None
            self._met[identifier] = _Discussion(node, str(object_of(found.get("label")).get("id") or ""))
            if write is None or action == "close":
                return "closed already" if write is not None and topic.get("closed") is True else ""
            if action != "link":
                names = [one.get("name") for one in nodes_of(topic.get("labels"))]
                return "labelled already" if _label(action) in names else ""
            for row in nodes_of(topic.get("comments")):
                said = {"body": row.get("body"), "author_association": row.get("authorAssociation")}
                if self._marker(write) in str(row.get("body")) or duplicate_of(said) == write.candidate_id:
                    return f"comment {row.get('databaseId')} says so"
            if (after := place_after(object_of(topic.get("comments")))) is None:
                return ""
        raise RefusedError(f"discussion {identifier} has more comments than are looked through", 0, b"", {})

    def _issue(self, identifier: str) -> dict[str, Any]:
        try:
            issue, _ = self._asked(f"/issues/{identifier}")
        except RefusedError as error:
            raise RefusedError(f"issue {identifier} {error}", error.status, error.content, error.headers) from error
        if not isinstance(issue, dict) or str(issue.get("number")) != identifier:
            raise FailedError(f"{self.address}/issues/{identifier} answered something else than this issue")
        return issue

    def _marker(self, write: Write) -> str:
        """Return a comment that GitHub does not show, and that nobody can write who lacks the key."""
        said = f"{self._repository.lower()} {write.question_id} {write.candidate_id}"
        seal = hmac.new(self._key.encode(), said.encode(), hashlib.sha256).hexdigest()[:16]
        return f"<!-- askalike:duplicate {write.candidate_id} {seal} -->"

    def request(self, write: Write) -> Request:
        """Return a new comment, a new label, or a new state."""
        met = self._met.get(write.question_id)
        if met is None and write.question_id not in self._met and self._is_discussion(write.question_id):
            met = _Discussion("NODE OF THE DISCUSSION", "NODE OF THE LABEL")
        if met is not None:
            return self._graph_request(write, met)
        issue = f"/issues/{write.question_id}"
        if write.action == "close":
            return Request("PATCH", issue, {"state": "closed", "state_reason": "duplicate"})
        if write.action != "link":
            return Request("POST", f"{issue}/labels", {"labels": [_label(write.action)]})
        return Request("POST", f"{issue}/comments", {"body": self._said(write)})

    def _said(self, write: Write) -> str:
        return f"{self._text.replace(ORIGINAL, f'#{write.candidate_id}')}\n\n{self._marker(write)}"

    def _graph_request(self, write: Write, met: _Discussion) -> Request:
        query: str
        given: dict[str, Any]
        if write.action == "close":
            query, given = _CLOSE, {"discussionId": met.node, "reason": "DUPLICATE"}
        elif write.action == "link":
            query, given = _COMMENT, {"discussionId": met.node, "body": self._said(write)}
        else:
            query, given = _LABEL, {"labelableId": met.node, "labelIds": [met.label]}
        return Request("POST", "", {"query": query, "variables": {"input": given}}, True)

    def send(self, request: Request) -> None:
        """Send a request, and heed GitHub's limits.

        Raises:
            RefusedError: GraphQL answers that it was not done, or the repository has no such label.
        """
        if not request.is_graph:
            self._asked(request.path, method=request.method, body=request.body)
            return
        if request.body["variables"]["input"].get("labelIds") == [""]:
            raise RefusedError("the repository has no such label: make it there first", 0, b"", {})
        found, _ = self._asked("", method="POST", body=request.body, site=self._graph)
        errors = object_of(found).get("errors")
        for wrong in errors if isinstance(errors, list) else ():
            kind, said = str(object_of(wrong).get("type")), str(object_of(wrong).get("message"))[:200]
            if kind in _LATER:
                raise FailedError(f"{self._graph.address} answered: {said}")
            raise RefusedError(f"{self._graph.address} answered: {said}", 0, b"", {})


def _label(action: str) -> str:
    return action.removeprefix("tag ") if action.startswith("tag ") else ""


def open_target(
    settings: FollowSettings,
    pace: Pace,
    text: str = "",
    *,
    needs_key: bool = True,
    is_discussion: Callable[[str], bool] = lambda _: False,
) -> Target:
    """Return the forum that is written to.

    Args:
        is_discussion: whether a question is one of GitHub's discussions, as far as the forum knows.

    Raises:
        SettingError: its key is not in the environment.
        SourceError: there is no such repository.
    """
    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    if needs_key and not key:
        named = f"the environment has no {settings.key_variable}" if settings.key_variable else "no key was named"
        raise SettingError(named, "put the key of the API into a variable, and name it: --key-variable NAME")
    if settings.kind == "discourse":
        return DiscourseTarget(settings.address, pace, key, settings.username, text)
    return GitHubTarget(settings.address, pace, key, settings.api, text, is_discussion)


class WriteBack:
    """Decisions of a forum, and what of them is to be written; the only one at a time.

    Args:
        source: what the questions belong to that are at the target.
        is_stopped: asked between two writes.
        pause: waits so many seconds.
    """

    def __init__(
        self,
        store: Store,
        target: Target,
        source: str,
        *,
        is_stopped: Callable[[], bool] = lambda: False,
        pause: Callable[[float], object] = time.sleep,
        progress: Progress | None = None,
    ) -> None:
        self._store, self._target, self._source = store, target, source
        self._is_stopped, self._pause, self._progress = is_stopped, pause, progress or SilentProgress()

    def waiting(self, actions: Sequence[str]) -> list[Write]:
        """Return what would be written: what waits already, and what decisions ask for besides; nothing is stored.

        Raises:
            SettingError: the site has no such action.
        """
        held = self._store.outbox(self._target.address)
        known = {(one.question_id, one.candidate_id, one.action) for one in held if one.state != "cancelled"}
        fresh = [one for one in self._asked(actions) if (one.question_id, one.candidate_id, one.action) not in known]
        found = [*(one for one in held if one.state == "waiting" and one.action in actions), *fresh]
        for one in found:
            self._target.request(one)
        return found

    def _asked(self, actions: Sequence[str]) -> Iterator[Write]:
        for one in self._store.decided_duplicates(self._source):
            yield from (Write(0, self._target.address, one.question_id, one.candidate_id, name) for name in actions)

    def send(self, actions: Sequence[str], limit: int = 0, *, is_retried: bool = False) -> list[Write]:
        """Write what waits; return what was tried, with what became of it.

        Args:
            limit: at most so many; 0 for all.
            is_retried: what was refused before is tried again.

        Raises:
            SourceError: the key is refused, or the address leads elsewhere; what is left waits.
        """
        self.waiting(actions)  # refuses what the site cannot do before anything is stored
        self._store.put_writes(list(self._asked(actions)))
        states = ("waiting", "failed") if is_retried else ("waiting",)
        held = self._store.outbox(self._target.address)
        wanted = [one for one in held if one.state in states and one.action in actions][: limit or None]
        self._progress.start(f"writing to {self._target.address}", len(wanted), "writes")
        tried = []
        for one in wanted:
            if self._is_stopped() or not self._do(one):
                break
            tried.append(one.number)
            self._progress.advance(1)
        return [one for one in self._store.outbox(self._target.address) if one.number in tried]

    def _do(self, write: Write) -> bool:
        """Do one write, or note why it cannot be done; return False where the run has to end."""
        for tries in range(1, MOST_TRIES + 1):
            if not self._store.set_write(write.number, "waiting", write.why, is_try=False):
                return True  # cancelled meanwhile
            try:
                found = self._target.found(write)
                if not found:
                    self._target.send(self._target.request(write))
            except RefusedError as error:
                self._store.set_write(write.number, "failed", str(error))
                return True
            except (FailedError, SourceError) as error:
                self._store.set_write(write.number, "waiting", str(error))
                if isinstance(error, SourceError):
                    raise
                asked_s = error.pause_s or 0.0
                if tries == MOST_TRIES or asked_s > LONGEST_ASKED_S or self._is_stopped():
                    return False
                if asked_s:
                    self._target.pace.close_until(time.time() + asked_s)  # it waits before the next request
                else:
                    self._pause(pause_s(_FIRST_PAUSE_S * 2**tries, None))
            else:
                self._store.set_write(write.number, "done", found)
                return True
        return False


def previews(target: Target, writes: Iterable[Write]) -> Iterator[dict[str, Any]]:
    """Yield each write with the requests that look for it, and the one that does it where it is not found."""
    for one in writes:
        request = target.request(one)
        yield {
            "question": one.question_id,
            "candidate": one.candidate_id,
            "action": one.action,
            "looks": [f"{look.method} {target.url(look)}" for look in target.reads(one)],
            "request": {"method": request.method, "url": target.url(request), "body": request.body},
        }
