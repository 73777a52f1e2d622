"""Discourse topics as the site's API gives them (``/t/ID.json``): one file, a list, JSON Lines, or a folder of them.

Private messages, deleted posts, and posts that the system or a moderator's action wrote are no records: they are
counted as skipped, and so are posts that were hidden. A category becomes the first tag.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from askalike.errors import DamagedInputError, FormatError, UnsafeInputError
from askalike.readers.files import (
    first_bytes,
    folder_members,
    member,
    plain_suffix,
    read_blocks,
    read_lines,
)
from askalike.readers.frame import ReadContext, regular_size
from askalike.readers.jsonl import load_object
from askalike.readers.values import Unreadable, check_has_text, identifier, moment, one_line, tags, text, whole_number
from askalike.types import Answer, Link, Markup, Question, Record

_SPACE = re.compile(r"[ \t\r\n]*")
_NEAR_CHARS = 64  # longer than any number, word or escape that a block could cut
_HINT = "fetch the file again from where it came"


def read_json_items(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (line, object) for each object of a file; in JSONL, a line that is no object is rejected.

    Raises:
        DamagedInputError: empty, truncated, mis-encoded, or not JSON; names file and line.
        UnsafeInputError: one item is larger than ``limits.document_bytes``, or nested too deep.
    """
    if plain_suffix(path) in (".jsonl", ".ndjson"):
        yield from _lines(path, name, context)
        return
    window = _Window(path, name, context)
    is_list = window.skip("[")
    while True:
        if is_list and window.skip("]"):
            break
        line = window.line
        item = window.value()
        if isinstance(item, dict):
            yield line, item
        else:
            context.reject(name, line, "", f"a JSON {type(item).__name__}, expected an object")
        if not is_list:
            break
        if not window.skip(","):
            if window.skip("]"):
                break
            raise window.damaged("expected a comma or the end of the list")
    if not window.is_at_end():
        raise window.damaged("there is more after the end of the JSON document")


