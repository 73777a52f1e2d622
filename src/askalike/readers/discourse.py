"""Discourse topics as the site's API gives them (``/t/ID.json``): one file, a list, JSON Lines, or a folder of them.

Private messages, deleted posts, and posts that the system or a moderator's action wrote are no records: they are
counted as skipped, and so are posts that were hidden. A category becomes the first tag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from askalike.errors import DamagedInputError, FormatError, UnsafeInputError
from askalike.readers.files import (
    first_bytes,
    folder_members,
    member,
    plain_suffix,
    read_blocks,
)
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.jsonl import json_objects
from askalike.readers.values import (
    Unreadable,
    as_object,
    as_objects,
    identifier,
    one_line,
    read_answer,
    read_question,
    tags,
)
from askalike.types import Answer, Link, Markup, Question, Record

_HINT = "fetch the file again from where it came"


def read_json_items(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (line, object) for each object of a file, without lines (0) in a document of JSON; others are rejected.

    Raises:
        DamagedInputError: empty, truncated, mis-encoded, or not JSON; names the file.
        UnsafeInputError: a document is larger than ``limits.document_bytes``, or nested too deep.
    """
    if plain_suffix(path) in (".jsonl", ".ndjson"):
        for number, data, problem in json_objects(path, name, context):
            if problem:
                context.reject(name, number, "", problem)
            else:
                yield number, data
        return
    try:
        value = json.loads(_document(path, name, context))
    except RecursionError as error:
        raise UnsafeInputError(f"{name}: JSON nested too deep", _HINT) from error
    except ValueError as error:
        raise DamagedInputError(f"{name}: not JSON, or cut off: {error}", _HINT) from error
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        if isinstance(item, dict):
            yield 0, item
        else:
            context.reject(name, 0, "", f"item {number} is a JSON {type(item).__name__}, expected an object")


def _document(path: Path, name: str, context: ReadContext) -> str:
    """Return the text of a JSON document, which is held whole."""
    content, limit = bytearray(), context.options.limits.document_bytes
    for block in read_blocks(path, name, context):
        content += block
        if len(content) > limit:
            message = f"{name}: a JSON document longer than {limit:,} bytes"
            raise UnsafeInputError(message, "give the topics as JSON Lines, one object a line")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise DamagedInputError(f"{name}, line {line}: not UTF-8", "convert the file to UTF-8") from error


_SUFFIXES = (".json", ".jsonl", ".ndjson")
_CATEGORIES = "categories.json"
_HAS_POSTS = re.compile(rb'"post_stream"\s*:')
_REGULAR_POST = 1
_WHISPER = 4
_LIKE = 2
_CLOSINGS = ("closed.enabled", "autoclosed.enabled")
_TOPIC_PATH = re.compile(
    r"^(?:https?://[^/]+)?/t/(?:(?P<bare>\d+)(?:/\d+)?|[^/?#]+/(?P<named>\d+)(?:/\d+)?)/?(?:[?#].*)?$"
)
_SNIFFED_FILES = 5

Categories = Mapping[str, str | None]
"""Id of a category → its name; None where not everybody may read it."""


class DiscourseReader(Reader):
    """Reads topics of a Discourse site."""

    name = "discourse"

    def matches(self, path: Path) -> bool:
        """Say whether a file, or one of a folder's first files, has a ``post_stream``."""
        if path.is_dir():
            files = (file for file in sorted(path.iterdir()) if plain_suffix(file) in _SUFFIXES)
            return any(
                self.matches(file) for _, file in zip(range(_SNIFFED_FILES), files, strict=False) if file.is_file()
            )
        return plain_suffix(path) in _SUFFIXES and _HAS_POSTS.search(first_bytes(path)) is not None

    def files(self, path: Path) -> list[Path]:
        """Return the topics' files."""
        if not path.is_dir():
            return [path]
        return [file for file in folder_members(path, *_SUFFIXES) if file.name != _CATEGORIES]

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield every topic's question, answers and links."""
        files = self.files(path)
        if not files:
            raise FormatError(
                f"{path} holds no topic: no file that ends in {', '.join(_SUFFIXES)}", "name another --format"
            )
        categories = _categories(path, context) if path.is_dir() else {}
        for file in files:
            for line, data in read_json_items(file, file.name, context):
                yield from topic_records(data, file.name, line, categories, context)


