"""Sections on the search: indexing, latency, changes, kills, its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.sections.cells import seconds, table

__all__ = [
    "cost",
    "damage",
    "drawn_pairs",
    "indexing",
    "journeys",
    "kills",
    "likely_pairs",
    "loads",
    "many",
    "ramn_tuning",
    "reranking",
    "scale",
    "tuning",
    "updates",
]

PERCENTILES = ("p50_ms", "p95_ms", "p99_ms")


def indexing(result: Mapping[str, Any]) -> list[str]:
    """Return indexing rate and search latency beside the rivals."""
    made = result["indexing"]
    encoded = f", {made['encoded']:,} of them encoded," if made.get("encoded") else ""
    lines = [
        "## Indexing and searching 224,741 Reddit questions",
        "",
        f"Indexed {made['questions']:,} questions ({made['rejected']} rejected){encoded} in {made['seconds']:,.0f} s,"
        f" {made['questions_per_s']:,} a second (phases: {seconds(made['phase_s'])}), with at most"
        f" {made['peak_memory_mb']:,} MB of memory, into {made['size_mb']:,.0f} MB on disk"
        f" ({made['archive_mb']:.0f} MB of it the archive).",
    ]
    for kind, engines in result["search"].items():
        rows = [(name, *(f"{values[key]:.2f}" for key in PERCENTILES)) for name, values in engines.items()]
        lines += ["", f"Query: {kind}; best {result['k']}; milliseconds.", ""]
        lines += table(("engine", "p50", "p95", "p99"), rows)
    ranker = result.get("default_ranker")
    default = f" `Forum.similar` without a name ranks by the default, `{ranker}`." if ranker else ""
    return [
        *lines,
        "",
        f"{result['queries']:,} real titles ({result['queries_of_slow_rivals']} for the two slow rivals). All engines"
        " get the same terms. The rivals' time is ranking alone; `Forum.similar` also reads the questions, their"
        f" answers and the words that matched.{default} Building the rivals took"
        f" {seconds(result['rivals_build_s'])}; of them, only FTS5 takes single changes.",
    ]


def scale(result: Mapping[str, Any]) -> list[str]:
    """Return what one forum of a size costs to build, keep and ask, beside the rivals of each part."""
    made, opening, pairs = result["indexing"], result["opening"], result["likely pairs"]
    copies = f" ({result['copies']:,} of them copies with other words)" if result["copies"] else ""
    phases = [
        (name, f"{one['seconds']:,.1f}", f"{one['time left wrong by at most']:.1f}")
        for name, one in made["phases"].items()
    ]
    memory = made["peak_memory_mb"]
    worker, own = memory.get("a worker", 0), memory.get("this process, without mapped files", memory["this process"])
    load = result["load_15_min_at_end"]
    busy = "; seconds on the clock are above those of a quiet one" if load > 4 else ""
    lines = [
        f"## One forum of {result['questions']:,} questions",
        "",
        f"Built from Reddit's questions{copies} in {made['seconds']:,.0f} s;"
        f" {sum(made['processor_s'].values()):,.0f} s of processor time, of which workers took"
        f" {made['processor_s']['its workers']:,.0f}. Memory: {own:,} MB"
        + (f", and up to {worker:,} MB in each worker" if worker else "")
        + (f", without mapped files, with them {memory['this process']:,} MB" if own != memory["this process"] else "")
        + f". Largest write-ahead log {made['largest write-ahead log, MB']:,.0f} MB; another writer waited for at most"
        f" {made['longest wait of another writer, s']:.1f} s. The machine's load was {load:.0f} at the end{busy}.",
        "",
        *table(("phase", "seconds", "time left wrong by a factor of at most"), phases),
        "",
        "On disk: " + ", ".join(f"{part} {size:,.1f} MB" for part, size in result["disk_mb"].items()) + ".",
        "",
        f"Opened in {opening['open, processor_s']:.2f} s of processor time, first search"
        f" {opening['first search, processor_s']:.2f} s. Likely pairs: {pairs['a question, ms']:.1f} ms a question."
        f" Milliseconds of processor time, {result['queries']:,} queries:",
        "",
    ]
    searches = {f"search, {kind}": found for kind, found in result["search"].items()}
    words = {name: found for name, found in result["words"].items() if "p50_ms" in found}
    rest = {
        "nearest vectors in the forum's index": result["nearest vectors"],
        "an addition until it is found": result["added until found"],
    }
    rows = [
        (name, *(f"{found[key]:.2f}" for key in ("p50_ms", "p95_ms")), _share_found(found))
        for name, found in (searches | words | rest).items()
    ]
    rows += [
        (f"vectors alone: {one['name']}", f"{one['p50_ms']:.2f}", f"{one['p95_ms']:.2f}", _share_found(one))
        for one in result["vectors beside rivals"]
    ]
    return [*lines, *table(("work", "p50", "p95", "recall@10"), rows)]


def loads(result: Mapping[str, Any]) -> list[str]:
    """Return what an empty archive's filling makes others wait for, in one transaction and in short ones."""
    ways = ("one transaction", "short transactions", "every tenth edited")
    columns = {
        "seconds": "{:,.0f}",
        "processor_s": "{:,.0f}",
        "largest write-ahead log, MB": "{:,.0f}",
        "longest wait of another writer, s": "{:.2f}",
        "peak memory without mapped files, MB": "{:,.0f}",
        "time left wrong by at most": "{:.2f}",
    }
    rows = [(way, *(shown.format(result[way][name]) for name, shown in columns.items())) for way in ways]
    return [
        f"## An archive of {result['questions']:,} questions is filled",
        "",
        "Reading alone, without indexes. An archive that is empty is filled in short transactions; the first row writes"
        " everything in one, as before. The last row reads the archive again with a tenth of the titles edited, in one"
        f" transaction. The machine's load was {result['load_15_min_at_end']:.0f} at the end.",
        "",
        *table(
            (
                "way",
                "seconds",
                "processor s",
                "write-ahead log, MB",
                "another writer waited, s",
                "memory, MB",
                "time left wrong by a factor of at most",
            ),
            rows,
        ),
    ]