def _lines(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in read_lines(path, name, context):
        if not line or line.isspace():
            context.skipped["blank line"] += 1
            continue
        try:
            item = load_object(line)
        except Unreadable as error:
            context.reject(name, number, "", str(error))
            continue
        yield number, item


class _Window:
    """The part of a JSON text that is not yet decoded; it grows until one value is whole, and then moves on."""

    def __init__(self, path: Path, name: str, context: ReadContext) -> None:
        self.name = name
        self.line = 1
        self._limit = context.options.limits.document_bytes
        self._blocks = read_blocks(path, name, context)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._is_done = False

    def skip(self, character: str) -> bool:
        """Step over white space, and over this character where it comes next."""
        if self.is_at_end() or self._text[self._at] != character:
            return False
        self._step(self._at + 1)
        return True

    def is_at_end(self) -> bool:
        """Step over white space, and say whether nothing is left."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._step(space.end() if space else self._at)
            if self._at < len(self._text):
                return False
            if not self._more(1):
                return True

    def value(self) -> object:
        """Decode the value that comes next, reading on until it is whole."""
        if self.is_at_end():
            raise self.damaged("the file ends too early, expected a JSON value")
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError as error:
                raise UnsafeInputError(f"{self.name}, line {self.line}: JSON nested too deep", _HINT) from error
            except ValueError as error:
                if _is_mistake(error, len(self._text)):
                    raise self.damaged(f"not JSON: {_plain(error)}") from error
                waiting = len(self._text) - self._at
                if waiting > self._limit:
                    message = f"{self.name}, line {self.line}: one JSON item longer than {self._limit:,} characters"
                    raise UnsafeInputError(message, "give the topics as one JSON object a line") from error
                if not self._more(waiting):  # doubling keeps the repeated scans linear in all
                    raise self.damaged(f"the file ends too early: {_plain(error)}") from error
            else:
                self._step(end)
                return value

    def damaged(self, what: str) -> DamagedInputError:
        """Return the error that names file and line."""
        return DamagedInputError(f"{self.name}, line {self.line}: {what}", _HINT)

    def _step(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self, characters: int) -> bool:
        """Drop what was decoded and read at least so many characters more; say whether there were any."""
        parts = [self._text[self._at :]]
        size = 0
        while size < characters and not self._is_done:
            block = next(self._blocks, b"")
            self._is_done = not block
            try:
                parts.append(self._decode(block, final=self._is_done))
            except UnicodeDecodeError as error:
                line = self.line + sum(part.count("\n") for part in parts) + block.count(b"\n", 0, error.start)
                message = f"{self.name}, line {line}: not UTF-8"
                raise DamagedInputError(message, "convert the file to UTF-8") from error
            size += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return size > 0


def _is_mistake(error: ValueError, length: int) -> bool:
    """Say whether more text cannot mend this: the fault is neither an open string nor near the end of the text."""
    if not isinstance(error, json.JSONDecodeError):
        return True
    return error.pos < length - _NEAR_CHARS and not error.msg.startswith("Unterminated string")


def _plain(error: ValueError) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


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

_Object = dict[str, object]


Categories = Mapping[str, str | None]
"""Id of a category → its name; None where not everybody may read it."""


class DiscourseReader:
    """Reads topics of a Discourse site."""

    name = "discourse"
    title = "Discourse topics as JSON (/t/ID.json): one topic, a list, JSON Lines, or a folder of them"

    def matches(self, path: Path) -> bool:
        """Say whether a file, or one of a folder's first files, has a ``post_stream``."""
        if path.is_dir():
            files = (file for file in sorted(path.iterdir()) if plain_suffix(file) in _SUFFIXES)
            return any(
                self.matches(file) for _, file in zip(range(_SNIFFED_FILES), files, strict=False) if file.is_file()
            )
        return plain_suffix(path) in _SUFFIXES and _HAS_POSTS.search(first_bytes(path)) is not None

    def size_bytes(self, path: Path) -> int:
        """Return the size of the topics' files."""
        return sum(map(regular_size, _topic_files(path)))

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield every topic's question, answers and links."""
        files = _topic_files(path)
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


def _topic_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [file for file in folder_members(path, *_SUFFIXES) if file.name != _CATEGORIES]


def _categories(folder: Path, context: ReadContext) -> Categories:
    """Return the categories of ``categories.json``, where there is one."""
    path = member(folder, _CATEGORIES)
    names: dict[str, str | None] = {}
    if path is None:
        return names
    silent = ReadContext(options=context.options)  # not part of the progress, and it holds no records
    for _, data in read_json_items(path, _CATEGORIES, silent):
        for category in _objects(_object(data.get("category_list")).get("categories", data.get("categories"))):
            if category.get("read_restricted") is True:
                names[str(category.get("id"))] = None
            elif isinstance(category.get("name"), str):
                names[str(category.get("id"))] = one_line(category["name"], "category", context)
    return names


class _Topic:
    """One topic on its way to records."""

    def __init__(self, file: str, line: int, data: _Object, categories: Categories, context: ReadContext) -> None:
        self.file = file
        self.line = line
        self.data = data
        self.categories = categories
        self.context = context
        self.posts = _objects(_object(data.get("post_stream")).get("posts"))

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
        title = one_line(data.get("title"), "title", context)
        body, markup = _body({} if first.get("hidden") is True else first, context)
        check_has_text(title, body, markup, "title and first post are empty")
        slug = one_line(data.get("slug"), "slug", context) or "-"
        return Question(
            id=topic_id,
            title=title,
            body=body,
            markup=markup,
            tags=tuple(dict.fromkeys([*self._category(), *tags(data.get("tags"), context)])),
            created=moment(data.get("created_at") or first.get("created_at"), context),
            closed=moment(self._closed(), context),
            score=_likes(first, context),
            url=context.address(topic_id, f"/t/{slug}/{{id}}"),
            author=one_line(first.get("username"), "username", context),
        )

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
        accepted = _object(self.data.get("accepted_answer")).get("post_number")
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

    def _answer(self, topic_id: str, post_id: str, post: _Object, is_accepted: bool) -> Answer:
        body, markup = _body(post, self.context)
        if not body.strip():
            raise Unreadable("the post is empty")
        author = one_line(post.get("username"), "name", self.context)
        created, score = moment(post.get("created_at"), self.context), _likes(post, self.context)
        return Answer(post_id, topic_id, body, markup, created, score, author, is_accepted)

    def _links(self, topic_id: str) -> Iterator[Link]:
        links = _objects(_object(self.data.get("details")).get("links"))
        for post in self.posts:
            if post.get("post_type") != _WHISPER and not post.get("deleted_at"):  # a moderator's key shows these too
                links.extend(_objects(post.get("link_counts")))
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
        stream = _object(self.data.get("post_stream")).get("stream")
        missing = len(stream) - len(self.posts) if isinstance(stream, list) else 0
        if missing > 0:
            if not self.context.skipped["post that the topic's file does not hold"]:
                self.context.notice(
                    f"{self.file}, line {self.line}: the topic has {missing} more posts than its file holds"
                    " (the API gives 20 at a time; ask for /t/ID.json?print=true)"
                )
            self.context.skipped["post that the topic's file does not hold"] += missing


def _body(post: _Object, context: ReadContext) -> tuple[str, Markup]:
    """Return the post as written (Markdown) where the file has it, else as shown (HTML)."""
    if isinstance(post.get("raw"), str):
        return text(post["raw"], "raw", context), "markdown"
    return text(post.get("cooked"), "cooked", context), "html"


def _likes(post: _Object, context: ReadContext) -> int | None:
    if "like_count" in post:
        return whole_number(post["like_count"], context)
    if not isinstance(post.get("actions_summary"), list):
        return None
    likes = [action.get("count", 0) for action in _objects(post["actions_summary"]) if action.get("id") == _LIKE]
    return whole_number(likes[0], context) if likes else 0


def _object(value: object) -> _Object:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[_Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
