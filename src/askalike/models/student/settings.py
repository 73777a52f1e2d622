"""What a student is besides its numbers: the sizes of its tables, and whose student it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final

from askalike.errors import SettingError
from askalike.models.encoders.settings import PRECISIONS, Precision

_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "row_size": (1, 1 << 12),
    "dimensions": (1, 1 << 14),
    "words": (1, 1 << 21),
    "pairs": (0, 1 << 21),
    "buckets": (0, 1 << 21),
    "word_limit": (1, 1 << 12),
}
"""Setting → its least and greatest value."""

LONGEST_CARD: Final = 8000
"""Characters of a model card."""


@dataclass(frozen=True, slots=True)
class StudentSettings:
    """A student, but for the values of its tables.

    Args:
        row_size: d, numbers of a row.
        dimensions: D, those of the teacher's vectors.
        words: V, words with a row of their own.
        pairs: P, pairs of neighbouring words with a row of their own; 0 for none.
        buckets: G, rows that the character n-grams of unknown words share; 0 for none: unknown words are not read.
        word_limit: words of a text that are read, the first ones.
        precision: of the tables.
        teacher: the name of the encoder that was learned from.
        card: the model card, Markdown.

    Raises:
        SettingError: a value that cannot be used.

    >>> StudentSettings(256, 384, 60_000).shapes()
    {'words': (60000, 256), 'output': (384, 256), 'bias': (384,)}
    """

    row_size: int
    dimensions: int
    words: int
    pairs: int = 0
    buckets: int = 0
    word_limit: int = 160
    precision: Precision = "int8"
    teacher: str = ""
    card: str = ""

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise SettingError(
                    f"student {name} is {value!r}, but expected a whole number from {least} to {most}", f"set {name}"
                )
        if self.precision not in PRECISIONS:
            raise SettingError(f"student precision {self.precision!r}, but expected one of: {', '.join(PRECISIONS)}")
        for name in ("teacher", "card"):
            text: object = getattr(self, name)
            if not isinstance(text, str) or len(text) > LONGEST_CARD:
                raise SettingError(f"student {name} is not a text of at most {LONGEST_CARD} characters", f"set {name}")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every array but the ids of the pairs; an empty table is left out."""
        found = {"words": (self.words, self.row_size), "pairs": (self.pairs, self.row_size)}
        found |= {"buckets": (self.buckets, self.row_size)}
        tables: dict[str, tuple[int, ...]] = {name: shape for name, shape in found.items() if shape[0]}
        return tables | {"output": (self.dimensions, self.row_size), "bias": (self.dimensions,)}

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return {"kind": "student", **asdict(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> StudentSettings:
        """Return the settings that ``to_json`` stored.

        Raises:
            SettingError: a name too many or too few, or a value that cannot be used.
        """
        known = {"kind", *(field.name for field in fields(cls))}
        if set(stored) != known or stored["kind"] != "student":
            raise SettingError(
                f"settings {', '.join(sorted(stored))[:200] or 'none'}, but a student has {', '.join(sorted(known))}",
                "use the config.json that was saved with the model",
            )
        return cls(**{name: value for name, value in stored.items() if name != "kind"})  # type: ignore[arg-type]
