"""What a model is besides its numbers: its encoder, how it reads texts, how it keeps its numbers.

Enters: choices of a recipe, or ``config.json``. Leaves: a checked ``ModelSettings``. May import: config, precision,
text's languages, errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final, Literal, get_args

from askalike.errors import SettingError
from askalike.models.encoders.config import EncoderConfig
from askalike.models.encoders.precision import PRECISIONS, Precision
from askalike.text.settings import LANGUAGES

__all__ = ["ModelSettings", "Reads", "Unknown"]

Reads = Literal["title and body", "title", "joined"]
Unknown = Literal["vector", "zero"]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A model, but for its words and numbers.

    Args:
        encoder: the network.
        reads: what of a question is encoded: its title and its body, each on its own; its title alone; or both joined
            to one text.
        word_limit: words of a title or body that are read, or of both where they are joined, the first ones, ≥ 1.
        unknown: what stands for a word outside the vocabulary: one learned ``vector``, or the ``zero`` vector.
        embedding_precision: how word vectors are kept.
        encoder_precision: how the encoder's parameters are kept.
        stems: the Snowball language to whose stems words are brought, or "" for words as they are written.

    Raises:
        SettingError: a value that is not listed or out of range.
    """

    encoder: EncoderConfig
    reads: Reads = "title and body"
    word_limit: int = 100
    unknown: Unknown = "vector"
    embedding_precision: Precision = "float32"
    encoder_precision: Precision = "float32"
    stems: str = ""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value: object = getattr(self, name)
            if value not in choices:
                raise SettingError(f"model setting {name} is {value!r}, but expected one of: {', '.join(choices)}")
        limit: object = self.word_limit
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise SettingError(
                f"model setting word_limit is {limit!r}, but expected a whole number ≥ 1", "100 is usual"
            )
        if self.stems not in ("", *LANGUAGES):
            raise SettingError(
                f"model setting stems is {self.stems!r}, but expected one of: {', '.join(LANGUAGES)}",
                'choose a listed language, or "" for words as they are written',
            )

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return asdict(self) | {"encoder": self.encoder.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> ModelSettings:
        """Return the settings that ``to_json`` stored, all of them but ``stems``, which models of format 1 lack.

        Raises:
            SettingError: a name too many or too few, or a value that cannot be used.
        """
        known = {field.name for field in fields(cls)}
        encoder = stored.get("encoder")
        if not known - _SINCE_FORMAT_2 <= set(stored) <= known or not isinstance(encoder, dict):
            raise SettingError(
                f"model settings {', '.join(sorted(stored)) or 'none'}, but expected {', '.join(sorted(known))}",
                "use the config.json that was saved with the model",
            )
        return cls(**{**stored, "encoder": EncoderConfig.from_json(encoder)})  # type: ignore[arg-type]  # checked


_SINCE_FORMAT_2: Final = {"stems"}  # reading the folder adds it; looking at config.json alone does not
_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "reads": get_args(Reads),
    "unknown": get_args(Unknown),
    "embedding_precision": PRECISIONS,
    "encoder_precision": PRECISIONS,
}
