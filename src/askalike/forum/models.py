"""What makes a forum's vectors, and what puts its hits in order: named by the forum's user."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EncoderError, NotLearnedError
from askalike.forum.encoders import AnyEncoder, AnyReranker, take_encoder
from askalike.forum.indexes import Indexes
from askalike.index.model_source import forget_encoder, remove_own_model
from askalike.index.vector_set import VectorSet
from askalike.models.adapted import load_model
from askalike.models.encoder_settings import general_settings
from askalike.search import RANKERS
from askalike.search.rankers import MEANING, RERANKER
from askalike.store import ForumLayout, Store


class Models:
    """The encoder and the reranker of a forum."""

    def __init__(self, layout: ForumLayout, store: Store, indexes: Indexes) -> None:
        self._layout, self._store, self._indexes = layout, store, indexes

    def use_model(self, folder: str | Path) -> None:
        """Take a copy of a model as the forum's own; the one before answers until ``encode`` is done.

        Raises:
            ModelError: it cannot be read or written.
        """
        load_model(folder).save(self._layout.model)
        forget_encoder(self._layout)

    def use_encoder(self, encoder: AnyEncoder) -> None:
        """Let a text encoder make the forum's vectors; what answered before does until ``encode`` is done.

        Args:
            encoder: "general" for the package's, which takes the forum's own model away; or another as ``askalike
                encode --model`` names it, such as "sentence-transformers:PATH" or "openai:URL#NAME";
                ``EncoderSettings`` where prompts or sizes are to be given too; or an object with ``name``,
                ``dimensions``, ``encode_query`` and ``encode_document``, which has to be given again when the forum is
                opened.

        Raises:
            SettingError: there is no such encoder.
            EncoderError: it cannot be had, or gives no vectors.
        """
        if encoder == "general":
            general_settings()  # raises where there is none
            remove_own_model(self._layout)
            return
        settings, text_encoder, is_named = take_encoder(encoder, self._layout)
        if self._indexes.vectors is not None:
            self._indexes.vectors.use_encoder(settings, text_encoder, is_named=is_named)

    def use_reranker(self, reranker: AnyReranker | None) -> None:
        """Let a reranker put the 20 best hits of searches that name no ranker in its order, from now on.

        Where it cannot be asked, the order before answers, and hits and ``SearchResult`` say why.

        Args:
            reranker: "cross-encoder:PATH", a folder of BERT's family with one label; "cohere:URL#NAME",
                an endpoint (Jina's too); ``RerankerSettings`` where a key's variable is to be given too; an object with
                ``score(query, questions)`` (``search.Reranker``), which has to be given again when the forum is opened;
                None for none.

        Raises:
            SettingError: there is no such reranker.
            EncoderError: it cannot be had, or gives no scores.
        """
        self._indexes.reranker.use(reranker)

    @property
    def encoder(self) -> str:
        """Return the name of what makes the vectors that answer, with its revision.

        Raises:
            NotLearnedError: the forum has no vectors.
        """
        answering = self._answering()
        return answering.name if "@" in answering.name else f"{answering.name}@{answering.fingerprint}"

    def vectors(self, ids: Iterable[str] | None = None) -> tuple[list[str], NDArray[np.float32]]:
        """Return the vectors of the forum's questions as they are stored, at length 1.

        Args:
            ids: of these questions; None for all.

        Returns:
            the ids of those that have a vector, in the order given or of their coming; (N, D) float32 in that order.

        Raises:
            NotLearnedError: the forum has no vectors.
        """
        names = [question.id for _, question in self._store.all_questions()] if ids is None else list(ids)
        numbers = self._store.nums_by_id(names)
        wanted = [numbers[name] for name in dict.fromkeys(names) if name in numbers]
        encoded, vectors = self._answering().index.vectors(wanted)
        name_of = {number: name for name, number in numbers.items()}
        return [name_of[number] for number in encoded.tolist()], vectors

    def rankers(self) -> dict[str, bool]:
        """Return each ranker's name, and whether this forum can be searched by it now."""
        has_vectors = bool(self._indexes.state().model)
        has_reranker = False
        with suppress(EncoderError):
            has_reranker = self._indexes.reranker.get() is not None
        return {**{name: has_vectors or name != MEANING for name in RANKERS}, RERANKER: has_reranker}

    def _answering(self) -> VectorSet:
        """Return the set of vectors that answers, or raise NotLearnedError."""
        answering = self._indexes.answering()
        if answering is None:
            raise NotLearnedError(
                f"the forum at {self._layout.folder} has no vectors", 'make them with "askalike encode FORUM"'
            )
        return answering