def likely_pairs(result: Mapping[str, Any]) -> list[str]:
    """Return what all likely pairs of a forum cost, and how many of the exact ones are found."""
    clock, spent = result["seconds"], result["processor_s"]
    rows = [(name, f"{one['there are']:,}", f"{one['found']:.3f}") for name, one in result["exact pairs"].items()]
    return [
        f"## All likely pairs of {result['questions']:,} questions",
        "",
        f"Reading texts took {spent['reading texts']:,.1f} s of processor time ({clock['reading texts']:,.0f} s on the"
        f" clock), comparing all questions {spent['comparing']:,.0f} s ({clock['comparing']:,.0f} s) in one process a"
        f" core: {spent['a question, ms']:.1f} ms a question, {result['pairs']:,} pairs. The machine had a load of"
        f" {result['load_15_min_at_end']:.0f}. Exact pairs, of {result['questions compared exactly']:,} questions drawn"
        " by chance, each scored beside the 300 nearest of all vectors and the 300 best by all of its words:",
        "",
        *table(("probability", "exact pairs", "found"), rows),
    ]


def drawn_pairs(result: Mapping[str, Any]) -> list[str]:
    """Return what likely pairs cost a question of a forum, and how many of the exact ones are found from one side."""
    rows = [(name, f"{one['there are']:,}", f"{one['found']:.3f}") for name, one in result["exact pairs"].items()]
    each = result["processor_s"]["a question, ms"]
    return [
        f"## Likely pairs of {result['questions']:,} questions, of some drawn by chance",
        "",
        f"{result['questions compared']:,} questions were compared with all others, {each:.1f} ms of processor time a"
        f" question, so that all take {each * result['questions'] / 3.6e6:.1f} hours of one core. Exact pairs as above,"
        f" of {result['questions compared exactly']:,} questions, found from their own side alone:",
        "",
        *table(("probability", "exact pairs", "found"), rows),
    ]


