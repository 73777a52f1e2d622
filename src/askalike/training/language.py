"""Learning a language model from questions and their best answers, and the recipe of it. ::

    ranker = "translm"
    pair_terms = 60

    [options]       what can be chosen of the model, see ``models.language.kinds``
    [alignment]     how translations are learned, see ``models.language.translation``; not for a kind that learns none

What is learned::

    C        the terms of all questions: P(w|C)
    pairs    a question and its best answer, and the same turned round: t(w|u) by IBM's model 1
    links    between the words of such pairs, by t(w|u) in both directions: P(w|t) of phrases
    topics   of questions with their answers: φ and ψ

Source: Xue, Jeon and Croft 2008 (SIGIR), P_pool; Das et al. 2016 (ACL), on its baselines: "trained using GIZA++ tool
with the question and best answer pair as the parallel corpus".
Differs: Jeon et al. 2005 pair questions whose answers are alike. Das et al. train all models that translate on
questions with their answers, and so does this; they do not say which way, and this takes both. Duplicate links are
not learned from, as in none of the papers.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from askalike.errors import SettingError
from askalike.models.language.kinds import KINDS, Learned, Options, TopicOptions
from askalike.models.language.likelihood import Collection, Parallel, TermLists, term_ids
from askalike.models.language.model import LanguageModel, LanguageSettings, Reads, TermReader
from askalike.models.language.phrases import PhraseTable
from askalike.models.language.topics import learn_voted_topics
from askalike.models.language.translation import Alignment, Translations, learn_translations
from askalike.models.vocabulary import Vocabulary
from askalike.progress import Progress
from askalike.settings import check_settings, read_settings, read_table
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.training.corpus import TrainingData, reported
from askalike.types import Answer


@dataclass(frozen=True, slots=True)
class LanguageRecipe:
    """How a language model is learned.

    Args:
        ranker: the ranker of a forum that it is, a name in ``models.language.kinds.KINDS``.
        alignment: how translations are learned; None for a kind that learns none, such as ``lmir``.
        min_count: how often a term must occur in questions and best answers together to be known, ≥ 1.
        max_size: terms that are known, the most frequent, ≥ 1.
        pair_terms: of a question and of an answer only so many known terms are aligned, the first, ≥ 1.
    """

    ranker: str
    options: Options
    alignment: Alignment | None
    reads: Reads = "title and body"
    min_count: int = 1
    max_size: int = 200_000
    pair_terms: int = 60

    def __post_init__(self) -> None:
        check_settings(self)
        if self.ranker not in KINDS:
            raise SettingError(f"ranker is {self.ranker!r}, but expected one of: {', '.join(KINDS)}", "set ranker")

    @staticmethod
    def is_meant(stored: Mapping[str, Any]) -> bool:
        """Return whether a TOML file's contents are such a recipe: a language model by name, and no network."""
        ranker = stored.get("ranker")
        return isinstance(ranker, str) and ranker in KINDS and not {"encoder", "stage", "words"} & set(stored)

    def seeded(self, seed: int) -> LanguageRecipe:
        """Return the recipe with another seed of what is drawn: what topics begin with."""
        options = self.options
        if isinstance(options, TopicOptions):
            return replace(self, options=replace(options, seed=seed))
        return self

    def to_json(self) -> str:
        """Return the recipe as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> LanguageRecipe:
        """Return the recipe of a TOML file's contents.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used; names the place.
        """
        ranker = stored["ranker"]
        learns = KINDS[ranker].is_aligned
        if "alignment" in stored and not learns:
            raise SettingError(f"[alignment] in a recipe of {ranker}, which learns no translations", "take it out")
        options = read_settings(KINDS[ranker], read_table(stored, "options", {}), "options")
        alignment = read_settings(Alignment, read_table(stored, "alignment", {}), "alignment") if learns else None
        return read_settings(cls, {**stored, "options": options, "alignment": alignment}, "top level")


def learn_language_model(
    recipe: LanguageRecipe, data: TrainingData, text: TextSettings, progress: Progress
) -> LanguageModel:
    """Return what a recipe makes of questions and answers; the same from the same.

    Args:
        data: its duplicate links are not looked at; of several answers of a question the first are taken, as many as
            the kind learns from.
    """
    settings = LanguageSettings(recipe.ranker, recipe.options, recipe.reads, text)
    reader = TermReader(recipe.reads, Analyzer(text))
    progress.start("reading questions", len(data.questions), "questions")
    questions = [reader.question(question) for question in reported(data.questions, progress.advance)]
    best, texts = _best_answers(recipe, data), defaultdict[str, list[list[str]]](list)
    for answer in best:
        texts[answer.question_id].append(reader.answer(answer))
    counts: Counter[str] = Counter()
    for terms in (*questions, *(terms for own in texts.values() for terms in own)):
        counts.update(terms)
    vocabulary = Vocabulary.from_counts(counts, min_count=recipe.min_count, max_size=recipe.max_size)
    size, ids = len(vocabulary), [term_ids(vocabulary, terms) for terms in questions]
    collection = Collection.count(TermLists.of(ids), size)
    learned = Learned.none(size)
    if recipe.alignment:
        paired = (
            (own, term_ids(vocabulary, texts[question.id][0]))
            for own, question in zip(ids, data.questions, strict=True)
            if question.id in texts
        )
        learned = _aligned(Parallel.of(paired, recipe.pair_terms), size, recipe, progress)
    if learning := recipe.options.topic_learning:
        rows = {question.id: row for row, question in enumerate(data.questions)}
        held = [answer for answer in best if answer.question_id in rows]
        progress.start("learning topics", learning.iterations, "iterations")
        topics = learn_voted_topics(
            TermLists.of(ids),
            TermLists.of(term_ids(vocabulary, reader.answer(answer)) for answer in held),
            np.array([rows[answer.question_id] for answer in held], np.int64),
            np.array([votes_of(answer, recipe.options.accepted_votes) for answer in held], np.int64),
            size,
            learning,
            lambda *_: progress.advance(1),
        )
        learned = replace(learned, topics=topics)
    return LanguageModel.build(settings, vocabulary, collection, learned, training_data=_digest(recipe, data))


def _best_answers(recipe: LanguageRecipe, data: TrainingData) -> list[Answer]:
    """Return the first answers of each question, as many as the kind learns from; none where it reads none."""
    options = recipe.options
    if not (recipe.alignment or options.reads_answers or options.topic_learning):
        return []
    taken: Counter[str] = Counter()
    found = []
    for answer in data.answers:
        taken[answer.question_id] += 1
        if taken[answer.question_id] <= options.most_answers:
            found.append(answer)
    return found


def votes_of(answer: Answer, accepted: int) -> int:
    """Return how much an answer counts for topics that are learned by votes; being accepted is worth some more."""
    return (answer.score or 0) + accepted * answer.is_accepted


def _digest(recipe: LanguageRecipe, data: TrainingData) -> str:
    """Return the hash of what was learned from; votes are part of it where they count."""
    found = data.digest()
    if recipe.options.most_answers == 1:
        return found
    votes = [(answer.score, answer.is_accepted) for answer in data.answers]
    return hashlib.sha256(f"{found} {votes}".encode()).hexdigest()


def _aligned(pairs: Parallel, size: int, recipe: LanguageRecipe, progress: Progress) -> Learned:
    """Return the translations of pairs; where the kind learns phrases, those in their place."""
    alignment = recipe.alignment or Alignment()
    progress.start("learning translations", alignment.iterations, "iterations")
    translations = learn_translations(pairs.both_ways(), size, alignment, lambda *_: progress.advance(1))
    learning = recipe.options.phrase_learning
    if learning is None:
        return Learned(translations, PhraseTable.none(size))
    progress.start("counting phrases", 0, "")
    return Learned(Translations.none(size), learning.learned(pairs, translations, size))
