"""A Discourse site, by its API: ``/latest.json``, ``/posts.json``, ``/t/ID.json``, ``/site.json``; its webhooks.

Lists show which topics have new posts, another title, category or state; no list shows that an older post was edited.
Such an edit comes by webhook, or is found when the topic is read again because it was read long ago.

Without a key, what the site shows is what everybody may read. A key shows more, and its topics are kept where their
category is known to be open to everybody, or was named. Sites that load categories lazily name few of them in
``/site.json`` and others in ``/categories.json``; where neither names a category, its topic is asked for without the
key. That a list does not name a category never makes its topics private.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

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
from askalike.readers.discourse import topic_records
from askalike.readers.frame import ReadContext, ReadOptions
from askalike.readers.values import Unreadable, as_object, as_objects
from askalike.web import FailedError, RefusedError

TOPICS_A_PAGE: Final = 100
POSTS_A_REQUEST: Final = 50
MAX_POSTS: Final = 5_000
"""Of one topic; the rest is left out, and named in its rejects."""
_LOGIN_PLACE: Final = re.compile(r"/(?:login|session|auth)\b")
_TOPIC_PLACE: Final = re.compile(r"/t/(?:[^/?#]+/)?([0-9]+)(?:\.json)?(?:[/?#]|$)")
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
    """Topics that everybody may read, and those in categories that are named.

    Args:
        private: names, slugs or ids of categories that are followed though not everybody may read them.
    """

    def __init__(
        self, address: str, pace: Pace, key: str = "", username: str = "system", private: tuple[str, ...] = ()
    ) -> None:
        self.address, self.pace = address.rstrip("/"), pace
        headers = {"Api-Key": key, "Api-Username": username} if key else {}
        self.api = Api(self.address, headers, key, pace)
        self._api_of_everybody = Api(self.address, {}, "", pace)
        self._has_key = bool(key)
        self._private = frozenset(name.lower() for name in private)
        self._category_names: dict[str, str] = {}
        self._is_category_open: dict[str, bool] = {}
        self._unlisted_categories: set[str] = set()

    # -- lists -------------------------------------------------------------------------------------------------

    def poll(self, cursor: Cursor) -> Listing:
        """Return the topics with activity since the cursor, and those of newer posts.

        Lists by activity leave out categories that are muted for everybody; the newest posts do not.
        """
        known = as_object(cursor)
        categories, since, after = self._read_categories(), str(known.get("bumped", "")), _number(known.get("post"))
        bumped, active, is_active_whole = self._active_topics(since)
        newest, recent, is_recent_whole = self._topics_of_posts(after)
        stamps, hidden = self._listed(active)
        stamps = dict.fromkeys((identifier for identifier in recent if identifier not in hidden), "") | stamps
        is_whole = is_active_whole and is_recent_whole and categories == known.get("categories")
        place = {"bumped": bumped, "post": newest, "categories": categories}
        return Listing(place, stamps, hidden, is_sweep_due=bool(known) and not is_whole)

    def _active_topics(self, since: str) -> tuple[str, list[dict[str, Any]], bool]:
        """Return the newest activity, the topics with activity since a moment, and whether these are all."""
        active: list[dict[str, Any]] = []
        newest = since
        for page in range(MAX_LIST_PAGES if since else 1):
            topics = self._topics(f"/latest.json?order=activity&per_page={TOPICS_A_PAGE}&page={page}")
            newest = max([newest, *map(_bumped, topics)])
            active += [topic for topic in topics if since and _bumped(topic) >= since]
            in_order = [_bumped(topic) for topic in topics if topic.get("pinned") is not True]
            if not in_order or min(in_order) < since:
                return newest, active, True
        return newest, active, not since

    def _topics_of_posts(self, after: int) -> tuple[int, list[str], bool]:
        """Return the newest post, the topics of the posts after one, and whether these are all."""
        topics: dict[str, None] = {}
        newest, before = after, 0
        for _ in range(MAX_LIST_PAGES if after else 1):
            posts = as_objects(self._list("/posts.json" + (f"?before={before}" if before else "")).get("latest_posts"))
            numbers = [_number(post.get("id")) for post in posts]
            newest = max([newest, *numbers])
            topics |= {id_text(post.get("topic_id")): None for post in posts if 0 < after < _number(post.get("id"))}
            if not numbers or (before := min(numbers)) <= after + 1:
                return newest, [identifier for identifier in topics if identifier], True
        return newest, [identifier for identifier in topics if identifier], not after

    def sweep(self, cursor: Cursor) -> Listing:
        """Return the topics of a page, oldest first: activity moves none of them to another page."""
        page = _number(cursor)
        if not page:
            self._category_names.clear()
            self._is_category_open.clear()
            self._unlisted_categories.clear()
            self._read_categories()
        topics = self._topics(f"/latest.json?order=created&ascending=true&per_page={TOPICS_A_PAGE}&page={page}")
        stamps, hidden = self._listed(topics)
        return Listing(page + 1 if topics else None, stamps, hidden)

    def _listed(self, topics: Iterable[dict[str, Any]]) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the stamps of the topics of a list, and the ids of those that not everybody may read.

        The key of a moderator lists the latter too, and they are gone at once: to read each would take hours where a
        large category was closed.
        """
        stamps, hidden = {}, []
        for topic in topics:
            if self._is_listed_public(topic) is False:
                hidden.append(id_text(topic.get("id")))
            else:
                values = [*(topic.get(name) for name in _STAMPED), self._category_names.get(_category(topic), "")]
                stamps[id_text(topic.get("id"))] = stamp_of(values)
        return stamps, tuple(hidden)

    def _topics(self, path: str) -> list[dict[str, Any]]:
        topics = as_object(self._list(path).get("topic_list")).get("topics")
        if not isinstance(topics, list):
            raise FailedError(f"{self.address}{path} answered without a list of topics")
        return [topic for topic in as_objects(topics) if id_text(topic.get("id"))]

    def _list(self, path: str) -> dict[str, Any]:
        try:
            answer, _ = self.api.ask(path)
        except RefusedError as error:
            raise self.api.refusal(error, "its topics") from error
        if not isinstance(answer, dict):
            raise FailedError(f"{self.address}{path} answered a JSON {type(answer).__name__}, expected an object")
        return answer

    # -- categories --------------------------------------------------------------------------------------------

    def _read_categories(self) -> str:
        """Read which categories there are; return a text that differs when their names or rights do.

        Categories that the site loads lazily are read once in a sweep.
        """
        site = self._list("/site.json")
        categories = as_objects(site.get("categories"))
        if not self._category_names and (not categories or site.get("lazy_load_categories") is True):
            self._add_categories(self._lazy_categories())
        self._add_categories(categories)
        if not self._category_names:
            raise SourceError(
                f"{self.address}/site.json names no category", "check that a Discourse site answers at this address"
            )
        rights = [[category.get(name) for name in ("id", "name", "read_restricted")] for category in categories]
        return stamp_of(rights)

    def _lazy_categories(self) -> list[dict[str, Any]]:
        """Return the categories of ``/categories.json``, page by page, each with those within it."""
        categories: dict[str, dict[str, Any]] = {}
        for page in range(1, MAX_LIST_PAGES + 1):
            path = f"/categories.json?include_subcategories=true&page={page}"
            unread = as_objects(as_object(self._list(path).get("category_list")).get("categories"))
            before = len(categories)
            while unread:
                category = unread.pop()
                categories[str(category.get("id"))] = category
                unread += as_objects(category.get("subcategory_list"))
            if len(categories) == before:
                break
        return list(categories.values())

    def _add_categories(self, categories: Iterable[Mapping[str, Any]]) -> None:
        for category in categories:
            number, name = str(category.get("id")), str(category.get("name") or "")
            is_named = bool({number, name.lower(), str(category.get("slug", "")).lower()} & self._private)
            self._category_names[number] = name
            if is_named or isinstance(category.get("read_restricted"), bool):
                self._is_category_open[number] = is_named or category["read_restricted"] is False

    def _is_listed_public(self, topic: Mapping[str, Any]) -> bool | None:
        """Return whether everybody may read a topic, or its category was named; None where no list says so."""
        is_listed = topic.get("visible") is not False and not topic.get("deleted_at")
        if topic.get("archetype", "regular") != "regular" or not is_listed:
            return False
        return self._is_category_open.get(_category(topic)) if self._has_key else True

    def is_public(self, topic: Mapping[str, Any]) -> bool:
        """Return whether everybody may read a topic, or its category was named.

        Where no list says who may read its category, the topic is asked for without the key.

        Raises:
            Unreadable: without the key the site does not show it; there are sites that show nothing so.
        """
        category = _category(topic)
        if category not in self._category_names and category not in self._unlisted_categories:
            self._read_categories()
            self._unlisted_categories |= {category} - self._category_names.keys()
        is_public = self._is_listed_public(topic)
        if is_public is None:
            try:
                self._api_of_everybody.ask(f"/t/{id_text(topic.get('id'))}.json")
            except (RefusedError, SourceError) as error:
                raise Unreadable(f"no list names category {category}, and without the key the site {error}") from error
            is_public = self._is_category_open[category] = True
        return is_public

    # -- one topic ---------------------------------------------------------------------------------------------

    def read(self, identifier: str) -> Reading:
        """Return a topic with all its posts; none where it is deleted, unlisted, or not for everybody."""
        if not id_text(identifier):
            return Reading(None, is_there=False)
        path = f"/t/{identifier}.json"
        try:
            topic = self.topic(identifier)
        except RefusedError as error:
            if _is_gone(identifier, error):
                return Reading(None, is_there=False)
            raise FailedError(f"{self.address}{path} {error}") from error
        if not self.is_public(topic):
            return Reading(None)
        rejects = self.add_posts(topic)
        context = ReadContext(ReadOptions(site_url=self.address))
        records = topic_records(topic, f"{self.address}{path}", 0, self._category_names, context)
        return thread_reading(records, context, *rejects)

    def topic(self, identifier: str) -> dict[str, Any]:
        """Return a topic with its first posts; raise RefusedError where it is not there."""
        topic, _ = self.api.ask(f"/t/{identifier}.json")
        if not isinstance(topic, dict) or id_text(topic.get("id")) != identifier:
            raise FailedError(f"{self.address}/t/{identifier}.json answered something else than this topic")
        return topic

    def check_access(self) -> None:
        """Read the categories: a revoked key gets the same 403 for everything as for a hidden topic."""
        self._read_categories()

    def add_posts(self, topic: dict[str, Any]) -> tuple[str, ...]:
        """Add to a topic the posts that its first answer leaves out; return what is left out for good."""
        identifier = id_text(topic.get("id"))
        stream = as_object(topic.get("post_stream"))
        posts = {id_text(post.get("id")): post for post in as_objects(stream.get("posts"))}
        ids = [id_text(value) for value in stream["stream"]] if isinstance(stream.get("stream"), list) else []
        missing = [post_id for post_id in ids if post_id and post_id not in posts]
        for start in range(0, min(len(missing), MAX_POSTS), POSTS_A_REQUEST):
            query = "&".join(f"post_ids[]={post_id}" for post_id in missing[start : start + POSTS_A_REQUEST])
            try:
                answer, _ = self.api.ask(f"/t/{identifier}/posts.json?{query}")
            except RefusedError as error:
                raise FailedError(f"the posts of {self.address}/t/{identifier} {error}") from error
            more = as_objects(as_object(as_object(answer).get("post_stream")).get("posts"))
            posts |= {id_text(post.get("id")): post for post in more}
        own = [
            post
            for post_id, post in posts.items()
            if post_id and _number(post.get("topic_id", identifier)) == int(identifier)
        ]
        topic["post_stream"] = {"posts": sorted(own, key=lambda post: _number(post.get("post_number")))}
        left_out = len(missing) - MAX_POSTS
        return (f"{left_out:,} posts beyond the first {MAX_POSTS:,}",) if left_out > 0 else ()


