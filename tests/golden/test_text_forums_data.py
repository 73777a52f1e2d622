"""Which bodies of real forums begin with a banner that names the original, and that nothing of it is left."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ElementTree  # the files are the project's own data sets
from collections.abc import Iterator
from pathlib import Path

import pytest

from askalike.text import plain_text

pytestmark = pytest.mark.data


def _travel(data_dir: Path) -> dict[str, str]:
    with gzip.open(data_dir / "travel-stackexchange" / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {question["id"]: question["body"] for question in map(json.loads, lines)}


def _posts(data_dir: Path, site: str) -> Iterator[tuple[str, str]]:
    for _, element in ElementTree.iterparse(data_dir / "stackexchange-dumps" / site / "Posts.xml"):  # noqa: S314
        if element.tag == "row":
            yield element.attrib["Id"], element.get("Body", "")
            element.clear()


def test_one_travel_question_has_a_banner_and_keeps_its_own_text(data_dir: Path) -> None:
    bodies = _travel(data_dir)
    texts = {key: plain_text(body, "plain") for key, body in bodies.items()}
    changed = {key: text for key, text in texts.items() if text != " ".join(bodies[key].split())}
    assert len(bodies) == 4919
    assert list(changed) == ["1423"]
    assert changed["1423"].startswith("I'm going to a foreign country from the USA.")


def test_the_banners_of_a_meta_site_go_with_their_quotation(data_dir: Path) -> None:
    bodies = dict(_posts(data_dir, "scicomp-meta"))
    texts = {key: plain_text(body, "html") for key, body in bodies.items()}
    with_banner = [key for key, body in bodies.items() if "Possible Duplicate:" in body]
    assert (len(bodies), with_banner) == (1915, ["1", "192", "640", "1157", "1448", "1515", "1586"])
    assert not [key for key, text in texts.items() if "Possible Duplicate" in text]
    assert texts["1"].startswith("Note:\n\nWe are closing this domain naming thread.")
    assert texts["640"].startswith("Math mode works fine")
    emptied = [key for key, text in texts.items() if not text and bodies[key]]
    assert all("<img" in bodies[key] for key in emptied)  # answers that are one linked picture
    assert len(emptied) == 42
