"""Stack Exchange data dumps: ``Posts.xml`` and ``PostLinks.xml``, in a folder, alone, or still in the site's ``.7z``.

PostTypeId 1 is a question and 2 an answer; other kinds, and deleted posts, are counted as skipped. XML files may be
packed by gzip; large sites come with an archive a file, ``SITE-Posts.7z`` and ``SITE-PostLinks.7z``. LinkTypeId 3 says
that PostId is a duplicate of RelatedPostId, 1 that it links to it. An old body may begin with a banner that names the
original; it is kept here, because the archive holds what the forum holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from askalike.errors import FormatError
from askalike.readers.files import first_bytes, open_bytes, plain_suffix, stored_file
from askalike.readers.frame import Limits, ReadContext, Reader
from askalike.readers.values import Unreadable, identifier, read_answer, read_each, read_question
from askalike.readers.xml import read_xml
from askalike.types import Answer, Link, LinkKind, Question, Record

_POSTS, _LINKS = "Posts.xml", "PostLinks.xml"
_WANTED = frozenset([_POSTS, _LINKS])
_SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
_ROOT = re.compile(rb"^\s*(<\?xml[^>]*\?>)?\s*<posts[\s/>]")
_OTHER_POSTS = {
    "3": "orphaned tag wiki",
    "4": "tag wiki excerpt",
    "5": "tag wiki",
    "6": "moderator nomination",
    "7": "wiki placeholder",
    "8": "privilege wiki",
}
_ATTRIBUTES = {
    "title": "Title",
    "body": "Body",
    "tags": "Tags",
    "created": "CreationDate",
    "closed": "ClosedDate",
    "score": "Score",
}
"""Our name → the attribute of a row."""
_LINK_KINDS: dict[str, LinkKind] = {"1": "related", "3": "duplicate"}


class StackExchangeReader(Reader):
    """Reads one site's data dump."""

    name = "stackexchange"

    def matches(self, path: Path) -> bool:
        """Say whether there is a Posts.xml, a file whose root is ``posts``, a 7z archive, or one a file."""
        if path.is_dir():
            return any((path / name).is_file() for name in (_POSTS, f"{_POSTS}.gz")) or bool(_archives(path))
        if path.suffix.lower() == ".7z":
            return first_bytes(path, len(_SEVEN_ZIP)) == _SEVEN_ZIP
        return plain_suffix(path) == ".xml" and _ROOT.match(first_bytes(path, 4096)) is not None

    def files(self, path: Path) -> list[Path]:
        """Return the XML files, packed or not."""
        return [path / f"{name}{packing}" for name in _WANTED for packing in ("", ".gz")] if path.is_dir() else [path]

    def size_bytes(self, path: Path) -> int:
        """Return the bytes of the XML files; those of a 7z count twice, once to unpack and once to read."""
        if archives := _archives(path):
            from askalike.readers.sevenzip import wanted_sizes  # here, since py7zr takes long to import

            return sum(2 * sum(wanted_sizes(archive, _WANTED, Limits()).values()) for archive in archives)
        return super().size_bytes(path)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield questions and answers, then links."""
        if archives := _archives(path):
            from askalike.readers.sevenzip import unpacked

            with ExitStack() as stack:
                folders = [stack.enter_context(unpacked(archive, _WANTED, context)) for archive in archives]
                yield from _read_folder(folders[0], folders[-1], path, context)
        elif path.is_dir():
            yield from _read_folder(path, path, path, context)
        else:
            if (path.parent / _LINKS).is_file():
                context.notice(f"{_LINKS} lies beside {path.name} and is not read; give the folder to read both")
            yield from _read_posts(path, path.name, context)


def _archives(path: Path) -> list[Path]:
    """Return the 7z archive, or a large site's ``SITE-Posts.7z`` and, where it is there, ``SITE-PostLinks.7z``."""
    if not path.is_dir():
        return [path] if path.suffix.lower() == ".7z" else []
    posts = sorted(path.glob("*-Posts.7z"))
    if len(posts) != 1:
        return []
    links = posts[0].with_name(posts[0].name.replace("-Posts.7z", "-PostLinks.7z"))
    return [posts[0], links] if links.is_file() else posts


