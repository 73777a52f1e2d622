"""Behaviour that changes on purpose only: 200 searches on three forums, and the contract of the HTTP routes.

``python -m tests.recorded.behaviour`` records it anew; the commit that does so says why. Recorded are ids and numbers,
and shapes of JSON, no text of the data sets.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from recipes.folders import DATA

from askalike import Forum, Query

FOLDER: Final = Path(__file__).parent
SEARCHES: Final = FOLDER / "searches.json"
CONTRACT: Final = FOLDER / "contract.json"
SLICER_TOPICS: Final = 1_500
QUERIES: Final = {"bundled": 70, "travel": 65, "slicer": 65}
"""Forum → how many of its questions are searched for, each without itself; every second one with its body."""

PARAPHRASES: Final = (
    "My laptop says connected but no web page loads",
    "How do I stop the neighbours from using my wifi?",
    "Printer is offline after I changed the router",
    "Which cable do I need for a 4K monitor at 144 Hz?",
    "Recover photos from a broken SD card",
)
"""Queries that are no questions of the bundled forum."""


def build(name: str, folder: Path) -> Path:
    """Index one of the three forums by the command line into the folder, and return where it is."""
    forum = folder / f"{name}.forum"
    if name == "bundled":
        _command("demo", "--into", forum)
        return forum
    source = DATA / "travel-stackexchange"
    if name == "slicer":
        source = folder / "slicer.jsonl"
        with gzip.open(DATA / "slicer-discourse" / "topics.jsonl.gz", "rt", encoding="utf-8") as topics:
            source.write_text("".join(line for line, _ in zip(topics, range(SLICER_TOPICS), strict=False)), "utf-8")
    _command("index", source, "--into", forum)
    return forum


def searches(name: str, path: Path) -> dict[str, list[list[Any]]]:
    """Return query → the id and the probability of each of its five best hits."""
    with Forum.open(path) as forum:
        questions = sorted(forum.questions(), key=lambda question: question.id)
        step = len(questions) // QUERIES[name]
        drawn = questions[::step][: QUERIES[name]]
        queries = {
            question.id: Query(
                question.title, question.body if place % 2 else "", question.markup, k=5, own=question.id
            )
            for place, question in enumerate(drawn)
        }
        if name == "bundled":
            queries |= {title: Query(title, k=5) for title in PARAPHRASES}
        return {
            key: [[hit.question.id, round(hit.likelihood or 0.0, 5)] for hit in forum.search(query).hits]
            for key, query in queries.items()
        }


def _command(*words: object) -> None:
    environment = {**os.environ, "ASKALIKE_ENCODER": "general"}
    subprocess.run(
        [sys.executable, "-m", "askalike", *map(str, words)], check=True, capture_output=True, env=environment
    )


def differences(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the queries whose hits or probabilities differ by more than the last bits of a processor explain.

    A state that lies between two of the encoder's 8-bit steps falls to either side, which moves a probability by some
    percent: hits that are about as likely may change places, and the last one may be another.

    >>> differences({"a": [["1", 0.5], ["2", 0.040]]}, {"a": [["1", 0.51], ["3", 0.041]]})
    []
    >>> differences({"a": [["1", 0.5], ["2", 0.04]]}, {"a": [["2", 0.5], ["1", 0.04]]})
    ["a: [['1', 0.5], ['2', 0.04]] became [['2', 0.5], ['1', 0.04]]"]
    """
    lines = []
    for key in sorted({*recorded, *now}):
        before, after = dict(recorded.get(key, [])), dict(now.get(key, []))
        least = [min(hits.values(), default=0.0) for hits in (after, before)]
        pairs = [
            *zip(before.values(), after.values(), strict=False),
            *((score, after.get(identifier, least[0])) for identifier, score in before.items()),
            *((before.get(identifier, least[1]), score) for identifier, score in after.items()),
        ]
        if len(before) != len(after) or not all(_is_near(*pair) for pair in pairs):
            lines.append(f"{key}: {recorded.get(key)} became {now.get(key)}")
    return lines


