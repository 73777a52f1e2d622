"""Sections on how good rankings are: words, words and meaning, the ranking SVM, unseen words, the scorers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.sections.cells import figure, measures_of, numbers, ranking_table, table

__all__ = ["lexical", "model_size", "ranking_svm", "scorers", "searches", "semantic", "semantic_dev", "unseen_words"]

RIVALS = ("bm25", "minilm")
NAMES = {
    "semeval": "SemEval",
    "askubuntu": "AskUbuntu",
    "semeval2016-dev": "SemEval dev",
    "semeval2016-test": "SemEval 2016 test",
    "semeval2017-test": "SemEval 2017 test",
}
"""How sets are written where a capital letter would not do."""


def lexical(result: Mapping[str, Any]) -> list[str]:
    """Return BM25 and TF-IDF on SemEval and the travel forum."""
    lines = ["## BM25 and TF-IDF"]
    titles = {
        "dev": "SemEval dev: re-ranking of 10 candidates, official protocol",
        "test2016": "SemEval 2016 test",
        "test2017": "SemEval 2017 test",
        "retrieval": "Travel duplicates, test split: full retrieval over 4,919 questions",
        "rerank": "Travel duplicates, test split: re-ranking of the search's 20 best, AskUbuntu's protocol",
    }
    for part, systems in {**result["semeval"], **result["travel test"]}.items():
        first = next(iter(systems))
        measures = measures_of(systems[first])
        rows = []
        for name, values in systems.items():
            test = values.get("against_first")
            difference = f"{test['measure']} {test['difference']:+.2f}, p = {test['p_value']:.4f}" if test else ""
            rows.append((name, *(figure(values, measure) for measure in measures), values["queries"], difference))
        header = ("system", *measures, "queries", f"against {first}")
        lines += ["", f"### {titles[part]}", "", *table(header, rows)]
    return lines


def searches(result: Mapping[str, Any]) -> list[str]:
    """Return the search as its users get it, beside words and encoders alone."""
    by_part: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for task, systems in result["tables"].items():
        by_part["test" in task][task] = systems
    return [
        "## The search as its users get it",
        "",
        f"The default ranker, the probability that both ask the same; retrieval asks for {result['shown']} hits, and"
        f" {result['shown']} of each system count. `search, general` is askalike as it is installed, `search, minilm`"
        " one with a forum that MiniLM encodes; `search, student`, where there is one, has queries encoded by a student"
        " of MiniLM that was trained in the forum. `bm25` is the search by words alone (on SemEval and Quora the exact"
        " formula), `general` and `minilm` the cosine of an encoder alone, with the vectors of the same forums; MiniLM"
        " is in 8 bits, as `--model minilm` takes it. Candidates of SemEval and pairs of Quora have the probability"
        " that their forum's search gives them; a forum holds all questions of its set.",
        "",
        "all-MiniLM-L6-v2 was trained by others on duplicate links of Stack Exchange and on Quora's pairs: in travel"
        " and on Quora it may know the answers. The scorer was learned on judged pairs of eleven forums, travel, Slicer"
        " and Qatar (SemEval's train and dev questions) among them; rows with `not learned here` are by weights that"
        " were learned without the forum. Nothing was learned from Quora, and nothing was chosen by these tables.",
        *_tasks(by_part[True]),
        *_tasks(by_part[False]),
    ]


def semantic_dev(result: Mapping[str, Any]) -> list[str]:
    """Return encoders and hybrids on the dev splits, which chose the hybrids' weights."""
    return [
        "## Words, meaning and both: dev splits",
        "",
        f"{_systems(result)} The same queries chose the weights, so the hybrids' figures here are on the high side.",
        "",
        *_models_and_weights(result),
        *_tasks(result["tables"]),
    ]


def semantic(result: Mapping[str, Any]) -> list[str]:
    """Return encoders and hybrids on the test splits; the dev splits have a section of their own."""
    tests = {task: systems for task, systems in result["tables"].items() if task not in result["tuning"]}
    return [
        "## Words, meaning and both: test splits",
        "",
        _systems(result),
        "",
        *_models_and_weights(result),
        *_tasks(tests),
    ]


def _systems(result: Mapping[str, Any]) -> str:
    fixed = result.get("fixed_weight")
    weight = f"w being {fixed:g}" if fixed is not None else "w being the best of 21 on the dev split of the same set"
    return (
        "`bm25` is the forum's own search by words; on SemEval the exact formula over title and body joined, and on"
        " Quora, in both directions, divided by what the two questions score with themselves. `tfidf` is the cosine of"
        " TF-IDF vectors of stems, `minilm` the cosine of all-MiniLM-L6-v2, and every other single name the cosine of"
        " one of our encoders. `bm25 + X` is w times the cosine of X plus (1 - w) times BM25 as a share of the best"
        f" candidate's, {weight}; in retrieval both score the whole collection. `interaction, X` is the forum's ranker"
        " of that name with the states of X: the twenty best of the sum of weight 0.4, compared word by word. No row"
        " here is the default search, which is [above](#the-search-as-its-users-get-it). Such a sum, of weight 0.4 for"
        " our encoders and 0.95 for MiniLM, is the score of the ranker `hybrid`, and the default compares the best by"
        " it. By its model card, all-MiniLM-L6-v2 was trained on duplicate links of Stack Exchange and on Quora's"
        " pairs, so it may have seen pairs of the travel and Quora tasks."
    )


