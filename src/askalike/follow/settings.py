"""What a forum follows, and how: kept in its folder, but for secrets, of which the variables' names are kept."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from askalike.errors import SettingError
from askalike.follow.discourse import Discourse
from askalike.follow.github import API, GitHub
from askalike.follow.site import Pace
from askalike.types import Source

Site = Discourse | GitHub
Kind = Literal["discourse", "github"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
RATE: Final = 60
"""Requests a minute, as many as Discourse allows a key where nothing else was set."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WEB: Final = re.compile(r"https?://[^\s/?#@]+(/\S*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """What is followed.

    Args:
        address: of the site or the repository.
        kind: of what is there.
        source: what the questions belong to in the forum; that of an archive of the same forum, to go on from it.
        key_variable: the environment variable that holds the key of the API, or "".
        username: whose key it is, for Discourse.
        secret_variable: the environment variable that holds the secret of the webhooks, or "".
        private: categories of Discourse that are followed though not everybody may read them.
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
    api: str = API
    discussions: bool = False
    rate: int = RATE

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"there is no kind {self.kind!r} of site", f"expected one of {', '.join(KINDS)}")
        for name in (self.key_variable, self.secret_variable):
            if name and not _NAME.fullmatch(name):
                raise SettingError(
                    f"{name[:3]}… is no name of an environment variable", "put the secret into one, and give its name"
                )
        if not _WEB.fullmatch(self.address):
            raise SettingError(
                f"{self.address!r} is no address of a Discourse or a GitHub repository",
                "expected one such as https://forum.example.org; a file is read by askalike index FILE --into FORUM",
            )

    @property
    def origin(self) -> Source:
        """Return what the questions belong to in the forum."""
        return Source(self.source or self.address, self.kind)

    @property
    def key(self) -> str:
        """Return the key of the API, "" where none is named.

        Raises:
            SettingError: the environment lacks it.
        """
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if self.key_variable and not key:
            raise SettingError(f"the environment has no {self.key_variable}", "set it to the key of the API")
        return key

    def to_json(self) -> dict[str, Any]:
        """Return the settings as they are kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> FollowSettings:
        """Return settings that were kept.

        Raises:
            SettingError: they are none, since the folder is damaged or somebody made it up.
        """
        try:
            return msgspec.convert(values, cls)
        except msgspec.ValidationError as error:
            raise SettingError(f"what the forum follows cannot be read: {error}", "say it anew with --from") from error


def kind_of(address: str, api: str | None = None) -> Kind:
    """Return what is at an address; what has an API of GitHub's is a repository.

    >>> [kind_of(address) for address in ("https://a.example.org", "https://github.com/a/b")]
    ['discourse', 'github']
    """
    is_github = api is not None or urlsplit(address).hostname in ("github.com", "www.github.com")
    return "github" if is_github else "discourse"


def open_site(settings: FollowSettings, pace: Pace) -> Site:
    """Return what is followed.

    Raises:
        SettingError: its key is not in the environment.
        SourceError: the address names no repository, or there is no key for discussions.
    """
    key = settings.key
    if settings.kind == "discourse":
        return Discourse(settings.address, pace, key, settings.username, settings.private)
    return GitHub(settings.address, pace, key, settings.api, has_discussions=settings.discussions)
