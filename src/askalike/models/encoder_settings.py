"""What a forum is encoded with: an encoder that was named, its own model, or the package's; what users agreed to.

A forum's folder may come from anybody, and its ``encoder.json`` names folders and addresses. The rule of trust:
askalike reads such a folder, calls such an address or sends the value of such an environment variable only where this
user has named just that encoder: in this call (``Forum.open(…, encoder=…)``), in an earlier ``askalike encode --model``
or ``askalike index --encoder`` (kept in ``encoders.json`` in the user's own settings), or in ``ASKALIKE_ENCODERS``.
Models that the package brings need no agreement: they lie at no place that a forum names.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Meta

from askalike import agreement
from askalike.data import general_folder
from askalike.errors import EncoderError, SettingError
from askalike.models.general import READ_CHARACTERS, read_manifest
from askalike.settings import check_fields
from askalike.settings import read_settings as read_fields

Kind = Literal["general", "sentence-transformers", "fastembed", "openai", "python"]
RerankerKind = Literal["cross-encoder", "cohere"]
Precision = Literal["float32", "int8"]

FILE: Final = "encoder.json"
ENCODING_VERSION: Final = 3
"""Raised whenever the same question and encoder give another vector than before, so that vectors are made anew."""

PROBED: Final[tuple[Kind, ...]] = ("openai", "fastembed")
"""Those that are known again by their vector of a fixed text, since nothing of them can be hashed."""
SHAPES: Final = "general, sentence-transformers:PATH, fastembed:NAME or openai:URL#NAME"
RERANKER_SHAPES: Final = "cross-encoder:PATH or cohere:URL#NAME"
AGREED_VARIABLE: Final = "ASKALIKE_ENCODERS"

MAX_CHARACTERS: Final = 8_000
"""Only so much of a question is given to an encoder: more than most of them read."""

_MAX_BYTES: Final = 1 << 20

Text = Annotated[str, Meta(max_length=4_096)]
Count = Annotated[int, Meta(ge=0, le=65_536)]
Kept = Annotated[int, Meta(ge=1, le=65_536)]
Characters = Annotated[int, Meta(ge=1, le=16_777_216)]


class _NamedModel:
    """What an encoder and a reranker have in common: how their user names them, and how they are stored."""

    __slots__ = ()

    kind: str
    target: str
    model: str
    key_variable: str

    @property
    def written(self) -> str:
        """Return it as a user names it."""
        return _written(self)

    @property
    def agreement(self) -> str:
        """Return what a user agrees to: the model as it is named, and the variable whose value is sent to it."""
        return f"{self.written} {self.key_variable}".strip()

    @property
    def key_option(self) -> str:
        """Return the option of a command that names the variable again."""
        return f" --key-variable {self.key_variable}" if self.key_variable else ""

    def to_bytes(self) -> bytes:
        """Return the content of the file that keeps it."""
        return json.dumps(asdict(self), indent=1).encode()  # type: ignore[call-overload]


def _written(named: _NamedModel) -> str:
    return f"{named.kind}:{named.target}" + (f"#{named.model}" if named.model else "")


@dataclass(frozen=True, slots=True)
class EncoderSettings(_NamedModel):
    """An encoder, and how it is asked.

    Args:
        target: its folder, address or name; "" for one that the package brings or a program gives.
        model: what an endpoint calls it.
        name: what it called itself when it was taken, ``kind:model@revision``.
        dimensions: of the vectors that are kept.
        width: of the vectors that the encoder gives.
        key_variable: the NAME of the environment variable with the endpoint's key, or "".
        query_prompt: written before queries; None leaves it to the model.
        document_prompt: the same before questions of the forum.
        truncate: keep the first so many numbers of a vector (Matryoshka), or None.
        max_characters: of a question that are read.
        probe: the vector of a fixed text when the encoder was taken, by which one of ``PROBED`` is known again.

    Raises:
        SettingError: a value is out of range.
    """

    kind: Kind
    target: Text = ""
    model: Text = ""
    name: Text = ""
    dimensions: Count = 0
    width: Count = 0
    key_variable: Text = ""
    query_prompt: Text | None = None
    document_prompt: Text | None = None
    truncate: Kept | None = None
    precision: Precision = "float32"
    max_characters: Characters = MAX_CHARACTERS
    probe: tuple[float, ...] = ()
    format: Literal[1] = 1

    def __post_init__(self) -> None:
        check_fields(self, "the encoder's ")
        if self.kind == "openai":
            _check_address(self.target)

    @classmethod
    def parse(cls, written: str) -> EncoderSettings:
        """Return the encoder that a user named.

        >>> EncoderSettings.parse("openai:http://localhost:8080/v1#bge-small").model
        'bge-small'

        Raises:
            SettingError: it names none.
        """
        kind, _, rest = written.partition(":")
        if written == "general":
            return general_settings()
        if is_transformer_folder(Path(written)):
            kind, rest = "sentence-transformers", written
        if kind == "openai" and rest:
            address, _, model = rest.partition("#")
            if not model:
                raise SettingError(f"{written!r} names no model", "expected openai:URL#NAME")
            return cls("openai", address.rstrip("/"), model)
        if kind == "fastembed" and rest:
            return cls("fastembed", rest)
        if kind == "sentence-transformers" and rest:
            return cls("sentence-transformers", str(Path(rest).expanduser().resolve()))
        raise SettingError(f"there is no encoder {written[:200]!r}", f"expected {SHAPES}")

    @property
    def written(self) -> str:
        """Return it as a user names it."""
        if self.kind in ("general", "python"):
            return self.name if self.kind == "python" else "general"
        return _written(self)

    @property
    def fingerprint(self) -> str:
        """Return a short name of everything that decides a vector; where the encoder lies does not."""
        parts = [
            *(self.name, self.width, self.dimensions, self.query_prompt, self.document_prompt),
            *(self.truncate, self.max_characters),
        ]
        described = json.dumps([ENCODING_VERSION, *parts])
        return hashlib.blake2b(described.encode(), digest_size=8).hexdigest()

    @property
    def shown(self) -> str:
        """Return name and size as in "general@31f1829f4fa1 (384 dimensions)"."""
        return f"{self.name} ({self.dimensions} dimensions)"

    def has_same_vectors(self, other: EncoderSettings) -> bool:
        """Return whether another asks the same model in the same way, wherever either of them lies."""
        apart = ("target", "key_variable", "probe", "name")
        names = [field.name for field in fields(self) if field.name not in apart]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    @classmethod
    def from_bytes(cls, content: bytes) -> EncoderSettings:
        """Return what ``encoder.json`` says.

        Raises:
            ValueError, SettingError: nothing that can be used.
        """
        return _parsed(cls, content)


@dataclass(frozen=True, slots=True)
class RerankerSettings(_NamedModel):
    """What puts the best hits of a forum in its order, as ``reranker.json`` keeps it.

    Args:
        target, model, key_variable: as those of ``EncoderSettings``.

    Raises:
        SettingError: a value is out of range.
    """

    kind: RerankerKind
    target: Text
    model: Text = ""
    key_variable: Text = ""
    format: Literal[1] = 1

    def __post_init__(self) -> None:
        check_fields(self, "the reranker's ")
        if self.kind != "cross-encoder":
            _check_address(self.target)

    @classmethod
    def parse(cls, written: str, key_variable: str = "") -> RerankerSettings:
        """Return the reranker that a user named.

        >>> RerankerSettings.parse("cohere:https://api.jina.ai/v1#jina-reranker-v2").model
        'jina-reranker-v2'

        Raises:
            SettingError: it names none.
        """
        kind, _, rest = written.partition(":")
        if kind == "cross-encoder" and rest:
            return cls("cross-encoder", str(Path(rest).expanduser().resolve()))
        address, _, model = rest.partition("#")
        if kind != "cohere" or not model:
            raise SettingError(f"there is no reranker {written[:200]!r}", f"expected {RERANKER_SHAPES}")
        return cls("cohere", address.rstrip("/"), model, key_variable)


def is_transformer_folder(path: Path) -> bool:
    """Return whether a folder looks like a sentence transformer's, not like a model that askalike trained."""
    names = ("modules.json", "config.json")
    return not (path / "manifest.json").exists() and any((path / name).is_file() for name in names)


