"""``askalike judge`` and ``askalike threshold``: people's judgements, and which probability keeps a promise by them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from msgspec import to_builtins

from askalike.cli.arguments import ForumArgument, JsonOption, command
from askalike.cli.display import console, print_whole
from askalike.cli.messages import print_json, safe
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.forum.labels import calibration_lines, curve_lines
from askalike.search.thresholds import Promise, Threshold, calibration_error
from askalike.types import Verdict


def judge(
    forum: ForumArgument,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The question's id.", show_default=False)],
    candidate: Annotated[
        str, typer.Argument(metavar="OTHER", help="The id of the question it may repeat.", show_default=False)
    ],
    verdict: Annotated[Verdict, typer.Argument(metavar="VERDICT", help=f"One of {', '.join(get_args(Verdict))}.")],
    by: Annotated[str, typer.Option("--by", help="Who judged.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Store whether two questions are duplicates.

    It is a label to train and calibrate with; a pair that differs is proposed no more. The queue of pairs to judge is
    the page's Review: askalike serve.
    """
    with Forum.open(forum) as opened:
        stored = opened.judge(identifier, candidate, verdict, by)
    if as_json:
        print_json(stored)
    else:
        console.print(f"judged {verdict}: {safe(identifier)} and {safe(candidate)}", markup=False)


def threshold(
    forum: ForumArgument,
    precision: Annotated[
        float | None, typer.Option("--precision", help="This share of what is shown is to be a duplicate.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option("--recall", help="This share of the duplicates is to be shown.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="A table of labelled pairs: question1, question2 (ids, titles or texts) and is_duplicate (1 or 0)."
            " They are stored, and probabilities follow. Without a promise: --precision 0.9.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the least probability that keeps a promise.

    The promise is that a share of what is shown is a duplicate, or that a share of the duplicates is shown.

    It rests on judged pairs that chance drew from the whole range of probability, as every fifth of the page's
    Review is, and is so for pairs of a question and the five others that a search for it finds best. Or
    it rests on labelled pairs, and is so for pairs like them. Where both are too few, the answer is an estimate by how
    right the probabilities are in other forums, and says so.
    """
    if labels is not None and precision is None and recall is None:
        precision = 0.9
    promised = {"--precision": precision, "--recall": recall}
    options = {name: share for name, share in promised.items() if share is not None}
    if len(options) != 1:
        raise SettingError(
            f"{' and '.join(options) or 'no promise'} was given", "expected --precision, --recall or --labels"
        )
    for option, share in options.items():
        if not 0 < share < 1:
            raise SettingError(f"{option} is {share:g}", "expected a share above 0 and below 1, such as 0.9")
    if labels is not None:
        _by_labels(forum, labels, "recall" if precision is None else "precision", next(iter(options.values())), as_json)
        return
    with Forum.open(forum) as opened:
        least = opened.thresholds.find(precision=precision, recall=recall)
    if as_json:
        print_json(_object(least))
    else:
        _show(least)
        _show_use(least, forum, least)


def _by_labels(forum: Path, labels: Path, kind: Literal["precision", "recall"], share: float, as_json: bool) -> None:
    promise = Promise(kind, share)
    with Forum.open(forum) as opened:
        report = opened.thresholds.label(labels)
        least = report.threshold(promise)
        kept = opened.thresholds.of(promise)
    if as_json:
        about_labels = {field.name: to_builtins(getattr(report, field.name)) for field in fields(report) if field.repr}
        errors = {"before": calibration_error(report.before), "after": calibration_error(report.after)}
        print_json({**_object(least), **about_labels, "calibration_error": errors})
        return
    print_whole(
        f"labelled pairs: {report.pairs:,}, the same: {report.same:,}, of the forum's questions: {report.in_forum:,},"
        f" new judgements: {report.stored:,}"
    )
    if report.left_out:
        first = report.left_out[0]
        print_whole(f"{len(report.left_out):,} rows were left out, the first is row {first.row}: {safe(first.reason)}")
    for line in (*curve_lines(report), "", *calibration_lines(report), ""):
        print_whole(line)
    _show(least)
    _show_use(least, forum, kept)


def _object(least: Threshold) -> dict[str, Any]:
    share = least.share
    return {
        "promise": least.promise.kind,
        "share": least.promise.share,
        "minimum": least.minimum,
        least.promise.kind: share.value,
        "interval90": [share.low, share.high],
        "judgements": least.judgements,
        "is_proved": least.judgements > 0,
        "about": least.about,
    }


def _show(least: Threshold) -> None:
    kind, share = least.promise.kind, least.share
    what = "of what is shown are duplicates" if kind == "precision" else "of the duplicates are shown"
    if least.minimum is None:
        print_whole(f"no minimum promises that {100 * least.promise.share:.6g} % {what}")
    else:
        perhaps = "" if least.judgements else "perhaps "
        interval = f"90 % interval {100 * share.low:.1f} to {100 * share.high:.1f} %"
        print_whole(f"minimum {least.minimum:.4f}: {perhaps}{100 * share.value:.1f} % {what} ({interval})")
    print_whole(f"  {least.about}")


def _show_use(least: Threshold, forum: Path, kept: Threshold) -> None:
    """Show how to search with a threshold: by the promise where the forum keeps it by the same, else by the number."""
    promise = f"{least.promise.kind}:{least.promise.share:.6f}".rstrip("0")
    minimum = promise if kept.minimum == least.minimum else f"{least.minimum or 1:.9f}".rstrip("0").rstrip(".")
    if least.minimum is not None:
        print_whole(f'  {command("search", forum)} "your question" --minimum {minimum}')
    if kept.minimum != least.minimum:
        meant = "no minimum" if kept.minimum is None else f"{kept.minimum:.4f}"
        print_whole(f"{promise} is {meant} in this forum by all that was judged: {kept.about}")
