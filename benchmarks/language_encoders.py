"""Encoders and corrections by language: what a language gains by its own, beside words alone.

Command: ``python -m benchmarks.language_encoders``. The forum and what is asked are those of ``benchmarks.languages``:
questions of Reddit in eight languages, found by the first sentences of their bodies, without which they are stored; the
figure is the mean of 1 / rank among the first ten, by the default search. English is encoded by the general model in
each case; the other seven languages by

- ``words``: nothing, the control: their questions have no vector.
- ``own``: a model of the forum's own text in the language: its stored questions' letter n-grams (3 to 5), weighed by
  TF-IDF, in 64 dimensions by a singular value decomposition. No model that was trained on more text of another
  language could be had for this.
- ``minilm``: all-MiniLM-L6-v2, which reads English alone: a wrong choice.
- ``minilm for English``: the same model as English's own, the others by words: what the right choice brings.

Corrections: one content word of each English title is misspelt as in ``benchmarks.spelling``, and corrected by nothing
but the words of so many questions, which is what other languages have, or by the general model's, the control. The
share of the misspelt that is read rightly, and of titles that are changed though nothing in them was misspelt; and
what is found by words alone, asked in the way above: as it is and with one word misspelt, corrected less not at all.

Differences are in pairs, with 95 % intervals by bootstrap. Writes ``results/language-encoders.json``.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from askalike.data import default_model
from askalike.forum import Forum, ForumSettings
from askalike.forum import engine as of_forum
from askalike.forum.engine import GeneralWords, LanguageWords
from askalike.search import Query
from askalike.search.correction import Speller, corrected
from askalike.search.query import TermCounts
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.types import Correction, Question
from benchmarks.languages import ENGLISH_ASKED, LANGUAGES, RANKS, asked_of, compared, gain, made, questions
from benchmarks.record import WORK, need_data, write
from benchmarks.spelling import Rule, mistyped, one_misspelt, outcomes, touched

COMMAND = "python -m benchmarks.language_encoders"
DIMENSIONS: Final = 64
SIZES: Final = (500, 2_000, 8_000)
TITLES: Final = 1_000
ASKED: Final = 400
SEED: Final = 7


class NGrams:
    """A ``TextEncoder`` of the letter n-grams of some questions."""

    def __init__(self, language: str, texts: Sequence[str]) -> None:
        self.name = f"python:ngrams-{language}@1"
        self.dimensions = min(DIMENSIONS, len(texts) - 1)
        self._steps = Pipeline(
            [
                ("tfidf", TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True, min_df=2)),
                ("svd", TruncatedSVD(self.dimensions, random_state=SEED)),
            ]
        ).fit(texts)

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries."""
        return np.asarray(self._steps.transform(texts), dtype=np.float32)

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of questions."""
        return self.encode_query(texts)


def found_by(forum: Forum, queries: Sequence[tuple[str, str, str]]) -> list[float]:
    """Return 1 / rank of each query's question."""
    return [gain([one for one, _ in forum.ranking(Query(title, k=RANKS))], wanted) for wanted, _, title in queries]


