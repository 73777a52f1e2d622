"""Sections on encoders and vectors: speed without torch, vector search, a training step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

VECTOR_COLUMNS = ("recall_at_10", "build_s", "bytes_a_vector", "open_s", "first_search_s")
OURS, RIVAL = "askalike", "minilm"


def runtime(result: Mapping[str, Any]) -> list[str]:
    """Return how fast encoders run without torch, alone and beside the rival."""
    input_size, hidden_size, order = result["sizes"]
    found = dict(result["kinds"])
    if "model" in result:
        encoder = result["model"]["encoder"]
        found[f"model: {encoder['kind']}, {encoder['input_size']} → {encoder['hidden_size']}"] = result["model"]
    rows = [
        (
            name,
            f"{values['parameters']:,}",
            f"{_value(values, 'questions_per_s'):,}",
            *(f"{_value(values, 'query of')[key]:.1f}" for key in ("p50_ms", "p95_ms")),
        )
        for name, values in found.items()
    ]
    threads = result["threads"].get("OMP_NUM_THREADS", "")
    lines = [
        "## Encoders without torch",
        "",
        f"{input_size} → {hidden_size} dimensions, order {order}, random weights where no model is named;"
        f" {_threads(threads)}; real questions with title and body.",
        "",
        *table(("encoder", "parameters", "questions/s, from text", "query of 100 words, p50 ms", "p95 ms"), rows),
    ]
    return lines + (_beside(result, threads) if "beside_rival" in result else [])


def _beside(result: Mapping[str, Any], threads: str) -> list[str]:
    """Return the table of systems that encoded the same questions turn by turn, whatever they are."""
    beside = result["beside_rival"]
    times, by_round = (_by_system(beside[key]) for key in ("times_as_fast", "times_as_fast_by_round"))
    queries = {name.partition(":")[0]: values for name, values in beside.items() if ": query of" in name}
    queries[RIVAL] = queries.pop("rival", queries.get(RIVAL))
    queries.setdefault(OURS, _value(result.get("model", result["kinds"]["rcnn"]), "query of"))
    rows = [
        (
            beside["rival"] if name == RIVAL else name,
            f"{rate:,.1f}",
            f"{times[name]:g} ({min(by_round[name]):g}–{max(by_round[name]):g})" if name in times else "",
            f"{queries[name]['p50_ms']:.1f}" if queries.get(name) else "",
        )
        for name, rate in beside["questions_per_s"].items()
    ]
    model = "the model" if "model" in result else "the RCNN"
    return [
        "",
        f"Beside {beside['rival']} through sentence-transformers, on the same {beside['questions']} questions, turn by"
        f" turn: `{OURS}` is {model} above, {_threads(threads)}; the others run with"
        f" {_threads(str(beside['rival_threads']))}. Rates and times as fast are of each one's best round; in brackets"
        " the lowest and highest of single rounds.",
        "",
        *table(("encoder", "questions/s", f"times as fast as {beside['rival']}", "query of 100 words, p50 ms"), rows),
    ]


def _by_system(found: Any) -> dict[str, Any]:
    """Return what was measured of each system, where a single value is of ours."""
    if not isinstance(found, Mapping):
        return {OURS: found}
    return {name: value for name, value in found.items() if name != RIVAL}


def _value(values: Mapping[str, Any], beginning: str) -> Any:
    return next(value for name, value in values.items() if name.startswith(beginning))


def _threads(count: str) -> str:
    return {"": "as many threads as NumPy's library takes", "1": "one thread"}.get(count, f"{count} threads")


def vectors(result: Mapping[str, Any]) -> list[str]:
    """Return how fast the nearest vectors are found beside rivals, and what else is done with an index."""
    lines = [
        "## Nearest vectors",
        "",
        "Vectors of Reddit questions by the general encoder; of a million, the rest are copies with noise. Processor"
        f" time of one thread, one query at a time, on a machine with a load of {result['load_15_min_at_end']:.1f};"
        " graphs with 16 links and breadths of 80.",
    ]
    for size in result["sizes"]:
        rows = [(row["name"], f"{row['p50_ms']:.2f}", *(row[key] for key in VECTOR_COLUMNS)) for row in size["rows"]]
        ours = size["ours"]
        filtered = ", ".join(
            f"{name} {found['p50_ms']:.1f} ms (recall {found['recall_at_10']:.3f})"
            for name, found in ours.items()
            if name.endswith("allowed")
        )
        lines += ["", f"{size['vectors']:,} vectors of {size['dimensions']} numbers:", ""]
        lines += table(("", "p50 ms", "recall@10", "build s", "bytes a vector", "open s", "first search s"), rows)
        lines += [
            "",
            f"askalike: adding one until it is found {ours['add one until it is found']['p50_ms']:.1f} ms;"
            f" {ours['200 queries at once, ms each']:.2f} ms a query of 200 at once; under filters {filtered}.",
        ]
    return lines


WORK = {
    "forward": "forward",
    "step": "training step",
    "forward_ragged": "forward, 1 to 100 words",
    "step_ragged": "training step, 1 to 100 words",
}
"""Key of the results → what was timed."""


def recurrence(result: Mapping[str, Any]) -> list[str]:
    """Return the RCNN's forward and training step beside an LSTM's."""
    batch, rates, memory = result["batch"], result["gemm_gflops_per_s"], result["peak_mb_of_three_steps"]
    rows = []
    for key, name in WORK.items():
        found = result[key]
        pairs = found["pairwise_ratios"]
        systems = [found[system] for system in ("rcnn", "lstm")]
        rows.append(
            (
                name,
                f"{found['ratio_of_medians']:.2f} ({pairs['lowest']:.2f}–{pairs['highest']:.2f})",
                *(f"{1000 * system['median_s']:.0f}" for system in systems),
                *(f"{system['tokens_per_s']:,}" for system in systems),
                *(f"{100 * system['share_of_gemm_rate']:.0f} %" for system in systems),
            )
        )
    parameters = result["parameters"]
    header = ("", "times as fast", "RCNN ms", "LSTM ms", "RCNN words/s", "LSTM words/s", "RCNN of GEMM", "LSTM of GEMM")
    return [
        "## Training the RCNN beside torch's LSTM",
        "",
        f"{batch['texts']} texts of {batch['words']} words, {batch['input']} → {batch['size']} dimensions, the last"
        f" state as the vector, {result['threads']} threads, torch {result['torch']}: the RCNN of order 2 with a vector"
        f" gate ({parameters['rcnn']:,} parameters) and `torch.nn.LSTM` ({parameters['lstm']:,}), in turn. A step is"
        " forward, backward and Adam. Medians; in brackets the lowest and highest ratio of neighbouring runs. GEMM is"
        f" the rate of a square product in the same run, {max(rates.values()):.0f} GFLOP/s; a system's share of it"
        " counts the arithmetic that it cannot do without.",
        "",
        *table(header, rows),
        "",
        f"With texts of 1 to {batch['words']} words ({batch['ragged_tokens']:,} words in all) the LSTM gets a padded"
        f" batch, its fastest input, and only real words count. Three steps raise a process' memory by"
        f" {memory['rcnn']} MB with the RCNN and by {memory['lstm']} MB with the LSTM.",
    ]


def pools(result: Mapping[str, Any]) -> list[str]:
    """Return how well encoders order graded pools, alone and with words."""
    forums = ("devops", "reddit", "slicer", "travel", "all")
    rows = [
        (
            name,
            *(f"{row['ndcg_at_5'][forum]:.1f}" for forum in forums),
            ", ".join(sorted({f"{weight:g}" for weight in row["weights"].values()})) if "weights" in row else "",
            f"{row['processor_p50_ms']:.1f}" if "processor_p50_ms" in row else "",
        )
        for name, row in result["systems"].items()
    ]
    differences = [
        f"{name.replace('−', '-')}: {one['mean']:+.1f} ({one['low']:+.1f} to {one['high']:+.1f})"
        for name, one in result["differences"].items()
    ]
    return [
        "## Encoders on graded pools",
        "",
        f"nDCG@5 of {result['queries']} queries whose candidates were graded by reading, condensed lists, gain"
        " 2^grade - 1: the half that is there for choosing. DevOps, Slicer and travel are whole forums; of Reddit,"
        " the questions of its pools and 10,000 others. *With words*: `--ranker hybrid`, the cosine's weight for"
        " each forum the one that is best on the other three. *Pools alone*: the judged candidates in the order of"
        " their cosines. Time: the processor's, the median over titles among DevOps' 3,700 questions, for the whole"
        " search.",
        "",
        *table(("system", "DevOps", "Reddit", "Slicer", "travel", "all", "weights", "ms"), rows),
        "",
        "Paired differences with 95 % intervals: " + "; ".join(differences) + ".",
    ]


def several(result: Mapping[str, Any]) -> list[str]:
    """Return what several vectors a question bring, on graded pools and on a forum's own links."""
    forums = ("devops", "reddit", "slicer", "travel", "all")
    rows = [
        (name, *(f"{means[forum]:.1f}" for forum in forums), _difference(result["differences_to_b"].get(name)))
        for name, means in result["ndcg_at_5"].items()
    ]
    of_travel = [
        (name, f"{mean:.1f}", _difference(result["travel_dev_differences_to_b"].get(name)))
        for name, mean in result.get("travel_dev_ndcg_at_10", {}).items()
    ]
    return [
        "## Several vectors a question",
        "",
        f"MiniLM in 8 bits on the {result['queries']} queries above, the judged candidates alone, nDCG@5. A question"
        " has vectors of its title (t), of title and body (b), and of the title with parts of the body of about 800"
        " characters (p): joined into their mean, or the greatest cosine of them counts. The query is one vector of"
        " what is asked, or the same mean. Differences to b are paired, with 95 % intervals.",
        "",
        *table(("vectors", "DevOps", "Reddit", "Slicer", "travel", "all", "difference"), rows),
        *(
            [
                "",
                f"Travel's own duplicate links, {result['travel_dev_queries']} dev queries over all questions,"
                " nDCG@10:",
                "",
                *table(("vectors, query", "nDCG@10", "difference"), of_travel),
            ]
            if of_travel
            else []
        ),
    ]


