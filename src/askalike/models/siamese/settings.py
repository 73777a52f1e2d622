"""What a siamese model is besides its numbers: its network, how words are made of text, what of a question is read.

Enters: choices, or ``config.json``. Leaves: a checked ``SiameseSettings``. May import: config, text's settings, errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal, get_args

from askalike.errors import SettingError
from askalike.models.siamese.config import SiameseConfig
from askalike.text.settings import TextSettings

__all__ = ["READS", "SiameseReads", "SiameseSettings", "check_reads"]

SiameseReads = Literal["joined", "title"]
READS: Final[tuple[SiameseReads, ...]] = get_args(SiameseReads)


@dataclass(frozen=True, slots=True)
class SiameseSettings:
    """A siamese model, but for its trigrams and numbers.

    Args:
        network: the sizes.
        text: language, stop words, stems, code.
        reads: title and body of a question as one text (``joined``), or its ``title`` alone.

    Raises:
        SettingError: a value that is not listed.
    """

    network: SiameseConfig
    text: TextSettings = field(default_factory=TextSettings)
    reads: SiameseReads = "joined"

    def __post_init__(self) -> None:
        check_reads(self.reads)

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return {"network": self.network.to_json(), "text": self.text.to_json(), "reads": self.reads}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> SiameseSettings:
        """Return the settings that ``to_json`` stored.

        Raises:
            SettingError: a name too many or too few, or a value that cannot be used.
        """
        known = {entry.name for entry in fields(cls)}
        network, text = stored.get("network"), stored.get("text")
        if set(stored) != known or not isinstance(network, dict) or not isinstance(text, dict):
            raise SettingError(
                f"settings {', '.join(sorted(stored)) or 'none'}, but a siamese model has {', '.join(sorted(known))}",
                "use the config.json that was saved with the model",
            )
        read: object = stored["reads"]
        return cls(SiameseConfig.from_json(network), TextSettings.from_json(text), read)  # type: ignore[arg-type]


def check_reads(value: object) -> None:
    """Refuse what is not in ``READS``.

    Raises:
        SettingError: names the value and the choices.
    """
    if not isinstance(value, str) or value not in READS:
        raise SettingError(f"siamese reads is {value!r}, but expected one of: {', '.join(READS)}", "set reads")
