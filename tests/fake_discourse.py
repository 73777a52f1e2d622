"""A Discourse site for tests, written from its API's description and recorded answers: a server whose forum lives.

Its topics are made, edited, renamed, moved, closed, hidden, deleted and brought back by chance, at moments of a clock
that requests and ``advance`` move on; its webhooks are signed, and some come late, twice or never. Requests fail by
chance, and those above the rate limit do and are counted.
"""

from __future__ import annotations

import hashlib
import heapq
import hmac
import json
import random
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests import fake_site
from tests.fake_site import Answer, Request, as_json

from askalike.types import Answer as AnswerRecord
from askalike.types import Link, Question, Thread

WINDOW_S = 60.0
TIMED_OUT_S = 10.0
"""What a follower waits for an answer at first; that the same hangs twice in a row is as good as never drawn."""
FAILURES = ("too many", "broken", "unavailable", "hung up", "timed out", "cut", "no json")
A_PAGE = 20
"""Posts in the first answer for a topic."""
WORDS = re.findall(
    r"\w+",
    "router drops wifi every evening printer jams paper battery swells laptop screen flickers fan noise boot loop"
    " update driver crash sync cloud backup restore photo album share link login password reset token mail filter spam",
)
NOT_FOUND = {"errors": ["The requested URL or resource could not be found."], "error_type": "not_found"}
DELIVER = Callable[[Mapping[str, str], bytes], object]


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(seconds: float) -> datetime:
    return datetime.fromisoformat(iso(seconds))


@dataclass
class Post:
    id: int
    number: int
    text: str
    username: str
    created_s: float
    likes: int = 0
    is_deleted: bool = False
    is_hidden: bool = False
    is_whisper: bool = False
    action: str = ""
    targets: tuple[int, ...] = ()
    html: str = ""

    @property
    def cooked(self) -> str:
        if self.html:
            return self.html
        links = "".join(f' <a href="/t/topic/{target}">there</a>' for target in self.targets)
        return f"<p>{self.text}{links}</p>"


@dataclass
class Topic:
    id: int
    title: str
    category: int
    tags: list[str]
    created_s: float
    bumped_s: float
    posts: list[Post] = field(default_factory=list)
    is_closed: bool = False
    is_visible: bool = True
    is_deleted: bool = False
    accepted: int = 0

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def shown(self) -> list[Post]:
        return [post for post in self.posts if not post.is_deleted and not post.is_whisper]

    @property
    def last_s(self) -> float:
        return max((post.created_s for post in self.shown), default=self.created_s)


@dataclass
class Category:
    id: int
    name: str
    is_private: bool = False


CHANCES: Mapping[str, float] = {
    "too many": 0.004,
    "broken": 0.004,
    "unavailable": 0.002,
    "hung up": 0.003,
    "timed out": 0.0003,
    "cut": 0.002,
    "no json": 0.001,
    "lost": 0.03,
    "double": 0.05,
    "late": 0.02,
}
"""How often what goes wrong, of one request or webhook."""
CALM: Mapping[str, float] = dict.fromkeys(CHANCES, 0.0)


