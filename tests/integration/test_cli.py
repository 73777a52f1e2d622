"""Every command as a user types it: output, JSON, exit codes, and errors that say what to do."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.command import Run

import askalike
from askalike import Forum, Question
from askalike.cli.arguments import command
from askalike.cli.demo import QUESTIONS
from askalike.data import bundled_forum


@pytest.fixture(scope="module")
def homenet(encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("cli") / "homenet.forum"))


def test_demo_indexes_answers_three_questions_and_says_what_next(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--into", tmp_path / "demo.forum")
    assert done.code == 0
    for question in QUESTIONS:
        assert question in done.out
    assert "Try next" in done.out
    hits_of = run("demo", "--into", tmp_path / "demo.forum", "--json").json
    assert [hits[0]["question"]["id"] for hits in hits_of.values()] == ["q1005", "q1136", "q1028"]


def test_commands_to_copy_are_found_as_they_are_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "its folder" / "askalike"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert command("search", "a b") == f"'{script}' search 'a b'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert command("search", "a b") == "askalike search 'a b'"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert command("info") == "askalike info"
    monkeypatch.setattr(sys, "argv", [str(Path(askalike.__file__).with_name("__main__.py"))])
    monkeypatch.setenv("PATH", "/nowhere")
    assert command("info") == f"{sys.executable} -m askalike info"


@pytest.mark.parametrize(
    ("shortage", "said"),
    [
        (MemoryError("Unable to allocate 2 TiB"), "there is not enough memory: Unable to allocate 2 TiB\n"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9"), "there is not enough memory: Default"),
    ],
)
def test_memory_that_is_short_is_said_without_a_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch, shortage: Exception, said: str
) -> None:
    def fails(*_: object, **__: object) -> Forum:
        raise shortage

    monkeypatch.setattr(Forum, "open", fails)
    done = run("info", "any")
    assert done.code == 1
    assert done.err.startswith(f"error: {said}")
    assert "hint: choose smaller sizes" in done.err


def test_an_error_of_the_program_itself_is_not_taken_for_a_shortage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Forum:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Forum, "open", fails)
    with pytest.raises(RuntimeError, match="a fault"):
        run("info", "any")


def test_demo_does_not_mix_with_a_forum_of_ones_own(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "posts.csv"
    table.write_text("id,title,body\n1,Printer is offline,help\n", encoding="utf-8")
    run("index", table, "--into", tmp_path / "f")
    assert run("demo", "--into", tmp_path / "f").code == 2
    assert run("info", tmp_path / "f", "--json").json["questions"] == 1


def test_index_reports_what_it_did_and_again_that_nothing_changed(run: Run, tmp_path: Path) -> None:
    forum = tmp_path / "my.forum"
    first = run("index", bundled_forum(), "--into", forum, "--json").json
    assert (first["format"], first["questions"]["added"], first["answers"]["added"], first["links"]["added"]) == (
        "jsonl",
        252,
        279,
        85,
    )
    again = run("index", bundled_forum(), "--into", forum)
    assert "252 unchanged" in again.out


def test_rejects_are_counted_once_and_their_lines_are_told_from_their_ids(run: Run, tmp_path: Path) -> None:
    archive = tmp_path / "q.jsonl"
    lines = ['{"id": "3", "title": "one"}', '{"id": "3", "title": "two"}', '{"id": "9", "title": ""}']
    archive.write_text("\n".join(lines), encoding="utf-8")
    shown = run("index", archive, "--into", tmp_path / "f").out
    assert (tmp_path / "f" / "rejects.jsonl").is_file()
    assert "questions  1 added\n" in shown
    assert "rejected   2 records, kept in" in shown
    assert "q.jsonl record 3: a record with this id came before" in shown
    assert "q.jsonl line 3, record 9: title and body are empty" in shown


def test_search_shows_rank_title_date_id_words_and_answer(run: Run, homenet: Path) -> None:
    done = run("search", homenet, "Clock is wrong after booting Windows", "-k", "2")
    for shown in ("Windows shows wrong time", "2022-02-07", "q1131", "matched:", "wrong", "accepted answer:"):
        assert shown in done.out


def test_search_as_json_holds_the_same_for_programs(run: Run, homenet: Path) -> None:
    hits = run("search", homenet, "Clock is wrong after booting Windows", "-k", "2", "--json").json
    assert [hit["rank"] for hit in hits] == [1, 2]
    assert hits[0]["question"]["id"] == "q1131"
    assert hits[0]["best_answer"]["accepted"] is True
    assert hits[0]["components"]["bm25"] > hits[1]["components"]["bm25"]
    assert {"word", "field", "weight"} == set(hits[0]["matched"][0])


def test_search_reads_the_body_from_standard_input(run: Run, homenet: Path) -> None:
    body = b"The panel goes dark when I close the lid: logind HandleLidSwitch"
    hits = run("search", homenet, "Problem", "--body", "-", "--json", stdin=body).json
    assert "q1157" in [hit["question"]["id"] for hit in hits]


def test_search_filters_by_every_option(run: Run, homenet: Path) -> None:
    words = ("search", homenet, "printer offline network", "-k", 20, "--json")
    assert all("printer" in hit["question"]["tags"] for hit in run(*words, "--tag", "printer").json)
    assert all(hit["question"]["created"] < "2020" for hit in run(*words, "--before", "2020-01-01").json)
    first = run(*words).json[0]["question"]["id"]
    assert first not in [hit["question"]["id"] for hit in run(*words, "--exclude", first).json]
    hits = run(*words, "--unanswered", "--not-tag", "ssh", "--after", "2021-01-01", "--open").json
    assert hits
    for hit in hits:
        assert (hit["answers"], hit["question"]["closed"], "ssh" in hit["question"]["tags"]) == (0, None, False)
        assert hit["question"]["created"] >= "2021-01-01"
    assert run(*words, "--minimum", 0.999).json == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tag", "printer", "--tag", "nosuch"), "No question has the tags printer, nosuch."),
        (("--tag", "PRINTER", "--before", "1990-01-01"), "No question has the tag PRINTER and was asked before 1990-"),
        (("--tag", "printer", "--body", "of the"), "No similar questions found"),
    ],
)
def test_a_filter_that_no_question_satisfies_is_named(
    run: Run, homenet: Path, words: tuple[str, ...], said: str
) -> None:
    title = "the of and" if "--body" in words else "printer"
    assert run("search", homenet, title, *words).out.startswith(said)
    output = run("search", homenet, title, *words, "--json")
    assert output.json == []
    assert (f"note: {said}" in output.err.replace("\n", " ")) == said.startswith("No question")


def test_score_prints_means_and_the_paired_test(run: Run, tmp_path: Path) -> None:
    gold, good, bad = tmp_path / "gold.qrels", tmp_path / "good.run", tmp_path / "bad.run"
    gold.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 c 1\nq2 0 d 0\n", encoding="utf-8")
    good.write_text("q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\nq2 Q0 c 1 2 t\nq2 Q0 d 2 1 t\n", encoding="utf-8")
    bad.write_text("q1 Q0 b 1 2 t\nq1 Q0 a 2 1 t\nq2 Q0 d 1 2 t\nq2 Q0 c 2 1 t\n", encoding="utf-8")
    report = run("score", "--protocol", "trec", gold, good, "--against", bad, "--json").json
    assert (report["map"], report["mrr"], report["p@1"], report["queries"]) == (1.0, 1.0, 1.0, 2)
    assert report["against"]["map"] == 0.5
    assert "by_query" not in report
    assert report["comparison"][0]["p_value"] == 0.5  # two queries have four sign patterns, two as extreme
    shown = run("score", "--protocol", "trec", gold, good, "--against", bad)
    assert "100.00" in shown.out
    assert "p = 0.5000" in shown.out


def test_score_counts_what_its_means_do_not_show_and_has_values_by_query(run: Run, tmp_path: Path) -> None:
    gold, ranked = tmp_path / "gold.qrels", tmp_path / "our.run"
    gold.write_text("q1 0 a 1\nq1 0 b 1\nq2 0 c 0\nq3 0 d 1\n", encoding="utf-8")
    ranked.write_text("q1 Q0 x 1 3 t\nq1 Q0 a 2 2 t\nq1 Q0 y 3 1 t\nq2 Q0 c 1 1 t\nq9 Q0 a 1 1 t\n", encoding="utf-8")
    words = ("score", "--protocol", "trec", gold, ranked, "--measure", "mrr")
    report = run(*words, "--json", "--by-query").json
    assert (report["unjudged_queries"], report["unjudged_documents"], report["relevant_not_ranked"]) == (1, 2, 2)
    assert (report["missing"], report["without_positives"], report["left_out"]) == (1, 1, 0)
    assert report["by_query"] == {"mrr": {"q1": 0.5, "q2": 0.0, "q3": 0.0}}
    assert "note: ranked documents without a judgement, not relevant: 2" in run(*words).out
    assert "add --json" in run(*words, "--by-query").err


def test_evaluate_ranks_the_forums_own_duplicates(run: Run, homenet: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert "cannot be written to" in run("evaluate", homenet, "--save", tmp_path / "file").err
    report = run("evaluate", homenet, "--save", tmp_path / "runs", "--json").json
    assert report["retrieval"]["systems"]["search"]["queries"] == 60
    assert report["retrieval"]["systems"]["search"]["recall@100"] > 0.8
    assert report["rerank"]["systems"]["tfidf"]["map"] > 0.4
    saved = run(
        "score",
        tmp_path / "runs" / "retrieval.qrels",
        tmp_path / "runs" / "retrieval.search.run",
        "--protocol",
        "trec",
        "--measure",
        "recall@100",
        "--json",
    ).json
    assert saved["recall@100"] == pytest.approx(report["retrieval"]["systems"]["search"]["recall@100"])
    shown = run("evaluate", homenet, "--protocol", "retrieval", "--system", "bm25").out
    assert "Full retrieval" in shown
    first = round(60 * report["retrieval"]["systems"]["bm25"]["success@1"])
    assert f"bm25 puts a question that asks the same first for {first} of 60 queries" in shown


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("search", "nowhere.forum", "x"), 1, "there is no forum at nowhere.forum"),
        (("frobnicate",), 2, "frobnicate"),
        (("score", "a", "b", "--protocol", "trec", "--measure", "luck@3"), 2, "ndcg@k"),
        (("index", ".", "--into", "f", "--format", "nosuch"), 2, "stackexchange"),
    ],
)
def test_errors_say_what_and_what_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_cannot_be_read_leaves_no_forum(run: Run, tmp_path: Path) -> None:
    archive = tmp_path / "Posts.xml"
    archive.write_text('<?xml version="1.0"?>\n<posts>\n<row Id="1" PostTypeId="1" Title="cut', encoding="utf-8")
    done = run("index", archive, "--into", tmp_path / "f")
    assert done.code == 1
    assert "Posts.xml" in done.err
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("search", "FORUM", "x", "-k", "0"),
        ("search", "FORUM", "x", "--before", "yesterday"),
        ("search", "FORUM", " "),
        ("evaluate", "FORUM", "--system", "oracle"),
        ("index", "ARCHIVE", "--into", "FORUM", "--language", "german"),
        ("index", "ARCHIVE", "--into", "FORUM", "--no-code"),
        ("index", "ARCHIVE", "--into", "FORUM2", "--language", "klingon"),
        ("index", "ARCHIVE", "--into", "FORUM2", "--site-url", "ftp://forum.example.org"),
        ("serve", "FORUM", "--allow-origin", "forum.example.org"),
        ("serve", "FORUM", "--allow-host", "https://x.example.org"),
    ],
)
def test_a_wrong_value_is_wrong_usage(run: Run, homenet: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    names = {"FORUM": homenet, "ARCHIVE": bundled_forum(), "FORUM2": tmp_path / "f"}
    done = run(*(names.get(word, word) for word in words))
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "hint: " in done.err


def test_what_is_piped_has_no_spaces_at_its_ends_and_unbroken_paths_and_commands(run: Run, tmp_path: Path) -> None:
    forum = tmp_path / ("a long name " * 9) / "my.forum"
    table = tmp_path / "posts.csv"
    table.write_text("id,title\n1,Clock is wrong\n", encoding="utf-8")
    done = run("index", table, "--into", forum)
    assert f"  askalike search '{forum}' \"your question\"" in done.out.splitlines()
    shown = run("search", forum, "Clock is wrong after booting Windows").out + run("info", forum).out
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []
    assert f"error: there is no forum at {forum}2" in run("info", f"{forum}2").err.splitlines()


def test_a_forum_without_its_archive_is_told_from_no_forum(run: Run, tmp_path: Path) -> None:
    Forum.create(tmp_path / "f").close()
    (tmp_path / "f" / "archive.sqlite").unlink()
    done = run("info", tmp_path / "f", "--json")
    assert done.code == 1
    assert done.json["error"].endswith("it holds other files and no archive.sqlite")
    assert done.json["hint"] == "put archive.sqlite back from a backup, or index into a new folder"


def test_a_folder_of_forums_and_a_forum_in_place_of_an_archive_are_told(run: Run, tmp_path: Path) -> None:
    Forum.create(tmp_path / "f").close()
    done = run("info", tmp_path, "--json")
    assert done.code == 1
    assert done.json["error"] == f"there is no forum at {tmp_path}, but in it: f"
    assert done.json["hint"] == f"name {tmp_path / 'f'}"
    done = run("index", tmp_path / "f", "--into", tmp_path / "g", "--json")
    assert done.json["error"].endswith("is not recognised: it is a forum, not an archive")
    assert "export" in done.json["hint"]


def test_a_folder_that_cannot_be_made_is_explained(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run("index", bundled_forum(), "--into", tmp_path / "file" / "f")
    assert done.code == 1
    assert done.err.startswith(f"error: {tmp_path / 'file'}")
    assert "hint: check the path" in done.err


def test_columns_are_named_without_saying_that_it_is_a_table(run: Run, tmp_path: Path) -> None:
    table, forum = tmp_path / "posts.txt", tmp_path / "f"
    table.write_text("7,x,Printer is offline\n8,x,Scanner is offline\n", encoding="utf-8")
    words = ("index", table, "--into", forum)
    assert run(*words, "--column", "id=#1", "--column", "title=#3", "--json").json["questions"]["added"] == 2
    done = run(*words, "--column", "title=heading")
    assert done.code == 2
    assert "posts.txt has no column 'heading'" in done.err


def test_the_version_is_shown(run: Run) -> None:
    assert run("--version").out.startswith("askalike 0.")


def test_hostile_text_does_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    forum = tmp_path / "f"
    with Forum.create(forum) as opened:
        opened.add(Question("h", "zebra \x1b[31mred\x1b]0;title\x07 [bold]x[/bold] ‮rtl", "b"))
    shown = run("search", forum, "zebra").out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "‮" not in shown
    assert "[bold]x[/bold]" in shown


def test_a_path_with_brackets_is_shown_as_it_is(run: Run, tmp_path: Path) -> None:
    Forum.create(tmp_path / "x[/b]").close()
    done = run("info", tmp_path / "x[/b]")
    assert done.code == 0
    assert str(tmp_path / "x[/b]") in "".join(line.strip() for line in done.out.splitlines())


def test_an_archive_of_links_is_taken_into_a_forum_and_makes_none_alone(run: Run, tmp_path: Path) -> None:
    questions, links, forum = tmp_path / "q.jsonl", tmp_path / "l.tsv", tmp_path / "f"
    questions.write_text('{"id": "1", "title": "one"}\n{"id": "2", "title": "two"}\n', encoding="utf-8")
    links.write_text("1\t2\tduplicate\n", encoding="utf-8")
    alone = run("index", links, "--into", forum)
    assert (alone.code, forum.exists()) == (1, False)
    assert "index the questions first" in alone.err
    assert run("index", questions, "--into", forum).code == 0
    assert run("index", links, "--into", forum, "--json").json["links"]["added"] == 1
    hit = run("search", forum, "one", "--json").json[0]
    assert (hit["question"]["id"], hit["via"]["id"]) == ("2", "1")
