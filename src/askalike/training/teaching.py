"""A forum's student: its encoder reads the forum, and a student learns to put queries where it would.

::

    encode questions ──▶ encode texts to learn from ──▶ train ──▶ compare ──▶ take

Each stage is kept: the vectors of questions with the forum, those of texts and the student in the training's folder.
The student is taken where, for titles that it has not learned from, it finds more of the encoder's ten nearest
questions than words do; or, where the forum has labels enough to tell, where it finds duplicates better than words.
What is learned from: texts of questions alone, no link. Titles that are compared, queries of the dev split, and on
demand those of the test split, are left out with every text of their questions.
"""

from __future__ import annotations

import hashlib
import importlib.util
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from askalike.data import default_students
from askalike.errors import EvaluationError, MissingExtraError, ModelError, SettingError
from askalike.evaluation import Interval, bootstrap_difference, bootstrap_mean
from askalike.evaluation.forum.links import duplicate_task, keep_splits, kept_splits, read_duplicate_links, split_links
from askalike.files import remove_owned, replace_whole
from askalike.forum import Forum
from askalike.forum.encoders import AnyEncoder, Queries, StudentQueries, choose_queries, chosen_queries, taught_by
from askalike.index.encoder_settings import REMOTE, EncoderSettings, read_settings
from askalike.index.text_questions import PROBE, text_of
from askalike.index.vector_set import VectorSet
from askalike.models.folder import OWNED
from askalike.models.student import Student
from askalike.models.text_encoder import document_vectors, query_vectors
from askalike.progress import Progress, SilentProgress
from askalike.store import ForumLayout
from askalike.text.tokens import words
from askalike.training.work_folder import MODEL, clear_work, work_folder
from askalike.types import Filters, Query, Question

Array = NDArray[np.float32]

STUDENT: Final = "student"
MOST_QUESTIONS: Final = 20_000
"""Questions whose texts are learned from; those of more are drawn."""
COMPARED: Final = range(20, 300)
"""Titles by which student and teacher are compared: a share of all within these bounds."""
COMPARED_SHARE: Final = 0.04
LEAST_QUESTIONS: Final = 200
LEAST_LABELLED: Final = 50
"""Queries of the dev split from which on labels are looked at."""
NEAREST: Final = 10
MOST_SEARCHED: Final = 5_000
"""Documents whose order is learned; those of more are drawn."""
FEW_TEXTS: Final = 30_000
"""Up to so many are read twice as often."""


@dataclass(frozen=True, slots=True)
class TeachingOptions:
    """How a student is trained.

    Args:
        is_test_held_out: learn from no text of the test split's queries, for an evaluation afterwards.
        threads: of torch; 0 takes its choice.
        is_fresh: begin anew where a stopped training could go on.
        is_kept: take the student whatever the comparison says.
        excluded: ids of further questions that no text is learned from, such as the queries of an evaluation.
        start: "" goes on from the package's student of this encoder, where it carries one; "nothing" does not.
    """

    is_test_held_out: bool = False
    seed: int = 0
    threads: int = 0
    is_fresh: bool = False
    is_kept: bool = False
    start: str = ""
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TeachingResult:
    """What came of it.

    Args:
        folder: where the student lies: in the forum where it was taken, else in the training's folder.
        queries: who encodes queries from now on.
        texts: that were learned from.
        compared: titles by which the two were compared.
        agreement: share of the encoder's ten nearest questions that are among the student's ten.
        gain: agreement less that of words.
        labelled: queries of the dev split; 0 where they were too few to look at.
        label_gain: reciprocal rank at 10 of the search by words and student, less that by words; None without labels.
        is_taken: whether the student encodes queries.
    """

    teacher: str
    student: str
    folder: Path
    queries: Queries
    texts: int
    compared: int
    agreement: Interval
    gain: Interval
    labelled: int
    label_gain: Interval | None
    is_taken: bool
    seconds: float = 0.0


def is_worth_taking(gain: Interval, label_gain: Interval | None) -> bool:
    """Return whether a student is taken: labels decide where their interval leaves out 0, else the agreement does.

    >>> above, around = Interval(0.2, 0.1, 0.3, 0.95), Interval(0.0, -0.1, 0.1, 0.95)
    >>> is_worth_taking(above, None), is_worth_taking(around, None), is_worth_taking(around, above)
    (True, False, True)
    """
    if label_gain is not None and (label_gain.low > 0 or label_gain.high < 0):
        return label_gain.low > 0
    return gain.low > 0


