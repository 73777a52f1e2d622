"""The section on the scorer: order and probability on forums that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.sections.cells import table

INFORMATIVE = "copy of title, informative"
FORMS = ("title", "title and body")


def believed(result: Mapping[str, Any]) -> list[str]:
    """Return order, calibration, known answers and the effect of judgements."""
    judged, travel = result["judged"], result["travel, open duplicate links"]
    low, high = (f"{value:+.3f}" for value in travel["difference"][1:])
    queue = result["judgements from the top of the queue"]
    counts = list(next(iter(queue.values())))
    forms = {name: {form: by[form] for form in FORMS} for name, by in result["by form"].items()}
    elsewhere = [name for name in next(iter(result["titles of other forums"].values())) if name[0].isdigit()]
    earlier = {name: row["commit"] for name, row in result["pools"].items() if "commit" in row}
    return [
        "## One probability for each hit",
        "",
        f"Learned on {judged['pools']['pairs']:,} pairs of the judged pools and {judged['others']['pairs']:,} that were"
        " read for it, of eleven forums; every figure of a forum is by weights that were fitted without it. nDCG@5 is"
        " graded, over the judged candidates; off by: mean distance of ten equal groups, in points of 100."
        " Differences are against the sum that was the default before, paired, with 95 % intervals.",
        "",
        *table(
            ("system", "nDCG@5", "difference", "p", "off by, grade ≥ 2", "Brier", "off by, grade 3"),
            [_row(name, one) for name, one in result["pools"].items()],
        ),
        "",
        *(f"Measured at commit `{commit}`, by the same weights: {name}." for name, commit in earlier.items()),
        *([""] if earlier else []),
        f"Travel's {travel['queries']:,} questions with a duplicate link, MRR@10 by weights without travel:"
        f" {travel['mrr@10']['hybrid']:.3f} by the sum, {travel['mrr@10']['probability']:.3f} by the probability"
        f" ({travel['difference'][0]:+.3f}, {low} to {high}, p = {travel['p']:.4f}).",
        "",
        *_times(result["time"]),
        "",
        "Every judged query by its title and with its body, by weights without its forum: how many of 100 pairs are"
        " said to have grade 2 or 3, how many have, and by how much ten equal groups are off (of some forums these are"
        " of three pairs each, where chance alone brings 5 to 10).",
        "",
        *table(
            ("forum", "pairs", *(f"{version}, {form}" for version in forms for form in forms[version])),
            [
                (forum, str(titles["pairs"]), *(_said(one[forum]) for by in forms.values() for one in by.values()))
                for forum, titles in forms["words"]["title"].items()
            ],
        ),
        "",
        "What is known without reading:",
        "",
        *table(
            (
                "version",
                "titles of other forums and nonsense: no hit above 15 %",
                "copies at 97 % or more",
                "titles alone",
                "informative titles alone",
            ),
            [
                (
                    name,
                    f"{one['elsewhere and nonsense']['none above 15%']:.1f} % of"
                    f" {one['elsewhere and nonsense']['queries']:,}",
                    f"{one['copy']['97% or more']:.1f} %",
                    f"{one['copy of title']['97% or more']:.1f} %",
                    f"{one[INFORMATIVE]['97% or more']:.1f} %" if INFORMATIVE in one else "",
                )
                for name, one in result["known answers"].items()
            ],
        ),
        "",
        "Titles of other forums and nonsense are many and easy. By how much each counts while it learns, beside a"
        " judged pair: what judged pairs gain by the smaller weight, ln P a query with its 95 % interval over queries;"
        " how far probabilities of the pools are off; and how many of such titles find nothing above 15 %.",
        "",
        *table(
            (
                "version",
                "counted",
                "gain",
                *(f"off by, {one}" for one in elsewhere),
                *(f"nothing, {one}" for one in elsewhere),
            ),
            [_elsewhere(name, one) for name, one in result["titles of other forums"].items()],
        ),
        "",
        "Off by, on all other pairs, after so many judgements from the top of the queue (without them):",
        "",
        *table(
            ("forum", *(f"{count} judgements" for count in counts)),
            [
                (name, *(f"{one[count]['calibration error']:.2f} ({one[count]['before']:.2f})" for count in counts))
                for name, one in queue.items()
            ],
        ),
    ]


def drawn(result: Mapping[str, Any]) -> list[str]:
    """Return order and calibration on queries that were drawn by chance and read after the weights were learned."""
    read, both = result["readings"], result["calibration"]
    twice, learned = read["read twice"], result["learned with them"]["all"]
    whole, off = result["whole forums"], result["whole forums, off by"]
    orders = list(whole["all"]["ndcg@5"])
    differences = list(whole["all"]["differences"])
    forums = list(next(iter(both["drawn"].values())))
    return [
        "## Queries drawn by chance",
        "",
        f"{read['queries']} queries drawn by chance from eight forums after the weights had been learned, with"
        f" {read['pairs']:,} candidates: the first five of words, of the default search with the package's encoder and"
        " with MiniLM, and of MiniLM's cosine, and two from further down. Graded by the guide of the judged pools, by"
        f" {read['readers']} readings of a language model that was shown no system, rank or score; of"
        f" {twice['pairs']} pairs that two readings have {100 * twice['equal']:.0f} % have the same grade (kappa, 2 or"
        f" more: {twice['kappa, 2 or more']:.2f}). Nothing was learned or chosen by them, and every figure of a forum"
        " is by weights that were fitted without it.",
        "",
        "Order: graded nDCG@5 of the judged candidates, every query by its title and with its body, with paired 95 %"
        " intervals; whole: as searches of the whole forum list them. The student of each whole forum was trained by"
        " `askalike train --teacher minilm` on none of these queries, and asks among MiniLM's vectors.",
        "",
        *table(
            ("forum", "queries", *orders, *differences),
            [
                *(_order(name, one, orders, differences) for name, one in result["candidates"].items()),
                *(_order(f"{name}, whole", one, orders, differences) for name, one in whole.items()),
            ],
        ),
        "",
        "Probabilities: by how many points of 100 ten equal groups are off, of the queries as they were asked; in"
        " brackets what chance brings on average, were every probability right. Beside them together with the queries"
        " of the judged pools.",
        "",
        *table(
            ("version", "grade", *(f"{forum}{with_}" for forum in forums for with_ in ("", ", with pools"))),
            [
                (version, grade, *(_off(both[kind][version][forum][grade]) for forum in forums for kind in both))
                for version in both["drawn"]
                for grade in ("grade 2 or 3", "grade 3")
            ],
        ),
        "",
        "As searches of whole forums say them: "
        + "; ".join(f"{by} {', '.join(f'{name} {value:.1f}' for name, value in of.items())}" for by, of in off.items())
        + ".",
        "",
        "Weights that learn from these queries too gain nothing beyond chance, so the package keeps those that it has:"
        " "
        + "; ".join(
            f"{version} {_signed(one['ln P a query'], 3)} of ln P a query, {_signed(one['ndcg@5'], 2)} of nDCG@5"
            for version, one in learned.items()
        )
        + ".",
    ]


def _order(name: str, one: Mapping[str, Any], orders: Sequence[str], differences: Sequence[str]) -> tuple[str, ...]:
    gains, less = one["ndcg@5"], one["differences"]
    return (
        name,
        str(one["queries"]),
        *(f"{gains[order]:.1f}" if order in gains else "" for order in orders),
        *(_signed(less[pair], 1) if pair in less else "" for pair in differences),
    )


def _off(one: Mapping[str, Any]) -> str:
    return f"{one['off by']:.1f} ({one['by chance'][0]:.1f})"


def _signed(bounds: Sequence[float], digits: int) -> str:
    low, mean, high = bounds
    return f"{mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def read_again(result: Mapping[str, Any]) -> list[str]:
    """Return how far two readings of judged pairs agree."""
    names = ("equal", "within one", "kappa, quadratic", "kappa, 2 or more")
    rows = [
        (forum, str(values["pairs"]), *(f"{values[name]:.2f}" for name in names))
        for forum, values in result["found"].items()
    ]
    return [
        "## Judged pairs, read again",
        "",
        "A tenth of the pairs that were graded here, beside the pools that were there, graded once more by a reader (a"
        " language model) who knew no grade; half of those drawn had grade 2 or 3. Pairs of grade 2 are what readers"
        " differ about.",
        "",
        *table(("forum", "pairs", *names), rows),
    ]


def _times(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    titles, questions = ([one[f"{kind}, added, p50 ms"] for one in found.values()] for kind in ("title", "question"))
    return [
        f"Processor time that the probability adds to a search in place of the sum, in turns, in the forums of"
        f" {', '.join(found)}: titles {', '.join(f'{one:.1f}' for one in titles)} ms, questions"
        f" {', '.join(f'{one:.1f}' for one in questions)} ms (p50)."
    ]


def judged(result: Mapping[str, Any]) -> list[str]:
    """Return what judgements change, set by set, what a forum's own rate is worth, and what minima show."""
    top, worst = result["from the top of the queue"], result["worst"]
    sets = {name for of in top.values() for name in of}
    offset = result["the forum's offset"]
    moved = {
        kind: by[max(by, key=int)]["error without judgements, by knots alone, with the offset"]
        for kind, by in offset.items()
    }
    names = [name for name, (_, near, both) in moved["queue"].items() if near != both]
    names += [name for name, (_, near, both) in moved["top"].items() if near != both and name not in names]
    gains = [
        (count, *(_gain(offset[kind][count]["likelihood of a query"]) for kind in ("top", "queue")))
        for count in offset["top"]
    ]
    rates = [
        (
            version,
            forum,
            f"{one['error']:.1f}",
            f"{one['offset']:+.2f}",
            f"{one['error with it']:.1f}",
            f"{one['by chance'][0]:.1f} ({one['by chance'][1]:.1f})",
        )
        for version, by in result["pools, the forum's own rate known"].items()
        for forum, one in by.items()
    ]
    words = result["pools, the forum's own rate known"]["words"]["travel"]
    return [
        "## What judgements change",
        "",
        f"{len(sets)} sets: the pools and other judged pairs of eleven forums, travel's links, Quora's labels,"
        " SemEval's test questions; every forum by weights that were fitted without it. The likeliest pairs of a set"
        " are judged, or those that the queue shows (a fifth drawn from strata), and the probability of all other pairs"
        " is updated. After 0, 1, 5, 20 and 100 judgements of the likeliest, in every version of the scorer,"
        f" {worst['sets and counts that are worse beyond chance']} of"
        f" {sum(len(one) for of in top.values() for one in of.values())} sets and counts are worse calibrated than"
        " without, by the lower end of a paired 95 % interval, and a perfect hit loses"
        f" {worst['points that a perfect hit loses']:g} points at most, even where all that is judged is different.",
        "",
        "An offset of the whole forum beside knots that are moved by the judgements near them: what it adds to ln P of"
        " a query's other pairs, the mean of the versions, with its 95 % interval over queries.",
        "",
        *table(("judgements", "the likeliest", "as the queue draws"), gains),
        "",
        "Off by, on all other pairs, after 100 judgements, where the offset changes anything:",
        "",
        *table(
            (
                "set",
                *(f"{kind}: {of}" for kind in ("queue", "likeliest") for of in ("without", "knots", "and the offset")),
            ),
            [(name, *(f"{one:.1f}" for kind in ("queue", "top") for one in moved[kind][name])) for name in names],
        ),
        "",
        _by_words_alone(words, moved["queue"]["travel, words"]),
        "",
        "The pools as they are said, by the offset of the logit that the forum's own labels choose, and by chance"
        " alone:",
        "",
        *table(("version", "forum", "off by", "own offset", "off by with it", "by chance (once in twenty)"), rates),
        "",
        "How many of 100 queries show anything by a least probability; “nothing like it was asked” is said below .015,"
        " and the widget's defaults are in bold.",
        "",
        *table(
            ("version", "least probability", *next(iter(result["shown"].values()))["queries"]),
            [
                (version, _minimum(minimum, of["default"]), *(f"{one:.1f}" for one in by.values()))
                for version, of in result["shown"].items()
                for minimum, by in of["percent shown"].items()
            ],
        ),
    ]