def _read_folder(of_posts: Path, of_links: Path, archive: Path, context: ReadContext) -> Iterator[Record]:
    posts, links = stored_file(of_posts, _POSTS), stored_file(of_links, _LINKS)
    if posts is None:
        raise FormatError(f"{archive} holds no {_POSTS}", "give the dump of one site, or name another --format")
    yield from _read_posts(posts, _POSTS, context)
    if links is None:
        context.notice(f"{archive.name} has no {_LINKS}: marks of duplicates are not known")
    else:
        yield from _read_links(links, context)


def _rows(path: Path, name: str, root: str, context: ReadContext) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line, attributes) of each row of a file whose root element is known."""
    depth = 0
    with open_bytes(path, context) as stream:
        for event in read_xml(stream, name, context.options.limits, context.repair):
            if event.kind == "end":
                depth -= 1
                continue
            if depth == 0 and event.tag != root:
                raise FormatError(f"{name} begins with <{event.tag}>, expected <{root}>", "name another --format")
            if depth == 1 and event.tag == "row":
                yield event.line, event.attributes
            elif depth:
                context.skipped[f"element <{event.tag[:40]}>"] += 1
            depth += 1


def _read_posts(path: Path, name: str, context: ReadContext) -> Iterator[Record]:
    deleted: set[str] = set()
    for line, row in _rows(path, name, "posts", context):
        kind = row.get("PostTypeId", "")
        if row.get("DeletionDate"):
            context.skipped["deleted post"] += 1
            deleted.add(row.get("Id", ""))
        elif kind == "2" and row.get("ParentId") in deleted:
            context.skipped["answer to a deleted question"] += 1
        elif kind not in ("1", "2") and kind.isdigit():
            context.skipped[_OTHER_POSTS.get(kind, f"post of type {kind[:10]}")] += 1
        else:
            try:
                post = _post(row, kind, context)
            except Unreadable as error:
                context.reject(name, line, row.get("Id", "")[:100], str(error))
                continue
            context.records_in += 1
            if isinstance(post, Answer):
                yield context.with_acceptance(post)
                continue
            yield post
            if accepted_id := row.get("AcceptedAnswerId"):
                context.accepted.add(accepted_id)


def _post(row: dict[str, str], kind: str, context: ReadContext) -> Question | Answer:
    post_id = identifier(row.get("Id"), "Id")
    fields = {name: row.get(attribute) for name, attribute in _ATTRIBUTES.items()}
    fields["author"] = row.get("OwnerDisplayName") or row.get("OwnerUserId")
    if kind == "2":
        return read_answer(post_id, identifier(row.get("ParentId"), "ParentId"), fields, "html", context)
    if kind != "1":
        raise Unreadable(f"the PostTypeId is {kind[:40]!r}, expected a number")
    return read_question(post_id, fields, "html", context, "/questions/{id}")


def _read_links(path: Path, context: ReadContext) -> Iterator[Link]:
    rows = _rows(path, _LINKS, "postlinks", context)
    return read_each(rows, _link, _LINKS, context, lambda row: row.get("Id", ""))


def _link(row: dict[str, str]) -> Link:
    source, target = identifier(row.get("PostId"), "PostId"), identifier(row.get("RelatedPostId"), "RelatedPostId")
    kind = _LINK_KINDS.get(row.get("LinkTypeId", ""))
    if kind is None:
        raise Unreadable(f"the LinkTypeId is {row.get('LinkTypeId', '')[:40]!r}, expected 1 or 3")
    if source == target:
        raise Unreadable("a post linked to itself")
    return Link(source, target, kind)