def by_encoders(forum: Forum, queries: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Return what is found by each choice of encoders for the other languages."""
    values = {"words": found_by(forum, queries)}
    of: dict[str, list[str]] = {}
    for question in forum.questions():
        text = f"{question.title}\n{readable(question.body, question.markup, with_code=False)}"
        of.setdefault(question.language, []).append(text)
    for code in LANGUAGES[1:]:
        forum.use_encoder(NGrams(code, of[code]), language=code)
    forum.encode()
    values["own"] = found_by(forum, queries)
    for code in LANGUAGES[1:]:
        forum.use_encoder("minilm", language=code)
    forum.encode()
    values["minilm"] = found_by(forum, queries)
    for code in LANGUAGES[1:]:
        forum.forget_language_encoder(code)
    forum.use_encoder("minilm", language="en")
    forum.encode()
    values["minilm for English"] = found_by(forum, queries)
    forum.forget_language_encoder("en")
    rows: dict[str, Any] = {}
    for part, codes in {
        "other languages": LANGUAGES[1:],
        "English": LANGUAGES[:1],
        **{code: (code,) for code in LANGUAGES[1:]},
    }.items():
        places = [place for place, (_, code, _) in enumerate(queries) if code in codes]
        rows[part] = compared({name: [one[place] for place in places] for name, one in values.items()}, "words")
        print(part, rows[part], flush=True)
    return rows


def found_corrected(forum: Forum, rule: Rule, asked: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return what is found by queries as they are and misspelt, corrected and not.

    Args:
        asked: id of the question, what is asked.
    """
    chance = np.random.default_rng(SEED)
    rows: dict[str, Any] = {}
    for name in ("as it is", "one word misspelt"):
        values: dict[str, list[float]] = {"not corrected": [], "corrected": []}
        for wanted, title in asked:
            made = one_misspelt(title, forum.analyzer, chance, mistyped) if name != "as it is" else (title, "", "")
            if made is None:
                continue
            query = Query(made[0], k=RANKS)
            for how, one in (("not corrected", query), ("corrected", rule(query)[0])):
                values[how].append(gain([identifier for identifier, _ in forum.ranking(one)], wanted))
        rows[name] = compared(values, "not corrected")
    return rows


def titles_and_questions() -> tuple[list[str], list[Question]]:
    """Return titles to ask, and other questions, in the data's order, which is random."""
    held: list[Question] = []
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            held.append(Question(str(row["id"]), row["title"], row["body"], "markdown"))
            if len(held) == 2 * TITLES + max(SIZES):
                break
    return [one.title for one in held[TITLES : 2 * TITLES]], held[2 * TITLES :]


def ruled(forum: Forum, speller: Speller) -> Rule:
    """Return what corrects a query by a forum's counts and a speller's words."""
    searcher = forum._indexes.searcher()

    def rule(query: Query) -> tuple[Query, tuple[Correction, ...]]:
        prepared = searcher.analyzer.prepare(query.title, query.body, query.markup)
        return corrected(query, prepared, searcher.analyzer, speller, TermCounts(searcher.engine))

    return rule


def corrections() -> list[dict[str, Any]]:
    """Return how English is corrected by the words of so many questions, and by the general model's."""
    asked, held = titles_and_questions()
    packaged = default_model()
    assert packaged is not None
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        folder = WORK / f"words-of-{size}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with Forum.create(folder, settings=ForumSettings(has_vectors=False)) as forum:
            pairs = [one for question in held[:ASKED] if (one := asked_of(question)) is not None]
            forum.store([*(question for _, question in pairs), *held[ASKED:size]])
            forum.catch_up()
            sentences = [(question.id, text) for text, question in pairs]
            spellers: dict[str, Speller] = {
                "its own words": LanguageWords(forum._store, ""),
                "the general model's": GeneralWords(packaged),
            }
            for name, speller in spellers.items():
                rule = ruled(forum, speller)
                misspelt = outcomes(asked, forum.analyzer, rule, mistyped, SEED)
                rows.append({"questions": size, "by": name, "misspelt": misspelt, "as it is": touched(asked, rule)})
                rows[-1]["found"] = found_corrected(forum, rule, sentences)
                print(size, name, misspelt, rows[-1]["as it is"]["changed"], rows[-1]["found"], flush=True)
    return rows


def main() -> None:
    """Run it."""
    pairs = [one for question in questions() if (one := asked_of(question)) is not None]
    forum = made("encoders", TextSettings(languages=LANGUAGES), [question for _, question in pairs])
    spoken = {one.id: one.language for one in forum.questions()}
    queries = [(question.id, spoken[question.id], asked) for asked, question in pairs]
    english = [one for one in queries if one[1] == "en"][:ENGLISH_ASKED]
    queries = english + [one for one in queries if one[1] in LANGUAGES[1:]]
    body = {
        "questions": len(pairs),
        "languages": dict(Counter(spoken.values()).most_common()),
        "found": by_encoders(forum, queries),
    }
    forum.close()
    least, of_forum.LEAST_READ = of_forum.LEAST_READ, 0  # type: ignore[misc]
    body |= {"least questions": least, "corrections": corrections()}
    write("language-encoders", COMMAND, body)


if __name__ == "__main__":
    main()