def _is_near(old: float, new: float) -> bool:
    return abs(old - new) <= 0.002 + 0.1 * max(old, new)


def shape(value: Any) -> Any:
    """Return the shape of a JSON value: keys, and the types of what they hold.

    >>> shape({"hits": [{"rank": 1, "via": None}], "notice": ""})
    {'hits': [{'rank': 'number', 'via': 'null'}], 'notice': 'text'}
    """
    if isinstance(value, dict):
        return {key: shape(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    if value is None:
        return "null"
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


REQUESTS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    ("GET", "/metrics", None),
    ("GET", "/v1/status", None),
    ("POST", "/v1/similar", {"title": "Wifi drops every night", "k": 2}),
    ("POST", "/v1/similar", {"title": "Wifi drops every night", "k": 1}),
    ("POST", "/v1/similar", {"title": "Wifi drops every night", "k": 1, "fields": ["score"]}),
    ("POST", "/v1/similar", {"title": ""}),
    ("POST", "/v1/similar", {"titel": "Wifi"}),
    ("POST", "/v1/similar", {"title": "Wifi", "k": 0}),
    ("GET", "/v1/questions?limit=2", None),
    ("GET", "/v1/questions/q1136", None),
    ("GET", "/v1/questions/none", None),
    ("POST", "/v1/similar", {"id": "q1136", "k": 2}),
    ("GET", "/v1/duplicates?limit=2", None),
    ("GET", "/v1/duplicates/groups?limit=2", None),
    ("GET", "/v1/log", None),
    ("POST", "/v1/questions/q1136/helped", None),
    ("POST", "/v1/questions/q1136/opened", None),
    ("POST", "/v1/decisions", {"question": "q1156", "candidate": "q1136", "verdict": "different"}),
    ("POST", "/v1/decisions", {"question": "q1136", "candidate": "q1156", "verdict": "different"}),
    ("POST", "/v1/decisions", {"question": "q1156", "candidate": "q1136", "verdict": "duplicate"}),
    ("POST", "/v1/decisions/undo", {"number": 1}),
    ("POST", "/v1/decisions/undo", {"number": 1, "by": ""}),
    ("POST", "/v1/decisions/undo", {"number": 1, "by": "ann"}),
    ("POST", "/v1/decisions/undo", {"number": 2}),
    ("PUT", "/v1/questions/q1136", {"title": " "}),
    ("DELETE", "/v1/questions/none", None),
    ("GET", "/v1/nothing", None),
    ("GET", "/", None),
    ("GET", "/widget.js", None),
)
"""Requests of the routes that stay: method, path with query, body."""


def contract(path: Path) -> dict[str, Any]:
    """Return request → status, media type and shape of the answer, of a service of this forum in this process."""
    from starlette.testclient import TestClient

    from askalike.server.app import build as application
    from askalike.server.settings import ServeSettings

    def answers() -> Iterator[tuple[str, Any]]:
        with TestClient(application(ServeSettings(str(path))), base_url="http://localhost:8765") as client:
            for method, target, body in REQUESTS:
                response = client.request(method, target, json=body)
                media = response.headers.get("content-type", "").partition(";")[0]
                content = shape(response.json()) if media.endswith("json") else None
                name = f"{method} {target}" + (f" {json.dumps(body)}" if body is not None else "")
                yield name, {"status": response.status_code, "media": media, "content": content}

    return dict(answers())


def main() -> None:
    """Record everything anew."""
    recorded = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in QUERIES:
            forum = build(name, Path(folder))
            recorded[name] = searches(name, forum)
            if name == "bundled":
                CONTRACT.write_text(json.dumps(contract(forum), indent=1) + "\n", "utf-8")
    SEARCHES.write_text(
        "{" + ",".join(f"\n {json.dumps(name)}: {_lines(rows)}" for name, rows in recorded.items()) + "\n}\n", "utf-8"
    )


def _lines(rows: Mapping[str, Any]) -> str:
    return "{" + ",".join(f"\n  {json.dumps(key)}: {json.dumps(hits)}" for key, hits in rows.items()) + "\n }"


if __name__ == "__main__":
    main()
