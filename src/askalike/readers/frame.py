"""What every reader shares: the protocol, the context that a reading carries, and the record of what was refused.

The law of counts: every record that a reader meets raises ``ReadContext.records_in`` by one and is then either yielded
or rejected, so ``records_in == yielded + rejects.count`` at the end. (A line that cannot be read at all counts as one
record, whatever it held.) What a format holds besides questions, answers and links (tag wikis, deleted posts, system
messages) is no record: it is counted by kind in ``ReadContext.skipped``.

Marks of acceptance stand with questions. A question is nearly always met before its answers: its accepted id waits in
``ReadContext.accepted`` until the answer comes, which is marked then. What still waits at the end are answers that came
before their question; who stores the records marks these.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import quote

from msgspec import structs

from askalike.errors import SettingError, UnsafeInputError
from askalike.files import narrow, writing_named
from askalike.types import Answer, Markup, Record, Reject

_ID_PLACE = "{id}"
_PATTERN = re.compile(r"https?://[^\s/?#{}]+/[^\s{}]*\{id\}[^\s{}]*", re.IGNORECASE)
_PREVIEW = 20
_ADDRESS = re.compile(r"https?://[^\s/?#{}]+(/[^\s?#{}]*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of an input is believed before it is called unsafe or damaged.

    Args:
        line_bytes: the longest line of a text file.
        document_bytes: the largest JSON document that has to be held whole.
        field_chars: the longest title or body.
        xml_depth: how deep XML elements may nest.
        xml_token_bytes: the longest XML tag, and the longest text inside one XML element.
        archive_members: how many members an archive may list.
        archive_unpacked_bytes: how large the wanted members of an archive, or an unpacked file, may be.
        archive_ratio: unpacked size divided by packed size.
        archive_free_bytes: unpacked size up to which the ratio does not matter.
        columns: how many columns a table may have.
        parts: how many tags, or answers, one record may have.
    """

    line_bytes: int = 16 << 20
    document_bytes: int = 256 << 20
    field_chars: int = 4 << 20
    xml_depth: int = 64
    xml_token_bytes: int = 16 << 20
    archive_members: int = 10_000
    archive_unpacked_bytes: int = 400 << 30
    archive_ratio: float = 200.0
    archive_free_bytes: int = 64 << 20
    columns: int = 10_000
    parts: int = 100_000

    def check_unpacked(self, name: str, unpacked: int, packed: int) -> None:
        """Refuse a file that unpacks to more than is believed.

        Args:
            name: the file's, for the message.
            unpacked: bytes that it unpacks to, so far or in all.
            packed: bytes of the file as it is stored.

        Raises:
            UnsafeInputError: too many bytes, or too many for its size.
        """
        what = ""
        if unpacked > self.archive_unpacked_bytes:
            what = f"more than {self.archive_unpacked_bytes:,} bytes"
        elif unpacked > max(self.archive_free_bytes, self.archive_ratio * packed):
            what = f"more than {self.archive_ratio:,.0f} times its size"
        if what:
            raise UnsafeInputError(f"{name} unpacks to {what}", "if you trust it, unpack it and give what was in it")

    def check_columns(self, name: str, count: int) -> None:
        """Refuse a table with more columns than are believed.

        Raises:
            UnsafeInputError: too many.
        """
        if count > self.columns:
            raise UnsafeInputError(
                f"{name} has {count:,} columns, at most {self.columns:,} are read",
                "leave out those that are not needed",
            )


