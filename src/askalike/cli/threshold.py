"""``askalike threshold``: the least probability that keeps a promise, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from askalike.cli.arguments import ForumArgument, JsonOption, command
from askalike.cli.display import print_json, print_whole
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.search.thresholds import Threshold


def threshold(
    forum: ForumArgument,
    precision: Annotated[
        float | None, typer.Option("--precision", help="This share of what is shown is to be a duplicate.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option("--recall", help="This share of the duplicates is to be shown.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the least probability that keeps a promise.

    The promise is that a share of what is shown is a duplicate, or that a share of the duplicates is shown.

    It rests on judged pairs that chance drew from the whole range of probability, as every fifth of askalike judge and
    of the page's Review is; where these are too few, on how right the probabilities are in other forums. It is so for
    pairs of a question and the five others that a search for it finds best.
    """
    given = {name: one for name, one in (("--precision", precision), ("--recall", recall)) if one is not None}
    if len(given) != 1:
        raise SettingError(
            f"{' and '.join(given) or 'no promise'} was given", "expected either --precision or --recall"
        )
    for option, share in given.items():
        if not 0 < share < 1:
            raise SettingError(f"{option} is {share:g}", "expected a share above 0 and below 1, such as 0.9")
    with Forum.open(forum) as opened:
        found = opened.threshold(precision=precision, recall=recall)
    if as_json:
        print_json(_object(found))
    else:
        for line in _lines(found, str(forum)):
            print_whole(line)


def _object(found: Threshold) -> dict[str, Any]:
    share = found.share
    return {
        "promise": found.promise.kind,
        "share": found.promise.share,
        "minimum": found.minimum,
        found.promise.kind: share.value,
        "interval90": [share.low, share.high],
        "judgements": found.judgements,
        "about": found.about,
    }


def _lines(found: Threshold, forum: str) -> Iterator[str]:
    kind, share = found.promise.kind, found.share
    if found.minimum is None:
        yield f"no threshold: a {kind} of {found.promise.share:g} is promised by no probability"
    else:
        yield f"minimum    {found.minimum:.4f}"
    yield f"{kind:<10} {share.value:.3f} (90 % interval {share.low:.3f} to {share.high:.3f})"
    yield found.about
    if found.minimum is not None:
        promise = f"{kind}:{found.promise.share:.6f}".rstrip("0")
        yield f'  {command("search", forum)} "your question" --minimum {promise}'
