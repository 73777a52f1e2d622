"""A text encoder as what makes the vectors of a forum: found, checked, and asked for whole questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from askalike.data import general_folder
from askalike.errors import EncoderError, MissingExtraError, ModelError, SettingError
from askalike.models.encoder_settings import (
    AGREED_VARIABLE,
    PROBED,
    EncoderSettings,
    RerankerSettings,
    general_settings,
    is_agreed,
    needs_agreement,
)
from askalike.models.general import GeneralEncoder, general_encoder
from askalike.models.text_encoder import (
    Array,
    FastEmbedEncoder,
    TextEncoder,
    checked,
    document_vectors,
    query_vectors,
    text_of,
)
from askalike.models.transformer import CrossEncoder, Transformer
from askalike.models.transformer_folder import read_folder
from askalike.types import Question

if TYPE_CHECKING:
    from askalike.models.remote import RemoteReranker

PROBE: Final = "How do I find an earlier question that asks the same?"
LEAST_AGREEMENT: Final = 0.99
"""Cosine of the probe by which an endpoint is known again: batches and processors round differently."""

_ELSEWHERE = 'or encode with the bundled encoder: "askalike encode FORUM --model general"'


class QuestionEncoder(Protocol):
    """What makes the vectors of a forum: a text encoder, or a model of the forum's own."""

    @property
    def dimensions(self) -> int:
        """Return D."""

    def encode(self, questions: Sequence[Question]) -> Array:
        """Return the vectors of a forum's questions at length 1, zeros for an empty one.  # (N, D) float32"""

    def encode_queries(self, questions: Sequence[Question]) -> Array:
        """Return the vectors of what is searched for, as ``encode``.  # (N, D) float32"""


class TextQuestions:
    """Questions → vectors of length 1 through a text encoder; any thread may ask."""

    def __init__(self, encoder: TextEncoder, settings: EncoderSettings) -> None:
        self.encoder = encoder
        self.settings = settings
        self.dimensions = settings.dimensions
        self._is_known = settings.kind not in PROBED

    def encode(self, questions: Sequence[Question]) -> Array:
        """Return the vectors of the forum's questions; an empty one has zeros.  # (N, D) float32

        Raises:
            EncoderError: the encoder does not answer, or gave something else than vectors.
        """
        prompt = self.settings.document_prompt or ""
        return self._vectors_of(
            [text_of(question, self.settings.max_characters) for question in questions], prompt, document_vectors
        )

    def reads(self, text: str) -> bool:
        """Return whether the encoder knows a text's language; of one that does not tell, True."""
        return not isinstance(self.encoder, GeneralEncoder) or self.encoder.reads(text)

    def encode_queries(self, questions: Sequence[Question]) -> Array:
        """Return the vectors of what is searched for, in their order.  # (N, D) float32

        Raises:
            EncoderError: as ``encode``.
        """
        prompt = self.settings.query_prompt or ""
        texts = [text_of(question, self.settings.max_characters) for question in questions]
        return np.asarray(self._vectors_of(texts, prompt, query_vectors), dtype=np.float32)

    def _vectors_of(
        self, texts: list[str], prompt: str, encode: Callable[[TextEncoder, Sequence[str]], Array]
    ) -> Array:
        settings = self.settings
        present = [place for place, text in enumerate(texts) if text]
        vectors_of_texts = np.zeros((len(texts), settings.dimensions), dtype=np.float32)
        if not present:
            return vectors_of_texts
        if not self._is_known:
            self._recognise(encode)
        vectors = encode(self.encoder, [prompt + texts[place] for place in present])
        if settings.truncate is not None:
            vectors = vectors[:, : settings.truncate]
        vectors_of_texts[present] = checked(vectors, len(present), settings.dimensions, settings.name)
        return vectors_of_texts

    def _recognise(self, encode: Callable[[TextEncoder, Sequence[str]], Array]) -> None:
        """Ask an encoder once for what it was asked when it was taken.

        Raises:
            EncoderError: it gives another vector: its vectors and those that are stored do not belong together.
        """
        settings = self.settings
        vector = encode(self.encoder, [(settings.document_prompt or "") + PROBE])[0]
        if not is_same(vector, settings.probe):
            raise EncoderError(
                f"the encoder {settings.written} gives other vectors than those of the forum",
                f'encode anew with "askalike encode FORUM --model {settings.written}"',
            )
        self._is_known = True


def is_same(vector: Array, probe: Sequence[float]) -> bool:
    """Return whether two vectors of the probe are by one model."""
    return len(vector) == len(probe) and float(vector @ np.array(probe, dtype=np.float32)) >= LEAST_AGREEMENT


# -- finding an encoder --------------------------------------------------------------------------------------------


def probed_encoder(
    settings: EncoderSettings, encoder: TextEncoder | None = None
) -> tuple[TextEncoder, EncoderSettings]:
    """Return an encoder that the user names now, and its settings with its name, its sizes and the probe.

    Args:
        encoder: the encoder itself, where a program gives it.

    Raises:
        EncoderError, SettingError: it cannot be had, or gives no vectors.
    """
    encoder = encoder or _encoder_of(settings, is_fetched=True)
    vector = document_vectors(encoder, [(settings.document_prompt or "") + PROBE])[0]
    if settings.kind in PROBED and not vector.any():
        raise EncoderError(f"the encoder {encoder.name} gave a vector of zeros for a plain sentence", "use another one")
    width, name = len(vector), encoder.name
    if settings.kind in PROBED:  # what is served or cached under a name is known by its vectors alone
        name += "@" + hashlib.sha256(vector.tobytes()).hexdigest()[:12]
    dimensions = min(width, settings.truncate or width)
    probe = tuple(round(float(value), 6) for value in vector)
    return encoder, replace(settings, name=name, dimensions=dimensions, width=width, probe=probe)