def rebuild(result: Mapping[str, Any]) -> list[str]:
    """Return what the same work costs at the commit before the tree was built anew, and now."""
    rows = [
        (
            f"{program}, {name.replace('_', ' ')}",
            *(f"{row[key]:,.2f}" for key in ("old", "new", "ratio", "least", "greatest")),
        )
        for program, figures in result["measured"].items()
        for name, row in figures.items()
    ]
    return [
        f"## Beside commit {result['old_commit']}",
        "",
        "The same work on the travel forum before and after the tree was built anew, in turns,"
        f" {result['rounds']} rounds, one thread, times by the clock at a load of {result['load_15_min_at_end']:.0f};"
        " the ratio is the median of new / old, beside the least and the greatest. The default is another ranker since,"
        " which does more.",
        "",
        *table(("work", "before", "now", "ratio", "least", "greatest"), rows),
    ]


def _share_found(found: Mapping[str, Any]) -> str:
    return f"{found['recall_at_10']:.3f}" if "recall_at_10" in found else ""


def cost(result: Mapping[str, Any]) -> list[str]:
    """Return the processor time of searches beside another commit and rivals, and its parts."""
    lines = [
        "## What a search costs, and its parts",
        "",
        f"Milliseconds of processor time, median and 95th percentile, commits {result['before']} and {result['commit']}"
        " and the rivals in turns; the machine was busy, so that ratios say more than figures. The rivals rank by words"
        " alone, in one field, and read no record.",
    ]
    for name, one in result["forums"].items():
        rows = [
            (
                kind,
                *(" / ".join(f"{value:.2f}" for value in row[key]) for key in ("before", "now")),
                f"{row['ratio']:.2f}",
            )
            for kind, row in one["processor time, p50 and p95 ms"].items()
        ]
        rows += [
            (kind, "", " / ".join(f"{value:.2f}" for value in pair), "")
            for kind, pair in one["rivals, p50 and p95 ms"].items()
        ]
        lines += ["", f"{name}, {one['questions']:,} questions, {one['asked']} asked:", ""]
        lines += table(("query, ranker", "before", "now", "ratio"), rows)
        parts = [
            (f"{kind}, {when}", *(f"{value:.2f}" for value in spent.values()))
            for kind, of in one["parts, p50 ms"].items()
            for when, spent in of.items()
        ]
        names = list(one["parts, p50 ms"]["title"]["now"])
        lines += ["", "Parts of a search by probability, medians:", "", *table(("query", *names), parts)]
    return lines