def topic_records(
    data: dict[str, object], name: str, line: int, categories: Categories, context: ReadContext
) -> Iterator[Record]:
    """Yield the question, the answers and the links of one topic.

    Args:
        data: as ``/t/ID.json`` gives it.
        name: where it comes from, for rejects.
        categories: of the site, for topics that have no more than an id.
    """
    return _Topic(name, line, data, categories, context).records()


def _categories(folder: Path, context: ReadContext) -> Categories:
    """Return the categories of ``categories.json``, where there is one."""
    path = member(folder, _CATEGORIES)
    names: dict[str, str | None] = {}
    if path is None:
        return names
    silent = ReadContext(options=context.options)  # not part of the progress, and it holds no records
    for _, data in read_json_items(path, _CATEGORIES, silent):
        for category in as_objects(as_object(data.get("category_list")).get("categories", data.get("categories"))):
            if category.get("read_restricted") is True:
                names[str(category.get("id"))] = None
            elif isinstance(category.get("name"), str):
                names[str(category.get("id"))] = one_line(category["name"], "category", context)
    return names


class _Topic:
    """One topic on its way to records."""

    def __init__(
        self, file: str, line: int, data: dict[str, Any], categories: Categories, context: ReadContext
    ) -> None:
        self.file = file
        self.line = line
        self.data = data
        self.categories = categories
        self.context = context
        self.posts = as_objects(as_object(data.get("post_stream")).get("posts"))

    def records(self) -> Iterator[Record]:
        """Yield the question, the answers and the links of a topic that is public and not deleted."""
        context, data = self.context, self.data
        if data.get("archetype") == "private_message":
            context.skipped["private message"] += 1
            return
        if data.get("deleted_at"):
            context.skipped["deleted topic"] += 1
            return
        if data.get("visible") is False:
            context.skipped["unlisted topic"] += 1
            return
        if self.categories.get(str(data.get("category_id")), "") is None:
            context.skipped["topic of a private category"] += 1
            return
        topic_id = ""
        try:
            topic_id = identifier(data.get("id", self.posts[0].get("topic_id") if self.posts else None), "topic id")
            question = self._question(topic_id)
        except Unreadable as error:
            context.reject(self.file, self.line, topic_id, str(error))
            return
        if question is not None:
            context.records_in += 1
            yield question
        yield from self._answers(topic_id)
        yield from self._links(topic_id)
        self._count_missing()

    def _question(self, topic_id: str) -> Question | None:
        """Return the question, or None for a further page of posts, which has neither a title nor post 1."""
        data, context = self.data, self.context
        first = next((post for post in self.posts if post.get("post_number") == 1), {})
        if not first and "title" not in data:
            return None
        body, markup = _body({} if first.get("hidden") is True else first)
        slug = one_line(data.get("slug"), "slug", context) or "-"
        fields = {
            "title": data.get("title"),
            "body": body,
            "tags": [*self._category(), *tags(data.get("tags"), context)],
            "created": data.get("created_at") or first.get("created_at"),
            "closed": self._closed(),
            "score": _likes(first),
            "author": first.get("username"),
        }
        return read_question(topic_id, fields, markup, context, f"/t/{slug}/{{id}}")

    def _closed(self) -> object:
        """Return when a closed topic was closed: a post of the system says so; else it was after the last post."""
        if self.data.get("closed") is not True:
            return None
        said = [
            post["created_at"] for post in self.posts if post.get("action_code") in _CLOSINGS and "created_at" in post
        ]
        return said[-1] if said else self.data.get("last_posted_at") or self.data.get("created_at")

    def _category(self) -> list[str]:
        category = self.data.get("category", self.data.get("category_name"))
        name = category.get("name") if isinstance(category, dict) else category
        if isinstance(name, str) and name.strip():
            return [one_line(name, "category", self.context)]
        number = self.data.get("category_id")
        return [] if number is None else [self.categories.get(str(number)) or f"category-{number}"]

    def _answers(self, topic_id: str) -> Iterator[Answer]:
        accepted = as_object(self.data.get("accepted_answer")).get("post_number")
        for post in self.posts:
            number = post.get("post_number")
            if number == 1:
                continue
            if post.get("post_type", _REGULAR_POST) != _REGULAR_POST or post.get("action_code"):
                self.context.skipped["system post"] += 1
                continue
            if post.get("deleted_at") or post.get("user_deleted") is True:
                self.context.skipped["deleted post"] += 1
                continue
            if post.get("hidden") is True:
                self.context.skipped["hidden post"] += 1
                continue
            post_id = f"{topic_id}-{number}"
            try:
                if post.get("id") is not None:
                    post_id = identifier(post["id"], "post id")
                is_accepted = post.get("accepted_answer") is True or (number is not None and number == accepted)
                answer = self._answer(topic_id, post_id, post, is_accepted)
            except Unreadable as error:
                self.context.reject(self.file, self.line, post_id[:100], f"post {number} of topic {topic_id}: {error}")
                continue
            self.context.records_in += 1
            yield answer

    def _answer(self, topic_id: str, post_id: str, post: dict[str, Any], is_accepted: bool) -> Answer:
        body, markup = _body(post)
        fields = {
            "body": body,
            "created": post.get("created_at"),
            "score": _likes(post),
            "author": post.get("username"),
            "accepted": is_accepted,
        }
        return read_answer(post_id, topic_id, fields, markup, self.context)

    def _links(self, topic_id: str) -> Iterator[Link]:
        links = as_objects(as_object(self.data.get("details")).get("links"))
        for post in self.posts:
            if post.get("post_type") != _WHISPER and not post.get("deleted_at"):  # a moderator's key shows these too
                links.extend(as_objects(post.get("link_counts")))
        targets: dict[str, None] = {}
        for link in links:
            if link.get("reflection") is True or link.get("internal") is False:
                continue  # a reflection is the other topic's link to this one
            path = _TOPIC_PATH.match(str(link.get("url", "")))
            if path is not None:
                targets[path["bare"] or path["named"]] = None
        targets.pop(topic_id, None)
        for target in targets:
            self.context.records_in += 1
            yield Link(topic_id, target, "related")

    def _count_missing(self) -> None:
        stream = as_object(self.data.get("post_stream")).get("stream")
        missing = len(stream) - len(self.posts) if isinstance(stream, list) else 0
        if missing > 0:
            if not self.context.skipped["post that the topic's file does not hold"]:
                line = f", line {self.line}" if self.line else ""
                self.context.notice(
                    f"{self.file}{line}: the topic has {missing} more posts than its file holds"
                    " (the API gives 20 at a time; ask for /t/ID.json?print=true)"
                )
            self.context.skipped["post that the topic's file does not hold"] += missing


def _body(post: dict[str, Any]) -> tuple[object, Markup]:
    """Return the post as written (Markdown) where the file has it, else as shown (HTML)."""
    return (post["raw"], "markdown") if isinstance(post.get("raw"), str) else (post.get("cooked"), "html")


def _likes(post: dict[str, Any]) -> object:
    if "like_count" in post:
        return post["like_count"]
    if not isinstance(post.get("actions_summary"), list):
        return None
    likes = [action.get("count", 0) for action in as_objects(post["actions_summary"]) if action.get("id") == _LIKE]
    return likes[0] if likes else 0
