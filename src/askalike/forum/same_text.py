"""Which questions say the same: hashes of what is left of a text without markup, case and white space."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from askalike.executors import Numbered, Task
from askalike.forum.groups import template
from askalike.text.markup import readable
from askalike.types import Question

Hashes = tuple[bytes | None, bytes | None]
HashesByNumber = dict[int, Hashes]

HASHED: Final = "title and body, no markup, case folded, 2"
"""How a text's hash is made; another way makes every hash anew."""


def hashes_of(question: Question) -> Hashes:
    """Return what the questions that say the same have in common, and those whose titles do but for dates and numbers.

    None for one without words.

    >>> first, other = Question("a", "Hello  World"), Question("b", "hello", "<p>world</p>", markup="html")
    >>> hashes_of(first)[0] == hashes_of(other)[0]
    True
    """
    text = f"{question.title} {readable(question.body, question.markup, with_code=True)}"
    shown = (" ".join(part.casefold().split()) for part in (text, template(question.title)))
    of_text, of_title = (hashlib.blake2b(one.encode(), digest_size=16).digest() if one else None for one in shown)
    return of_text, of_title


def hashes_by_number(questions: Numbered) -> HashesByNumber:
    """Return the hashes of each question."""
    return {num: hashes_of(question) for num, question in questions}


def preparing(_order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed hashes, as ``executors.Task`` asks for it."""
    return lambda questions: msgspec.msgpack.encode(hashes_by_number(questions))


HASHING: Final = Task(hashes_by_number, __name__, "", msgspec.msgpack.Decoder(HashesByNumber).decode, worth_it=50_000)
"""One process reads 10,000 texts in the second in which others start."""