def problem_of(settings: EncoderSettings) -> EncoderError | None:
    """Return what keeps a stored encoder from being used, as far as a look tells it: nothing is loaded or called."""
    if settings.kind == "python":
        return EncoderError(
            f"the vectors are by an encoder that a program gave, {settings.name}",
            f"open the forum with Forum.open(path, encoder=…), {_ELSEWHERE}",
        )
    if needs_agreement(settings) and not is_agreed(settings):
        return EncoderError(
            f"the forum names the encoder {settings.agreement}, which you have not agreed to use",
            f'agree with "askalike encode FORUM --model {settings.written}{settings.key_option}" or'
            f' {AGREED_VARIABLE}="{settings.agreement}", {_ELSEWHERE}',
        )
    if settings.kind == "general":
        return _problem_of_general(settings)
    if settings.kind == "sentence-transformers" and not Path(settings.target).is_dir():
        return EncoderError(f"there is no encoder at {settings.target}", f"put the model back there, {_ELSEWHERE}")
    return None


def _problem_of_general(settings: EncoderSettings) -> EncoderError | None:
    try:
        packaged = general_settings().name
    except (ModelError, SettingError) as error:
        return EncoderError(error.message, error.hint)
    if packaged == settings.name:
        return None
    return EncoderError(
        f"the vectors are by {settings.name}, and the installed package contains {packaged}",
        'encode anew with "askalike encode FORUM"',
    )


def loaded(settings: EncoderSettings) -> TextEncoder:
    """Return a stored encoder.

    Raises:
        EncoderError: it cannot be had, the user has not agreed to it, or it is another one than it was.
    """
    problem = problem_of(settings)
    if problem is not None:
        raise problem
    encoder = _encoder_of(settings)
    if settings.kind not in PROBED and encoder.name != settings.name:
        raise EncoderError(
            f"the encoder at {settings.target or settings.kind} is {encoder.name}, and the vectors are by"
            f" {settings.name}",
            f'encode anew with "askalike encode FORUM --model {settings.written}"',
        )
    return encoder


def loaded_reranker(settings: RerankerSettings, *, is_named: bool) -> CrossEncoder | RemoteReranker:
    """Return a reranker.

    Args:
        is_named: by this user in this call; a stored one needs their agreement.

    Raises:
        EncoderError: it cannot be had, or the user has not agreed to it.
    """
    if not is_named and not is_agreed(settings):
        raise EncoderError(
            f"the forum names the reranker {settings.agreement}, which you have not agreed to use",
            f'agree with "askalike encode FORUM --reranker {settings.written}{settings.key_option}" or'
            f' {AGREED_VARIABLE}="{settings.agreement}"',
        )
    if settings.kind != "cross-encoder":
        from askalike.models.remote import RemoteReranker, key_in  # here, so that the library loads no HTTP client

        key = key_in(settings.key_variable, settings.target)
        return RemoteReranker(settings.target, settings.model, key)
    try:
        return CrossEncoder(read_folder(Path(settings.target), is_of_pairs=True))
    except (ModelError, MissingExtraError) as error:
        raise EncoderError(error.message, error.hint) from error


def _missing(error: MissingExtraError) -> EncoderError:
    return EncoderError(error.message, f"{error.hint}, {_ELSEWHERE}")


def _encoder_of(settings: EncoderSettings, *, is_fetched: bool = False) -> TextEncoder:
    try:
        if settings.kind == "fastembed":
            return FastEmbedEncoder.load(settings.target, is_fetched=is_fetched)
        if settings.kind == "general":
            return _general()
        if settings.kind == "sentence-transformers":
            folder = Path(settings.target)
            return _transformer(settings, folder, f"sentence-transformers:{folder.name}")
        if settings.kind == "openai":
            from askalike.models.remote import RemoteEncoder, key_in  # here, so that the library loads no HTTP client

            key = key_in(settings.key_variable, settings.target)
            return RemoteEncoder(settings.target, settings.model, key, dimensions=settings.width)
        raise EncoderError(f"the encoder {settings.name} is given by a program", "open the forum with encoder=…")
    except MissingExtraError as error:
        raise _missing(error) from error
    except EncoderError:
        raise
    except ModelError as error:
        raise EncoderError(error.message, f"{error.hint}, {_ELSEWHERE}" if error.hint else _ELSEWHERE) from error


def _transformer(settings: EncoderSettings, folder: Path, name: str) -> Transformer:
    read = read_folder(folder)
    if settings.query_prompt is not None or settings.document_prompt is not None:  # in place of the model's own
        read = replace(read, prompts={})
    transformer = Transformer(read, precision=settings.precision)
    transformer.name = f"{name}@{transformer.name.rpartition('@')[2]}"
    return transformer


def _general() -> TextEncoder:
    folder = general_folder()
    if folder is None:
        raise EncoderError("the package contains no encoder", "install askalike again, or name another encoder")
    return general_encoder(folder)
