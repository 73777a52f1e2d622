"""Comment likely duplicates on the issue of a GitHub workflow's event: once, edited when the issue changes.

It runs with Python alone. Nothing is ever closed, labelled or deleted; where the service or GitHub does not answer, a
warning is left and the workflow goes on.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

MARKER: Final = "<!-- askalike:duplicates -->"
ACTIONS: Final = ("opened", "edited", "reopened", "labeled", "unlabeled")
NOTHING: Final = "No issue looks like a duplicate of this one any more."
LONGEST: Final = {"title": 1_000, "body": 200_000}
MOST_PAGES: Final = 20
TIMEOUT_S: Final = 30
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&])")


class UnreachableError(Exception):
    """A service did not answer as was expected."""


def main(given: Mapping[str, str]) -> int:
    """Write, edit or leave the comment; return the exit code.

    Args:
        given: the environment of a step of a workflow, with the action's inputs.
    """
    event = json.loads(Path(given["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    issue = event.get("issue") or {}
    labels = {one.get("name") for one in issue.get("labels") or ()}
    if event.get("action") not in ACTIONS or "pull_request" in issue or issue.get("state") != "open":
        return _said("this event is none of an open issue that changed")
    if given.get("ASKALIKE_SILENT_LABEL") in labels:
        return _said("the issue has the label that keeps the action silent")
    repository, number = given["GITHUB_REPOSITORY"], int(issue["number"])
    api = f"{given.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{repository}/issues"
    token = {"Authorization": f"Bearer {given['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"}
    try:
        hits = similar(given, issue)
        body = comment(hits, repository) if hits else ""
        own = _own_comment(f"{api}/{number}/comments", token)
        if own is None and body:
            _ask("POST", f"{api}/{number}/comments", token, {"body": body})
            return _said(f"{len(hits)} likely duplicates were named")
        if own is not None and own["body"] != (body := body or f"{MARKER}\n{NOTHING}"):
            _ask("PATCH", f"{api}/comments/{int(own['id'])}", token, {"body": body})
            return _said("the comment was edited")
    except UnreachableError as error:
        print(f"::warning title=askalike::{error}")
        return 0
    return _said("there is nothing to say, or it stands there already")


def _said(what: str) -> int:
    print(f"askalike: {what}")
    return 0


def similar(given: Mapping[str, str], issue: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the earlier issues that ask the same, by the promised precision.

    Raises:
        UnreachableError: the service does not answer.
    """
    number = str(issue["number"])
    precision = float(given.get("ASKALIKE_PRECISION") or 0.9)
    most = int(given.get("ASKALIKE_MOST") or 3)
    if not 0.5 <= precision <= 0.99 or not 1 <= most <= 20:
        raise UnreachableError(f"precision {precision:g} and most {most}: expected 0.5 to 0.99, and 1 to 20")
    asked = {name: str(issue.get(name) or "")[:longest] for name, longest in LONGEST.items()}
    key = {"Authorization": f"Bearer {given['ASKALIKE_KEY']}"} if given.get("ASKALIKE_KEY") else {}
    address = f"{given['ASKALIKE_URL'].rstrip('/')}/v1/similar"
    wanted = {**asked, "k": most, "markup": "markdown", "minimum": f"precision:{precision:g}", "exclude": [number]}
    found = _ask("POST", address, key, wanted)
    hits = found.get("hits") if isinstance(found, dict) else None
    if not isinstance(hits, list):
        raise UnreachableError(f"{address} answered no hits")
    known = [one["question"] for one in hits if re.fullmatch("[1-9][0-9]{0,9}", str(one["question"]["id"]))]
    return [one for one in known if str(one["id"]) != number]


def comment(hits: list[dict[str, Any]], repository: str) -> str:
    """Return the comment. Its links are those that leave no trace in the issues they lead to, and nobody is notified.

    >>> print(comment([{"id": "7", "title": "Crash of @ann's [menu]"}], "octo/app").splitlines()[2])
    - [Crash of @\u200bann's \\[menu\\]](https://redirect.github.com/octo/app/issues/7) (issue 7)
    """
    rows = [
        f"- [{plain(one['title'])}](https://redirect.github.com/{repository}/issues/{one['id']}) (issue {one['id']})"
        for one in hits
    ]
    ending = "If one of them answers it, please close this issue; if none does, nothing needs to be done."
    return "\n".join([MARKER, "These issues may ask the same:", *rows, "", ending])


def plain(title: str) -> str:
    """Return a title that GitHub shows as it is: no markup, and nobody is mentioned."""
    line = " ".join(str(title).split())[:200] or "(no title)"
    return _MARKUP.sub(r"\\\1", line).replace("@", "@\u200b")


def _own_comment(address: str, token: Mapping[str, str]) -> dict[str, Any] | None:
    for page in range(1, MOST_PAGES + 1):
        found = _ask("GET", f"{address}?per_page=100&page={page}", token)
        if not isinstance(found, list):
            raise UnreachableError(f"{address} answered no list")
        for one in found:  # anybody can write the marker, but not as a bot
            if str(one.get("body") or "").startswith(MARKER) and (one.get("user") or {}).get("type") == "Bot":
                return dict(one)
        if len(found) < 100:
            break
    return None


def _ask(method: str, address: str, headers: Mapping[str, str], sent: object = None) -> Any:
    content = None if sent is None else json.dumps(sent).encode()
    named = {"Content-Type": "application/json", "User-Agent": "askalike", **headers}
    try:
        request = urllib.request.Request(address, content, named, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise UnreachableError(f"{address} answered {error.code}") from error
    except (OSError, ValueError) as error:
        raise UnreachableError(f"{address} does not answer: {error}") from error


if __name__ == "__main__":
    sys.exit(main(os.environ))