class KeptTeacher:
    """A forum's encoder as a student's teacher: what it has encoded is kept on disk, and asked for once.

    Args:
        vectors: the set that it has made; its whole vectors are learned, before dimensions are taken from them.
        known: texts whose vectors are there already.
    """

    def __init__(self, vectors: VectorSet, folder: Path, known: Mapping[str, Array]) -> None:
        assert vectors.settings is not None, "students are of text encoders"
        self._settings, self._encoder, self._folder, self._known = (
            vectors.settings,
            vectors.texts.encoder,
            folder,
            known,
        )
        self.name, self.dimensions = taught_by(vectors.settings), vectors.settings.width

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries.  # (N, D)"""
        asked = [text for text in texts if text not in self._known]
        found = dict(zip(asked, self._kept(asked), strict=True)) if asked else {}
        return np.stack([self._known[text] if text in self._known else found[text] for text in texts])

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the same as ``encode_query``: students learn queries."""
        return self.encode_query(texts)

    def _kept(self, texts: list[str]) -> Array:
        told = "\0".join([self.name, *texts]).encode("utf-8", "replace")
        path = self._folder / f"0-{hashlib.sha256(told).hexdigest()[:24]}.safetensors"
        if path.exists():
            try:
                found = safetensors.numpy.load(path.read_bytes())["vectors"]
                if found.shape == (len(texts), self.dimensions) and np.isfinite(found).all():
                    return found.astype(np.float32)
            except (ValueError, KeyError, safetensors.SafetensorError):
                pass  # it is made anew
        prompt, most = self._settings.query_prompt or "", self._settings.max_characters
        encode = (
            document_vectors if self._settings.kind in REMOTE else query_vectors
        )  # an endpoint's queries do not wait
        made = encode(self._encoder, [prompt + text[:most] for text in texts]).astype(np.float16)
        replace_whole(path, safetensors.numpy.save({"vectors": made}))
        return made.astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Material:
    """What a forum gives: questions to learn from, titles to compare by, labelled queries, the splits they are from."""

    learned: Sequence[Question]
    compared: Sequence[Question]
    excluded: frozenset[str]
    labelled: Mapping[str, Question]
    relevant: Mapping[str, Mapping[str, int]]
    splits: Mapping[str, str]


def train_forum_student(
    forum: Forum,
    teacher: AnyEncoder | None = None,
    options: TeachingOptions | None = None,
    progress: Progress | None = None,
) -> TeachingResult:
    """Encode a forum's questions with an encoder, train a student of it, and let it encode queries where it agrees.

    A training that was interrupted goes on at the stage where it was.

    Args:
        teacher: as ``Forum.use_encoder`` takes it; None for the encoder that the forum has.

    Raises:
        SettingError: the forum has no text encoder, or too few questions.
        MissingExtraError: torch is not installed.
        BusyForumError: another training of a student of this forum runs, or another process encodes.
        EncoderError: the encoder cannot be had, or does not answer any more; what it has encoded is kept.
        ModelError: the student cannot be written.
    """
    began = time.monotonic()
    options, shown = options or TeachingOptions(), progress or SilentProgress()
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("training needs torch, which is not installed", "train")
    if teacher is not None and not is_named(forum, teacher):
        forum.use_encoder(teacher)
    forum.encode(progress=shown)
    vectors = forum.answering_vectors()
    if vectors is None or vectors.settings is None:
        raise SettingError(
            "the forum's encoder is a model of askalike's own, which is as fast as a student",
            "name another with --teacher, such as minilm",
        )
    layout = ForumLayout(forum.path)
    material = _material(forum, options)
    from askalike.training.student import student_texts  # here, since importing this must not load torch

    texts = student_texts([*material.learned, *map(forum.question, sorted(material.excluded))], material.excluded)
    start = None if options.start == "nothing" else general_student(taught_by(vectors.settings))
    plan: dict[str, str | int] = {
        "teacher": taught_by(vectors.settings),
        "seed": options.seed,
        "start": start.name if start else "",
        "texts": hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest(),
    }
    work = layout.training(STUDENT)
    with work_folder(work, plan, is_fresh=options.is_fresh) as beginning:
        if beginning != "goes on":
            remove_owned(work / MODEL, OWNED)
        student = _finished(work / MODEL)
        if student is None:
            student = _trained(forum, texts, vectors, material, work, options, start, shown)
        found = _compared(forum, vectors, student, material, options, shown)
        keep_splits(forum.path, material.splits)
        if found.is_taken:
            student.save(layout.student)
            if chosen_queries(layout) == "teacher":
                choose_queries(layout, "both")
            clear_work(work)
        folder = layout.student if found.is_taken else work / MODEL
        queries = chosen_queries(layout)
    return replace(found, folder=folder, queries=queries, texts=len(texts), seconds=round(time.monotonic() - began, 1))


def is_named(forum: Forum, teacher: AnyEncoder) -> bool:
    """Return whether the forum names this encoder already, perhaps with prompts and a key of its own."""
    named = read_settings(ForumLayout(forum.path).encoder)
    return isinstance(teacher, str) and named is not None and EncoderSettings.parse(teacher).written == named.written


def general_student(teacher: str) -> Student | None:
    """Return the package's student of an encoder, None where it carries none."""
    found = (Student.load(path) for path in default_students())
    return next((one for one in found if one.settings.teacher == teacher), None)


