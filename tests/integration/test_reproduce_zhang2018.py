"""``askalike reproduce zhang2018`` on a few questions in the layout of SemEval, with autoencoders of a few numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run
from tests.tiny_models import synonym_model
from tests.tiny_semeval import FILES, SUBJECTS, write_semeval

from askalike.errors import FormatError, SettingError
from askalike.evaluation.forum.tasks import RerankTask, judge
from askalike.papers.harness import tie_settings
from askalike.papers.zhang2018.autoencoders import TransformedStates, all_alike
from askalike.papers.zhang2018.data import ZhangData, read_data
from askalike.papers.zhang2018.ramn import ALPHAS, Matcher, ModelStates, RamnSettings
from askalike.papers.zhang2018.rows import (
    LAYERS,
    PARTS,
    choose_settings,
    choose_weights,
    combined_run,
    parts,
)
from askalike.papers.zhang2018.table import Trained, kind_rows, search_rows, words_alone

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
    (tmp_path / "more.jsonl").write_text('{"id": "1", "title": "more"}\n{"id": "2", "tit\n', encoding="utf-8")
    assert read_data(semeval, [tmp_path / "more.jsonl"]).rejected == {"more.jsonl": 1}
    turned = data.beginning_with("comments")
    assert turned.texts == data.texts[12:] + data.texts[:12]
    assert data.beginning_with("questions") == data
    with pytest.raises(SettingError, match="no texts 'reddit' to learn from"):
        data.beginning_with("reddit")


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
    found = read_data(semeval, [archive])
    assert found.kinds == data.kinds | {archive.name: 1, f"{archive.name} comments": 1}, (
        "the second comment is the first"
    )
    assert [text.id for text in found.texts[-2:]] == [f"{archive.name}/Q1", f"{archive.name} comments/Q1_C1"]
    (asked, *_) = data.tests["test2016"].queries.values()
    of_test = UNLABELLED.replace("a visa<", f"{asked.title}<").replace("how long does a visa take", asked.body)
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


def test_the_search_engines_order_and_the_best_there_is(data: ZhangData) -> None:
    order, lexical, oracle = search_rows(data)
    assert order.means["test2016"]["map"].over_queries.mean == 0.5
    assert (order.row.id, lexical.row.id, oracle.row.id) == ("ir", "bm25", "oracle")
    assert oracle.means["test2017"]["mrr"].over_queries.mean == 1


def test_dev_chooses_settings_and_each_row_has_its_layers(data: ZhangData) -> None:
    matcher = Matcher(ModelStates(synonym_model()))
    choice = choose_settings([matcher], data.dev)
    assert set(choice.settings) == set(LAYERS)
    names = ("base", "mismatch", "positions", "tuned", "both")
    base, mismatch, full, tuned, both = (choice.settings[name] for name in names)
    signed, clamped = choice.settings["full"], choice.settings["clamped"]
    assert (signed.rank_factor, clamped.rank_factor, full.rank_factor) == ("signed", "clamped", "scaled")
    assert [choice.settings[f"{name}-035"] for name in ("full", "clamped")] == [
        replace(one, alpha=0.035) for one in (signed, clamped)
    ]
    for one in (signed, clamped):
        values = [judge(data.dev, matcher.run(data.dev, replace(one, alpha=alpha))).means["map"] for alpha in ALPHAS]
        assert one.alpha == ALPHAS[values.index(max(values))]
    assert both.is_both_ways
    assert (base.has_mismatch, base.alpha) == (False, 0)
    assert (mismatch.has_mismatch, mismatch.alpha) == (True, 0)
    assert full.alpha > 0
    best = [judge(data.dev, matcher.run(data.dev, one)).means["map"] for one in (full, tuned)]
    assert best[0] == choice.tried[0]["dev_map"]
    assert best[1] >= best[0]
    assert judge(data.dev, matcher.run(data.dev, base)).means["map"] == 1, "wlan stands for wifi, lost for drops"
    values = [one["dev_map"] for one in choice.tried]
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]  # numbers


def marked(task: RerankTask, found: Callable[[int], int]) -> RerankTask:
    """Return a task in which the candidate at one place is the relevant one, by the number of candidates."""
    qrels = {
        query: {document: int(place == found(len(entries))) for place, (document, _) in enumerate(entries)}
        for query, entries in task.given.items()
    }
    return replace(task, qrels=qrels)


def test_no_test_set_has_a_say_in_any_setting(data: ZhangData) -> None:
    """With other candidates relevant, dev would say something else of a choice; in the tests that does not count."""
    found = Trained("attention", 42, (0,), (Matcher(ModelStates(synonym_model())),))
    first, last = (lambda count: 0), (lambda count: count - 1)
    turned = {way: {name: marked(task, way) for name, task in data.tests.items()} for way in (first, last)}
    dev = choose_settings(found.matchers, data.dev)
    assert choose_settings(found.matchers, turned[first]["test2016"]).tried != dev.tried
    rows = {way: kind_rows(replace(data, tests=tests), found) for way, tests in turned.items()}
    for made, choice in rows.values():
        assert choice == dev
        assert [one.row.settings for one in made[:-1]] == [dev.settings[layers] for layers in LAYERS]
    (combined, *others) = (made[-1].row.weights for made, _ in rows.values())
    assert others == [combined]
    states = parts(found.matchers[0], turned[first]["test2016"], dev.settings["positions"])
    assert choose_weights([states], turned[first]["test2016"]) != combined


def test_without_the_autoencoder_the_order_by_meaning_is_the_given_one(data: ZhangData) -> None:
    states = ModelStates(synonym_model())
    base = RamnSettings(similarity="cosine", has_mismatch=False, alpha=0.0)
    alone = Matcher(TransformedStates(states, all_alike)).run(data.dev, base)
    assert {score for found in alone.values() for _, score in found} == {0}
    rows, _ = kind_rows(data, words_alone(Trained("attention", 42, (0,), (Matcher(states),))))
    assert [(row.row.id, row.row.size) for row in rows] == [
        (f"words-{layers}", 42) for layers in (*LAYERS[1:], "combined")
    ]


def test_a_weighted_sum_of_the_parts_is_chosen_by_dev(data: ZhangData) -> None:
    settings = RamnSettings(similarity="cosine")
    found = parts(Matcher(ModelStates(synonym_model())), data.dev, settings)
    assert {one.shape for one in found.values()} == {(len(PARTS), len(SUBJECTS))}
    query = next(iter(found))
    assert found[query][PARTS.index("rank")].round(3).tolist() == [1.225, 0.0, -1.225]
    assert found[query][PARTS.index("match")].argmax() == 1, "wlan stands for wifi, lost for drops"
    chosen = choose_weights([found], data.dev)
    assert set(chosen) == set(PARTS)
    assert judge(data.dev, combined_run(data.dev, found, chosen)).means["map"] == 1
    alone = dict.fromkeys(PARTS, 0.0) | {"rank": 1.0}
    assert judge(data.dev, combined_run(data.dev, found, alone)).means["map"] == 0.5


def test_both_autoencoders_are_trained_once_and_scored(
    semeval: Path, data: ZhangData, tmp_path: Path, run: Run
) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    recipe, out = tmp_path / "tiny.toml", tmp_path / "out"
    recipe.write_text(RECIPE, encoding="utf-8")
    amounts = ("--amount", 15, "--amount", 0, "--amount", 15)
    words = ("--data", semeval, "--out", out, "--recipe", recipe, "--seeds", 2, *amounts)
    code, shown, told = run("reproduce", "zhang2018", *words, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(shown)
    assert "8 trainings" in told
    kinds = {(row["row"], row["texts"]): row for row in found["rows"]}
    assert len(kinds) == 3 + 2 * (4 * (len(LAYERS) + 1) + len(LAYERS))
    assert kinds["attention-full", 21]["seeds"] == [0, 1]
    assert kinds["words-full", 21]["seeds"] == []
    assert len(kinds["gru-full", 15]["average_precision"]["test2017"]) == len(data.tests["test2017"].queries)
    assert 0 <= kinds["gru-tuned", 15]["found"]["test2016"]["map"]["mean"] <= 1
    assert max(kinds["gru-combined", 15]["weights"].values()) == 1
    said = {(one["better"], one["worse"]) for one in found["compared"]["21"]}
    assert {("attention-full", "gru-full"), ("attention-full", "ir"), ("attention-combined", "bm25")} <= said
    assert {("attention-full", "words-full"), ("attention-combined", "words-combined")} <= said
    assert found["tried_on_dev"].keys() == {
        f"{kind}{white}, {amount} texts"
        for kind in ("gru", "attention")
        for white in ("", "-white")
        for amount in (15, 21)
    }
    assert json.loads((out / "gru-15-seed1" / "examples.json").read_bytes())
    assert not list(out.glob("*/*.safetensors")), "checkpoints are cleared when the model is there"
    code, shown, told = run("reproduce", "zhang2018", *words, "--only", "attention")
    assert code == 0
    assert "trainings" not in told, "what is finished is not trained again"
    assert re.search(r"paper +77\.79 +85\.76", shown)
    assert "gru-full" not in shown
    done = run("reproduce", "zhang2018", *words, "--first", "comments")
    assert done.code == 2, "other texts come first in each amount"
    assert "other texts" in done.err
    recipe.write_text(RECIPE.replace("min_count = 1", "min_count = 2"), encoding="utf-8")
    done = run("reproduce", "zhang2018", *words)
    assert done.code == 2
    assert "another recipe" in done.err


def test_a_folder_in_which_nothing_was_trained_takes_other_settings(tmp_path: Path) -> None:
    tie_settings(tmp_path / "out", {"recipe": "of another width"})
    tie_settings(tmp_path / "out", {"recipe": "right"})
    (tmp_path / "out" / "gru-all-seed0").mkdir()
    tie_settings(tmp_path / "out", {"recipe": "right"})
    with pytest.raises(SettingError, match="another recipe"):
        tie_settings(tmp_path / "out", {"recipe": "of another width"})