def _is_gone(identifier: str, error: RefusedError) -> bool:
    """Return whether Discourse says that a topic is gone: not a proxy, nor a site that is being set up.

    The permalink of a deleted topic leads elsewhere, but not to the same topic, nor to where people log in.
    """
    if 300 <= error.status < 400:
        location = error.headers.get("location", "")
        topic = _TOPIC_PLACE.search(location)
        return topic[1] != identifier if topic else not _LOGIN_PLACE.search(location)
    if error.status not in _GONE:
        return False
    try:
        answer = json.loads(error.content)
    except (ValueError, RecursionError):
        return False
    return isinstance(as_object(answer).get("errors"), list)


def event_ids(kind: str, payload: Any) -> tuple[str, ...]:
    """Return the topics that a webhook's payload is about.

    Args:
        kind: as ``X-Discourse-Event-Type`` says it.

    >>> event_ids("post", {"post": {"id": 7, "topic_id": 12}}), event_ids("ping", {"ping": "OK"})
    (('12',), ())
    """
    if kind not in _EVENTS:
        return ()
    subject = as_object(as_object(payload).get(kind))
    identifier = id_text(subject.get("id" if kind == "topic" else "topic_id"))
    return (identifier,) if identifier else ()


def _bumped(topic: Mapping[str, Any]) -> str:
    return str(topic.get("bumped_at") or "")


def _category(topic: Mapping[str, Any]) -> str:
    return str(topic.get("category_id"))


def _number(value: object) -> int:
    return int(id_text(value) or 0)
