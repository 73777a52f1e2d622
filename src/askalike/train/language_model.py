"""A language model, learned from questions and their best answers.

::

    C        the terms of all questions: P(w|C)
    pairs    a question and its best answer, and the same turned round: t(w|u) by IBM's model 1
    links    between the words of such pairs, by t(w|u) in both directions: P(w|t) of phrases

Enters: ``TrainingData``, a recipe. Leaves: ``LanguageModel``. May import: language, text, progress, its neighbours in
train that need no torch.

Source: Xue, Jeon and Croft 2008 (SIGIR), P_pool; Das et al. 2016 (ACL), on its baselines: "trained using GIZA++ tool
with the question and best answer pair as the parallel corpus".
Differs: Jeon et al. 2005 pair questions whose answers are alike. Das et al. train all models that translate on
questions with their answers, and so does this; they do not say which way, and this takes both. Marks of duplicates are
not learned from, as in none of the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from askalike.encode.vocabulary import Vocabulary
from askalike.language import (
    Alignment,
    Collection,
    Parallel,
    TermLists,
    Translations,
    learn_translations,
    term_ids,
)
from askalike.language.learned import Learned
from askalike.language.model import LanguageModel, LanguageSettings, TermReader
from askalike.language.phrase_table import PhraseTable
from askalike.progress import Progress
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.train.corpus import TrainingData
from askalike.train.language_recipe import LanguageRecipe

__all__ = ["learn_language_model"]

_REPORTED: Final = 1000  # questions between two reports


def learn_language_model(
    recipe: LanguageRecipe, data: TrainingData, text: TextSettings, progress: Progress
) -> LanguageModel:
    """Return what a recipe makes of questions and answers; the same from the same.

    Args:
        data: its marks are not looked at; of several answers of a question the first is taken.
        text: how texts become terms.
    """
    settings = LanguageSettings(recipe.ranker, recipe.options, recipe.reads, text)
    reader = TermReader(recipe.reads, Analyzer(text))
    questions = _read(data, reader, progress)
    answers: dict[str, list[str]] = {}
    if recipe.alignment or recipe.options.reads_answers:
        for answer in data.answers:
            answers.setdefault(answer.question_id, reader.answer(answer))
    counts: Counter[str] = Counter()
    for terms in (*questions, *answers.values()):
        counts.update(terms)
    vocabulary = Vocabulary.from_counts(counts, min_count=recipe.min_count, max_size=recipe.max_size)
    ids = [term_ids(vocabulary, terms) for terms in questions]
    collection = Collection.count(TermLists.of(ids), len(vocabulary))
    learned = Learned.none(len(vocabulary))
    if recipe.alignment:
        paired = (
            (own, term_ids(vocabulary, answers[question.id]))
            for own, question in zip(ids, data.questions, strict=True)
            if question.id in answers
        )
        learned = _aligned(Parallel.of(paired, recipe.pair_terms), len(vocabulary), recipe, progress)
    return LanguageModel.build(settings, vocabulary, collection, learned, training_data=data.digest())


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


def _read(data: TrainingData, reader: TermReader, progress: Progress) -> Sequence[Sequence[str]]:
    progress.start("reading questions", len(data.questions), "questions")
    found = []
    for done, question in enumerate(data.questions, start=1):
        found.append(reader.question(question))
        if done % _REPORTED == 0 or done == len(data.questions):
            progress.advance((done - 1) % _REPORTED + 1)
    return found
