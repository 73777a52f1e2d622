"""Markup to text to index terms: each step is one file, and only ``Analyzer`` knows all of them."""

from askalike.text.analyzer import Analyzer, Prepared
from askalike.text.markup import Segment, excerpt, plain_text, segments
from askalike.text.settings import TextSettings
from askalike.text.tokens import words

__all__ = ["Analyzer", "Prepared", "Segment", "TextSettings", "excerpt", "plain_text", "segments", "words"]