class FakeDiscourse:
    """The forum, its clock and its server.

    Args:
        mutations_s: seconds between two changes, on average; 0 for none.
        deliver: takes webhooks.
        rate: requests a minute that are answered.
        on_time: called with the clock when it has moved.
    """

    def __init__(
        self,
        seed: int,
        topics: int,
        *,
        mutations_s: float = 0.0,
        chances: Mapping[str, float] = CHANCES,
        deliver: DELIVER | None = None,
        secret: str = "",
        rate: int = 60,
        key: str = "",
        on_time: Callable[[float], None] = lambda _: None,
        start_s: float = 1_750_000_000.0,
    ) -> None:
        self.chance = random.Random(seed)
        self.trouble = random.Random(seed + 1)
        self.chances = chances
        self.start_s = start_s
        self.now_s, self.mutations_s, self.deliver, self.secret = start_s, mutations_s, deliver, secret
        self.rate, self.key, self._on_time = rate, key, on_time
        self.set_back_s = 0.0
        self.address = ""
        self.preloaded: tuple[int, ...] | None = None
        """The categories that are in the site's own list, where it loads the others lazily."""
        self.is_category_list_empty = self.is_login_required = False
        self.muted: frozenset[int] = frozenset()
        """Categories that lists by activity leave out."""
        self.permalinks: dict[int, str] = {}
        """Where topics that are gone redirect to."""
        self.write_failures: list[tuple[Answer, bool]] = []
        """Each answers the next request that writes; whether that did its work all the same."""
        self.asked: list[str] = []
        self.writes: list[Request] = []
        self.lock = threading.RLock()
        self.topics: dict[int, Topic] = {}
        self.categories = {n: Category(n, name) for n, name in enumerate(("General", "Help", "Ideas", "Staff"), 1)}
        self.categories[4].is_private = True
        self.last_post = 0
        self.owners: dict[int, int] = {}
        self.counts: Counter[str] = Counter()
        self.mutated: Counter[str] = Counter()
        self._sent: deque[float] = deque()
        self._next_event = 1
        self._deliveries: list[tuple[float, int, Mapping[str, str], bytes]] = []
        self._mutate_s = start_s
        self.delivered: list[tuple[Mapping[str, str], bytes]] = []
        self.lost: list[tuple[float, str, str]] = []
        """Events that were not sent of topics that everybody may read: when, the event's name, the topic."""
        for number in range(1, topics + 1):
            self.new_topic(start_s - 86_400 * 30 + number, number)

    def wall_s(self) -> float:
        """Return the moment as the machine of who follows takes it."""
        return self.now_s - self.set_back_s

    # -- what lives --------------------------------------------------------------------------------------------

    def _text(self, words: int) -> str:
        return " ".join(self.chance.choice(WORDS) for _ in range(words))

    def new_topic(self, at_s: float, number: int | None = None) -> Topic:
        number = number or max(self.topics, default=0) + 1
        category = 4 if self.chance.random() < 0.05 else self.chance.randint(1, 3)
        topic = Topic(number, f"{self._text(5)} {number}", category, self._tags(), at_s, at_s)
        self.topics[number] = topic
        many = self.chance.choice((1, 1, 2, 3, 4)) if self.chance.random() > 0.01 else self.chance.randint(25, 70)
        for place in range(many):
            self.add_post(topic, at_s + place * 0.1)
        return topic

    def _tags(self) -> list[str]:
        return self.chance.sample(["wifi", "print", "power", "cloud"], self.chance.randint(0, 2))

    def add_post(self, topic: Topic, at_s: float, action: str = "") -> Post:
        self.last_post += 1
        targets = (self.chance.randint(1, len(self.topics)),) if self.chance.random() < 0.15 else ()
        targets = tuple(target for target in targets if target != topic.id)
        number = max((post.number for post in topic.posts), default=0) + 1
        text = "" if action else self._text(12)
        post = Post(self.last_post, number, text, f"user{self.chance.randint(1, 50)}", at_s, 0, action=action)
        post.targets = () if action else targets
        topic.posts.append(post)
        self.owners[post.id] = topic.id
        topic.bumped_s = max(topic.bumped_s, at_s)
        return post

    def mutate(self) -> None:
        """Change something by chance, and send the webhooks that Discourse would."""
        kinds = {
            name.removeprefix("_do_"): getattr(self, name) for name in sorted(dir(self)) if name.startswith("_do_")
        }
        kind = self.chance.choices(list(kinds), [WEIGHTS.get(name, 3) for name in kinds])[0]
        topic = self.topics[self.chance.choice(self._living())]
        kinds[kind](topic)
        self.mutated[kind] += 1

    def _living(self) -> list[int]:
        if self.chance.random() < 0.5 or not self.topics:
            newest = max(self.topics)
            return [number for number in range(max(1, newest - 200), newest + 1) if number in self.topics] or list(
                self.topics
            )
        return [self.chance.choice(list(self.topics))]

    def _do_topic(self, _: Topic) -> None:
        topic = self.new_topic(self.now_s)
        topic.bumped_s = topic.created_s
        topic.posts = topic.posts[:1]
        self._event("topic", "topic_created", topic)
        self._event("post", "post_created", topic, topic.posts[0])

    def _do_reply(self, topic: Topic) -> None:
        self._event("post", "post_created", topic, self.add_post(topic, self.now_s))

    def _do_edit(self, topic: Topic) -> None:
        post = self.chance.choice(
            [post for post in topic.posts if not post.action] or [self.add_post(topic, self.now_s)]
        )
        post.text = self._text(14)
        self._event("post", "post_edited", topic, post)

    def _do_rename(self, topic: Topic) -> None:
        topic.title = f"{self._text(6)} {topic.id}"
        self._event("topic", "topic_edited", topic)

    def _do_retag(self, topic: Topic) -> None:
        topic.tags = self._tags()
        self._event("topic", "topic_edited", topic)

    def _do_recategorise(self, topic: Topic) -> None:
        topic.category = self.chance.randint(1, 4)
        self._event("topic", "topic_edited", topic)

    def _do_close(self, topic: Topic) -> None:
        topic.is_closed = not topic.is_closed
        self.add_post(topic, self.now_s, "closed.enabled" if topic.is_closed else "closed.disabled")
        self._event("topic", "topic_closed_status_updated", topic)

    def _do_unlist(self, topic: Topic) -> None:
        topic.is_visible = not topic.is_visible
        self._event("topic", "topic_visible_status_updated", topic)

    def _do_delete(self, topic: Topic) -> None:
        topic.is_deleted = not topic.is_deleted
        self._event("topic", "topic_destroyed" if topic.is_deleted else "topic_recovered", topic)

    def _do_purge(self, topic: Topic) -> None:
        del self.topics[topic.id]
        self._event("topic", "topic_destroyed", topic)

    def _do_delete_post(self, topic: Topic) -> None:
        if len(topic.posts) > 1:
            post = self.chance.choice(topic.posts[1:])
            post.is_deleted = not post.is_deleted
            self._event("post", "post_destroyed" if post.is_deleted else "post_recovered", topic, post)

    def _do_hide_post(self, topic: Topic) -> None:
        if len(topic.posts) > 1:
            post = self.chance.choice(topic.posts[1:])
            post.is_hidden = not post.is_hidden
            self._event("post", "post_edited", topic, post)

    def _do_accept(self, topic: Topic) -> None:
        wanted = [post for post in topic.shown[1:] if not post.action]
        topic.accepted = 0 if topic.accepted or not wanted else self.chance.choice(wanted).number
        if wanted:
            self._event("solved", "accepted_solution" if topic.accepted else "unaccepted_solution", topic, wanted[0])

    def _do_whisper(self, topic: Topic) -> None:
        bumped_s = topic.bumped_s
        self.add_post(
            topic, self.now_s
        ).is_whisper = True  # seen by who moderates; its webhook names the topic all the same
        topic.bumped_s = bumped_s
        self._event("post", "post_created", topic, topic.posts[-1])

    def _do_like(self, topic: Topic) -> None:
        if topic.shown:
            self.chance.choice(topic.shown).likes += 1  # no webhook, nor anything in lists

    def _do_move_posts(self, topic: Topic) -> None:
        other = self.topics[self.chance.choice(list(self.topics))]
        if other is topic or len(topic.posts) < 2:
            return
        post = topic.posts.pop()
        post.number = max((post.number for post in other.posts), default=0) + 1
        other.posts.append(post)
        self.owners[post.id] = other.id
        self._event("topic", "topic_edited", topic)
        self._event("post", "post_edited", other, post)

    # -- webhooks ----------------------------------------------------------------------------------------------

    def _event(self, kind: str, name: str, topic: Topic, post: Post | None = None) -> None:
        if self.deliver is None:
            return
        self.counts["events"] += 1
        if self.trouble.random() < self.chances["lost"]:
            self.counts["events lost"] += 1
            is_whisper = post is not None and post.is_whisper  # which no reader ever sees
            if self._is_listed(topic, is_staff=False) and not is_whisper:
                self.lost.append((self.now_s, name, str(topic.id)))
            return
        row = self._row(topic) if post is None else self._post_json(topic, post)
        content = json.dumps({kind: row}).encode()
        headers = self.headers(kind, name, content)
        delay = (
            self.trouble.uniform(0.1, 0.8)
            if self.trouble.random() > self.chances["late"]
            else self.trouble.uniform(60, 600)
        )
        self._deliver_later(delay, headers, content)
        if self.trouble.random() < self.chances["double"]:
            self._deliver_later(delay + self.trouble.uniform(0, 120), headers, content)

    def headers(self, kind: str, name: str, content: bytes) -> dict[str, str]:
        self._next_event += 1
        signature = hmac.new(self.secret.encode(), content, hashlib.sha256).hexdigest()
        return {
            "X-Discourse-Instance": "http://forum.example.org",
            "X-Discourse-Event-Id": str(self._next_event),
            "X-Discourse-Event-Type": kind,
            "X-Discourse-Event": name,
            "X-Discourse-Event-Signature": f"sha256={signature}",
        }

    def _deliver_later(self, delay_s: float, headers: Mapping[str, str], content: bytes) -> None:
        heapq.heappush(
            self._deliveries, (self.now_s + delay_s, len(self._deliveries) + self._next_event * 1000, headers, content)
        )

    # -- time --------------------------------------------------------------------------------------------------

    def advance(self, seconds: float, *, is_waiting: bool = True) -> None:
        """Let time pass; where somebody waits, no longer than to the next webhook that is delivered."""
        with self.lock:
            until = self.now_s + seconds
            while True:
                mutate_s = self._mutate_s if self.mutations_s else float("inf")
                deliver_s = self._deliveries[0][0] if self._deliveries else float("inf")
                if min(mutate_s, deliver_s) > until:
                    break
                self._set(max(self.now_s, min(mutate_s, deliver_s)))
                if mutate_s <= deliver_s:
                    self.mutate()
                    self._mutate_s = self.now_s + self.chance.expovariate(1 / self.mutations_s)
                else:
                    _, _, headers, content = heapq.heappop(self._deliveries)
                    self.delivered = [*self.delivered[-20:], (headers, content)]
                    self._set(self.now_s)
                    assert self.deliver is not None
                    self.deliver(headers, content)
                    if is_waiting:
                        return
            self._set(until)

    def _set(self, now_s: float) -> None:
        self.now_s = now_s
        self._on_time(now_s)

    # -- answers -----------------------------------------------------------------------------------------------

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return status, headers and body; None for a connection that is hung up."""
        with self.lock:
            self.advance(self.trouble.uniform(0.02, 0.25), is_waiting=False)
            self.counts["requests"] += 1
            while self._sent and self._sent[0] <= self.now_s - WINDOW_S:
                self._sent.popleft()
            self._sent.append(self.now_s)
            if self.rate and len(self._sent) > self.rate:
                self.counts["over the rate"] += 1
                return self._too_many()
            drawn = self.trouble.random()
            for name in FAILURES:
                drawn -= self.chances[name]
                if drawn < 0:
                    self.counts[name] += 1
                    return self._trouble(name)
            self.asked.append(path)
            parts = urlsplit(path)
            topic_id = int((re.fullmatch(r"/t/([0-9]+)\.json", parts.path) or [0, 0])[1])
            if topic_id in self.permalinks and topic_id not in self.topics:
                return 301, {"Location": self.permalinks[topic_id], "Content-Type": "text/html"}, b"<html></html>"
            is_staff = bool(self.key) and headers.get("api-key") == self.key
            if self.is_login_required and not is_staff:
                message = "You are not permitted to view the requested resource."
                return as_json({"errors": [message], "error_type": "not_logged_in"}, 403)
            answer = self._found(parts, is_staff)
            return as_json(NOT_FOUND, 404) if answer is None else as_json(answer)

    def write(self, request: Request) -> Answer:
        """Answer ``POST /posts.json`` and ``PUT /t/ID/status.json``, with the fields that are documented."""
        with self.lock:
            self.writes.append(request)
            failure, is_done = self.write_failures.pop(0) if self.write_failures else (None, True)
            done = self._written(request) if is_done else None
            return failure or done or as_json({}, 500)

    def _written(self, request: Request) -> Answer:
        if request.headers.get("api-key") != self.key:
            return as_json(NOT_FOUND, 403)
        body = request.body
        if request.path == "/posts.json":
            assert (body.keys(), type(body["topic_id"]), type(body["raw"])) == (
                {"topic_id", "raw", "auto_track"},
                int,
                str,
            )
            topic = self.topics[body["topic_id"]]
            post = self.add_post(topic, self.now_s)
            post.text, post.targets, post.username = body["raw"], (), request.headers["api-username"]
            post.html = re.sub(r"(https?://\S+)", r'<p><a href="\1">\1</a></p>', body["raw"])
            return as_json(self._post_json(topic, post))
        assert (request.method, body) == ("PUT", {"status": "closed", "enabled": "true"})
        self.topics[int(request.path.split("/")[2])].is_closed = True
        return as_json({"success": "OK", "topic_status_update": None})

    def _too_many(self) -> Answer:
        said = {"errors": ["You've performed this action too many times."], "error_type": "rate_limit"}
        return as_json(said, 429, Retry_After=str(self.trouble.randint(1, 4)))

    def _trouble(self, name: str) -> Answer:
        if name == "too many":
            return self._too_many()
        if name in ("hung up", "timed out"):
            self.advance(2.0 if name == "hung up" else TIMED_OUT_S, is_waiting=False)
            return 0, {}, None
        if name == "cut":
            return 200, {"Content-Length": "100000"}, b'{"topic_list": {"topics": ['
        if name == "no json":
            return 200, {}, b"<html>maintenance</html>"
        return (500 if name == "broken" else 503), {}, b"<html>sorry</html>"

    def _found(self, parts: Any, is_staff: bool) -> Any:
        parameters = parse_qs(parts.query)
        if parts.path in ("/site.json", "/categories.json"):
            shown = [category for category in self.categories.values() if is_staff or not category.is_private]
            rows = [
                {"id": c.id, "name": c.name, "slug": c.name.lower(), "read_restricted": c.is_private} for c in shown
            ]
            if parts.path == "/site.json":
                lazy = {"lazy_load_categories": True} if self.preloaded is not None else {}
                listed = [row for row in rows if self.preloaded is None or row["id"] in self.preloaded]
                return {"categories": listed, **lazy} if listed else lazy
            pages = rows[:0] if self.is_category_list_empty else rows
            page = int(parameters.get("page", ["1"])[0])
            return {"category_list": {"can_create_category": False, "categories": pages[2 * page - 2 : 2 * page]}}
        if parts.path == "/latest.json":
            return self._latest(parameters, is_staff)
        if parts.path == "/posts.json":
            before = int(parameters.get("before", ["0"])[0]) or self.last_post + 1
            return {"latest_posts": self._latest_posts(before, is_staff)}
        if match := re.fullmatch(r"/t/([0-9]+)(/posts)?\.json", parts.path):
            topic = self.topics.get(int(match[1]))
            if topic is None or not (is_staff or self._is_readable(topic)):
                return None
            return self._whole(topic, [int(number) for number in parameters.get("post_ids[]", ())], is_staff)
        return None

    def _is_readable(self, topic: Topic) -> bool:
        """By everybody who knows the address: unlisted topics are."""
        return not topic.is_deleted and not self.categories[topic.category].is_private

    def _is_listed(self, topic: Topic, is_staff: bool) -> bool:
        return not topic.is_deleted and (is_staff or (self._is_readable(topic) and topic.is_visible))

    def _latest(self, parameters: Mapping[str, list[str]], is_staff: bool) -> Any:
        size = min(100, int(parameters.get("per_page", ["30"])[0]))
        first = int(parameters.get("page", ["0"])[0]) * size
        listed = [topic for topic in self.topics.values() if self._is_listed(topic, is_staff)]
        listed = [topic for topic in listed if topic.category not in self.muted]
        if parameters["order"] != ["created"]:
            listed = heapq.nlargest(first + size, listed, key=lambda topic: (topic.bumped_s, topic.id))
        rows = [self._row(topic) for topic in listed[first : first + size]]
        return {"topic_list": {"per_page": size, "topics": rows}}

    def _latest_posts(self, before: int, is_staff: bool) -> list[Any]:
        posts: list[Any] = []
        for number in range(before - 1, 0, -1):
            topic = self.topics.get(self.owners.get(number, 0))
            if topic is None or not self._is_listed(topic, is_staff):
                continue
            posts += [self._post_json(topic, post) for post in topic.shown if post.id == number]
            if len(posts) == 50:
                break
        return posts

    def _row(self, topic: Topic) -> dict[str, Any]:
        return {
            "id": topic.id,
            "title": topic.title,
            "fancy_title": topic.title,
            "slug": topic.slug,
            "posts_count": len(topic.shown),
            "highest_post_number": max((post.number for post in topic.posts), default=0),
            "created_at": iso(topic.created_s),
            "last_posted_at": iso(topic.last_s),
            "bumped": True,
            "bumped_at": iso(topic.bumped_s),
            "archetype": "regular",
            "visible": topic.is_visible,
            "closed": topic.is_closed,
            "archived": False,
            "pinned": False,
            "category_id": topic.category,
            "tags": [{"id": n, "name": tag, "slug": tag} for n, tag in enumerate(topic.tags)],
            "has_accepted_answer": bool(topic.accepted),
            "views": 7,
        }

    def _post_json(self, topic: Topic, post: Post) -> dict[str, Any]:
        return {
            "id": post.id,
            "topic_id": topic.id,
            "topic_slug": topic.slug,
            "post_number": post.number,
            "post_type": 4 if post.is_whisper else 3 if post.action else 1,
            "action_code": post.action or None,
            "username": post.username,
            "created_at": iso(post.created_s),
            "cooked": "" if post.action else post.cooked,
            "deleted_at": iso(post.created_s) if post.is_deleted else None,
            "user_deleted": False,
            "hidden": post.is_hidden,
            "actions_summary": [{"id": 2, "count": post.likes}] if post.likes else [],
            "link_counts": [
                {"url": f"http://forum.example.org/t/topic/{target}", "internal": True, "reflection": False}
                for target in post.targets
            ],
        }

    def _whole(self, topic: Topic, wanted: list[int], is_staff: bool) -> Any:
        posts = topic.posts if is_staff else topic.shown
        if wanted:
            return {
                "post_stream": {"posts": [self._post_json(topic, post) for post in posts if post.id in wanted]},
                "id": topic.id,
            }
        row = self._row(topic) | {"deleted_at": iso(topic.created_s) if topic.is_deleted else None}
        row["post_stream"] = {
            "posts": [self._post_json(topic, post) for post in posts[:A_PAGE]],
            "stream": [post.id for post in posts],
        }
        if topic.accepted:
            row["accepted_answer"] = {"post_number": topic.accepted, "username": "someone"}
        return row

    def dump(self, folder: Path) -> None:
        """Write what everybody may read as an archive of topics."""
        folder.mkdir()
        (folder / "categories.json").write_text(json.dumps(self._found(urlsplit("/site.json"), is_staff=True)))
        with (folder / "topics.jsonl").open("w") as file:
            for topic in self.topics.values():
                if topic.is_visible and self._is_readable(topic):
                    whole = self._whole(topic, [], is_staff=False)
                    whole["post_stream"] = {"posts": [self._post_json(topic, post) for post in topic.shown]}
                    file.write(json.dumps(whole) + "\n")

    # -- what a forum should hold ------------------------------------------------------------------------------

    def threads(self, address: str) -> dict[str, Thread]:
        """Return what everybody may read, as a forum that follows this one at an address should hold it."""
        return {
            str(topic.id): self._thread(topic, address)
            for topic in self.topics.values()
            if topic.is_visible and self._is_readable(topic)
        }

    def _thread(self, topic: Topic, address: str) -> Thread:
        name = str(topic.id)
        first = next((post for post in topic.shown if post.number == 1), None)
        closings = [post.created_s for post in topic.shown if post.action == "closed.enabled"]
        answers, targets = [], []
        for post in topic.shown:
            targets += post.targets
            if post is first or post.action or post.is_hidden:
                continue
            is_accepted = post.number == topic.accepted
            answers.append(
                AnswerRecord(
                    str(post.id),
                    name,
                    post.cooked,
                    "html",
                    moment(post.created_s),
                    post.likes,
                    post.username,
                    is_accepted,
                )
            )
        question = Question(
            id=name,
            title=topic.title,
            body=first.cooked if first and not first.is_hidden else "",
            markup="html",
            tags=tuple(dict.fromkeys([self.categories[topic.category].name, *topic.tags])),
            created=moment(topic.created_s),
            closed=moment(closings[-1] if closings else topic.last_s) if topic.is_closed else None,
            score=first.likes if first else None,
            url=f"{address}/t/{topic.slug}/{name}",
            author=first.username if first else "",
        )
        links = tuple(Link(name, str(target), "related") for target in dict.fromkeys(targets) if target != topic.id)
        return Thread(question, tuple(answers), links)


WEIGHTS: Mapping[str, int] = {
    "topic": 10,
    "reply": 25,
    "edit": 12,
    "purge": 1,
    "like": 4,
    "whisper": 1,
}


@contextmanager
def serving(fake: FakeDiscourse) -> Iterator[str]:
    """Give the address at which the site answers, ``/pause`` too: that moves its clock on."""

    def answer(request: Request) -> Answer:
        if request.path.startswith("/pause?s="):
            fake.advance(float(request.path.partition("=")[2]))
            return 200, {}, b""
        if request.method != "GET":
            return fake.write(request)
        return fake.answer(request.path, request.headers)

    with fake_site.serving(answer) as address:
        fake.address = address
        yield address
