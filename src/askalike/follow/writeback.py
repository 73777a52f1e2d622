"""Writes decisions back to the site that they are about: a link to the original, a tag, and that it is closed.

What is to be written waits in the forum's store, and each thing is looked for before it is written, so that a process
that is killed at any moment writes nothing twice. Nothing that a person wrote is edited or deleted; what is undone here
after it was written stays there.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from askalike.errors import SettingError, SourceError
from askalike.follow.discourse import Discourse
from askalike.follow.github import GitHub, next_place
from askalike.follow.settings import FollowSettings
from askalike.follow.site import Pace, Stopped, id_text
from askalike.progress import Progress, SilentProgress
from askalike.readers.values import Unreadable, as_object, as_objects
from askalike.store import Store
from askalike.types import Write
from askalike.web import FailedError, RefusedError, pause_s

RATE: Final = 20
"""Requests a minute: Discourse and GitHub both slow down who writes faster."""
ORIGINAL: Final = "{original}"
MAX_TRIES: Final = 5
"""In one run; what still fails then waits for the next."""
LONGEST_ASKED_S: Final = 900.0
"""A site that asks to wait for longer ends the run."""
_TAG: Final = re.compile(r"[^,\s][^,]{0,49}")
_FIRST_PAUSE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """What is written of each decision.

    Args:
        text: of the comment that links to the original, which ``{original}`` stands for; "" for the site's own way.

    Raises:
        SettingError: nothing is, or a value cannot be used.
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
        if not self.actions:
            raise SettingError("nothing is to be written", "say --link, --tag TAG or --close, or several")

    @property
    def actions(self) -> tuple[str, ...]:
        """Return what is done with each, closing last."""
        return ("link",) * self.has_link + (f"tag {self.tag}",) * bool(self.tag) + ("close",) * self.is_closed


class DiscourseTarget(Discourse):
    """Topics: a post that links to the original, and that they are closed.

    Args:
        username: whose key it is: what they have posted is not posted again.
    """

    def __init__(self, address: str, pace: Pace, key: str, username: str) -> None:
        super().__init__(address, pace, key, username)
        self._username = username

    def find(self, write: Write) -> str:
        """Look into both topics, and whether those who read the one may read the other."""
        original, topic = self._listed_topic(write.candidate_id), self._listed_topic(write.question_id)
        try:
            is_readable = self.is_public(original) or original.get("category_id") == topic.get("category_id")
        except Unreadable as error:
            raise RefusedError(f"topic {write.candidate_id}: {error}") from error
        if not is_readable:
            raise RefusedError(f"topic {write.candidate_id} is in a category that is not public")
        if write.action == "close":
            return "closed already" if topic.get("closed") is True else ""
        self.add_posts(topic)
        base = f"(?:{re.escape(self.address)}|{re.escape(urlsplit(self.address).path)})"
        place = re.compile(rf'href="{base}/t/(?:[^/"]+/)?{write.candidate_id}(?:[/?#][^"]*)?"')
        for post in as_objects(as_object(topic.get("post_stream")).get("posts")):
            is_own = str(post.get("username", "")).lower() == self._username.lower()
            if is_own and not post.get("deleted_at") and place.search(str(post.get("cooked", ""))):
                return f"post {post.get('id')} links there"
        return ""

    def _listed_topic(self, identifier: str) -> dict[str, Any]:
        if not id_text(identifier):
            raise RefusedError(f"{identifier!r} is no topic of a Discourse")
        try:
            topic = self.topic(identifier)
        except RefusedError as error:
            raise RefusedError(f"topic {identifier} {error}", error.status) from error
        if topic.get("archetype", "regular") != "regular" or topic.get("visible") is False or topic.get("deleted_at"):
            raise RefusedError(f"topic {identifier} is not listed, or deleted")
        return topic

    def send(self, write: Write, comment: str) -> None:
        """Send a new post, or a new status."""
        if write.action == "close":
            body: dict[str, Any] = {"status": "closed", "enabled": "true"}
            self.api.ask(f"/t/{write.question_id}/status.json", method="PUT", body=body)
        else:
            body = {"topic_id": int(write.question_id), "raw": comment, "auto_track": False}
            self.api.ask("/posts.json", method="POST", body=body)


_COMMENT: Final = """mutation($input: AddDiscussionCommentInput!) {
  addDiscussionComment(input: $input) { comment { databaseId } } }"""
_CLOSE: Final = """mutation($input: CloseDiscussionInput!) {
  closeDiscussion(input: $input) { discussion { closed } } }"""
_LABEL: Final = """mutation($input: AddLabelsToLabelableInput!) {
  addLabelsToLabelable(input: $input) { clientMutationId } }"""
_LATER: Final = ("LOADING", "None", "INTERNAL", "SERVICE_UNAVAILABLE")
"""Errors of GraphQL after which another try may succeed."""