def _difference(found: Mapping[str, float] | None) -> str:
    return "" if found is None else f"{found['mean']:+.1f} ({found['low']:+.1f} to {found['high']:+.1f})"


def killed(result: Mapping[str, Any]) -> list[str]:
    """Return what kills of a process that encodes left."""
    twice = f" {result['encoded_twice']:,} questions were encoded twice." if result["encoded_twice"] is not None else ""
    if result.get("compared_with") == "float32":
        compared = (
            f" Of {result['checked']:,} drawn ones the least cosine to a vector in float32 was"
            f" {result['least_cosine']:.3f}, the median {result['median_cosine']:.3f}; for {result['copies_nearer']}"
            " the vector of a copy was as near."
        )
    else:
        compared = (
            f" {result['same_to_the_bit']:,} were those of a run without a break to the last bit, the least cosine was"
            f" {result['least_cosine']:.3f}."
        )
    return [
        f"## Encoding killed on the way: {result['questions']:,} questions",
        "",
        f"Encoded by MiniLM in 8 bits on two cores, by processes of which {result['kills']} were killed (SIGKILL), in"
        f" {result['killed_s']:,.0f} s beside other work: {result['missing']} vectors were missing and"
        f" {result['wrong']} wrong.{compared}{twice}",
    ]


def transformers(result: Mapping[str, Any]) -> list[str]:
    """Return how fast a sentence transformer runs without torch, beside the library that it comes from."""
    one_thread = result["one_thread"]
    rows = [
        (
            name,
            f"{values['texts_per_cpu_s']:.1f}",
            f"{values['times_as_fast']:.2f}",
            f"{values['title_p50_ms']:.1f}",
            f"{values['least_cosine']:.4f}",
            f"{values['mean_cosine']:.4f}",
        )
        for name, values in one_thread["systems"].items()
    ]
    header = ("runtime", "texts a processor second", "times as fast", "a title, p50 ms", "least cosine", "mean cosine")
    several = result["by_threads"]
    of_threads = [
        (
            name,
            f"{values['texts_per_s']:.1f}",
            f"{values['times_as_fast']:.2f}",
            f"{one:.2f}" if (one := values.get("times_as_fast_as_one_thread")) else "",
        )
        for name, values in several["systems"].items()
    ]
    return [
        "## Sentence transformers without torch",
        "",
        f"{result['model']} over {one_thread['texts']} real questions with title and body, one thread; the best of the"
        " rounds that took turns, on a machine with a load of"
        f" {one_thread['load']:.0f} (commit `{one_thread['commit']}`). The cosine is that to the vectors of"
        " sentence-transformers.",
        "",
        *table(header, rows),
        "",
        *_bfloat16(one_thread),
        "",
        f"By {several['threads']} threads of each, on {result['machine']['cores']} cores with a load of"
        f" {several['load']:.0f}: askalike runs batches side by side, whose vectors are the same to the bit. Medians of"
        " rounds that took turns."
        + (
            " So many processes shared the cores that a second thread brought nothing."
            if several["load"] > 2 * result["machine"]["cores"]
            else ""
        ),
        "",
        *table(("runtime", "texts a second", "times as fast", "times as fast as one thread"), of_threads),
        *_reranking(result.get("reranker")),
    ]


