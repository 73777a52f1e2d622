"""A language model, learned from questions and their best answers.

::

    C        the terms of all questions: P(w|C)
    pairs    a question and its best answer, and the same turned round: t(w|u) by IBM's model 1

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
from askalike.language import Collection, Parallel, TermLists, learn_translations, term_ids
from askalike.language.model import LanguageModel, LanguageSettings, TermReader
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
    learned = None
    if recipe.alignment:
        paired = (
            (own, term_ids(vocabulary, answers[question.id]))
            for own, question in zip(ids, data.questions, strict=True)
            if question.id in answers
        )
        pairs = Parallel.of(paired, recipe.pair_terms).both_ways()
        progress.start("learning translations", recipe.alignment.iterations, "iterations")
        learned = learn_translations(pairs, len(vocabulary), recipe.alignment, lambda *_: progress.advance(1))
    return LanguageModel.build(settings, vocabulary, collection, learned, training_data=data.digest())


def _read(data: TrainingData, reader: TermReader, progress: Progress) -> Sequence[Sequence[str]]:
    progress.start("reading questions", len(data.questions), "questions")
    found = []
    for done, question in enumerate(data.questions, start=1):
        found.append(reader.question(question))
        if done % _REPORTED == 0 or done == len(data.questions):
            progress.advance((done - 1) % _REPORTED + 1)
    return found
