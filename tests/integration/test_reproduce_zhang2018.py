"""``askalike reproduce zhang2018`` on a few questions in the layout of SemEval, with autoencoders of a few numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run
from tests.tiny_models import synonym_model
from tests.tiny_semeval import FILES, write_semeval

from askalike.errors import FormatError, SettingError
from askalike.evaluation.forum.tasks import judge
from askalike.papers.harness import tie_settings
from askalike.papers.zhang2018.autoencoders import StateTrainer
from askalike.papers.zhang2018.data import ZhangData, read_data
from askalike.papers.zhang2018.ramn import ALPHAS, Matcher, ModelStates
from askalike.papers.zhang2018.rows import LAYERS, ROWS, SEARCH
from askalike.papers.zhang2018.table import TASKS, RamnSystems, choose_alpha, rank_bm25_run
from askalike.training.recipe import network_recipe
from askalike.types import Run as RunOfTask

RECIPE = """
reads = "joined"
word_limit = 20
stems = "english"

[words]
size = 8
min_count = 1
vectors = "random"
is_trained = true

[encoder]
kind = "attention"
hidden_size = 8
layers = 2
pooling = "mean"

[[stage]]
objective = "reconstruction"
epochs = 2
stop_on = "perplexity"
"""


@pytest.fixture
def semeval(tmp_path: Path) -> Path:
    return write_semeval(tmp_path / "semeval")


@pytest.fixture
def data(semeval: Path) -> ZhangData:
    return read_data(semeval)


def test_texts_come_in_order_and_never_from_the_files_of_dev_or_test(
    data: ZhangData, semeval: Path, tmp_path: Path
) -> None:
    assert data.kinds == {"questions": 12, "comments": 9}
    assert {text.id.split("/")[1][0] for text in data.texts} == {"A"}
    assert [text.id for text in data.first(13)][-1].startswith("comment/")
    assert len(data.first(0)) == 21
    with pytest.raises(SettingError, match="50 texts to learn from, but there are 21"):
        data.first(50)
    (tmp_path / "more.jsonl").write_text('{"kind": "question", "id": "1", "title": "more"}\n', encoding="utf-8")
    assert read_data(semeval, [tmp_path / "more.jsonl"]).texts[-1].id == "more.jsonl/1"
    with pytest.raises(FormatError):
        read_data(semeval, [tmp_path / "none.jsonl"])
    with pytest.raises(SettingError, match="more than one source of texts is called"):
        read_data(semeval, [tmp_path / "more.jsonl", tmp_path / "more.jsonl"])


UNLABELLED = """<xml><Thread THREAD_SEQUENCE="Q1">
<RelQuestion RELQ_ID="Q1" RELQ_CATEGORY="Visas" RELQ_DATE="" RELQ_USERID="U1" RELQ_USERNAME="one">
<RelQSubject>a visa</RelQSubject><RelQBody>how long does a visa take</RelQBody></RelQuestion>
<RelComment RELC_ID="Q1_C1" RELC_DATE="" RELC_USERID="U2" RELC_USERNAME="two">
<RelCText>a week, they told me</RelCText></RelComment>
<RelComment RELC_ID="Q1_C2" RELC_DATE="" RELC_USERID="U3" RELC_USERNAME="three">
<RelCText>A week,  they told me</RelCText></RelComment></Thread></xml>
"""


def test_the_forums_whole_archive_brings_its_comments_after_its_questions(
    data: ZhangData, semeval: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "QL-unannotated-data-subtaskA.xml"
    archive.write_text(UNLABELLED, encoding="utf-8")
    with_archive = read_data(semeval, [archive])
    assert with_archive.kinds == data.kinds | {archive.name: 1, f"{archive.name} comments": 1}, (
        "the second comment is the first"
    )
    assert [text.id for text in with_archive.texts[-2:]] == [f"{archive.name}/Q1", f"{archive.name} comments/Q1_C1"]
    (query, *_) = data.tests["test2016"].queries.values()
    of_test = UNLABELLED.replace("a visa<", f"{query.title}<").replace("how long does a visa take", query.body)
    archive.write_text(of_test, encoding="utf-8")
    assert read_data(semeval, [archive]).kinds == data.kinds | {archive.name: 0}, "comments on a question of a test"


def test_a_text_is_taken_once_and_never_where_a_file_of_dev_or_test_has_it_too(semeval: Path) -> None:
    (train,) = (semeval / name for name in FILES if "train" in name)
    text = train.read_text(encoding="utf-8")
    for before, after in (("what now A0", "What  now T0"), ("what now A1", "what now D1"), ("drops A2", "drops T2")):
        text = text.replace(before, after)
    train.write_text(text, encoding="utf-8")
    data = read_data(semeval)
    assert data.kinds["questions"] == 12 - 3 - 3 - 1, "three of a test's, three of dev's, and a query of a test"
    assert not any(name in text.body for text in data.texts for name in ("T0", "D1", "T2"))


def systems(data: ZhangData, folder: Path) -> RamnSystems:
    return RamnSystems(data, StateTrainer(network_recipe("ramn"), data, folder))


def means(data: ZhangData, runs: Mapping[str, RunOfTask]) -> dict[str, float]:
    return {task.name: judge(task, runs[task.name]).means["map"] for task in data.tasks()}


def test_the_search_engines_order_and_the_best_there_is(data: ZhangData, tmp_path: Path) -> None:
    runs = {name: systems(data, tmp_path).answer(ROWS[name], 0).runs for name in SEARCH}
    assert means(data, runs["candidate-search"]) == dict.fromkeys(TASKS, 0.5)
    assert means(data, runs["oracle"]) == dict.fromkeys(TASKS, 1.0)
    assert runs["rank-bm25"]["dev"] == rank_bm25_run(data.dev.given, runs["bm25"]["dev"])


def test_dev_chooses_alpha_alone(data: ZhangData) -> None:
    matcher = Matcher(ModelStates(synonym_model()))
    for layers, settings in LAYERS.items():
        chosen, tried = choose_alpha(matcher, data.dev, settings)
        assert replace(chosen, alpha=settings.alpha) == settings
        if not settings.alpha:
            assert tried == []
            continue
        maps = [judge(data.dev, matcher.run(data.dev, replace(settings, alpha=alpha))).means["map"] for alpha in ALPHAS]
        assert chosen.alpha == ALPHAS[maps.index(max(maps))], layers
        assert [settings["dev_map"] for settings in tried] == [round(value, 6) for value in maps]
    base = matcher.run(data.dev, LAYERS["base-cosine"])
    assert judge(data.dev, base).means["map"] == 1, "wlan stands for wifi, lost for drops"


def test_rows_of_words_need_no_training_and_do_not_match_by_meaning(data: ZhangData, tmp_path: Path) -> None:
    answers = systems(data, tmp_path / "out").answer(ROWS["words-mismatch"], 0)
    assert answers.settings["semeval"]["alpha"] == 0
    assert not (tmp_path / "out").exists()
    assert means(data, answers.runs)["dev"] < 1


def test_both_autoencoders_are_trained_once_and_scored_beside_their_controls(
    semeval: Path, tmp_path: Path, run: Run
) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    recipe, out = tmp_path / "tiny.toml", tmp_path / "out"
    recipe.write_text(RECIPE, encoding="utf-8")
    words = ("--data", semeval, "--out", out, "--recipe", recipe, "--seeds", 2, "--amount", 15, "--amount", 0)
    code, shown, notices = run("reproduce", "zhang2018", *words, "--json")
    assert code == 0
    sets: dict[str, Any] = json.loads(shown)["sets"]
    assert list(sets) == ["15 texts", "21 texts"]
    assert "to run: 22, of which 12 are trained with a seed" in notices, (
        "four of search, one of words, three states twice"
    )
    assert "running 21 texts: attention (8 rows), seed 1 (22 of 22, " in notices, "over both numbers of texts"
    for judged_set in sets.values():
        rows = {row["row"]: row for row in judged_set["rows"]}
        assert list(rows) == list(ROWS)
        assert rows["attention-full"]["seeds"] == rows["word2vec-base"]["seeds"] == [0, 1]
        assert rows["words-full"]["seeds"] == []
        assert rows["attention-full"]["reported"]["test2016"]["map"] == {"value": 77.79, "origin": "paper"}
        said = {(comparison["better"], comparison["worse"]) for comparison in judged_set["compared"]}
        assert {("attention-full", "words-full"), ("attention-base", "untrained-base")} <= said
    assert not list(out.glob("*/*.safetensors")), "checkpoints are cleared when the model is there"
    code, shown, notices = run("reproduce", "zhang2018", *words, "--only", "attention", "--only", "words-full")
    assert code == 0
    assert "running" not in notices, "what is finished is not trained again"
    assert re.search(r"paper +77\.79 +85\.76", shown)
    assert "gru-full" not in shown
    recipe.write_text(RECIPE.replace("min_count = 1", "min_count = 2"), encoding="utf-8")
    done = run("reproduce", "zhang2018", *words)
    assert done.code == 2
    assert "another recipe" in done.err


def test_texts_are_counted_and_what_cannot_be_read_is_named(semeval: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "more.jsonl").write_text('{"id": "1", "title": "more"}\n{"id": "2", "tit\n', encoding="utf-8")
    words = ("--data", semeval, "--out", tmp_path / "out", "--only", "words", "--unlabelled", tmp_path / "more.jsonl")
    done = run("reproduce", "zhang2018", *words)
    assert done.code == 0
    assert "texts to learn from, in this order: questions (12), comments (9), more.jsonl (1)" in done.err
    assert "more.jsonl: records that cannot be read are left out (1), first more.jsonl, line 2: not JSON" in done.err
    assert "test2017, learned from 22 texts" in done.out


def test_a_row_without_states_reads_no_texts_to_learn_from(semeval: Path, tmp_path: Path, run: Run) -> None:
    words = ("--data", semeval, "--out", tmp_path / "out", "--only", "rank-bm25", "--unlabelled", tmp_path / "none")
    done = run("reproduce", "zhang2018", *words, "--json")
    assert done.code == 0
    judged_set = done.json["sets"]["semeval"]
    assert "seeds" not in done.json, "nothing was drawn"
    assert "learn" not in done.err
    assert [row["row"] for row in judged_set["rows"]] == ["candidate-search", "rank-bm25"]


def test_a_folder_in_which_nothing_was_trained_takes_other_settings(tmp_path: Path) -> None:
    tie_settings(tmp_path / "out", {"recipe": "of another width"})
    tie_settings(tmp_path / "out", {"recipe": "right"})
    (tmp_path / "out" / "gru-all-seed0").mkdir()
    tie_settings(tmp_path / "out", {"recipe": "right"})
    with pytest.raises(SettingError, match="another recipe"):
        tie_settings(tmp_path / "out", {"recipe": "of another width"})