def _by_words_alone(words: Mapping[str, Any], moved: Sequence[float]) -> str:
    before, _, after = moved
    mean, limit = words["by chance"]
    return (
        f"**By words alone the pools of travel** are off by {words['error']:.1f} points: twice as many of the"
        " candidates of these 26 queries are duplicates as of other forums', and nothing in words shows it. Were their"
        f" own rate known, they would be off by {words['error with it']:.1f}; were every probability right, ten groups"
        f" of so few pairs would be off by {mean:.1f} on average, and by {limit:.1f} once in twenty. They are a small"
        " sample: beside 110 others of travel that were drawn by chance they are off by less than half as much"
        " ([queries drawn by chance](#queries-drawn-by-chance)). A hundred judgements as the queue draws them bring its"
        f" other pairs from {before:.1f} to {after:.1f} points."
    )


def _gain(bounds: Sequence[float]) -> str:
    low, mean, high = bounds
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})" if low or high else "none"


def _minimum(minimum: str, default: float) -> str:
    return f"**{minimum}**" if float(minimum) == default else minimum


def _elsewhere(name: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    low, mean, high = one["likelihood of a query"]
    weights = [one[key] for key in one if key[0].isdigit()]
    return (
        name,
        f"{one['counted']:g}",
        f"{mean:+.3f} ({low:+.3f} to {high:+.3f})",
        *(", ".join(f"{forum} {off:.1f}" for forum, off in by["calibration error"].items()) for by in weights),
        *(f"{by['elsewhere and nonsense']['none above 15%']:.1f} %" for by in weights),
    )


def _said(one: Mapping[str, Any]) -> str:
    return f"{one['said']:.1f}, {one['was']:.1f} ({one['calibration error']:.1f})"


def _row(name: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    against = one.get("against", {}).get("the sum, default before")
    related, same = one.get("related"), one.get("same")
    return (
        name,
        f"{one['ndcg@5']:.1f}",
        f"{against['difference']:+.1f} ({against['low']:+.1f} to {against['high']:+.1f})" if against else "",
        f"{against['p']:.4f}" if against else "",
        f"{related['calibration error']:.1f}" if related else "",
        f"{related['brier']:.4f}" if related else "",
        f"{same['calibration error']:.1f}" if same else "",
    )