_Settings = TypeVar("_Settings", EncoderSettings, RerankerSettings)


def read_settings(path: Path) -> EncoderSettings | None:
    """Return the encoder that a file names, None where there is no file.

    Raises:
        EncoderError: it cannot be read.
    """
    return _read(EncoderSettings, path, 'give the encoder again with "askalike encode FORUM --model MODEL"')


def read_reranker(path: Path) -> RerankerSettings | None:
    """Return the reranker that a file names, None where there is no file.

    Raises:
        EncoderError: it cannot be read.
    """
    return _read(RerankerSettings, path, 'give the reranker again with "askalike encode FORUM --reranker RERANKER"')


def _read(kind: type[_Settings], path: Path, mend: str) -> _Settings | None:
    try:
        with path.open("rb") as file:
            return _parsed(kind, file.read(_MAX_BYTES + 1))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EncoderError(f"{path} cannot be read: {error.strerror or error}", mend) from error
    except (ValueError, RecursionError, SettingError) as error:
        raise EncoderError(f"{path} cannot be read: {error}", mend) from error


def _parsed(kind: type[_Settings], content: bytes) -> _Settings:
    """Return the settings in a file's content, or raise ValueError or SettingError."""
    if len(content) > _MAX_BYTES:
        raise ValueError(f"it has {len(content)} bytes, expected at most {_MAX_BYTES}")
    settings = read_fields(kind, json.loads(content), "its content")
    if isinstance(settings, EncoderSettings) and not settings.dimensions:
        raise ValueError("its vectors have no dimensions")
    return settings


