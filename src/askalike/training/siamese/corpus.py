"""What a siamese model is trained on: questions with their best answers, as trigrams; some pairs kept out.

Source: Das et al. 2016 (ACL), section 3.1: "relevant answers which are marked as best-answer or most voted answers".
Reading: of a question's answers one is learned from: the accepted one, otherwise the one with most votes, 0 where
nobody voted; of equals the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.evaluation import CandidateTask
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.models.siamese.trigram_texts import SiameseReader, TrigramTexts
from askalike.training.corpus import TrainingData, WordList
from askalike.training.siamese.recipe import SiameseRecipe
from askalike.types import Answer, Question

_REPORTED: Final = 1000  # pairs between two reports


@dataclass(frozen=True, slots=True)
class PairCorpus:
    """Training data as sparse vectors; row i of both is pair i.

    Args:
        vocabulary: the trigrams of the pairs that are learned from.
        questions: of each pair.  # M texts
        answers: of each pair.  # M texts
        learned: pairs that are learned from, rising.
        held_out: pairs that are not, rising.
        dev: name → the questions of that dev set.
    """

    vocabulary: Vocabulary
    questions: TrigramTexts
    answers: TrigramTexts
    learned: NDArray[np.int64]
    held_out: NDArray[np.int64]
    dev: Mapping[str, TrigramTexts]


def best_answers(answers: Iterable[Answer]) -> dict[str, Answer]:
    """Return question id → the answer to learn from.

    >>> given = [Answer("a", "1", "x"), Answer("b", "1", "y", score=3), Answer("c", "2", "z"), Answer("d", "2", "w")]
    >>> [answer.id for answer in best_answers(given).values()]
    ['b', 'c']
    """
    found: dict[str, Answer] = {}
    for answer in answers:
        held = found.get(answer.question_id)
        if held is None or answer.standing > held.standing:
            found[answer.question_id] = answer
    return found


def paired(pairs: Iterable[tuple[Question, Answer]], dev: Mapping[str, CandidateTask] | None = None) -> TrainingData:
    """Return pairs of a question and an answer as training data.

    Args:
        pairs: a question's id with that question alone; of several pairs of a question, the best answer is learned
            from.
        dev: name → judged candidates, to measure after each epoch.

    >>> first, second = (Question("q", "Why?"), Answer("a", "", "So.")), (Question("r", "?"), Answer("b", "", "Thus."))
    >>> data = paired([first, second])
    >>> [question.id for question in data.questions], [answer.question_id for answer in data.answers]
    (['q', 'r'], ['q', 'r'])
    """
    questions: dict[str, Question] = {}
    answers = []
    for question, answer in pairs:
        questions.setdefault(question.id, question)
        answers.append(
            answer if answer.question_id == question.id else structs.replace(answer, question_id=question.id)
        )
    return TrainingData(list(questions.values()), answers=answers, dev=dev or {})


def read_pairs(data: TrainingData, recipe: SiameseRecipe, seed: int, on_progress: Callable[[int], None]) -> PairCorpus:
    """Return the pairs of questions and best answers that have trigrams on both sides.

    Args:
        data: its answers and dev sets are looked at, its duplicate links are not.
        seed: of which pairs are kept out, and of the trigrams' order where they are shuffled.
        on_progress: called with how many pairs were read since the last call.

    Raises:
        SettingError: fewer than two pairs to learn from, or an answer to a question that is not there.
    """
    reader = SiameseReader(recipe.text, recipe.reads)
    pairs = _paired(data)
    read = WordList(_trigrams(pairs, reader, on_progress))
    sizes = read.texts.lengths()
    usable = np.flatnonzero((sizes[0::2] > 0) & (sizes[1::2] > 0))
    order = np.random.default_rng(seed).permutation(len(usable))
    kept_out = min(recipe.pairs.held_out, len(usable) // 10)
    held_out, learned = np.sort(usable[order[:kept_out]]), np.sort(usable[order[kept_out:]])
    if len(learned) < 2:
        raise SettingError(
            f"{len(learned)} questions with an answer and words on both sides, but expected at least two",
            "give answers: a siamese model learns from nothing else",
        )
    vocabulary = _vocabulary(read, learned, recipe, seed)
    whole = read.over(vocabulary)
    both = TrigramTexts.counted(whole.ids, whole.starts, len(vocabulary))
    dev = {name: TrigramTexts.of(map(reader.question, task.questions), vocabulary) for name, task in data.dev.items()}
    rows = 2 * np.arange(len(pairs))
    return PairCorpus(vocabulary, both.some(rows), both.some(rows + 1), learned, held_out, dev)


def _vocabulary(read: WordList, learned: NDArray[np.int64], recipe: SiameseRecipe, seed: int) -> Vocabulary:
    """Return the trigrams of the pairs that are learned from, in the recipe's order."""
    lengths = read.texts.lengths()
    is_learned = np.zeros(len(lengths), np.bool_)
    is_learned[2 * learned] = is_learned[2 * learned + 1] = True
    ids = read.texts.ids[np.repeat(is_learned, lengths)]
    counts = np.bincount(ids, minlength=len(read.words)).tolist()
    counted = dict(zip(read.words, counts, strict=True))
    found = Vocabulary.from_counts(counted, min_count=recipe.min_count, max_size=recipe.max_size)
    if recipe.order == "frequency":
        return found
    return Vocabulary([found.words[place] for place in np.random.default_rng(seed).permutation(len(found.words))])


def _paired(data: TrainingData) -> list[tuple[Question, Answer]]:
    best = best_answers(data.answers)
    found = [(question, best.pop(question.id)) for question in data.questions if question.id in best]
    if best:
        raise SettingError(
            f"training data names question {next(iter(best))!r}, which is not among its questions",
            "give the questions of all answers, each once",
        )
    return found


def _trigrams(
    pairs: Sequence[tuple[Question, Answer]], reader: SiameseReader, on_progress: Callable[[int], None]
) -> Iterator[list[str]]:
    for done, (question, answer) in enumerate(pairs, start=1):
        yield reader.question(question)
        yield reader.answer(answer)
        if done % _REPORTED == 0 or done == len(pairs):
            on_progress((done - 1) % _REPORTED + 1)
