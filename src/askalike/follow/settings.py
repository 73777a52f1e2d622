"""What a forum follows, and how: kept in its folder, but for secrets, of which the variables' names are kept."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from askalike.errors import SettingError, SourceError
from askalike.follow.database import Database, named_query
from askalike.follow.discourse import Discourse
from askalike.follow.feed import Feed
from askalike.follow.github import API, GitHub
from askalike.follow.pace import Pace
from askalike.follow.source import Source
from askalike.types import Source as Origin

Kind = Literal["discourse", "github", "feed", "database"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
RATE: Final = 60
"""Requests a minute, as many as Discourse allows a key where nothing else was set."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WEB: Final = re.compile(r"https?://[^\s/?#@]+(/\S*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """What is followed.

    Args:
        address: of the site, the repository, the feed or the database.
        kind: of what is there.
        source: what the questions belong to in the forum; that of an archive of the same forum, to go on from it.
        key_variable: the environment variable that holds the key of the API or the password of the database, or "".
        username: whose key it is, for Discourse.
        secret_variable: the environment variable that holds the secret of the webhooks, or "".
        private: categories of Discourse that are followed though not everybody may read them.
        query: of a database: one SELECT.
        api: of GitHub's API.
        discussions: of GitHub are followed too.
        rate: requests a minute.

    Raises:
        SettingError: a value cannot be used.
    """

    address: str
    kind: Kind
    source: str = ""
    key_variable: str = ""
    username: str = "system"
    secret_variable: str = ""
    private: tuple[str, ...] = ()
    query: str = ""
    api: str = API
    discussions: bool = False
    rate: int = RATE

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"there is no kind {self.kind!r} of forum", f"expected one of {', '.join(KINDS)}")
        for name in (self.key_variable, self.secret_variable):
            if name and not _NAME.fullmatch(name):
                raise SettingError(
                    f"{name[:3]}… is no name of an environment variable", "put the secret into one, and give its name"
                )
        if self.kind in ("discourse", "github") and not _WEB.fullmatch(self.address):
            raise SettingError(f"{self.address!r} is no address", "expected one such as https://forum.example.org")
        if self.kind == "database" and not self.query:
            raise SettingError("no query was given", 'give one with --query: a file, a ready one, or "SELECT …"')
        if self.secret_variable and self.kind not in ("discourse", "github"):
            raise SettingError(f"a {self.kind} sends no webhooks", "leave out --secret-variable")

    @property
    def origin(self) -> Origin:
        """Return what the questions belong to in the forum."""
        return Origin(self.source or self.address, self.kind)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as they are kept."""
        return asdict(self)

    @classmethod
    def of_json(cls, kept: dict[str, Any]) -> FollowSettings:
        """Return settings that were kept; names that are not known are left out."""
        names = {field.name for field in fields(cls)}
        found = {name: value for name, value in kept.items() if name in names}
        return cls(**(found | {"private": tuple(found.get("private", ()))}))


def kind_of(address: str) -> Kind:
    """Return what is most likely at an address.

    >>> [kind_of(one) for one in ("https://a.example.org", "https://github.com/a/b", "sqlite:///x.db", "new.ndjson")]
    ['discourse', 'github', 'database', 'feed']
    """
    parts = urlsplit(address)
    if parts.scheme in ("sqlite", "postgresql", "postgres", "mysql", "mariadb"):
        return "database"
    if parts.hostname in ("github.com", "www.github.com"):
        return "github"
    if (
        parts.scheme not in ("http", "https")
        or parts.path.endswith((".ndjson", ".jsonl"))
        or address.endswith("since=")
    ):
        return "feed"
    return "discourse"


def open_source(settings: FollowSettings, pace: Pace) -> Source:
    """Return what is followed.

    Raises:
        SettingError: its key is not in the environment.
        SourceError: there is no such file, database, query or repository.
    """
    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    if settings.key_variable and not key:
        raise SettingError(f"the environment has no {settings.key_variable}", "set it to the key or the password")
    if settings.kind == "discourse":
        return Discourse(settings.address, pace, key, settings.username, settings.private)
    if settings.kind == "github":
        return GitHub(settings.address, pace, key, settings.api, has_discussions=settings.discussions)
    if settings.kind == "database":
        return Database(settings.address, pace, named_query(settings.query), key)
    if not _WEB.match(settings.address) and not Path(settings.address).is_file():
        raise SourceError(f"there is no file {settings.address}", "expected a feed's file, or an address with https://")
    return Feed(settings.address, pace, key)


def stored_address(address: str, kind: Kind) -> str:
    """Return an address as it is kept: a file's is whole."""
    if kind == "feed" and not _WEB.match(address):
        return str(Path(address).resolve())
    return address.rstrip("/") if kind in ("discourse", "github") else address