def _models_and_weights(result: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, model in result["models"].items():
        encoder = model["encoder"]
        lines.append(
            f"`{name}` is an {encoder['kind'].upper()} of {encoder['input_size']} → {encoder['hidden_size']} dimensions"
            f" (pooling: {encoder['pooling']}) with {model['parameters']:,} parameters and {model['words']:,} word"
            " vectors."
        )
    if result.get("fixed_weight") is None and result["tuning"]:
        names = list(dict.fromkeys(name for found in result["tuning"].values() for name in found))
        rows = [
            (task, *(f"{found[name]['weight']:g}" if name in found else "" for name in names))
            for task, found in result["tuning"].items()
        ]
        lines += ["", "The weight of the cosine that was best:", "", *table(("task", *names), rows)]
    return lines


def _tasks(tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = []
    for task, systems in tables.items():
        lines += ["", f"### {_title(task)}", "", *ranking_table(systems, RIVALS)]
    return lines


def _title(task: str) -> str:
    name, _, rest = task.partition(" ")
    return " ".join([NAMES.get(name, name.capitalize()), *([rest] if rest else [])])


def model_size(result: Mapping[str, Any]) -> list[str]:
    """Return what the general model's dev scores are with fewer words."""
    first = next(iter(result["rows"].values()))
    columns = [name for name in first if name != "megabytes"]
    rows = [
        (name, f"{values['megabytes']:.1f}", *(f"{values[column]:.2f}" for column in columns))
        for name, values in result["rows"].items()
    ]
    return [
        "## The general model with fewer words",
        "",
        "Its most frequent words, the others read as unknown; the encoder alone on dev splits, main measures.",
        "",
        *table(("words", "MB", *columns), rows),
    ]


def ranking_svm(result: Mapping[str, Any]) -> list[str]:
    """Return the ranking SVM beside BM25 and TF-IDF."""
    vectors, speed = result["word vectors"], result["speed"]
    lines = [
        "## Ranking SVM over similarity measures",
        "",
        f"A linear ranking SVM ({result['svm']['package']}), C the best of"
        f" {', '.join(f'{cost:g}' for cost in result['svm']['costs'])} by MAP on the dev split. Its word vectors have"
        f" {vectors['size']} dimensions and {vectors['words']:,} words, from {vectors['reddit questions']:,} Reddit"
        " questions and the questions of the sets. `search` is the order in which the candidates were given. One"
        f" thread makes the {speed['features']} measures of {speed['pairs/s, each text met first']:,} pairs a second"
        f" ({speed['words in a body']} words in a body), {speed['pairs/s, texts prepared before']:,} where the texts"
        " have been prepared.",
    ]
    for key, title, protocol in (
        ("semeval", "SemEval", "official protocol"),
        ("travel re-ranking", "the travel duplicates", "re-ranking by AskUbuntu's protocol"),
    ):
        learned = result[key]["learned"]
        training = learned["training"]
        chosen = "; ".join(
            f"`{name}`: {facts['features']} measures, C = {facts['C']:g}, strongest"
            f" {', '.join(list(facts['strongest weights'])[:4])}"
            for name, facts in learned.items()
            if name != "training"
        )
        lines += [
            "",
            f"Learned from the {training['queries with both labels']} of {training['queries']} training queries of"
            f" {title} that have positive and other candidates ({training['pairs of question and candidate']:,} pairs"
            f" of all of them, {training['positive']:,} positive). {chosen}.",
        ]
        for task, systems in result[key]["scores"].items():
            lines += ["", f"### {_title(task)}, {protocol}", "", *ranking_table(systems, ("bm25",))]
    return lines


def unseen_words(result: Mapping[str, Any]) -> list[str]:
    """Return what composing unseen words from letters adds, which is nothing."""
    added = {
        name: [row for row in found["systems"].values() if "adds" in row] for name, found in result["sets"].items()
    }
    rows = [
        (name, _share(result["sets"][name]["unseen_share"]), len(found), *_range(found))
        for name, found in added.items()
    ]
    every = [row["p_value"] for found in added.values() for row in found]
    cosines = result["held_out_cosine"]
    return [
        "## Unseen words: composed of letters, rejected",
        "",
        "A word without a vector gets the mean of vectors of its hashed letter n-grams, fitted to the known words. The"
        f" cosine with the trained vector of held-out words is {cosines[str(result['ridge'])]:.3f}, that of the mean of"
        f" all words {cosines['mean of all words']:.3f}. What it adds to the MAP of the mean of word vectors, over"
        f" vocabularies of three sizes and three weightings: {sum(value < 0.05 for value in every)} of {len(every)}"
        " differences has p < 0.05. It is not part of the program.",
        "",
        *table(("set", "words unseen", "differences", "lowest", "highest", "least p"), rows),
    ]


def _share(shares: Mapping[str, float]) -> str:
    return f"{100 * min(shares.values()):.1f}–{100 * max(shares.values()):.1f} %"


def _range(rows: Sequence[Mapping[str, float]]) -> tuple[str, str, str]:
    adds = [row["adds"] for row in rows]
    return f"{min(adds):+.2f}", f"{max(adds):+.2f}", f"{min(row['p_value'] for row in rows):.4f}"


def scorers(result: Mapping[str, Any]) -> list[str]:
    """Return published figures of released rankings and ours."""
    rows = [
        (
            name,
            check["protocol"],
            numbers(check["published"]),
            numbers(check["ours"]),
            "yes" if check["equal"] else "no",
        )
        for name, check in result["checks"].items()
    ]
    intro = ["## Scorers", "", "Published figures of released rankings, and ours for the same files.", ""]
    return intro + table(("set", "protocol", "published", "ours", "equal"), rows)
