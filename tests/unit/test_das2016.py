"""The table of Das et al. 2016 on small invented data: what is learned from, what dev chooses, what is kept."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiny_das2016 import write_yahoo

from askalike.errors import DamagedInputError, FormatError
from askalike.evaluation.forum.tasks import bm25_run, candidate_task, judge
from askalike.papers.das2016.data import (
    LINKS,
    REDDIT,
    TOPICS,
    DasData,
    read_data,
    read_pairs,
    read_reddit,
    says_something,
)
from askalike.papers.das2016.language import LanguageModel, LanguageSettings, collection_counts
from askalike.papers.das2016.rows import ROWS, DasRow, grid
from askalike.papers.das2016.scqa import ScqaSettings, TrigramReader
from askalike.papers.das2016.systems import (
    Learner,
    SiameseTrainer,
    TrigramCosine,
    language_answers,
    siamese_answers,
)
from askalike.papers.das2016.table import runner_of
from askalike.papers.harness import Options, Runner
from askalike.progress import SilentProgress
from askalike.training.loop import read_log
from askalike.types import Answer, Question


@pytest.fixture
def data(tmp_path: Path) -> DasData:
    return read_data(write_yahoo(tmp_path / "yahoo"))


def runner(data: DasData, out: Path) -> Runner[DasRow]:
    return runner_of(data, Options(data=out, out=out, recipe="scqa"), SilentProgress())


def write_stand_ins(folder: Path) -> Path:
    pairs = [
        ("f", "Fix my wifi?", "."),
        ("f", "Fix my wifi?", "restart it"),
        ("f", "Fix my wifi?", "buy another"),
        ("g", "Why?", "[deleted]  \n ^^^0.35 \n > /86319)"),
        ("f", "Asked in  DEV", "yes"),
        ("h", "Fix  my wifi?", "ask a friend"),
    ]
    rows = [
        {"forum": forum, "id": f"{n}", "question": question, "answer": answer}
        for n, (forum, question, answer) in enumerate(pairs)
    ]
    (folder / REDDIT).parent.mkdir(parents=True)
    (folder / REDDIT).write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (folder / TOPICS).parent.mkdir()
    topics = [
        {
            "id": f"{n}",
            "title": f"topic {n}",
            "body": "how",
            "answers": [{"id": f"{n}-{k}", "body": f"answer {k}", "score": k} for k in range(n)],
        }
        for n in range(5)
    ]
    (folder / TOPICS).write_bytes(gzip.compress("\n".join(map(json.dumps, topics)).encode()))
    (folder / LINKS).write_text("4\t3\treply\n", encoding="utf-8")
    return folder


def test_what_is_learned_from_has_no_query_no_linked_topic_and_no_question_without_an_answer(tmp_path: Path) -> None:
    folder = write_stand_ins(tmp_path)
    pairs = read_pairs(folder, [Question("q", "asked in dev")])
    assert pairs.sources == {REDDIT: 1, TOPICS: 2}
    assert pairs.left_out == {
        "answers that say nothing": 2,
        "questions of which no answer is left": 1,
        "questions with the words of a query": 1,
        "questions with the text of another": 1,
        "topics at an end of a link": 2,
    }
    assert {question.title for question in pairs.questions} == {"Fix my wifi?", "topic 1", "topic 2"}
    by_title = {question.title: answer.body for question, answer in zip(pairs.questions, pairs.best(), strict=True)}
    assert by_title["topic 2"] == "answer 1", "the one with more votes"
    assert by_title["Fix my wifi?"] == "restart it", "the first that says something"
    beginning = read_pairs(folder, [Question("q", "asked in dev")], 2)
    assert beginning.questions == pairs.questions[:2], "a part is the beginning of the whole"
    assert beginning.digest() != pairs.digest()
    with pytest.raises(FormatError, match="contains no questions with answers"):
        read_pairs(tmp_path / "nowhere", [])


def test_an_answer_that_was_deleted_or_overwritten_says_nothing() -> None:
    pasted = "[deleted]  \n ^^^^0.8427 \n > [What is this?](https://pastebin.com/64GuVi2F/86319)"
    overwritten = "This comment has been overwritten by an open source script to protect this user's privacy."
    silent = ("...", "[removed]", "Deleted.", pasted, overwritten)
    assert [body for body in ("Yes.", "Delete it", *silent) if says_something(Answer("a", "q", body))] == [
        "Yes.",
        "Delete it",
    ]


def test_rows_of_one_subreddit_and_title_are_one_question_with_all_their_answers(tmp_path: Path) -> None:
    folder = write_stand_ins(tmp_path)
    answers_of = {
        question.id: [answer.body for answer in answers] for question, answers in read_reddit(folder / REDDIT)
    }
    assert answers_of["0"] == [".", "restart it", "buy another"]
    assert answers_of["5"] == ["ask a friend"], "the same title in another subreddit is another question"
    kept = read_pairs(folder, [])
    (wifi,) = (question.id for question in kept.questions if question.title == "Fix my wifi?")
    assert [answer.body for answer in kept.answers if answer.question_id == wifi] == ["restart it", "buy another"]
    (tmp_path / "pairs.gz").write_bytes(gzip.compress(b'{"id": 1, "forum": "f", "question": "a", "answer": "b"}\n{}'))
    with pytest.raises(DamagedInputError, match=r"pairs.gz, line 2: KeyError\('id'\)"):
        list(read_reddit(tmp_path / "pairs.gz"))


def test_the_control_is_the_cosine_of_trigram_counts() -> None:
    query, near, far = Question("q", "router wifi"), Question("a", "wifi wifi"), Question("b", "router")
    plain = TrigramCosine().score(query, [near, far])
    reader = TrigramReader()
    texts = [Counter(reader.question(question)) for question in (query, near, far)]
    norms = [sum(value * value for value in text.values()) ** 0.5 for text in texts]
    dots = [sum(texts[0][name] * text[name] for name in texts[0]) for text in texts[1:]]
    assert plain.tolist() == pytest.approx([dot / norms[0] / norm for dot, norm in zip(dots, norms[1:], strict=True)])
    weighted = TrigramCosine([far] * 9 + [near]).score(query, [near, far])
    assert weighted[0] > plain[0], "the trigrams of wifi are rare in the collection"
    assert weighted[1] < plain[1]


def test_the_papers_data_is_found_and_some_of_its_queries_tune(data: DasData, tmp_path: Path) -> None:
    assert data.is_original
    judged_set = data.sets[0]
    titles = [{query.title for query in task.queries.values()} for task in judged_set.tasks()]
    assert len(titles[0] | titles[1]) == 20
    assert not titles[0] & titles[1]
    assert titles[0]
    assert len(data.pairs.questions) == 60
    assert data.pairs.best()[0].is_accepted
    assert len(read_data(tmp_path / "yahoo", 7).pairs.questions) == 7
    archive = tmp_path / "yahoo" / "FullOct2007.xml"
    archive.write_text(archive.read_text(encoding="utf-8").replace("trouble pain number1<", "QUERY3 visa<"), "utf-8")
    assert read_data(tmp_path / "yahoo").pairs.left_out == {"questions with the words of a query": 1}
    (tmp_path / "yahoo" / "labelled.tsv").unlink()
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="no archive of Yahoo! Answers, and none of the sets"):
        read_data(tmp_path / "empty")
    with pytest.raises(FormatError, match="0 labelled sets, expected one"):
        read_data(tmp_path / "yahoo")


@pytest.mark.parametrize("name", sorted(row.learner for row in ROWS.values() if row.system == "language"))
def test_dev_takes_the_first_of_the_best_and_scores_are_those_of_the_model(
    name: str, data: DasData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = list(grid(name, 0))[:: max(1, len(list(grid(name, 0))) // 5)]
    monkeypatch.setattr("askalike.papers.das2016.systems.grid", lambda name, seed: iter(few))
    learner, (one_set,) = Learner(data, tmp_path / "out"), data.sets
    answers = language_answers(name, 0, learner)
    tried = answers.tried[one_set.name]
    assert len(tried) == len(few)
    best = max(tried, key=lambda choice: float(str(choice["dev_map"])))
    assert answers.settings[one_set.name] == {name: value for name, value in best.items() if name != "dev_map"}
    settings = LanguageSettings(**answers.settings[one_set.name])  # type: ignore[arg-type]
    counts = collection_counts(learner.texts.vocabulary, one_set.dev.statistics)
    model, (test,) = LanguageModel(settings, learner.knowledge(settings), counts), one_set.tests
    for query, entries in answers.runs[test.name].items():
        expected = model.score(test.queries[query], [test.documents[document] for document, _ in entries])
        np.testing.assert_allclose([score for _, score in entries], expected, rtol=1e-9)


def test_what_was_learned_is_kept_and_learned_anew_from_other_pairs(data: DasData, tmp_path: Path) -> None:
    notices: list[str] = []

    def learner(of: DasData = data) -> Learner:
        return Learner(of, tmp_path / "out", notices.append)

    first, again = (learner().phrases(2) for _ in range(2))
    assert notices == ["learning phrases-2", "counting the words of questions and answers", "learning translations"]
    np.testing.assert_array_equal(first.codes, again.codes)
    np.testing.assert_array_equal(first.matrix.toarray(), again.matrix.toarray())
    topics = [learner().topics(2, 0, is_voted=True).words for _ in range(2)]
    np.testing.assert_array_equal(*topics)
    assert notices[3:] == ["learning sqatm-2-seed0", "counting the words of questions and answers"]
    file = tmp_path / "out" / "learned" / "phrases-2.npz"
    file.write_bytes(file.read_bytes()[:-9])
    del notices[:]
    learner().phrases(2)
    pairs = replace(data.pairs, questions=data.pairs.questions[:30], answers=data.pairs.answers[:60])
    learner(replace(data, pairs=pairs)).translations()
    assert notices[0::2] == ["learning phrases-2", "learning translations"], "one was cut short, one of other pairs"


class Pretending:
    """Questions as vectors by one word: what a siamese network would make of them."""

    def encode(self, questions: list[Question]) -> NDArray[np.float32]:
        rows = [[float("router" in question.title or "wifi" in question.title), 0.1] for question in questions]
        vectors = np.array(rows, np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_the_weight_of_a_network_beside_words_is_the_best_of_dev(data: DasData) -> None:
    lexical = {task.name: bm25_run(task) for task in data.tasks()}
    network: Any = Pretending()
    rows = ("scqa", "t-scqa", "t-scqa-08", "t-scqa-08-z")
    alone, mixed, *fixed = (siamese_answers(network, data, ROWS[name], lexical) for name in rows)
    name = data.sets[0].name
    assert not alone.settings
    curve = {settings["alpha"]: settings["dev_map"] for settings in mixed.tried[name]}
    assert len(curve) == 21
    assert curve[mixed.settings[name]["alpha"]] == max(curve.values())  # type: ignore[type-var]
    dev = data.sets[0].dev
    assert judge(dev, alone.runs[dev.name]).means["map"] == pytest.approx(curve[1.0], abs=1e-6)
    assert [row.settings[name] for row in fixed] == [{"alpha": 0.8}] * 2
    assert not any(row.tried for row in fixed), "the paper's weight is not chosen"
    share, standard = (row.runs[dev.name] for row in fixed)
    assert judge(dev, share).means["map"] == pytest.approx(curve[0.8], abs=1e-6)
    assert all(sum(score for _, score in hits) == pytest.approx(0, abs=1e-9) for hits in standard.values())


def test_an_outcome_is_kept_until_the_data_change_and_rows_are_tested_against_lmir(
    data: DasData, tmp_path: Path
) -> None:
    rows, lmir = runner(data, tmp_path / "out"), ROWS["lmir"]
    assert rows.finished(lmir, 0) is None
    outcome = rows.run(lmir, 0)
    assert rows.finished(lmir, 0) == outcome
    assert outcome.values.keys() == {"yahoo dev", "yahoo test"}
    rows.run(ROWS["translation"], 0)
    base, translated, missing = rows.results([ROWS[name] for name in ("lmir", "translation", "scqa")], range(2))
    assert (base.means["yahoo test"]["map"].p_value, missing.means) == (None, {})
    assert translated.means["yahoo test"]["map"].p_value is not None
    assert len(translated.outcomes) == 1, "nothing is drawn, so it has no second seed"
    other = replace(data, pairs=replace(data.pairs, answers=data.pairs.answers[:-1]))
    assert runner(other, tmp_path / "out").finished(lmir, 0) is None
    (judged_set,) = data.sets
    shown = {name: replace(query, title=f"{query.title}?") for name, query in judged_set.tests[0].queries.items()}
    other = replace(data, sets=(replace(judged_set, tests=(replace(judged_set.tests[0], queries=shown),)),))
    assert runner(other, tmp_path / "out").finished(lmir, 0) is None


def test_a_training_keeps_the_network_before_it_and_that_of_the_best_epoch_of_dev(
    data: DasData, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the siamese network is trained with torch, which is not installed")
    from askalike.papers.das2016.scqa_network import SiameseNetwork

    loop = replace(ScqaSettings().loop, epochs=3, patience=0, learning_rate=0.1)
    settings = ScqaSettings(kernel_width=3, channels=(2, 2), poolings=(2, 1), output_size=4, batch_size=8, loop=loop)
    trainer = SiameseTrainer(settings, data, tmp_path)
    kept = {name: trainer.model("scqa", 1, name) for name in ("loss", "dev", "untrained")}
    first = SiameseNetwork(settings, len(kept["loss"].vocabulary.words), 1).arrays()
    untrained, trained = (kept[name].network.arrays() for name in ("untrained", "loss"))
    assert all(np.array_equal(first[name], value) for name, value in untrained.items())
    assert not any(np.array_equal(first[name], value) for name, value in trained.items())
    maps = [entry.value for entry in read_log(tmp_path / "scqa-seed1" / "log.csv") if entry.measure == "map"]
    assert len(maps) == 4
    (judged_set,) = data.sets
    task = candidate_task(judged_set.dev)
    values = {name: task.map(model.encode(task.questions)) for name, model in kept.items()}
    assert values["untrained"] == pytest.approx(maps[0], abs=1e-5)
    assert values["dev"] == pytest.approx(max(maps[1:]), abs=1e-5), "of epochs from the first on"
    assert values["loss"] == pytest.approx(maps[-1], abs=1e-5), "without patience the last one"


def test_the_row_of_bm25_does_not_take_the_scores_of_the_search(data: DasData, tmp_path: Path) -> None:
    (judged_set,) = data.sets
    runs = runner(data, tmp_path).systems.answer(ROWS["bm25"], 0).runs
    changed_dev = replace(
        judged_set.dev, given={query: [(name, 7.0) for name, _ in run] for query, run in judged_set.dev.given.items()}
    )
    changed = runner(replace(data, sets=(replace(judged_set, dev=changed_dev),)), tmp_path).systems
    assert changed.answer(ROWS["bm25"], 0).runs == runs
    assert changed.answer(ROWS["candidate-search"], 0).runs[changed_dev.name] == changed_dev.given