def _material(forum: Forum, options: TeachingOptions) -> _Material:
    links = read_duplicate_links(forum)
    questions = list(links.questions.values())
    splits = split_links(forum.path, links.pairs)
    labelled: Mapping[str, Question] = {}
    relevant: Mapping[str, Mapping[str, int]] = {}
    aside = set(options.excluded & links.questions.keys())
    with suppress(EvaluationError):  # no labels
        dev = duplicate_task(forum, "dev", links=links)
        if len(dev.queries) >= LEAST_LABELLED:
            labelled, relevant = dev.queries, dev.qrels
            aside |= labelled.keys()
    with suppress(EvaluationError):
        if options.is_test_held_out:
            aside |= duplicate_task(forum, "test", links=links).queries.keys()
    titled = [one for one in questions if len(words(one.title)) > 1 and one.id not in aside]
    if len(titled) < LEAST_QUESTIONS:
        raise SettingError(
            f"{len(titled)} questions with a title of two words or more can be learned from, and a student is trained"
            f" from {LEAST_QUESTIONS} on",
            "let the encoder encode queries, or load more questions",
        )
    chance = random.Random(options.seed)
    compared = chance.sample(titled, min(max(COMPARED.start, int(COMPARED_SHARE * len(titled))), COMPARED.stop))
    excluded = frozenset(aside | {one.id for one in compared})
    learned = [one for one in questions if one.id not in excluded]
    if len(learned) > MOST_QUESTIONS:
        learned = chance.sample(learned, MOST_QUESTIONS)
    known = kept_splits(forum.path) | {one: split for split, members in splits.items() for one in members}
    return _Material(learned, compared, excluded, labelled, relevant, known)


def _finished(folder: Path) -> Student | None:
    try:
        return Student.load(folder)
    except ModelError:
        return None


def _trained(
    forum: Forum,
    texts: Sequence[str],
    vectors: VectorSet,
    material: _Material,
    work: Path,
    options: TeachingOptions,
    start: Student | None,
    progress: Progress,
) -> Student:
    import torch

    from askalike.training.student import StudentRecipe, make_student

    if options.threads:
        torch.set_num_threads(options.threads)
    teacher = KeptTeacher(vectors, work, _stored(forum, vectors, material.learned))
    counts = Counter(word for text in texts for word in words(text))
    known = sum(count > 1 for count in counts.values())
    epochs = 6 if len(texts) <= FEW_TEXTS else 3
    recipe = StudentRecipe(min(256, teacher.dimensions, max(1, known)), epochs=epochs, seed=options.seed)
    if start is not None:
        recipe = replace(recipe, row_size=start.settings.row_size)
    left = set(forum.numbers(sorted(material.excluded)).values())
    student, _ = make_student(texts, teacher, recipe, progress, start, _searched(vectors, left, options.seed))
    student.save(work / MODEL)
    return student


