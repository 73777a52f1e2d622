"""A text encoder is taken for a forum: one that is named, or an object of the program."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from askalike.errors import EncoderError
from askalike.forum.indexes import Indexes
from askalike.index.encoder_settings import REMOTE, EncoderSettings, read_settings
from askalike.index.text_questions import is_same, taken
from askalike.models.text_encoder import TextEncoder
from askalike.store import ForumLayout

AnyEncoder = TextEncoder | EncoderSettings | str
"""An encoder, or what names one."""


def take_encoder(layout: ForumLayout, indexes: Indexes, encoder: AnyEncoder) -> None:
    """Let a forum be encoded with a text encoder.

    Raises:
        SettingError: none is named so.
        EncoderError: it cannot be had, or gives no vectors.
    """
    given: TextEncoder | None = None
    if isinstance(encoder, str):
        wanted = EncoderSettings.parse(encoder)
    elif isinstance(encoder, EncoderSettings):
        wanted = encoder
    else:
        given, wanted = encoder, EncoderSettings("python", name=encoder.name)
    before = None
    with suppress(EncoderError):  # what is damaged is replaced
        before = read_settings(layout.encoder)
    found, settings = taken(wanted, given)
    if before is not None and _is_same_endpoint(before, settings):
        settings = replace(settings, name=before.name, probe=before.probe)
    indexes.take(settings, found, is_named=settings != before)


def _is_same_endpoint(before: EncoderSettings, now: EncoderSettings) -> bool:
    """Return whether an endpoint gives the vectors that it gave before, wherever it is now."""
    is_alike = now.kind in REMOTE and before.has_same_vectors(now)
    return is_alike and is_same(np.array(now.probe, dtype=np.float32), before.probe)
