"""The guides as programs: every block runs in the order of its page, and five people reach their goals by them."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from tools.journeys.blocks import FENCE, RUN, Block, Shell, blocks_of
from tools.journeys.people import PEOPLE, REPOSITORY, play

from askalike import Forum, ImportOptions
from askalike.data import general_folder

pytestmark = pytest.mark.slow

DOCS = REPOSITORY / "docs"
GUIDES = [
    REPOSITORY / "README.md",
    *(DOCS / f"{name}.md" for name in ("tutorial", "encoders", "judging", "formats", "python", "http", "postgresql")),
    *sorted((DOCS / "how-to").glob("*.md")),
]
PLAYED = {page for person in PEOPLE.values() for page in person.pages}
POSIX = pytest.mark.skipif(
    shutil.which("bash") is None or sys.platform == "win32", reason="the guides are for a POSIX shell"
)
WITH_MODEL = pytest.mark.skipif(general_folder() is None, reason="the guides show what the general model finds")


@POSIX
@WITH_MODEL
@pytest.mark.parametrize("name", [name for name, person in PEOPLE.items() if person.is_short])
def test_a_person_reaches_the_goal_by_the_documents_alone(name: str, tmp_path: Path) -> None:
    steps = play(PEOPLE[name], tmp_path, is_installed=True)
    assert len(steps) <= 15


@POSIX
@pytest.mark.parametrize(
    "path",
    [
        path
        for path in GUIDES
        if str(path.relative_to(REPOSITORY)) not in PLAYED and any(block.is_run for block in blocks_of(path))
    ],
    ids=lambda path: path.stem,
)
def test_every_block_of_a_guide_runs(path: Path, tmp_path: Path) -> None:
    with Shell(tmp_path) as shell:
        if path.parent == DOCS:  # a page about a forum that is there
            shell.run(Block("sh", "askalike demo --into travel.forum\n", 1))
        for block in blocks_of(path):
            if block.is_run:
                shell.run(block)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_block_that_is_not_run_says_why(path: Path) -> None:
    marks = re.findall(r"<!-- not run: (.*?) -->", path.read_text(encoding="utf-8"))
    assert all(len(reason.split()) >= 4 for reason in marks)
    assert len(marks) == sum(bool(block.why_not) for block in blocks_of(path)), "a mark stands directly above its block"
    languages = {match["language"] for match in FENCE.finditer(path.read_text(encoding="utf-8"))}
    assert languages <= {*RUN, "json", "sql", "text", "js", "yaml", "xml"}


TABLES = {
    "phpbb_posts": """
        CREATE TABLE phpbb_topics (topic_id, topic_title, topic_first_post_id, topic_visibility);
        CREATE TABLE phpbb_posts (post_id, topic_id, post_text, post_time, post_visibility);
        INSERT INTO phpbb_topics VALUES (1, 'Fan &amp; noise', 10, 1), (2, 'Hidden', 12, 0);
        INSERT INTO phpbb_posts VALUES (10, 1, '<t>Since the update.</t>', 1700000000, 1),
            (11, 1, '<r><B>Clean</B> it.</r>', 1700000100, 1), (12, 2, '<t>Spam</t>', 1700000200, 1);
    """,
    "discussions": """
        CREATE TABLE discussions (id, title, first_post_id, hidden_at, is_private);
        CREATE TABLE posts (id, discussion_id, type, content, created_at, hidden_at, is_private);
        INSERT INTO discussions VALUES (1, 'Fan and noise', 10, NULL, 0);
        INSERT INTO posts VALUES (10, 1, 'comment', '<t>Since the update.</t>', '2024-05-01 12:00:00', NULL, 0),
            (11, 1, 'comment', '<t>Clean it.</t>', '2024-05-01 13:00:00', NULL, 0),
            (12, 1, 'discussionRenamed', '[]', '2024-05-01 14:00:00', NULL, 0),
            (13, 1, 'comment', '<t>Mind your own.</t>', '2024-05-01 15:00:00', '2024-05-02', 0);
    """,
    "qa_posts": """
        CREATE TABLE qa_posts (postid, type, parentid, title, content, tags, created, netvotes, selchildid, closedbyid);
        INSERT INTO qa_posts VALUES
            (10, 'Q', NULL, 'Fan and noise', 'Since the update.', 'fan,noise', '2024-05-01', 2, 11, NULL),
            (11, 'A', 10, NULL, 'Clean it.', NULL, '2024-05-02', 3, NULL, NULL),
            (12, 'Q', NULL, 'The fan is loud', 'Help.', 'fan', '2024-05-03', 0, NULL, 10),
            (13, 'C', 10, NULL, 'Same here.', NULL, '2024-05-03', 0, NULL, NULL);
    """,
}


@pytest.mark.parametrize("table", TABLES)
def test_what_a_query_of_the_guide_returns_becomes_questions_with_their_answers(table: str, tmp_path: Path) -> None:
    guide = REPOSITORY / "docs" / "how-to" / "export-a-forum.md"
    [query] = [
        block.code for block in blocks_of(guide) if block.language == "sql" and re.search(rf"\b{table}\b", block.code)
    ]
    database = sqlite3.connect(":memory:")
    database.executescript(TABLES[table])
    archive = tmp_path / "posts.jsonl"
    archive.write_text("".join(f"{json.dumps(json.loads(row))}\n" for (row,) in database.execute(query)))
    database.close()
    with Forum.create(tmp_path / "my.forum") as forum:
        report = forum.load(archive, options=ImportOptions(format="table"))
        assert report.rejected == 0
        first = forum.question("10")
        assert first.title.startswith("Fan")
        assert "update" in first.body
        [answer] = forum.answers("10")
        assert "Clean" in answer.body
        if table == "qa_posts":
            assert answer.is_accepted
            assert [(link.source_id, link.target_id) for link in forum.store.links()] == [("12", "10")]
        else:
            assert len(forum) == 1
