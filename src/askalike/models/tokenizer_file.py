"""What a ``tokenizer.json`` from elsewhere may ask for, so that no text takes long to read or grows without end.

The file is a small program: it replaces by regular expressions, which may take exponential time, and by texts of any
length, again and again. Only what the supported families use is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from askalike.errors import DamagedModelError, ModelError

_NORMALIZERS: Final = frozenset(
    ["BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend", "Replace", "Strip"]
) | {"StripAccents"}
_PRE_TOKENIZERS: Final = frozenset(
    ["BertPreTokenizer", "ByteLevel", "Digits", "Metaspace", "Punctuation", "Split", "Whitespace", "WhitespaceSplit"]
)
_MODELS: Final = frozenset(["BPE", "Unigram", "WordLevel", "WordPiece"])
_MAX_STEPS: Final = 16
_MAX_PATTERN: Final = 100
_MAX_WORD: Final = 1_000
"""The time that WordPiece takes grows with the square of a word."""
_MAX_POST_PROCESSOR: Final = 10_000
"""Characters of JSON: it names the special pieces that are put around each text."""
_AGAIN: Final = "take another model, or serve it and name its address"


def check_tokenizer(text: str, path: Path) -> None:
    """Check what a tokenizer asks for.

    Args:
        path: for messages.

    Raises:
        DamagedModelError: it is no JSON object.
        ModelError: it asks for what takes exponential time or space, or is not known.
    """
    try:
        fields = json.loads(text)
        steps = [
            *((step, _NORMALIZERS) for step in _steps(fields["normalizer"], "normalizers")),
            *((step, _PRE_TOKENIZERS) for step in _steps(fields["pre_tokenizer"], "pretokenizers")),
        ]
        kinds = [step["type"] for step, _ in steps]
        model = fields["model"]
        is_long = len(json.dumps(fields.get("post_processor"))) > _MAX_POST_PROCESSOR
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedModelError(f"{path} is no tokenizer: {error!r:.200}", _AGAIN) from error
    unknown = [kind for (_, known), kind in zip(steps, kinds, strict=True) if kind not in known]
    faults = (
        (len(steps) > _MAX_STEPS or kinds.count("Precompiled") > 1, f"changes texts in {len(steps)} steps"),
        (bool(unknown), f"changes texts by {unknown[:1]!r:.60}"),
        (any(map(_grows, (step for step, _ in steps))), "makes texts longer"),
        (any(map(_is_slow, (step for step, _ in steps))), "has a regular expression that may take long"),
        (model.get("type") not in _MODELS, f"is of the kind {model.get('type')!r:.60}"),
        (_word_limit(model) > _MAX_WORD, f"reads words of more than {_MAX_WORD} characters"),
        (bool(model.get("dropout")), "reads a text in another way each time"),
        (is_long, "puts more around a text than special pieces"),
    )
    for is_fault, what in faults:
        if is_fault:
            raise ModelError(f"the tokenizer in {path} {what}", _AGAIN)


def _steps(step: Mapping[str, Any] | None, several: str) -> Iterator[Mapping[str, Any]]:
    """Yield what a text passes, one after the other."""
    if step is None:
        return
    if step["type"] == "Sequence":
        for inner in step[several]:
            yield from _steps(inner, several)
    else:
        yield step


def _grows(step: Mapping[str, Any]) -> bool:
    """Return whether a replacement is longer than what it replaces, or a text is put before each."""
    if step["type"] == "Prepend":
        return len(str(step.get("prepend"))) > 1
    if step["type"] != "Replace":
        return False
    pattern = step.get("pattern")
    length = len(str(pattern.get("String", ""))) if isinstance(pattern, dict) else 0
    return len(str(step.get("content"))) > max(1, length)


def _is_slow(step: Mapping[str, Any]) -> bool:
    """Return whether a regular expression may try more than one way to match: groups, or several repetitions."""
    pattern = step.get("pattern")
    expression = str(pattern["Regex"]) if isinstance(pattern, dict) and "Regex" in pattern else ""
    repetitions = sum(map(expression.count, "*+{"))
    return len(expression) > _MAX_PATTERN or repetitions > 1 or any(mark in expression for mark in "(|")


def _word_limit(model: Mapping[str, Any]) -> int:
    limit = model.get("max_input_chars_per_word", 0)
    return limit if isinstance(limit, int) else _MAX_WORD + 1
