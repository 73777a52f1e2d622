"""The tables of Lei et al. on small invented data in the layouts of AskUbuntu, travel and SemEval."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiny_semeval import write_semeval

from askalike.errors import DamagedInputError, FormatError, MissingExtraError, SettingError, install_command
from askalike.evaluation.forum.tasks import make_scorer, rerank
from askalike.papers.harness import Outcome, RowResult, chosen_rows, compared, run_all
from askalike.papers.lei2016.rows import COMPARED, REPORTED, ROWS, THESIS, LeiRow
from askalike.papers.lei2016.sets import LeiSet, find_sets, released_vectors
from askalike.papers.lei2016.table import EncoderTrainer, LeiSystems, Trainer, runner_of
from askalike.text.settings import TextSettings
from askalike.training.recipe import Recipe, network_recipe
from askalike.types import Question

SUBJECTS = ("printer", "wifi", "scanner", "monitor", "battery", "keyboard")


def write_askubuntu(folder: Path) -> Path:
    """Twelve texts, two a subject: n and n + 6 ask the same."""
    folder.mkdir(parents=True)
    lines = [f"{n}\thow to fix {SUBJECTS[n % 6]} {n}\tmy {SUBJECTS[n % 6]} is broken ." for n in range(12)]
    (folder / "text_tokenized.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "train_random.txt").write_text("0\t6\t1 2 3\n1\t7\t2 3 4\n", encoding="utf-8")
    (folder / "dev.txt").write_text("2\t8\t3 8 9\t9 8 7\n3\t9\t9 4\t5 4\n", encoding="utf-8")
    (folder / "test.txt").write_text("4\t10\t5 11 10\t9 8 7\n5\t11\t11 0\t5 4\n", encoding="utf-8")
    (folder / "heldout.txt").write_text("1\n", encoding="utf-8")
    return folder


def write_travel(folder: Path) -> Path:
    """Sixty pairs of questions, each pair with a word of its own."""
    folder.mkdir(parents=True)
    rows = [{"id": f"{n}", "title": f"visa for place{n % 60}", "body": "Which papers?"} for n in range(120)]
    (folder / "questions.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    pairs = "\n".join(f"{n + 60}\t{n}\tduplicate" for n in range(60))
    (folder / "duplicates.tsv.gz").write_bytes(gzip.compress(pairs.encode()))
    return folder


@pytest.fixture
def askubuntu(tmp_path: Path) -> LeiSet:
    return find_sets(write_askubuntu(tmp_path / "set"))["askubuntu"]()


class BySubject:
    """An encoder that knows subjects perfectly."""

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        return np.array([[word in question.title for word in SUBJECTS] for question in questions], dtype=np.float32)


def no_torch(*_: object) -> BySubject:
    raise MissingExtraError("training a network needs torch", "train")


def run_rows(
    data: LeiSet,
    names: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    train: Trainer = no_torch,
    notice: Callable[[str], None] = lambda _: None,
) -> list[RowResult[LeiRow]]:
    """Run BM25 and the named rows, and return what came of them."""
    runner, rows = runner_of(data, out, train), [ROWS[name] for name in ("bm25", *names)]
    reasons = run_all({data.name: runner}, rows, seeds, notice)
    return runner.results(rows, seeds, reasons[data.name])


def finished(row: LeiRow, seed: int, data: LeiSet, out: Path) -> Outcome | None:
    return runner_of(data, out, no_torch).finished(row, seed)


def test_rows_have_their_figures_and_encoders_of_all_kinds_about_as_many_parameters() -> None:
    assert {name for name, row in ROWS.items() if row.reported} == set(REPORTED)
    assert {name for name, row in ROWS.items() if row.thesis} == set(THESIS)
    assert all(set(pair) <= ROWS.keys() for pair in COMPARED)
    alike = (row for row in ROWS.values() if row.encoder and row.encoder.gate != "constant")
    counts = {row.system: row.encoder.parameter_count() for row in alike if row.encoder}
    assert counts == {"cnn": 400_867, "lstm": 424_320, "gru": 404_880, "rcnn": 400_800}
    with pytest.raises(SettingError, match="no row or set 'bert'"):
        chosen_rows(ROWS, ["bert"])


def test_askubuntu_is_read_as_it_was_released(askubuntu: LeiSet) -> None:
    assert askubuntu.is_original
    assert len(askubuntu.questions) == 12
    assert askubuntu.pairs == (("0", "6"), ("1", "7"))
    assert askubuntu.heldout == {"1"}
    example = askubuntu.examples[0]
    labels = {question.id: label for question, label in zip(example.candidates, example.labels, strict=True)}
    assert labels == {"1": 0, "2": 0, "3": 0, "6": 1}
    assert askubuntu.dev.given["2"] == [("3", 9.0), ("8", 8.0), ("9", 7.0)]
    assert [task.name for task in askubuntu.tests] == ["askubuntu-test"]


def test_what_is_repeated_or_cannot_be_read_is_counted_and_broken_texts_are_named_first(tmp_path: Path) -> None:
    folder = write_askubuntu(tmp_path / "set")
    (folder / "train_random.txt").write_text("0\t6\t1 2 2\n1\n", encoding="utf-8")
    texts = folder / "text_tokenized.txt.gz"
    whole = gzip.decompress(texts.read_bytes()).decode()
    texts.write_bytes(gzip.compress(f"{whole}\n1\tother\ttext".encode()))
    data = find_sets(folder)["askubuntu"]()
    assert len(data.questions) == 12
    reason = "expected id, similar ids and random ids, split by tabs"
    assert data.notes == (
        "texts with an id that another has: the first counts (1)",
        "ids named twice on a training line (1)",
        f"lines that cannot be read: left out, first train_random.txt, line 2: {reason} (1)",
    )
    texts.write_bytes(gzip.compress(whole.replace("3\thow to", "3 how to").encode()))
    with pytest.raises(DamagedInputError, match=r"^text_tokenized.txt.gz, line 4: expected 3 fields .* fields: 2;"):
        find_sets(folder)["askubuntu"]()


def test_what_the_released_folder_lacks_is_left_out_and_its_word_vectors_are_found(tmp_path: Path) -> None:
    folder = write_askubuntu(tmp_path / "set")
    (folder / "train_random.txt").write_text("0\t6 99\t1 98 3\n97\t7\t2\n1\t96\t4\n", encoding="utf-8")
    (folder / "heldout.txt").unlink()
    data = find_sets(folder)["askubuntu"]()
    assert (data.pairs, data.heldout) == ((("0", "6"),), frozenset())
    assert data.notes == ("labelled pairs that name a question without a text: left out (3)",)
    (example,) = data.examples
    assert [question.id for question in example.candidates] == ["1", "3", "6"]
    assert released_vectors(folder) is None
    (folder / "vector").mkdir()
    (folder / "vector" / "vectors_pruned.200.txt.gz").write_bytes(gzip.compress(b"printer 1 2\n"))
    assert released_vectors(folder) == folder / "vector" / "vectors_pruned.200.txt.gz"


def test_stand_ins_keep_training_apart_from_dev_and_test(tmp_path: Path) -> None:
    write_travel(tmp_path / "travel-stackexchange")
    write_semeval(tmp_path / "semeval-task3-b")
    sets = find_sets(tmp_path)
    assert list(sets) == ["travel", "semeval"]
    travel, semeval = (sets[name]() for name in sets)
    assert not travel.is_original
    assert "standing in" in travel.title
    judged = {name for task in (travel.dev, *travel.tests) for name in task.queries}
    trained = {name for pair in travel.pairs for name in pair}
    assert judged
    assert not trained & {other for name in judged for other in (name, str(int(name) - 60))}
    assert {example.query.id for example in travel.examples} == {source for source, _ in travel.pairs}
    assert all(sum(example.labels) == 1 for example in travel.examples)
    assert [task.name for task in semeval.tests] == ["semeval2016-test", "semeval2017-test"]
    assert semeval.pairs == (("A0", "A0_R2"), ("A1", "A1_R2"), ("A2", "A2_R2"))
    assert {question.id[0] for question in semeval.questions} == {"A", "D"}
    assert list(find_sets(tmp_path / "travel-stackexchange")) == ["travel"]
    with pytest.raises(FormatError, match=r"there is no folder .*nowhere"):
        find_sets(tmp_path / "nowhere")


def test_bm25_is_plain_where_the_candidates_were_found_by_another_search(tmp_path: Path, askubuntu: LeiSet) -> None:
    write_travel(tmp_path / "travel-stackexchange")
    travel = find_sets(tmp_path)["travel"]()
    (plain, search) = run_rows(travel, ["candidate-search"], [0], tmp_path / "out")
    runs = LeiSystems(travel, tmp_path, no_torch).answer(ROWS["bm25"], 0).runs
    test = travel.tests[0]
    assert runs[test.name] == rerank(
        test.given, make_scorer("bm25", test.statistics, TextSettings()), test.queries, test.documents
    )
    assert runs[test.name] != test.given
    assert (plain.row.id, search.row.id) == ("bm25", "candidate-search")
    released = LeiSystems(askubuntu, tmp_path, no_torch).answer(ROWS["bm25"], 0).runs
    assert released == {task.name: task.given for task in askubuntu.tasks()}, "as they were released"


def test_the_time_that_is_left_is_said_once_each_system_was_timed(askubuntu: LeiSet, tmp_path: Path) -> None:
    notices: list[str] = []
    run_rows(askubuntu, ("tfidf", "tfidf-title"), [0], tmp_path / "out", notice=notices.append)
    has_time = {line.split()[2]: line.endswith(" left)") for line in notices if line.startswith("running ")}
    assert has_time == {"bm25": False, "tfidf": False, "tfidf-title": True}


def test_baselines_run_and_encoders_without_a_trainer_say_why_not(askubuntu: LeiSet, tmp_path: Path) -> None:
    pytest.importorskip("rapidfuzz")
    pytest.importorskip("sklearn")
    names = ("tfidf", "tfidf-title", "svm", "rcnn-last")
    notices: list[str] = []
    results_of = run_rows(askubuntu, names, [0, 1], tmp_path / "out", notice=notices.append)
    results = {result.row.id: result for result in results_of}
    assert list(results) == ["bm25", "tfidf", "tfidf-title", "svm", "rcnn-last"]
    assert results["rcnn-last"].reason == f"training a network needs torch ({install_command('train')})"
    assert not results["rcnn-last"].means
    assert notices[0] == "to run: 6, of which 2 are trained with a seed", (
        "those that draw nothing once, the encoder twice"
    )
    assert any(
        line.startswith("skipped askubuntu: rcnn-last, seed 1: training a network needs torch") for line in notices
    )
    assert not any("left" in line for line in notices), "no training was timed"
    units = ["bm25", "tfidf", "tfidf-title", "svm", "rcnn-last, seed 0", "rcnn-last, seed 1"]
    running = [line.removeprefix("running askubuntu: ") for line in notices if line.startswith("running ")]
    assert running == [f"{unit} ({number} of 6)" for number, unit in enumerate(units, 1)]
    means = {name: result.means["askubuntu-test"]["map"] for name, result in results.items() if result.means}
    # BM25 ranks the positive 3rd of 3 and 1st of 2: (1/3 + 1) / 2; words in common are those of the subject
    assert means["bm25"].interval.mean == pytest.approx(2 / 3)
    assert means["bm25"].p_value is None
    assert {name: mean.interval.mean for name, mean in means.items() if name != "bm25"} == {
        "tfidf": 1,
        "tfidf-title": 1,
        "svm": 1,
    }
    assert means["tfidf"].p_value == 1  # one query differs: both signs are as extreme


def test_means_are_over_seeds_and_queries_and_what_is_said_of_rows_is_tested(askubuntu: LeiSet, tmp_path: Path) -> None:
    bodies: set[str] = set()

    class Wrong(BySubject):
        def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
            bodies.update(question.body for question in questions)
            return np.ones((len(questions), 1), dtype=np.float32)

    trained: list[tuple[str, int, str, str]] = []

    def train(row: LeiRow, seed: int, data: LeiSet, folder: Path) -> BySubject:
        trained.append((row.id, seed, data.name, folder.name))
        return BySubject() if seed else Wrong()

    results = run_rows(askubuntu, ["gru-mean", "rcnn-mean-title"], [0, 1], tmp_path, train)
    assert trained[::2] == [("gru-mean", seed, "askubuntu", f"gru-mean-seed{seed}") for seed in (0, 1)]
    mrr = results[1].means["askubuntu-test"]["mrr"]
    # seed 0 ties and keeps BM25's order, 2/3; seed 1 is right everywhere
    assert mrr.interval.mean == pytest.approx((2 / 3 + 1) / 2)
    assert mrr.spread == pytest.approx((1 / 3) / np.sqrt(2))
    assert (mrr.queries, results[1].seeds) == (2, (0, 1))
    (comparison,) = compared(results, COMPARED, ["askubuntu-test"])
    assert (comparison.better, comparison.worse, comparison.task) == ("rcnn-mean-title", "bm25", "askubuntu-test")
    assert comparison.difference.mean == pytest.approx((2 / 3 + 1) / 2 - 2 / 3)
    bodies.clear()
    runner_of(askubuntu, tmp_path, lambda *_: Wrong()).run(ROWS["rcnn-last-title"], 0)
    assert bodies == {""}, "a row of titles sees no body"


def test_what_is_finished_is_not_run_again_unless_row_or_data_changed(askubuntu: LeiSet, tmp_path: Path) -> None:
    runs: list[int] = []

    def train(row: LeiRow, seed: int, data: LeiSet, folder: Path) -> BySubject:
        runs.append(seed)
        if seed == 1 and len(runs) == 2:
            raise KeyboardInterrupt
        return BySubject()

    row = ROWS["rcnn-last"]
    with pytest.raises(KeyboardInterrupt):
        run_rows(askubuntu, [row.id], [0, 1], tmp_path, train)
    run_rows(askubuntu, [row.id], [0, 1], tmp_path, train)
    assert runs == [0, 1, 1]
    assert finished(row, 1, askubuntu, tmp_path) is not None
    assert finished(row, 1, replace(askubuntu, pairs=()), tmp_path) is None
    assert finished(replace(row, is_pretrained=True), 1, askubuntu, tmp_path) is None
    assert finished(row, 2, askubuntu, tmp_path) is None
    first, *others = askubuntu.questions
    edited = (replace(first, body=f"{first.body} and more"), *others)
    assert finished(row, 1, replace(askubuntu, questions=edited), tmp_path) is None
    test, *tests = askubuntu.tests
    shown = {name: replace(document, title=f"{document.title}?") for name, document in test.documents.items()}
    assert finished(row, 1, replace(askubuntu, tests=(replace(test, documents=shown), *tests)), tmp_path) is None
    (tmp_path / "askubuntu" / "rcnn-last-seed1.json").write_text("{", encoding="utf-8")
    assert finished(row, 1, askubuntu, tmp_path) is None


def test_encoders_of_other_settings_are_trained_again_and_other_rows_are_not(askubuntu: LeiSet, tmp_path: Path) -> None:
    papers = network_recipe("lei2016")
    earlier = replace(papers, stages=tuple(replace(stage, first_epoch=0) for stage in papers.stages))
    settings = [EncoderTrainer(recipe, {"askubuntu": askubuntu}).described() for recipe in (earlier, papers)]
    runners = [runner_of(askubuntu, tmp_path, lambda *_: BySubject(), recipe) for recipe in settings]
    for name in ("bm25", "rcnn-last"):
        runners[0].run(ROWS[name], 0)
    finished = {
        name: [runner.finished(ROWS[name], 0) is not None for runner in runners] for name in ("bm25", "rcnn-last")
    }
    assert finished == {"bm25": [True, True], "rcnn-last": [True, False]}


def test_two_readings_of_pretraining_lie_in_folders_of_their_own(
    askubuntu: LeiSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="networks are trained by torch, which is not installed")
    from askalike.training import encoder

    seen: list[tuple[str, str]] = []

    def train(recipe: Recipe, data: object, run: Any) -> None:
        seen.append((run.folder.parent.name, f"{run.folder.name} {recipe.stages[0].loop.stop_on}"))

    monkeypatch.setattr(encoder, "train_encoder", train)
    for vectors in ("words.txt", "elsewhere.txt"):
        trainer = EncoderTrainer(network_recipe("lei2016"), {"askubuntu": askubuntu}, vectors=tmp_path / vectors)
        for name in ("rcnn-last-pretrained", "rcnn-last-pretrained-body"):
            trainer(ROWS[name], 0, askubuntu, tmp_path / "out" / "askubuntu" / f"{name}-seed0")
    before = [name for place, name in seen if place == "pretrained"]
    assert [name.partition(" ")[2] for name in before[:2]] == ["perplexity from title", "perplexity from body"]
    assert before[:2] == before[2:], "where word vectors lie does not matter"
    folders = {name.partition(" ")[0] for name in before}
    assert len(folders) == 2
    assert all(name.startswith("rcnn-400-title-and-body-") and name.endswith("-seed0") for name in folders)
