"""What encodes a forum's texts and orders its best hits: an encoder that is named, an object, a student. ::

    FORUM/student/       the student, a model's folder
    FORUM/queries.json   {"format": 1, "queries": "teacher", "student" or "both"}

It learns the vectors that the encoder gives, of which dimensions or principal directions are taken afterwards, as they
are of the encoder's own: so whoever encodes queries, the questions' vectors are the same.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedForumError, EncoderError, ModelError, NotLearnedError, SettingError
from askalike.files import remove_file, replace_whole, sync_folder
from askalike.index.encoder_settings import PROBED, EncoderSettings, RerankerSettings, read_settings
from askalike.index.text_questions import TextQuestions, is_same, loaded_reranker, taken, text_of
from askalike.index.vector_set import VectorSet, read_directions
from askalike.models.folder import ModelLayout
from askalike.models.student import Student
from askalike.models.text_encoder import TextEncoder
from askalike.search import PairScorer
from askalike.search.cross_encoder import pair_scores
from askalike.store import ForumLayout
from askalike.types import Question

AnyEncoder = TextEncoder | EncoderSettings | str
"""An encoder, or what names one."""

AnyReranker = PairScorer | RerankerSettings | str
"""What gives pairs of texts scores, or what names one."""


class NamedReranker:
    """What puts the best hits of a forum in its order; any thread may ask."""

    def __init__(self, layout: ForumLayout) -> None:
        self._layout = layout
        self._guard = threading.Lock()
        self._given: PairScorer | None = None
        self._read: tuple[RerankerSettings, PairScorer] | None = None

    def take(self, reranker: AnyReranker | None) -> None:
        """Take a reranker, which is asked once; see ``Forum.use_reranker``."""
        if reranker is None:
            self._given = self._read = None
            remove_file(self._layout.reranker)
            sync_folder(self._layout.folder)
            return
        named = RerankerSettings.parse(reranker) if isinstance(reranker, str) else reranker
        scorer = loaded_reranker(named, is_named=True) if isinstance(named, RerankerSettings) else named
        pair_scores(scorer, "Wifi drops every evening", ["Wireless goes down at night", "Printer is offline"])
        with self._guard:
            if isinstance(named, RerankerSettings):
                replace_whole(self._layout.reranker, named.to_bytes())
                self._given, self._read = None, (named, scorer)
            else:
                self._given = scorer

    def get(self) -> PairScorer | None:
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


Queries = Literal["teacher", "student", "both"]
"""Who encodes queries: the encoder of the questions; its student; the student while one types, and then the encoder."""

CHOICES: Final[tuple[Queries, ...]] = get_args(Queries)
_FORMAT: Final = 1
_LARGEST_FILE: Final = 4_096


def chosen_queries(layout: ForumLayout) -> Queries:
    """Return who is to encode the forum's queries.

    Raises:
        DamagedForumError: the file cannot be read.
    """
    try:
        with layout.queries.open("rb") as file:
            stored = json.loads(file.read(_LARGEST_FILE))
        if stored["format"] != _FORMAT or stored["queries"] not in CHOICES:
            raise ValueError(f"expected format {_FORMAT} and one of {', '.join(CHOICES)}")
    except (FileNotFoundError, NotADirectoryError):
        return "teacher"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedForumError(
            f"{layout.queries} cannot be read: {str(error)[:200]}",
            'choose again with "askalike encode FORUM --queries teacher", student or both',
        ) from error
    found: Queries = stored["queries"]
    return found


def choose_queries(layout: ForumLayout, queries: str) -> None:
    """Keep who encodes the forum's queries from now on.

    Raises:
        SettingError: it is none of ``CHOICES``.
        NotLearnedError: the forum has no student.
        ModelError: its student cannot be read.
    """
    if queries not in CHOICES:
        raise SettingError(f"queries by {queries[:40]!r}", f"expected one of {', '.join(CHOICES)}")
    if queries != "teacher":
        if not ModelLayout(layout.student).manifest.exists():
            raise NotLearnedError(
                f"the forum at {layout.folder} has no student",
                'train one with "askalike train FORUM --teacher MODEL", such as minilm',
            )
        Student.load(layout.student)
    replace_whole(layout.queries, json.dumps({"format": _FORMAT, "queries": queries}).encode())


def taught_by(settings: EncoderSettings) -> str:
    """Return what students of an encoder know it by: its name, and what it is told before queries.

    >>> taught_by(EncoderSettings("python", name="mine@1", query_prompt="query: "))
    "mine@1 'query: '"
    """
    return settings.name if not settings.query_prompt else f"{settings.name} {settings.query_prompt!r}"


class StudentQueries:
    """Queries → vectors in the space of a set, by a student of what made the set; any thread may ask."""

    def __init__(self, student: Student, vectors: VectorSet) -> None:
        settings = vectors.settings
        assert settings is not None, "students are of text encoders"
        self.name = student.name
        as_it_is = replace(settings, kind="python", target="", name=student.name, query_prompt=None)
        self.texts = TextQuestions(student, as_it_is, read_directions(vectors.folder, settings))

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return the vectors of questions, read as queries.  # (N, D)"""
        most = self.texts.settings.max_characters
        return self.texts.embed([text_of(one, most) for one in questions], is_query=True)


class Students:
    """The student of a forum as it is on disk now; it is read when it is first needed, and when it has changed."""

    def __init__(self, layout: ForumLayout) -> None:
        self._layout = layout
        self._guard = threading.Lock()
        self._known: tuple[object, StudentQueries | None] = (None, None)

    def asked(self, vectors: VectorSet) -> tuple[Queries, StudentQueries | EncoderError | None]:
        """Return who encodes queries for a set, and the student, or why it cannot be used, where it does.

        Where the forum has a student of another encoder alone, the set's own encodes them.
        """
        try:
            chosen = chosen_queries(self._layout)
        except DamagedForumError as error:
            return "both", EncoderError(error.message, error.hint)
        if chosen == "teacher":
            return chosen, None
        try:
            student = self.of(vectors)
        except EncoderError as error:
            return chosen, error
        return ("teacher", None) if student is None else (chosen, student)

    def of(self, vectors: VectorSet) -> StudentQueries | None:
        """Return the student of what made a set; None where the forum has none of it.

        Raises:
            EncoderError: it cannot be read.
        """
        folder = self._layout.student
        manifest = _manifest(folder)
        if manifest is None or vectors.settings is None:
            return None
        state = (vectors.fingerprint, manifest)
        with self._guard:
            if self._known[0] != state:
                try:
                    student = Student.load(folder)
                    is_its_own = (student.settings.teacher, student.dimensions) == (
                        taught_by(vectors.settings),
                        vectors.settings.width,
                    )
                    self._known = (state, StudentQueries(student, vectors) if is_its_own else None)
                except ModelError as error:
                    raise EncoderError(
                        f"the forum's student cannot be used: {error.message}",
                        'train it again with "askalike train FORUM --teacher MODEL", or search without it:'
                        ' "askalike encode FORUM --queries teacher"',
                    ) from error
            return self._known[1]


def _manifest(folder: Path) -> bytes | None:
    """Return what changes with a student; one that is just being replaced stands beside its place."""
    layout = ModelLayout(folder)
    for place in (layout, ModelLayout(layout.replaced), layout):
        try:
            return place.manifest.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise EncoderError(f"{place.manifest} cannot be read: {error.strerror}", "check its rights") from error
    return None