def _both(pair: Sequence[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in pair)


def many(result: Mapping[str, Any]) -> list[str]:
    """Return what many questions at once take beside a loop."""
    rows = [
        (kind, *(f"{ways[name][unit]:.2f}" for unit in ("processor_ms", "ms") for name in ("loop", "similar_many")))
        for kind, ways in result["spent"].items()
    ]
    heading = ("query", "loop, processor", "at once, processor", "loop, clock", "at once, clock")
    return [
        "## Many questions at once",
        "",
        f"{result['queries']:,} questions of a forum of {result['questions']:,}, encoded by {result['model']}:"
        " milliseconds a question of `Forum.similar_many` and of a loop over `Forum.search`, the same blocks in turn.",
        "",
        *table(heading, rows),
    ]


def updates(result: Mapping[str, Any]) -> list[str]:
    """Return the time from a change until a search shows it."""
    lines = [
        "## Changes until they show",
        "",
        f"{result['changes']:,} changes to the forum of {result['forum']}; milliseconds from the call until a search"
        " had found the change (a durable write, the index's commit, one search)"
        + (
            ", the question's encoding among them"
            if result.get("has_vectors", result.get("ranker") == "hybrid")
            else ""
        )
        + ".",
        "",
        *_changes(result),
    ]
    if "words alone" in result:
        lines += ["", "By words alone, without vectors:", "", *_changes(result["words alone"])]
    return lines


def _changes(result: Mapping[str, Any]) -> list[str]:
    rows = [(kind, *(f"{values[key]:.1f}" for key in PERCENTILES)) for kind, values in result["until_shown"].items()]
    return table(("change", "p50", "p95", "p99"), rows)


def kills(result: Mapping[str, Any]) -> list[str]:
    """Return what a forum has lost after kills."""
    during = ", ".join(f"{count} in {phase}" for phase, count in sorted(result["killed_during"].items()))
    same = f"{100 * result['mean_overlap_of_best_ten_with_fresh_forum']:.1f} %"
    if result.get("mean_overlap_by_meaning") is not None:
        same = f"{same} by words, in {100 * result['mean_overlap_by_meaning']:.1f} % by meaning"
    size = f" of {result['questions']:,} questions" if "questions" in result else ""
    waited = (
        f" The longest write beside a load took {result['longest_write_s']:.1f} s." if "questions" in result else ""
    )
    return [
        "## Killed while writing",
        "",
        f"A process that loads an archive{size} and writes beside it was killed {result['kills']} times ({during}),"
        f" after {result['acknowledged_writes']:,} acknowledged writes in all: {result['failures']} forums failed to"
        " open, lost an acknowledged write or found other questions than a forum built afresh. The best ten were the"
        f" same in {same} (deleted questions weigh in term statistics until the index merges its segments).{waited}",
    ]


def damage(result: Mapping[str, Any]) -> list[str]:
    """Return what came of damaging each file of a forum."""
    keys = ("rounds", "seen_by_check", "refused", "wrong_answers", "wrong_and_unseen", "raw_errors", "tracebacks")
    rows = [
        (f"`{name}`", *(found.get(key, 0) for key in keys), _mended(found))
        for name, found in (*result["files"].items(), ("all", result["total"]))
    ]
    header = (
        "file",
        "rounds",
        "seen by `check`",
        "refused",
        "other answers",
        "and not seen",
        "passed on",
        "tracebacks",
    )
    return [
        "## Files damaged",
        "",
        f"Each file of a forum of {result['questions']:,} Reddit questions was damaged in"
        f" {len(result['damages'])} ways: bytes changed at drawn places, zeros, cut off, emptied, longer, deleted, "
        "swapped with another, replaced by a"
        " folder or a link, unreadable. Each copy was checked, searched by four rankers, repaired and searched again."
        " Refused: an error that says what to do. Other answers: than the undamaged forum gives. Passed on: an error of"
        " SQLite or of the system left the library, which the command line explains all the same. Mended: by"
        " `askalike check --repair`, with the answers of before; the archive, keys and learned rankers cannot be made"
        " anew. Much damage does no harm, such as that of a lock's file, or is mended when the forum is opened.",
        "",
        *table((*header, "mended"), rows),
    ]


def _mended(found: Mapping[str, int]) -> str:
    possible = found.get("can_be_mended", 0)
    return f"{found.get('mended', 0)} of {possible}" if possible else "–"


def tuning(result: Mapping[str, Any]) -> list[str]:
    """Return the settings of the search by words that were tried."""
    names = [name for name in result["tried"][0] if name not in result["chosen"]]
    rows = [
        (*(f"{one[name]:g}" for name in result["chosen"]), *(f"{one[name]:.2f}" for name in names))
        for one in sorted(result["tried"], key=lambda one: -one["mean"])[:10]
    ]
    queries = ", ".join(f"{name} {count}" for name, count in result["queries"].items())
    chosen = ", ".join(f"{name} {value:g}" for name, value in result["chosen"].items())
    intro = [
        "## Settings of the search by words",
        "",
        f"Chosen on {result['data']} (queries: {queries}) by {result['measure']} in full retrieval: {chosen}."
        f" The best ten of {len(result['tried'])} tried; a column a forum and kind of query.",
        "",
    ]
    return intro + table((*result["chosen"], *names), rows)


def ramn_tuning(result: Mapping[str, Any]) -> list[str]:
    """Return the best variant of each way in which RAMN matches, the one that a forum has, and unknown words."""
    kinds = dict.fromkeys((one["states"], one["way"]) for one in result["tried"])
    by_kind = {kind: [one for one in result["tried"] if (one["states"], one["way"]) == kind] for kind in kinds}
    best = [max(found, key=_mean) for found in by_kind.values()]
    alone = [max((one for one in found if one["alpha"] == 0), key=_mean) for found in by_kind.values()]
    chosen = [one for one in result["tried"] if all(one[name] == value for name, value in result["chosen"].items())]
    names, sets = ("similarity", "mismatch_weight", "alpha"), list(result["given"])
    given = ("the order that was given", "", "", "", "", *(f"{result['given'][name]:.2f}" for name in sets))
    rows = [
        (how + one["way"], one["states"], *(one[name] for name in names), *(f"{one[name]:.2f}" for name in sets))
        for how, found in (("best, ", best), ("without the rank, ", alone), ("a forum's settings: ", chosen))
        for one in found
    ]
    counted = [(one["settings"], one["unknown"], *(f"{one[name]:.2f}" for name in sets)) for one in result["unknown"]]
    return [
        "## Settings of RAMN in a forum",
        "",
        f"MAP on dev sets (queries: {_listed(result['queries'])}), of {len(result['tried'])} variants the best of each"
        " way of matching by the mean of both. The forum's is that of travel's duplicates. States are those of the"
        " encoder, the same whitened, or all alike: what is left of a variant without any encoder.",
        "",
        *table(("variant", "states", *names, *sets), [given, *rows]),
        "",
        f"Words that the texts learned from do not hold (% of the words: {_listed(result['unknown_share'])}), by how"
        " often they are said to have occurred; a forum's settings are those above. Candidates without words:"
        f" {_listed(result['without_words'])}.",
        "",
        *table(("settings", "unknown words count", *sets), counted),
    ]


def _mean(one: Mapping[str, Any]) -> float:
    return float(one["mean"])


def _listed(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def reranking(result: Mapping[str, Any]) -> list[str]:
    """Return how long re-ranking by RAMN takes, beside a rival's cosine."""
    rows = [
        (which, name, f"{values['p50_ms']:.1f}", f"{values['p95_ms']:.1f}")
        for which, systems in result["latency"].items()
        for name, values in systems.items()
    ]
    return [
        "## Re-ranking by RAMN",
        "",
        f"One query against candidates of {result['words']} words each, all systems turn by turn; {result['rival']}"
        f" with {result['rival_threads']} threads, RAMN with one. Known: the candidates' states or vectors are kept, as"
        " a forum keeps them; new: they are computed too.",
        "",
        *table(("candidates", "system", "p50 ms", "p95 ms"), rows),
    ]


def journeys(result: Mapping[str, Any]) -> list[str]:
    """Return what it takes five people from a bare folder to their goals."""
    rows = [
        (
            name,
            one["goal"],
            ", ".join(one["pages"]),
            one["commands"],
            f"{one['seconds']:.0f}",
            *(f"{one[key]:.0f}" if key in one else "" for key in ("setting_up_s", "processor_s")),
            " to ".join(f"{load:.1f}" for load in one.get("load", [])),
        )
        for name, one in result["people"].items()
    ]
    return [
        "## Five people, from a bare folder to their goals",
        "",
        "Each types what stands in the pages named, in a copy of what is committed and without an environment; package"
        f" files were in the cache. {result['note']}",
        "",
        *table(("who", "goal", "pages", "commands", "seconds", "of them setting up", "processor's", "load"), rows),
    ]
