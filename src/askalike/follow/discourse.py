"""A Discourse site, by its API: ``/latest.json``, ``/posts.json``, ``/t/ID.json``, ``/site.json``; its webhooks.

Lists show which topics have new posts, another title, category or state; no list shows that an older post was edited.
Such an edit comes by webhook, or is found when the topic is read again because it was read long ago.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from askalike.errors import SourceError
from askalike.follow.pace import Pace
from askalike.follow.source import (
    Cursor,
    Piece,
    Reading,
    Seen,
    Site,
    reading_context,
    reading_of,
    refused,
)
from askalike.readers.discourse import topic_records
from askalike.web import FailedError, RefusedError

MOST_PAGES: Final = 10
"""Of a list, in one poll: what is behind them, a sweep finds."""
TOPICS_A_PAGE: Final = 100
POSTS_A_REQUEST: Final = 50
MOST_POSTS: Final = 5_000
"""Of one topic; the rest is left out, and named."""
_ID: Final = re.compile(r"[1-9][0-9]{0,17}")
_GONE: Final = (403, 404, 410)
_EVENTS: Final = ("topic", "post", "solved")
_STAMPED: Final = (
    "title",
    "slug",
    "posts_count",
    "highest_post_number",
    "closed",
    "visible",
    "archetype",
    "bumped_at",
    "last_posted_at",
    "has_accepted_answer",
    "tags",
)


class Discourse:
    """Topics in categories that everybody may read, and in those that are named.

    Args:
        private: names, slugs or ids of categories that are followed though not everybody may read them.
    """

    kind = "discourse"

    def __init__(
        self, address: str, pace: Pace, key: str = "", username: str = "system", private: tuple[str, ...] = ()
    ) -> None:
        self.address, self.pace = address.rstrip("/"), pace
        headers = {"Api-Key": key, "Api-Username": username} if key else {}
        self._site = Site(self.address, headers, key, pace)
        self._named = frozenset(one.lower() for one in private)
        self._categories: dict[str, str] | None = None
        self._closed: frozenset[str] = frozenset()

    # -- lists -------------------------------------------------------------------------------------------------

    def poll(self, cursor: Cursor) -> Iterator[Piece]:
        """Yield the topics with new posts since the cursor: by activity, and by the newest posts, which bump or not."""
        known = _object(cursor)
        mark = self._read_categories()
        newest, recent, is_cut = self._posts(_number(known.get("post")))
        bumped, active, hidden, is_missed = self._active(str(known.get("bumped", "")))
        cursor = {"post": newest, "bumped": bumped, "categories": mark}
        is_sweep_due = bool(known) and (is_cut or is_missed or mark != known.get("categories"))
        named = {*hidden, *(one.id for one in active)}
        seen = (*active, *(Seen(one) for one in recent if one not in named))
        yield Piece(cursor, seen, gone=hidden, is_sweep_due=is_sweep_due)

    def _posts(self, after: int) -> tuple[int, list[str], bool]:
        """Return the newest post, the topics of the posts after one, and whether there were too many."""
        topics: dict[str, None] = {}
        newest, before = after, 0
        for _ in range(MOST_PAGES):
            listed = _objects(self._list("/posts.json" + (f"?before={before}" if before else "")).get("latest_posts"))
            ids = [_number(post.get("id")) for post in listed]
            newest = max([newest, *ids])
            if not after:
                return newest, [], False
            topics |= {_id(post.get("topic_id")): None for post in listed if _number(post.get("id")) > after}
            if not ids or min(ids) <= after + 1:
                return newest, [one for one in topics if one], False
            before = min(ids)
        return newest, [one for one in topics if one], True

    def _active(self, since: str) -> tuple[str, tuple[Seen, ...], tuple[str, ...], bool]:
        """Return the newest activity, the topics with activity since a moment, those of them that are not for
        everybody, and whether there were too many."""
        found: dict[str, dict[str, Any]] = {}
        newest = since
        for page in range(MOST_PAGES if since else 1):
            topics = self._topics(f"/latest.json?order=activity&per_page={TOPICS_A_PAGE}&page={page}")
            moments = [str(topic.get("bumped_at") or "") for topic in topics]
            newest = max([newest, *moments])
            for topic, moment in zip(topics, moments, strict=True):
                if since and moment >= since:
                    found[_id(topic.get("id"))] = topic
            pinned_out = [one for topic, one in zip(topics, moments, strict=True) if topic.get("pinned") is not True]
            if not pinned_out or min(pinned_out) < since:
                return newest, *self._shown(found.values()), False
        return newest, *self._shown(found.values()), bool(since)

    def _shown(self, topics: Iterable[dict[str, Any]]) -> tuple[tuple[Seen, ...], tuple[str, ...]]:
        """Return the topics of a list that everybody may read, and the ids of the others.

        The key of a moderator lists those too, and they are gone at once: to read each would take hours where a large
        category was closed.
        """
        topics = list(topics)
        seen = tuple(self._seen(one) for one in topics if self._is_public(one))
        return seen, tuple(_id(one.get("id")) for one in topics if not self._is_public(one))

    def sweep(self, place: Cursor) -> Piece:
        """Return the topics of a page, oldest first: activity moves none of them to another page."""
        page = _number(place)
        if not page:
            self._read_categories()
        topics = self._topics(f"/latest.json?order=created&ascending=true&per_page={TOPICS_A_PAGE}&page={page}")
        seen, hidden = self._shown(topics)
        return Piece(page + 1 if topics else None, seen, gone=hidden)

    def _topics(self, path: str) -> list[dict[str, Any]]:
        listed = self._list(path).get("topic_list")
        if not isinstance(listed, dict) or not isinstance(listed.get("topics"), list):
            raise FailedError(f"{self.address}{path} answered without a list of topics")
        return [topic for topic in _objects(listed["topics"]) if _id(topic.get("id"))]

    def _seen(self, topic: Mapping[str, Any]) -> Seen:
        shown = [topic.get(name) for name in _STAMPED]
        shown.append(self._category(topic))
        stamp = hashlib.blake2b(json.dumps(shown, sort_keys=True).encode(), digest_size=12).hexdigest()
        return Seen(_id(topic.get("id")), stamp)

    def _list(self, path: str) -> dict[str, Any]:
        try:
            found, _ = self._site.ask(path)
        except RefusedError as error:
            raise refused(error, self._site, "its topics") from error
        if not isinstance(found, dict):
            raise FailedError(f"{self.address}{path} answered a JSON {type(found).__name__}, expected an object")
        return found

    # -- categories --------------------------------------------------------------------------------------------

    def _read_categories(self) -> str:
        """Read which categories there are; return what differs when their names or rights do."""
        listed = _objects(self._list("/site.json").get("categories"))
        if not listed:
            raise SourceError(
                f"{self.address}/site.json names no category", "check that a Discourse site answers at this address"
            )
        closed = set()
        for one in listed:
            names = {str(one.get(name, "")).lower() for name in ("id", "slug", "name")}
            if one.get("read_restricted") is not False and not names & self._named:
                closed.add(str(one.get("id")))
        self._categories = {str(one.get("id")): str(one.get("name") or "") for one in listed}
        self._closed = frozenset(closed)
        mark = json.dumps([sorted(self._categories.items()), sorted(closed)])
        return hashlib.blake2b(mark.encode(), digest_size=12).hexdigest()

    def _category(self, topic: Mapping[str, Any]) -> str:
        return (self._categories or {}).get(str(topic.get("category_id")), "")

    def _is_public(self, topic: Mapping[str, Any]) -> bool:
        number = str(topic.get("category_id"))
        return (
            topic.get("archetype", "regular") == "regular"
            and topic.get("visible") is not False
            and not topic.get("deleted_at")
            and number in (self._categories or {})
            and number not in self._closed
        )

    # -- one topic ---------------------------------------------------------------------------------------------

    def read(self, identifier: str) -> Reading:
        """Return a topic with all its posts; none where it is deleted, unlisted, or not for everybody."""
        if not _ID.fullmatch(identifier):
            return Reading(None, is_there=False)
        try:
            topic, _ = self._site.ask(f"/t/{identifier}.json")
        except RefusedError as error:
            return self._gone(identifier, error)
        if not isinstance(topic, dict) or _id(topic.get("id")) != identifier:
            raise FailedError(f"{self.address}/t/{identifier}.json answered something else than this topic")
        if self._categories is None or str(topic.get("category_id")) not in self._categories:
            self._read_categories()
        if not self._is_public(topic):
            return Reading(None)
        rejects = self._add_posts(identifier, topic)
        context = reading_context(self.address)
        name = f"{self.address}/t/{identifier}.json"
        found = reading_of(topic_records(topic, name, 0, self._categories or {}, context), context)
        return Reading(found.thread, (*found.rejects, *rejects))

    def check_access(self) -> None:
        """Read the categories: a revoked key gets the same 403 for everything as for a hidden topic."""
        self._read_categories()

    def _gone(self, identifier: str, error: RefusedError) -> Reading:
        """Return that a topic is gone, where Discourse says so: not a proxy, nor a site that is being set up."""
        if error.status in _GONE:
            try:
                said = json.loads(error.content)
            except (ValueError, RecursionError):
                said = None
            if isinstance(said, dict) and isinstance(said.get("errors"), list):
                return Reading(None, is_there=False)
        raise FailedError(f"{self.address}/t/{identifier}.json {error}") from error

    def _add_posts(self, identifier: str, topic: dict[str, Any]) -> tuple[str, ...]:
        """Add to a topic the posts that its first answer leaves out; return what is left out for good."""
        stream = _object(topic.get("post_stream"))
        posts = {_id(post.get("id")): post for post in _objects(stream.get("posts"))}
        named = stream.get("stream")
        wanted = [_id(one) for one in named] if isinstance(named, list) else []
        missing = [one for one in wanted if one and one not in posts]
        left_out = missing[MOST_POSTS:]
        for start in range(0, min(len(missing), MOST_POSTS), POSTS_A_REQUEST):
            asked = "&".join(f"post_ids[]={one}" for one in missing[start : start + POSTS_A_REQUEST])
            try:
                found, _ = self._site.ask(f"/t/{identifier}/posts.json?{asked}")
            except RefusedError as error:
                raise FailedError(f"the posts of {self.address}/t/{identifier} {error}") from error
            more = _objects(_object(_object(found).get("post_stream")).get("posts"))
            posts |= {_id(post.get("id")): post for post in more}
        here = [
            post for one, post in posts.items() if one and _number(post.get("topic_id", identifier)) == int(identifier)
        ]
        here.sort(key=lambda post: _number(post.get("post_number")))
        topic["post_stream"] = {"posts": here}
        return (f"{len(left_out):,} posts beyond the first {MOST_POSTS:,}",) if left_out else ()


def event_ids(kind: str, payload: Any) -> tuple[str, ...]:
    """Return the topics that a webhook's payload is about.

    Args:
        kind: as ``X-Discourse-Event-Type`` says it.

    >>> event_ids("post", {"post": {"id": 7, "topic_id": 12}}), event_ids("ping", {"ping": "OK"})
    (('12',), ())
    """
    if kind not in _EVENTS:
        return ()
    told = _object(_object(payload).get(kind))
    found = _id(told.get("id" if kind == "topic" else "topic_id"))
    return (found,) if found else ()


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: object) -> int:
    found = _id(value)
    return int(found) if found else 0


def _id(value: object) -> str:
    """Return an id as digits, "" for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value)
    return text if _ID.fullmatch(text) else ""
