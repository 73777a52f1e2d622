"""How misspelt words of a query are corrected: rightly, wrongly, or not at all, and what must not be touched.

Command: ``python -m benchmarks.spelling [--dev | --again]``. Forums are built without the questions that are asked, so
that their words are known only where others have them. Parameters were chosen on the part "dev", the Slicer forum;
"test" is the travel forum and 221,741 questions of Reddit.

- Misspelt: titles with one edit in one content word, drawn once as people type (a letter left out, often of two; put
  in, mostly twice or by a neighbouring key; changed for a neighbouring key or another vowel; two swapped) and once with
  any edit and letter as likely. Right is a word with the term of the original one.
- Untouched: the titles as they are, whose own misspellings are not told from right words, and blocks of code and logs
  of the Slicer forum as a body without markup.
- Search: recall@10 over the travel forum's duplicates, all content words misspelt as in ``benchmarks.misspelling``, and
  one word of each title.

Each beside the rule that was used before: a word that neither forum nor encoder has is read as the one of those one
edit away and known to both which the X"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from string import ascii_lowercase
from typing import Any, Final
from unittest import mock

import numpy as np

from askalike.data import default_model
from askalike.evaluation import bootstrap_difference, bootstrap_mean, randomisation_test
from askalike.forum import Forum
from askalike.forum.engine import GeneralWords, LocalEngine
from askalike.index.words import FieldWeights, WordIndex
from askalike.readers.detection import READERS
from askalike.readers.frame import ReadContext
from askalike.search import Query
from askalike.search import searcher as search
from askalike.search.correction import Speller, corrected
from askalike.search.query import TermCounts
from askalike.store import ForumLayout, open_store
from askalike.text.analyzer import Analyzer, Prepared
from askalike.text.markup import plain_text, segments
from askalike.text.misspelling import NEIGHBOURS, meant
from askalike.text.tokens import words
from askalike.types import Correction, Question
from benchmarks.misspelling import DRAWS, Search, edited, values, with_edits
from benchmarks.quality_sets import WORDS_ALONE, forum_folder, travel_tasks
from benchmarks.record import RESULTS, WORK, need_data, write
from benchmarks.systems import RetrievalTask

COMMAND = "python -m benchmarks.spelling"
FORUMS: Final = {"dev": ("slicer",), "test": ("travel", "devops", "reddit")}
HELD_OUT: Final = {"slicer": 2_500, "travel": 1_200, "devops": 800, "reddit": 3_000}
LEAST: Final = 4
SEED: Final = 7
SHARES: Final = {"left out": 0.35, "put in": 0.3, "changed": 0.2, "swapped": 0.15}
_WORD: Final = re.compile(r"(?<![^\s(\"'])[A-Za-z][a-z]{3,}(?![^\s)\"',.;:!?])")
VOWELS: Final = "aeiou"
_LOG: Final = re.compile(r"Traceback \(most recent|\[(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\]|CMake Error|error C\d{4}")

Rule = Callable[[Query], tuple[Query, tuple[Correction, ...]]]


def mistyped(word: str, chance: np.random.Generator) -> str:
    """Return a word with one edit as people make them, seldom at its first letter; never the word itself."""
    while True:
        kind = chance.choice(list(SHARES), p=list(SHARES.values()))
        at = int(chance.integers(0 if chance.random() < 0.1 else 1, len(word)))
        before, here, after = word[:at], word[at], word[at + 1 :]
        around = NEIGHBOURS.get(here, ascii_lowercase)
        if kind == "left out":
            twins = [place for place in range(1, len(word)) if word[place] == word[place - 1]]
            if twins and chance.random() < 0.5:
                at = int(chance.choice(twins))
            made = word[:at] + word[at + 1 :]
        elif kind == "put in":
            made = before + here + (here if chance.random() < 0.6 else _one_of(around, chance)) + after
        elif kind == "changed":
            is_vowel = here in VOWELS and chance.random() < 0.5
            made = before + _one_of(VOWELS if is_vowel else around, chance) + after
        else:
            made = before + after[:1] + here + after[1:]
        if made != word:
            return made


def _one_of(letters: str, chance: np.random.Generator) -> str:
    return letters[int(chance.integers(len(letters)))]


def one_misspelt(
    title: str, analyzer: Analyzer, chance: np.random.Generator, edit: Callable[[str, np.random.Generator], str]
) -> tuple[str, str, str] | None:
    """Return a title with one content word misspelt, the word, and its misspelling; None where it has no such word.

    What is made is not of the word's own term: that would be found as it is.
    """
    places = [one for one in _WORD.finditer(title) if analyzer.terms(one[0])]
    if not places:
        return None
    place = places[int(chance.integers(len(places)))]
    word = place[0].lower()
    made = edit(word, chance)
    while analyzer.terms(made) == analyzer.terms(word):
        made = edit(word, chance)
    return title[: place.start()] + made + title[place.end() :], word, made


def outcomes(titles: Sequence[str], analyzer: Analyzer, rule: Rule, edit: Any, seed: int) -> dict[str, Any]:
    """Return how many misspelt words were read rightly, wrongly, or left, and how often another word was changed."""
    chance = np.random.default_rng(seed)
    drawn = [one for title in titles if (one := one_misspelt(title, analyzer, chance, edit))]
    counts = {"rightly": 0, "wrongly": 0, "left": 0, "another word changed": 0}
    for title, word, made in drawn:
        found = {one.written: one.meant for one in rule(Query(title))[1]}
        read = found.pop(made, None)
        is_right = read is not None and analyzer.terms(read) == analyzer.terms(word)
        counts["rightly" if is_right else "left" if read is None else "wrongly"] += 1
        counts["another word changed"] += bool(found)
    return {"queries": len(drawn)} | counts


def touched(titles: Sequence[str], rule: Rule) -> dict[str, Any]:
    """Return how many titles were changed as they are, with what was changed in the first hundred of them."""
    changed = [found for title in titles if (found := rule(Query(title))[1])]
    examples = [f"{one.written} > {one.meant}" for found in changed for one in found]
    return {"titles": len(titles), "changed": len(changed), "examples": examples[:100]}


def touched_code(blocks: Sequence[str], rule: Rule) -> dict[str, Any]:
    """Return how many blocks of code and logs were changed, and how many words in them."""
    found = [corrections for block in blocks if (corrections := rule(Query("", block))[1])]
    return {
        "blocks": len(blocks),
        "pieces": sum(len(block.split()) for block in blocks),
        "blocks changed": len(found),
        "words changed": sum(map(len, found)),
        "examples": [f"{one.written} > {one.meant}" for corrections in found for one in corrections][:100],
    }


def code_and_logs(questions: Sequence[Question]) -> list[str]:
    """Return the blocks of code of some questions, those of three words at least, and the logs of those that mark none.

    A log is what follows the first of ``_LOG`` in a body, 1,000 characters at most.
    """
    blocks = (part.text for one in questions for part in segments(one.body, one.markup) if part.kind == "code")
    logs = (one.body[found.start() : found.start() + 1_000] for one in questions if (found := _LOG.search(one.body)))
    return [text for text in (*blocks, *logs) if len(text.split()) >= 3]


def times_ms(queries: Sequence[Query], rule: Rule) -> dict[str, float]:
    """Return the median and 95th percentile of the milliseconds of processor time that a query takes."""
    spent: list[float] = []
    for query in queries:
        began = time.process_time()
        rule(query)
        spent.append(1000 * (time.process_time() - began))
    return {"median": round(median(spent), 3), "p95": round(float(np.percentile(spent, 95)), 3)}


# -- the rule before ---------------------------------------------------------------------------------------------------


def corrected_before(
    query: Query, _prepared: Prepared, analyzer: Analyzer, speller: Speller, counts: TermCounts
) -> tuple[Query, tuple[Correction, ...]]:
    """Return a query with the words that neither forum nor encoder has read as what the encoder has seen most often."""
    body = plain_text(query.body[:10_000], query.markup, with_code=analyzer.settings.with_code)

    def known(term: str) -> int:
        return counts.look_up([term])[term]

    unknown: dict[str, None] = {}
    for word in words(f"{query.title}\n{body}"):
        if len(word) >= LEAST and word.isalpha() and speller.rank(word) is None and len(unknown) < 32:
            terms = analyzer.terms(word)
            if terms and not any(map(known, terms)):
                unknown[word] = None
    found: list[Correction] = []
    for word in unknown:
        near = {other: rank for other in meant(word) if (rank := speller.rank(other)) is not None}
        for other in sorted(near, key=lambda other: (near[other], other)):
            terms = analyzer.terms(other)
            if terms and all(known(term) >= 2 for term in terms):
                pattern = re.compile(rf"(?<![\w@./\\-]){re.escape(word)}(?!\w|[@./\\-]\w)", re.IGNORECASE)
                title, in_title = pattern.subn(other, query.title)
                text, in_body = pattern.subn(other, query.body)
                if in_title or in_body:
                    query = replace(query, title=title, body=text)
                    found.append(Correction(word, other))
                break
    return query, tuple(found)


def _of_queries(
    rule: Callable[..., tuple[Query, tuple[Correction, ...]]], analyzer: Analyzer, speller: Speller, counts: TermCounts
) -> Rule:
    """Return a rule that prepares the query too."""

    def read(query: Query) -> tuple[Query, tuple[Correction, ...]]:
        prepared = analyzer.prepare(query.title, query.body, query.markup)
        return rule(query, prepared, analyzer, speller, counts)

    return read


RULES: Final = {"before": corrected_before, "now": corrected}


# -- forums ------------------------------------------------------------------------------------------------------------


def all_questions(name: str) -> list[Question]:
    """Return the questions of a set."""
    if name == "devops":
        read = READERS["table"].read(need_data("devops-stackexchange/posts.csv.gz"), ReadContext())
        return [one for one in read if isinstance(one, Question)]
    if name != "reddit":
        with Forum.open(forum_folder(name), settings=WORDS_ALONE) as forum:
            return list(forum.questions())
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        found = map(json.loads, lines)
        return [Question(str(num), one["title"], one["body"], "markdown") for num, one in enumerate(found)]


def held_out(name: str) -> tuple[Path, list[Question]]:
    """Return the folder of a forum without some of its questions, built when it is not there, and these."""
    questions = all_questions(name)
    order = np.random.default_rng(SEED).permutation(len(questions))
    asked = [questions[at] for at in order[: HELD_OUT[name]]]
    folder, mark = WORK / f"spelling-{name}.forum", WORK / f"spelling-{name}.complete"
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with Forum.create(folder, settings=WORDS_ALONE) as forum:
            rest = [questions[at] for at in sorted(order[HELD_OUT[name] :])]
            for start in range(0, len(rest), 10_000):
                forum.add(rest[start : start + 10_000])
        mark.touch()
    return folder, asked


def measured(name: str, speller: Speller) -> dict[str, Any]:
    """Return what both rules do to the held-out titles of a set."""
    folder, asked = held_out(name)
    titles = [one.title for one in asked]
    with Forum.open(folder, settings=WORDS_ALONE) as forum:
        analyzer = forum.analyzer
        layout = ForumLayout(folder)
        engine = LocalEngine(open_store(layout), WordIndex(layout.lexical), FieldWeights())
        rows: dict[str, Any] = {}
        for rule_name, rule in RULES.items():
            fixed = _of_queries(rule, analyzer, speller, TermCounts(engine))
            rows[rule_name] = {
                "as people type": outcomes(titles, analyzer, fixed, mistyped, SEED),
                "any letter": outcomes(titles, analyzer, fixed, edited, SEED),
                "as written": touched(titles, fixed),
                "code": touched_code(code_and_logs(asked), fixed),
                "title_ms": times_ms([Query(one.title) for one in asked], fixed),
                "question_ms": times_ms([Query(one.title, one.body, one.markup) for one in asked], fixed),
            }
            print(name, rule_name, json.dumps(rows[rule_name]), flush=True)
    return {"questions": engine.statistics(()).size, "rules": rows}


# -- search ------------------------------------------------------------------------------------------------------------


def searched(task: RetrievalTask) -> dict[str, Any]:
    """Return recall@10 of the default search under misspellings: uncorrected, by the rule before, and now."""
    with Forum.open(forum_folder("travel"), settings=WORDS_ALONE) as forum:
        analyzer = forum.analyzer
    found: dict[str, Any] = {"queries": len(task.queries), "draws": DRAWS}
    kinds = {
        "as written": [task],
        "every word misspelt": [with_edits(task, draw) for draw in range(DRAWS)],
        "one word of the title misspelt": [with_one_edit(task, analyzer, draw) for draw in range(DRAWS)],
    }
    for kind, tasks in kinds.items():
        by_rule: dict[str, list[float]] = {}
        for name, rule in {"uncorrected": None, **RULES}.items():
            with mock.patch.object(search, "corrected", rule or corrected):
                draws = [values(Search(is_corrected=rule is not None), one) for one in tasks]
            by_rule[name] = [fmean(draw[query] for draw in draws) for query in task.queries if query in draws[0]]
        gained = bootstrap_difference(by_rule["now"], by_rule["before"])
        found[kind] = {name: _shown(bootstrap_mean(one)) for name, one in by_rule.items()} | {
            "gained over before": _shown(gained),
            "p_value": round(randomisation_test(by_rule["now"], by_rule["before"]).p_value, 4),
        }
        print(kind, found[kind], flush=True)
    return found


def with_one_edit(task: RetrievalTask, analyzer: Analyzer, draw: int) -> RetrievalTask:
    """Return a task whose queries are titles with one misspelt word."""
    chance = np.random.default_rng(draw)
    queries = {}
    for identifier, question in task.queries.items():
        made = one_misspelt(question.title, analyzer, chance, mistyped)
        queries[identifier] = replace(question, title=made[0] if made else question.title, body="", markup="plain")
    return replace(task, queries=queries)


def _shown(found: Any) -> dict[str, Any]:
    return {
        "mean": round(100 * found.mean, 2),
        "interval95": [round(100 * found.low, 2), round(100 * found.high, 2)],
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", action="store_true", help="only the forum that parameters are chosen on")
    parser.add_argument("--again", action="store_true", help="only the search; the rest is kept")
    given = parser.parse_args()
    if given.again:
        held = json.loads((RESULTS / "spelling.json").read_text(encoding="utf-8"))
        kept = {name: {"commit": held["commit"], **found} for name, found in held["forums"].items()}
        write("spelling", f"{COMMAND} --again", {"forums": kept, "search": searched(_duplicates())})
        return
    model = default_model()
    assert model is not None, "the general model comes with the package"
    speller = GeneralWords(model)
    forums = {
        name: measured(name, speller)
        for part in ("dev", "test")
        for name in FORUMS[part]
        if part == "dev" or not given.dev
    }
    if given.dev:
        return
    write("spelling", COMMAND, {"forums": forums, "search": searched(_duplicates())})


def _duplicates() -> RetrievalTask:
    task = travel_tasks("test")["travel test, retrieval"]
    assert isinstance(task, RetrievalTask), "of both tasks of the travel forum this is retrieval"
    return task


if __name__ == "__main__":
    main()
