"""A stretch of a post: prose or code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a post, in the order of the post; ``text`` is not empty and free of markup and control characters.

    Prose keeps the line ends of its source and has one at each block element; code keeps its lines as they are.
    """

    kind: Literal["prose", "code"]
    text: str