@dataclass(frozen=True, slots=True)
class _GitHubThread:
    """An issue or a discussion that may be written to.

    Args:
        node: GraphQL's name of a discussion; "" for an issue.
        label_node: GraphQL's name of the label that is to be added to a discussion; "" where there is none.
    """

    is_closed: bool
    labels: tuple[str, ...]
    node: str = ""
    label_node: str = ""


class GitHubTarget(GitHub):
    """Issues and discussions: a comment "Duplicate of #12", a label, and that they are closed as a duplicate.

    Discussions, which share their numbers with issues, are written to through GraphQL.
    """

    def __init__(self, address: str, pace: Pace, key: str, api: str) -> None:
        super().__init__(address, pace, key, api)
        self._key = key
        self._threads: dict[str, _GitHubThread] = {}

    def find(self, write: Write) -> str:
        """Look into both, and the comments of the duplicate."""
        self._thread(write.candidate_id, "")
        thread = self._threads[write.question_id] = self._thread(write.question_id, _label(write.action))
        if write.action == "close":
            return "closed already" if thread.is_closed else ""
        if write.action != "link":
            return "labelled already" if _label(write.action) in thread.labels else ""
        if thread.node:
            comments, has_more = self._discussion_comments(write.question_id)
        else:
            comments, has_more = self.comments(write.question_id)
        for comment in comments:
            if self._marker(write) in str(comment.get("body")) or self.duplicate_of(comment) == write.candidate_id:
                return f"comment {comment.get('id')} says so"
        if has_more:
            raise RefusedError(f"{write.question_id} has more comments than are looked through")
        return ""

    def _thread(self, identifier: str, label: str) -> _GitHubThread:
        """Return an issue or a discussion; raise RefusedError where there is neither."""
        if not id_text(identifier):
            raise RefusedError(f"{identifier!r} is no issue")
        try:
            issue = self.issue(identifier)
        except RefusedError as error:
            page = next(self.discussion_pages(identifier, label), None) if error.status in (404, 410) else None
            if page is None:
                raise RefusedError(f"issue {identifier} {error}", error.status) from error
            discussion = page["discussion"]
            names = as_objects(as_object(discussion.get("labels")).get("nodes"))
            label_node = str(page["label"].get("id") or "")
            is_closed, node = discussion.get("closed") is True, str(discussion.get("id"))
            return _GitHubThread(is_closed, tuple(str(row.get("name")) for row in names), node, label_node)
        labels = [item.get("name") if isinstance(item, dict) else item for item in issue.get("labels") or ()]
        return _GitHubThread(issue.get("state") == "closed", tuple(map(str, labels)))

    def _discussion_comments(self, identifier: str) -> tuple[list[dict[str, Any]], bool]:
        """Return the comments of a discussion as those of issues are, and whether there are more."""
        comments: list[dict[str, Any]] = []
        has_more = False
        for page in self.discussion_pages(identifier):
            connection = as_object(page["discussion"].get("comments"))
            has_more = next_place(connection) is not None
            for row in as_objects(connection.get("nodes")):
                author = row.get("authorAssociation")
                comments.append({"id": row.get("databaseId"), "body": row.get("body"), "author_association": author})
        return comments, has_more

    def _marker(self, write: Write) -> str:
        """Return a comment that GitHub does not show, and that nobody can write who lacks the key."""
        content = f"{self.repository.lower()} {write.question_id} {write.candidate_id}"
        seal = hmac.new(self._key.encode(), content.encode(), hashlib.sha256).hexdigest()[:16]
        return f"<!-- askalike:duplicate {write.candidate_id} {seal} -->"

    def send(self, write: Write, comment: str) -> None:
        """Send a new comment, a new label, or a new state.

        Raises:
            RefusedError: GraphQL answers that it was not done, or the repository has no such label.
        """
        thread = self._threads[write.question_id]
        body = f"{comment}\n\n{self._marker(write)}"
        if thread.node:
            self._send_to_discussion(write, thread, body)
        elif write.action == "close":
            state = {"state": "closed", "state_reason": "duplicate"}
            self.api.ask(f"/issues/{write.question_id}", method="PATCH", body=state)
        elif write.action == "link":
            self.api.ask(f"/issues/{write.question_id}/comments", method="POST", body={"body": body})
        else:
            labels = {"labels": [_label(write.action)]}
            self.api.ask(f"/issues/{write.question_id}/labels", method="POST", body=labels)

    def _send_to_discussion(self, write: Write, thread: _GitHubThread, body: str) -> None:
        mutation: str
        values: Mapping[str, Any]
        if write.action == "close":
            mutation, values = _CLOSE, {"discussionId": thread.node, "reason": "DUPLICATE"}
        elif write.action == "link":
            mutation, values = _COMMENT, {"discussionId": thread.node, "body": body}
        elif not thread.label_node:
            raise RefusedError("the repository has no such label: make it there first")
        else:
            mutation, values = _LABEL, {"labelableId": thread.node, "labelIds": [thread.label_node]}
        _, problems = self.graphql(mutation, {"input": values})
        for kind, message in problems:
            error = FailedError if kind in _LATER else RefusedError
            raise error(f"{self.address} answered: {message}")