# -- what the user has agreed to -----------------------------------------------------------------------------------


def needs_agreement(settings: EncoderSettings | RerankerSettings) -> bool:
    """Return whether the encoder or reranker lies at a place that the settings name."""
    return isinstance(settings, RerankerSettings) or settings.kind in ("sentence-transformers", "openai")


def is_agreed(settings: EncoderSettings | RerankerSettings) -> bool:
    """Return whether this user named just this encoder or reranker before; see the rule above."""
    return agreement.is_agreed(settings.agreement, AGREED_VARIABLE)


def agree(settings: EncoderSettings | RerankerSettings) -> None:
    """Keep in the user's own settings that this encoder or reranker may be used, whichever forum names it.

    Raises:
        OSError: it cannot be written.
    """
    if needs_agreement(settings) and not is_agreed(settings):
        agreement.agree(settings.agreement)


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or any(sign.isspace() for sign in address):
        raise SettingError(f"the encoder's address is {address[:200]!r}", "expected one such as https://host:port/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise SettingError(
            "the encoder's address has a user, password, query or fragment, and would be stored with the forum",
            "put the key into an environment variable and name that with --key-variable",
        )


def bundled_settings() -> EncoderSettings | None:
    """Return the package's encoder, None where the package contains none.

    Raises:
        DamagedModelError: its manifest cannot be read.
    """
    folder = general_folder()
    if folder is None:
        return None
    manifest = read_manifest(folder)
    return EncoderSettings(
        "general",
        name=manifest.name,
        dimensions=manifest.dimensions,
        width=manifest.dimensions,
        precision="int8",
        max_characters=READ_CHARACTERS,
    )


def general_settings() -> EncoderSettings:
    """Return the package's encoder.

    Raises:
        SettingError: the package contains none.
        DamagedModelError: its manifest cannot be read.
    """
    settings = bundled_settings()
    if settings is None:
        raise SettingError("the package contains no encoder", f"name another: {SHAPES}")
    return settings
