"""What a model's folder says about itself: format, origin, scores, and the hashes of its files.

The moment of making is not among it, so that the same training gives the same bytes.

Enters: bytes. Leaves: a checked ``Manifest``. May import: layout, errors.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Final

from askalike._version import __version__
from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.layout import MAX_BYTES

__all__ = ["AGAIN", "FORMAT", "Manifest", "digest", "json_bytes", "json_object"]

AGAIN: Final = "take the model from where it came, or train it again"
"""What to do where a file of a model is damaged."""

FORMAT: Final = 2
"""The format that this version writes."""

_HASHED = sorted(set(MAX_BYTES) - {"manifest.json"})
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A model's manifest.

    Args:
        format: number of the folder's format.
        version: of askalike, which wrote it.
        training_data: SHA-256 of what it was trained on, or "" when unknown.
        dev_scores: measure → its value on the development set, finite.
        files: name of each other file → its SHA-256.
    """

    format: int
    version: str
    training_data: str
    dev_scores: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_origin(cls, training_data: str, dev_scores: Mapping[str, float] | None = None) -> Manifest:
        """Return the manifest of a model that is not in a folder yet.

        Raises:
            SettingError: an origin that cannot be.
        """
        scores = dict(dev_scores or {})
        if fault := _fault_of_origin(training_data, scores):
            raise SettingError(f"a model with {fault}")
        return cls(FORMAT, __version__, training_data, scores)

    def to_bytes(self) -> bytes:
        """Return the file."""
        return json_bytes(asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Return the manifest of a file. Its format may be any: only the caller knows which can be read.

        Raises:
            DamagedModelError: not what ``to_bytes`` writes.
        """
        found = json_object(data, "manifest.json")
        known = {entry.name for entry in fields(cls)}
        fault = f"entries {sorted(found)}, but expected {sorted(known)}" if set(found) != known else _fault(found)
        if fault:
            raise DamagedModelError(f"manifest.json has {fault}", AGAIN)
        return cls(**found)  # type: ignore[arg-type]  # checked just now


def digest(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def json_bytes(value: Mapping[str, object]) -> bytes:
    """Return ``value`` as JSON: sorted, so that equal values are equal bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def json_object(data: bytes, name: str) -> dict[str, object]:
    """Return the JSON object in ``data``.

    Raises:
        DamagedModelError: it is not one.
    """
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise DamagedModelError(f"{name} is not JSON: {reason}", AGAIN) from error
    if not isinstance(found, dict):
        raise DamagedModelError(f"{name} holds no JSON object", AGAIN)
    return found


def _fault(found: Mapping[str, object]) -> str:
    """Return what is wrong with the entries, or nothing."""
    number, origin, scores, files = (found[name] for name in ("format", "training_data", "dev_scores", "files"))
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return f"format {number!r}, but expected a whole number ≥ 1"
    if not isinstance(found["version"], str):
        return f"version {found['version']!r}, but expected a text"
    if fault := _fault_of_origin(origin, scores):
        return fault
    if not (isinstance(files, dict) and all(isinstance(value, str) for value in files.values())):
        return f"files {files!r}, but expected a SHA-256 by name"
    if sorted(files) != _HASHED or not all(_DIGEST.fullmatch(value) for value in files.values()):
        return f"hashes for {sorted(files)}, but expected a SHA-256 for each of {_HASHED}"
    return ""


def _fault_of_origin(origin: object, scores: object) -> str:
    if not (isinstance(origin, str) and (not origin or _DIGEST.fullmatch(origin))):
        return f"training_data {origin!r}, but expected a SHA-256 in hexadecimal or nothing"
    if not (isinstance(scores, dict) and all(_is_score(value) for value in scores.values())):
        return f"dev_scores {scores!r}, but expected finite numbers by name"
    return ""


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