def _bfloat16(one_thread: Mapping[str, Any]) -> list[str]:
    elsewhere = one_thread["bfloat16"]
    runtime, numpy = elsewhere["onnxruntime"], elsewhere["numpy"]
    rows, middle, columns = numpy["sizes"]
    times = numpy["bfloat16_ms"] / numpy["float32_ms"]
    answer = "runs a product" if runtime["says"] == "runs it" else "has no product"
    found = [
        f"bfloat16: ONNX Runtime {runtime['version']}, by which askalike encodes, {answer} in it on the processor.",
        f"A product of NumPy, {rows} × {middle} by {middle} × {columns}, takes {times:.1f} times as long for numbers",
        "of `ml_dtypes` as in float32, which is what they are multiplied in.",
    ]
    if "openvino" in one_thread:
        of = one_thread["openvino"].split("-")[0]
        found.append(f"OpenVINO {of}, which askalike does not need, runs askalike's own graph here.")
    return [" ".join(found)]


def _reranking(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return []
    rows = [
        (
            name,
            f"{values['without_p50_ms']:.0f}",
            f"{values['with_p50_ms']:.0f}",
            f"{values['added_processor_p50_ms']:.0f}",
            f"{values['added_processor_p95_ms']:.0f}",
        )
        for name, values in result.items()
        if isinstance(values, dict)
    ]
    return [
        "",
        f"A cross-encoder of {result['layers']} layers, MiniLM's with a head of drawn numbers, over the"
        f" {result['candidates']} best of {result['queries']} searches in the bundled forum, one thread: what it costs,"
        f" not what it finds (commit `{result['commit']}`).",
        "",
        *table(
            ("a search by", "without, p50 ms", "with, p50 ms", "added processor time, p50 ms", "p95 ms"),
            rows,
        ),
    ]
