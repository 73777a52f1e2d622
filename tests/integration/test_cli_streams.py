"""Commands whose streams are closed, full or of another encoding, and names that are no UTF-8: never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command import Run

from askalike import Forum

pytestmark = pytest.mark.slow  # a process each, since its streams are the system's
COMMAND = (sys.executable, "-m", "askalike")


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    (folder / "posts.csv").write_text("id,title\n1,café ☃ and snow\n", encoding="utf-8")
    path = folder / "forum"
    with Forum.create(path) as forum:
        forum.load(folder / "posts.csv")
    return path


def shell(line: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which ``$@`` is the command."""
    called = ["sh", "-c", line, "sh", *COMMAND, *map(str, words)]
    return subprocess.run(called, capture_output=True, text=True, check=False, errors="replace", timeout=300)


@pytest.mark.parametrize("stream", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_breaks_no_command(forum: Path, stream: str) -> None:
    done = shell(f'"$@" {stream}', "search", forum, "snow")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_body_from_a_closed_input_is_empty(forum: Path) -> None:
    done = shell('"$@" <&-', "search", forum, "", "--body", "-")
    assert done.returncode == 2
    assert done.stderr.startswith("error: the question is empty")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_the_output_is_named(forum: Path) -> None:
    done = shell('"$@" > /dev/full', "info", forum)
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output: No space left on device")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_reader_that_stops_early_ends_a_command_in_silence(forum: Path) -> None:
    done = shell('"$@" | true', "info", forum)
    assert done.stderr == ""


def test_a_terminal_without_the_letters_is_given_escapes(forum: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    called = [*COMMAND, "search", str(forum), "snow"]
    done = subprocess.run(called, capture_output=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0
    assert b"caf\\xe9 \\u2603 and snow" in done.stdout
    output = subprocess.run([*called, "--json"], capture_output=True, check=True, env=environment, timeout=300)
    assert json.loads(output.stdout)[0]["question"]["title"] == "café ☃ and snow"


def test_a_path_that_is_no_utf8_is_shown_byte_by_byte(run: Run, tmp_path: Path) -> None:
    done = run("index", os.fsdecode(b"caf\xe9.csv"), "--into", tmp_path / "f")
    assert (done.code, done.err.splitlines()[0]) == (1, "error: there is nothing at caf\\xe9.csv")


def test_a_run_is_not_compared_with_itself_and_runs_of_one_name_are_told_apart(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "gold").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    for path in (tmp_path / "run", tmp_path / "other" / "run"):
        path.write_text("q1 Q0 d1 1 2.5 tag\nq2 Q0 d2 1 2.5 tag\n")
    options = ("score", tmp_path / "gold", tmp_path / "run", "--protocol", "trec", "--against")
    same = run(*options, tmp_path / "run")
    assert (same.code, "the run itself" in same.err) == (2, True)
    assert run(*options, tmp_path / "other" / "run", "--json").json["against"]["map"] == 1.0


def test_a_bound_may_be_any_moment_and_is_named_where_it_is_none(run: Run, forum: Path) -> None:
    for words in (("duplicates", forum, "--since"), ("search", forum, "x", "--before")):
        assert run(*words, "9999-12-31T23:59:59-14:00").code == 0  # beyond the calendar in UTC
        done = run(*words, "soon")
        assert done.code == 2
        assert "'soon'" in done.err
