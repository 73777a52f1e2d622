"""The options that every command has, and what a shell completes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command import Done, Run

from askalike import Answer, Forum, Question
from askalike.cli.application import COMMANDS
from askalike.cli.arguments import forum_names
from askalike.cli.commands import GROUPS


@pytest.fixture
def forum(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "a.forum") as forum:
        rooms = ("hall", "kitchen", "office", "garage", "attic")
        forum.add(
            Question(f"q{number}", f"Why is the printer in our {room} offline?", tags=("x",))
            for number, room in enumerate(rooms)
        )
    return tmp_path / "a.forum"


def test_notes_and_progress_are_json_lines_or_left_out(run: Run, forum: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("id,title\n1,Printer is offline\n", encoding="utf-8")
    words = ("search", forum, "--batch", tmp_path / "asked.csv", "--json")
    lines = [json.loads(line) for line in run(*words, "--log-json").err.splitlines()]
    assert {"note", "progress"} <= {line["level"] for line in lines}
    assert all({"at", "level", "message"} <= line.keys() for line in lines)
    assert "note: " in run(*words).err
    quiet = run("--quiet", *words)
    assert quiet.err == ""
    assert quiet.json[0]["query"] == "1"
    assert "searching: 0." in run(*words, "--verbose").err
    timed = json.loads(run("search", forum, "printer 1", "--verbose", "--log-json").err.splitlines()[-1])
    assert {"lexical", "rank", "answer"} <= timed["seconds"].keys()


WALK: tuple[tuple[str, ...], ...] = (
    ("index", "ARCHIVE", "--into", "NEW"),
    ("reindex", "FORUM"),
    ("check", "FORUM"),
    ("encode", "FORUM"),
    ("batch", "groups", "FORUM", "--into", "NEW", "--workers", "1"),
    ("search", "FORUM", "printer 1"),
    ("search", "FORUM", "printer 1", "--explain"),
    ("similar", "FORUM", "q1"),
    ("show", "FORUM", "q1"),
    ("duplicates", "FORUM", "--min", "0.1"),
    ("duplicates", "FORUM", "--groups"),
    ("duplicates", "FORUM", "--linked"),
    ("threshold", "FORUM", "--precision", "0.9"),
    ("keys", "FORUM", "--add", "read"),
    ("info", "FORUM"),
    ("judge", "FORUM", "q1", "q2", "duplicate"),
    ("export", "FORUM", "--into", "NEW"),
    ("backup", "FORUM", "NEW"),
    ("evaluate", "FORUM"),
    ("train", "FORUM"),
    ("follow", "FORUM", "--status"),
    ("follow", "FORUM", "--write-back", "--to", "https://forum.example.org", "--source", "manual", "--close"),
)
"""A command for most of what there is; others need a table, a server or a research set, or serve without end."""
ELSEWHERE = {"deduplicate", "demo", "serve", "attach", "score", "reproduce"}


def test_the_help_says_of_each_command_what_its_function_says() -> None:
    for about in GROUPS.values():
        for name, (_, summary) in about.items():
            assert COMMANDS[name].help.splitlines()[0] == summary


def test_the_walk_takes_every_command() -> None:
    assert {words[0] for words in WALK} | ELSEWHERE == set(COMMANDS)


@pytest.mark.parametrize("words", WALK, ids=" ".join)
def test_every_command_keeps_notes_out_of_its_output_and_says_nothing_when_quiet(
    run: Run, forum: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "archive.jsonl").write_text('{"id": "1", "title": "Wifi drops"}\n', encoding="utf-8")

    def called(copy: str, *options: str) -> Done:
        shutil.copytree(forum, tmp_path / copy / "a.forum")
        places = {"FORUM": "a.forum", "NEW": "new", "ARCHIVE": "../archive.jsonl"}
        named = [str(tmp_path / copy / places[word]) if word in places else word for word in words]
        return run(*named, *options)

    named = {option for parameter in COMMANDS[words[0]].params for option in parameter.opts}
    quiet = called("quiet", "--quiet", *(["--json"] if "--json" in named else []))
    lines = called("json", "--log-json")
    assert quiet.code == lines.code
    assert all("level" in json.loads(line) for line in lines.err.splitlines())
    if quiet.code == 0:
        assert quiet.err == ""
        assert "--json" not in named or quiet.json is not None


def test_an_error_is_said_whatever_else_is_not(run: Run, tmp_path: Path) -> None:
    quiet = run("info", tmp_path / "none", "--quiet")
    assert (quiet.code, "error: there is no forum" in quiet.err, "hint: " in quiet.err) == (1, True, True)
    (line,) = run("info", tmp_path / "none", "--log-json").err.splitlines()
    assert json.loads(line)["level"] == "error"
    assert json.loads(line)["hint"]
    assert "Traceback" in run("info", tmp_path / "none", "--verbose").err
    assert "Traceback" not in run("info", tmp_path / "none").err


@pytest.mark.parametrize("words", [("search",), ("info", "a", "--nonsense")])
def test_a_wrong_call_is_an_error_as_any_other_for_a_program(run: Run, words: tuple[str, ...]) -> None:
    plain, logged, as_json = run(*words), run(*words, "--log-json"), run(*words, "--json")
    assert (plain.code, logged.code, as_json.code) == (2, 2, 2)
    assert "Usage: " in plain.err
    (line,) = logged.err.splitlines()
    assert json.loads(line)["message"] == as_json.json["error"]
    assert json.loads(line)["message"] in plain.err.replace("\n", " ")


def test_the_summary_of_every_command_stands_whole_on_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("--help").out
    assert "..." not in shown.split("Commands:")[1]
    for name, command in COMMANDS.items():
        summary = str(command.help).split("\n\n")[0].strip()
        assert summary.endswith(".")
        assert len(f"  {name:10}  {summary}") <= 79, name
        assert summary in shown


def test_a_forum_is_completed_to_its_folder_and_a_folder_to_what_is_in_it(
    forum: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(forum.parent)
    (forum.parent / "archives").mkdir()
    assert list(forum_names("")) == ["a.forum", "archives/"]
    assert list(forum_names("a.")) == ["a.forum"]
    assert list(forum_names("./a.")) == ["./a.forum"]
    assert list(forum_names(f"{forum.parent}/a.")) == [str(forum)]
    assert list(forum_names("nothing/a")) == []


@pytest.mark.slow  # a process each
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("search my", "my.forum"),
        ("train my.forum --recipe ram", "ramn"),
    ],
)
def test_a_shell_completes_forums_rankers_and_recipes(tmp_path: Path, typed: str, offered: str) -> None:
    Forum.create(tmp_path / "my.forum").close()
    words = ["askalike", *typed.split()]
    environment = {
        **os.environ,
        "_ASKALIKE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    program = "import sys; sys.argv[0] = 'askalike'; from askalike.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert offered in done.stdout.split(), done.stderr


@pytest.mark.slow  # a shell each
@pytest.mark.parametrize(
    ("shell", "asks"),
    [
        ("bash", "COMP_WORDS=(askalike search my); COMP_CWORD=2; _askalike_completion askalike; echo ${COMPREPLY[@]}"),
        ("fish", 'complete -C "askalike search my"'),
        ("zsh", "words=(askalike search my); CURRENT=3; _arguments() { print -r -- $*; }; _askalike_completion"),
    ],
)
def test_a_shell_completes_by_the_script_that_it_was_given(tmp_path: Path, shell: str, asks: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    Forum.create(tmp_path / "my.forum").close()
    program = tmp_path / "bin" / "askalike"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom askalike.cli.main import main\nmain()\n")
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    environment["_ASKALIKE_COMPLETE"] = f"source_{shell}"
    script = subprocess.run([program], capture_output=True, text=True, env=environment, check=False)
    del environment["_ASKALIKE_COMPLETE"]
    (tmp_path / "script").write_text(("compdef() { :; }\n" if shell == "zsh" else "") + script.stdout)
    done = subprocess.run(
        [shell, "-c", f"source ./script; {asks}"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert "my.forum" in done.stdout, done.stderr


def test_a_good_answer_goes_first_where_the_order_is_help(run: Run, tmp_path: Path) -> None:
    with Forum.create(tmp_path / "b.forum") as forum:
        forum.add([Question("a", "Printer is offline"), Question("b", "Printer is offline")])
        forum.store.add_answers([Answer("b1", "b", "Turn it on.", is_accepted=True)])
    words = ("search", tmp_path / "b.forum", "Printer is offline", "--json")
    assert [hit["question"]["id"] for hit in run(*words).json] == ["a", "b"]
    assert [hit["question"]["id"] for hit in run(*words, "--order", "help").json] == ["b", "a"]


def test_how_likely_a_hit_is_stands_there_in_words(run: Run, forum: Path) -> None:
    assert (
        "almost certainly the same (" in run("search", forum, "Why is the printer in our kitchen offline?", "-k", 1).out
    )


@pytest.mark.parametrize(
    ("words", "fault", "expected"),
    [
        (("--recall", 0), "--recall is 0", "above 0 and below 1"),
        ((), "no promise was given", "--precision, --recall or --labels"),
        (("--precision", 0.9, "--recall", 0.9), "--precision and --recall was given", "--labels"),
    ],
)
def test_a_promise_that_none_can_keep_names_its_option(
    run: Run, forum: Path, words: tuple[object, ...], fault: str, expected: str
) -> None:
    done = run("threshold", forum, *words)
    assert (done.code, fault in done.err, expected in done.err) == (2, True, True)


def test_the_threshold_of_a_tiny_share_can_be_copied(run: Run, forum: Path) -> None:
    shown = run("threshold", forum, "--recall", 0.00001).out
    assert run("search", forum, "printer", "--minimum", shown.split("--minimum ")[1].strip()).code == 0
