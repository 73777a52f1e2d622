"""What encodes a forum's texts and what orders its best hits: named by its user, or given as an object."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace

import numpy as np

from askalike.errors import EncoderError
from askalike.files import remove_file, replace_whole, sync_folder
from askalike.index.encoder_settings import PROBED, EncoderSettings, RerankerSettings, read_settings
from askalike.index.text_questions import is_same, loaded_reranker, taken
from askalike.models.text_encoder import TextEncoder
from askalike.search import Reranker
from askalike.search.reranker import checked_scores
from askalike.store import ForumLayout
from askalike.types import Question

AnyEncoder = TextEncoder | EncoderSettings | str
"""An encoder, or what names one."""

AnyReranker = Reranker | RerankerSettings | str
"""What scores questions beside a query, or what names one."""


class NamedReranker:
    """What puts the best hits of a forum in its order; any thread may ask."""

    def __init__(self, layout: ForumLayout) -> None:
        self._layout = layout
        self._guard = threading.Lock()
        self._given: Reranker | None = None
        self._read: tuple[RerankerSettings, Reranker] | None = None

    def take(self, reranker: AnyReranker | None) -> None:
        """Take a reranker, which is asked once; see ``Forum.use_reranker``."""
        if reranker is None:
            self._given = self._read = None
            remove_file(self._layout.reranker)
            sync_folder(self._layout.folder)
            return
        named = RerankerSettings.parse(reranker) if isinstance(reranker, str) else reranker
        scorer = loaded_reranker(named, is_named=True) if isinstance(named, RerankerSettings) else named
        texts = ("Wifi drops every evening", "Wireless goes down at night", "Printer is offline")
        query, *questions = (Question("", text) for text in texts)
        checked_scores(scorer, query, questions)
        with self._guard:
            if isinstance(named, RerankerSettings):
                replace_whole(self._layout.reranker, named.to_bytes())
                self._given, self._read = None, (named, scorer)
            else:
                self._given = scorer

    def get(self) -> Reranker | None:
        """Return the reranker that was given or that the forum names now, None where there is none.

        Raises:
            EncoderError: it cannot be had.
        """
        if self._given is not None:
            return self._given
        named = RerankerSettings.read(self._layout.reranker)
        if named is None:
            return None
        with self._guard:
            if self._read is None or self._read[0] != named:
                self._read = (named, loaded_reranker(named, is_named=False))
            return self._read[1]


def take_encoder(encoder: AnyEncoder, before_in: ForumLayout) -> tuple[EncoderSettings, TextEncoder, bool]:
    """Return an encoder for a forum, its settings, and whether they are others than the forum names.

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
        before = read_settings(before_in.encoder)
    found, settings = taken(wanted, given)
    if before is not None and _is_same_endpoint(before, settings):
        settings = replace(settings, name=before.name, probe=before.probe)
    return settings, found, settings != before


def _is_same_endpoint(before: EncoderSettings, now: EncoderSettings) -> bool:
    """Return whether an endpoint or a model of fastembed gives the vectors that it gave before, wherever it is now."""
    is_alike = now.kind in PROBED and before.has_same_vectors(now)
    return is_alike and is_same(np.array(now.probe, dtype=np.float32), before.probe)
