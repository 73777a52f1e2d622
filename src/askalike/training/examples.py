"""What an autoencoder made of a few texts, to be read by people.

Enters: examples as ids, a vocabulary. Leaves: ``examples.json``. May import: encode's vocabulary, durable, objectives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from askalike.durable import replace_whole
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.training.objectives.objective import Example

__all__ = ["write_examples"]

_FILE: Final = "examples.json"
_UNKNOWN_WORD: Final = "[unknown]"


def write_examples(examples: Sequence[Example], vocabulary: Vocabulary, folder: Path) -> None:
    """Write the words that were read and written, one text a line each; no file where there is no example."""
    if not examples:
        return

    def words(ids: Iterable[int]) -> str:
        return " ".join(_UNKNOWN_WORD if number == UNKNOWN else vocabulary.words[number - 1] for number in ids)

    found = [{"read": words(one.read), "written": words(one.written)} for one in examples]
    replace_whole(folder / _FILE, (json.dumps(found, ensure_ascii=False, indent=2) + "\n").encode())