def _label(action: str) -> str:
    return action.removeprefix("tag ") if action.startswith("tag ") else ""


Target = DiscourseTarget | GitHubTarget
"""``find`` returns by what a write is done already, "" where ``send`` is to do it; both raise FailedError where another
try may succeed, RefusedError where none will for this write, and SourceError where none will for any."""


def open_target(settings: FollowSettings, pace: Pace) -> Target:
    """Return the site that is written to.

    Raises:
        SettingError: no key is named, or it is not in the environment.
        SourceError: the address names no repository.
    """
    if not settings.key_variable:
        hint = "put the key of the API into an environment variable, and name it: --key-variable NAME"
        raise SettingError("no key was named", hint)
    if settings.kind == "discourse":
        return DiscourseTarget(settings.address, pace, settings.key, settings.username)
    return GitHubTarget(settings.address, pace, settings.key, settings.api)


class WriteBack:
    """Decisions of a forum, and what of them is to be written; the only one at a time.

    Args:
        settings: of the site, and what the questions belong to that are there.

    Raises:
        SettingError: the site has no such action.
    """

    def __init__(self, store: Store, settings: FollowSettings, write_settings: WriteSettings) -> None:
        self._store, self._settings, self._write_settings = store, settings, write_settings
        self._actions = write_settings.actions
        if settings.kind == "discourse" and write_settings.tag:
            raise SettingError(
                "Discourse's documented API sets all tags of a topic at once, and could take a person's away",
                "leave out --tag",
            )

    def waiting(self) -> list[Write]:
        """Return what would be written: what waits already, and what decisions ask for besides; nothing is stored."""
        outbox = self._store.outbox(self._settings.address)
        known = {
            (write.question_id, write.candidate_id, write.action) for write in outbox if write.state != "cancelled"
        }
        waiting = [write for write in outbox if write.state == "waiting" and write.action in self._actions]
        return waiting + [
            write for write in self._decided() if (write.question_id, write.candidate_id, write.action) not in known
        ]

    def comment(self, write: Write) -> str:
        """Return the comment that a write adds, "" where it adds none."""
        if write.action != "link":
            return ""
        if self._settings.kind == "discourse":
            text, original = f"This asks the same as {ORIGINAL}", f"{self._settings.address}/t/{write.candidate_id}"
        else:
            text, original = f"Duplicate of {ORIGINAL}", f"#{write.candidate_id}"
        return (self._write_settings.text or text).replace(ORIGINAL, original)

    def _decided(self) -> Iterator[Write]:
        for entry in self._store.decided_duplicates(self._settings.origin.name):
            for action in self._actions:
                yield Write(0, self._settings.address, entry.question_id, entry.candidate_id, action)

    def send(
        self, target: Target, limit: int = 0, *, is_retried: bool = False, progress: Progress | None = None
    ) -> list[Write]:
        """Write what waits; return what was tried, with what became of it.

        Args:
            limit: at most so many; 0 for all.
            is_retried: what was refused before is tried again.

        Raises:
            SourceError: the key is refused, or the address leads elsewhere; what is left waits.
        """
        progress = progress or SilentProgress()
        address = self._settings.address
        self._store.put_writes(list(self._decided()))
        states = ("waiting", "failed") if is_retried else ("waiting",)
        outbox = self._store.outbox(address)
        wanted = [write for write in outbox if write.state in states and write.action in self._actions]
        progress.start(f"writing to {address}", len(wanted[: limit or None]), "writes")
        tried = []
        try:
            for write in wanted[: limit or None]:
                target.pace.clock.pause(0)
                if not self._send_one(target, write):
                    break
                tried.append(write.number)
                progress.advance(1)
        except Stopped:
            pass
        return [write for write in self._store.outbox(address) if write.number in tried]

    def _send_one(self, target: Target, write: Write) -> bool:
        """Do one write, or note why it cannot be done; return False where the run has to end."""
        for tries in range(1, MAX_TRIES + 1):
            if not self._store.set_write(write.number, "waiting", write.why, is_try=False):
                return True  # cancelled meanwhile
            try:
                why = target.find(write)
                if not why:
                    target.send(write, self.comment(write))
            except RefusedError as error:
                if 300 <= error.status < 400:
                    target.check_access()  # where the whole site leads elsewhere, this write is not to blame
                self._store.set_write(write.number, "failed", str(error))
                return True
            except SourceError as error:
                self._store.set_write(write.number, "waiting", str(error))
                raise
            except FailedError as error:
                self._store.set_write(write.number, "waiting", str(error))
                if tries == MAX_TRIES or (error.pause_s or 0.0) > LONGEST_ASKED_S:
                    return False
                target.pace.clock.pause(error.pause_s or pause_s(_FIRST_PAUSE_S, tries))
            else:
                self._store.set_write(write.number, "done", why)
                return True
        return False