class Rejects:
    """Counts and names every record that could not be read, and keeps them all where ``keep_in`` says.

    >>> rejects = Rejects()
    >>> rejects.add(Reject("posts.csv", 7, "", "no id"))
    >>> rejects.count, rejects.first[0].line
    (1, 7)
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self.count = 0
        self.first: list[Reject] = []
        self._file: IO[str] | None = None

    def keep_in(self, path: Path) -> None:
        """Keep what is rejected from now on in this file, a JSON object a line; that of an earlier reading goes now."""
        self.path = path
        with writing_named(path):
            path.unlink(missing_ok=True)

    def add(self, reject: Reject) -> None:
        """Count a reject, keep it among the first 20, and write it to the reject file."""
        self.count += 1
        if len(self.first) < _PREVIEW:
            self.first.append(reject)
        if self.path is None:
            return
        with writing_named(self.path):
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = open(self.path, "a", encoding="utf-8", opener=narrow)  # noqa: SIM115
            self._file.write(json.dumps(asdict(reject), ensure_ascii=True) + "\n")

    def close(self) -> None:
        """Close the reject file; what was counted stays."""
        if self._file is not None and self.path is not None:
            file, self._file = self._file, None
            with writing_named(self.path):
                file.close()

    def __enter__(self) -> Rejects:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user may say about an input.

    Args:
        mapping: our field → the table's column, for example ``{"title": "subject"}``; empty: guessed from the header.
        site_url: the forum's address, for example ``https://devops.stackexchange.com``, or that of its questions with
            ``{id}`` where the id goes, such as ``https://forum.example.org/t/{id}``; "" leaves urls empty.
        markup: how bodies are written, where the format leaves it open; None: what the format's reader says.
        is_html_escaped_twice: bodies are HTML escaped once more; None: found out from the first bodies and shown.
        limits: how much of an input is believed.

    Raises:
        SettingError: the address is none that a link could begin with, or the mapping is none.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    site_url: str = ""
    markup: Markup | None = None
    is_html_escaped_twice: bool | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        mapping: Any = self.mapping
        if not isinstance(mapping, Mapping):
            raise SettingError(
                f"columns are given as a {type(mapping).__name__}", 'expected field to column, as {"title": "subject"}'
            )
        if self.site_url and not _ADDRESS.fullmatch(self.site_url) and not _PATTERN.fullmatch(self.site_url):
            raise SettingError(
                f"the forum's address {self.site_url!r} is none",
                "expected one such as https://forum.example.org or https://forum.example.org/t/{id}",
            )


@dataclass
class ReadContext:
    """What one reading carries along.

    Args:
        options: what the user said about the input.
        rejects: where records go that cannot be read.
        advance: called with the number of bytes read (of the file as it is stored) since the last call.
        notice: called with a sentence that the user should see, such as a guessed column mapping.
        records_in: questions, answers and links met so far.
        skipped: kind → how many things of that kind were met that are no question, answer or link.
        repaired: kind → how many values were left out or replaced in records that were kept.
        accepted: ids of accepted answers that were not met after their question.
    """

    options: ReadOptions = field(default_factory=ReadOptions)
    rejects: Rejects = field(default_factory=Rejects)
    advance: Callable[[int], None] = lambda _: None
    notice: Callable[[str], None] = lambda _: None
    records_in: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    accepted: set[str] = field(default_factory=set)
    _is_site_noticed: bool = False

    def repair(self, kind: str) -> None:
        """Count a value that was left out or replaced, such as a date that nobody can read; the first is shown."""
        if not self.repaired[kind]:
            self.notice(f"the input holds {kind}; the records themselves are kept")
        self.repaired[kind] += 1

    def with_acceptance(self, answer: Answer) -> Answer:
        """Return an answer marked as accepted where its question, met before, says so.

        >>> context = ReadContext(accepted={"3"})
        >>> context.with_acceptance(Answer("3", "1", "Turn it on.")).is_accepted, context.accepted
        (True, set())
        """
        if answer.id not in self.accepted:
            return answer
        self.accepted.discard(answer.id)
        return structs.replace(answer, is_accepted=True)

    def address(self, record_id: str, path: str = "") -> str:
        """Return where a question is on its forum's site, "" where that is not known.

        Args:
            record_id: its id there; "" where its archive has none.
            path: how sites of the format lead to it, with ``{id}``; "" where they differ.

        >>> context = ReadContext(ReadOptions(site_url="https://forum.example.org/"))
        >>> context.address("9", "/questions/{id}")
        'https://forum.example.org/questions/9'
        """
        site = self.options.site_url
        if not site:
            return ""
        pattern = site if _ID_PLACE in site else site.rstrip("/") + path
        if record_id and _ID_PLACE in pattern:
            return pattern.replace(_ID_PLACE, quote(record_id, safe=""))
        if not self._is_site_noticed:
            self._is_site_noticed = True
            why = "say where ids go in it, as in https://forum.example.org/t/{id}" if record_id else "there are no ids"
            self.notice(f"questions have no links to the forum's site: {why}")
        return ""

    def reject(self, file: str, line: int, record_id: str, reason: str) -> None:
        """Count a record as met and as refused."""
        self.records_in += 1
        self.rejects.add(Reject(file, line, record_id, reason))


def regular_size(path: Path) -> int:
    """Return a file's size in bytes, 0 where there is no regular file."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


class Reader(Protocol):
    """One format: recognises a path and turns it into records, in the order of its files."""

    name: str

    def matches(self, path: Path) -> bool:
        """Say whether names and first bytes look like this format; never raises on odd files."""

    def files(self, path: Path) -> Sequence[Path]:
        """Return the files that ``read`` will open, where they are there."""
        return [path]

    def size_bytes(self, path: Path) -> int:
        """Return how many bytes ``read`` will report through ``advance`` in all."""
        return sum(map(regular_size, self.files(path)))

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield every record, counting each in ``context.records_in``.

        Raises:
            DamagedInputError: a file is truncated, mis-encoded or empty.
            UnsafeInputError: the input asks for something that is never done.
            FormatError: the input is not of this format.
        """