def _searched(vectors: VectorSet, left: Set[int], seed: int) -> Array | None:
    """Return the vectors of questions but some, where they are the teacher's as they are.  # (N, D)"""
    if vectors.settings is None or vectors.dimensions != vectors.settings.width:
        return None
    numbers = [num for num in vectors.index.numbers().tolist() if num not in left]
    drawn = np.random.default_rng(seed).choice(numbers, min(MOST_SEARCHED, len(numbers)), replace=False)
    _, found = vectors.index.vectors(drawn)
    return np.asarray(found, dtype=np.float32)


def _stored(forum: Forum, vectors: VectorSet, questions: Sequence[Question]) -> Mapping[str, Array]:
    """Return the vectors of whole questions, by text; nothing where the encoder reads queries in another way."""
    settings = vectors.settings
    assert settings is not None
    is_cut = settings.pca is not None or settings.truncate is not None
    if is_cut or settings.query_prompt or settings.document_prompt or settings.kind == "python":
        return {}
    encoder = vectors.texts.encoder
    if not np.allclose(encoder.encode_query([PROBE]), encoder.encode_document([PROBE]), atol=1e-4):
        return {}
    texts = {text_of(one, settings.max_characters): one.id for one in questions if one.body}
    numbers = forum.numbers(list(texts.values()))
    found, matrix = vectors.index.vectors([numbers[one] for one in texts.values() if one in numbers])
    by_number = dict(zip(np.asarray(found).tolist(), matrix, strict=True))
    return {
        text: by_number[numbers[one]]
        for text, one in texts.items()
        if numbers.get(one) in by_number and by_number[numbers[one]].any()
    }


def _compared(
    forum: Forum,
    vectors: VectorSet,
    student: Student,
    material: _Material,
    options: TeachingOptions,
    progress: Progress,
) -> TeachingResult:
    """Return how well the student does, and whether it is to be taken."""
    numbers = forum.numbers([one.id for one in material.compared])
    titles = [Question("", one.title) for one in material.compared]
    by_student = StudentQueries(student, vectors).encode(titles)
    shares, by_words = [], []
    progress.start("comparing", len(titles) + len(material.labelled), "queries")
    for row, one in enumerate(material.compared):
        asked = np.stack([vectors.texts.encode_queries([titles[row]])[0], by_student[row]])
        near = vectors.index.search(asked, NEAREST, None, [numbers[one.id]])
        wanted, found = ({num for num, _ in one} for one in near)
        query = Query(one.title, k=NEAREST, filters=Filters(exclude_ids=frozenset([one.id])), ranker="lexical")
        lexical = set(forum.numbers([name for name, _ in forum.ranking(query)]).values())
        shares.append(len(wanted & found) / max(1, len(wanted)))
        by_words.append(len(wanted & lexical) / max(1, len(wanted)))
        progress.advance(1)
    gain = bootstrap_difference(shares, by_words, seed=options.seed)
    label_gain = _by_labels(forum, student, material, progress) if material.labelled else None
    return TeachingResult(
        teacher=student.settings.teacher,
        student=student.name,
        folder=Path(),
        queries="teacher",
        texts=0,
        compared=len(titles),
        agreement=bootstrap_mean(shares, seed=options.seed),
        gain=gain,
        labelled=len(material.labelled),
        label_gain=label_gain,
        is_taken=options.is_kept or is_worth_taking(gain, label_gain),
    )


def _by_labels(forum: Forum, student: Student, material: _Material, progress: Progress) -> Interval:
    searches = forum.searches_by(student)
    ranks: dict[str, list[float]] = {"words": [], "student": []}
    for name, one in material.labelled.items():
        query = Query(one.title, one.body, one.markup, NEAREST, Filters(exclude_ids=frozenset([name])))
        relevant = {other for other, grade in material.relevant[name].items() if grade}
        for by, ranked in (
            ("words", forum.ranking(replace(query, ranker="lexical"))),
            ("student", searches(query)),
        ):
            places = [place for place, (other, _) in enumerate(ranked, 1) if other in relevant]
            ranks[by].append(1 / places[0] if places else 0.0)
        progress.advance(1)
    return bootstrap_difference(ranks["student"], ranks["words"])
