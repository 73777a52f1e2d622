"""Every example that the documents show holds without the near copies of its query."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import Stemmer
from tools.screenshots import TITLE

from askalike import Forum, Query
from askalike.cli.demo import QUESTIONS
from askalike.data import general_folder

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/tutorial.md")
STOP_WORDS = re.compile(r"a|an|and|but|by|can|do|for|from|how|i|in|is|it|its|my|of|on|or|our|the|to|when|with")
WITH_MODEL = pytest.mark.skipif(general_folder() is None, reason="the examples are searched by the bundled encoder")


def example_queries() -> list[str]:
    """Return the queries of `askalike demo`, of the pictures, and of each `askalike search` on the pages."""
    queries = [*QUESTIONS, TITLE]
    for page in PAGES:
        for line in (REPOSITORY / page).read_text(encoding="utf-8").splitlines():
            if match := re.match(r"(?:\$ )?(askalike search .*)", line):
                queries.append(shlex.split(match[1], comments=True)[3])
    return list(dict.fromkeys(queries))


def informative_words(text: str) -> set[str]:
    """Return the stems of a title, without function words.

    >>> sorted(informative_words("The printer drops my jobs"))
    ['drop', 'job', 'printer']
    """
    stemmer = Stemmer.Stemmer("english")
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {stemmer.stemWord(word) for word in words if not STOP_WORDS.fullmatch(word)}


def near_copies(forum: Forum, query: str, shown: str) -> list[str]:
    """Return the questions that would give an example away, except the shown one.

    These are its linked duplicates, and the questions whose title has at least half of the query's words.
    """
    words = informative_words(query)
    copies = {link.source_id for link in forum.store.links() if link.target_id == shown}
    for question in forum.questions():
        if 2 * len(words & informative_words(question.title)) >= len(words):
            copies.add(question.id)
    return sorted(copies - {shown})


@pytest.fixture(scope="module")
def homenet(encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("examples") / "homenet.forum"))


@WITH_MODEL
@pytest.mark.parametrize("query", example_queries())
def test_a_shown_example_holds_without_near_copies(query: str, homenet: Path, tmp_path: Path) -> None:
    shutil.copytree(homenet, tmp_path / "copy.forum")
    with Forum.open(tmp_path / "copy.forum") as forum:
        before = forum.search(Query(query, k=2)).hits
        shown = before[0].question.id
        copies = near_copies(forum, query, shown)
        if copies:
            forum.delete(copies)
        after = forum.search(Query(query, k=2)).hits
        assert after[0].question.id == shown
        assert after[0].via is None
        assert after[0].score == pytest.approx(before[0].score, abs=0.02)
