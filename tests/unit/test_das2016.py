"""The table of Das et al. 2016 on small invented data: what is learned from, what dev chooses, what is kept."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiny_das2016 import write_yahoo

from askalike.errors import DamagedInputError, FormatError
from askalike.evaluation.forum.systems import Likelihoods
from askalike.evaluation.forum.tasks import judge
from askalike.models.language.kinds import KINDS, Learned
from askalike.models.language.model import LanguageModel, LanguageSettings
from askalike.models.topics.learning import TopicLearning
from askalike.papers.das2016.data import LINKS, REDDIT, TOPICS, DasData, read_data, read_pairs, read_reddit
from askalike.papers.das2016.language import Learner, language_answers
from askalike.papers.das2016.rows import COMPARED, REPORTED, ROWS, DasRow, grid
from askalike.papers.das2016.siamese import siamese_answers
from askalike.papers.das2016.table import runner_of
from askalike.papers.harness import RowResult, Runner, compared
from askalike.papers.paper import Options
from askalike.progress import SilentProgress
from askalike.types import Question


@pytest.fixture
def data(tmp_path: Path) -> DasData:
    return read_data(write_yahoo(tmp_path / "yahoo"))


def runner(data: DasData, out: Path) -> Runner[DasRow]:
    return runner_of(data, Options(data=out, out=out, recipe="scqa"), SilentProgress())


def write_stand_ins(folder: Path) -> Path:
    pairs = [("Fix my wifi?", "restart it"), ("Fix my wifi?", "buy another"), ("Asked in  DEV", "yes")]
    rows = [{"forum": "f", "id": f"{n}", "question": one, "answer": told} for n, (one, told) in enumerate(pairs)]
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


def test_every_row_of_the_paper_is_there_with_its_figures() -> None:
    assert REPORTED.keys() == ROWS.keys() - {"bm25"}
    assert ROWS["t-scqa"].reported == (85.2, 93.4, 84.9)
    assert ROWS["t-scqa"].learner == ROWS["scqa"].learner != ROWS["dsqa"].learner
    assert all({*pair} <= ROWS.keys() for pair in COMPARED)


def test_what_is_learned_from_has_no_query_no_linked_topic_and_no_question_without_an_answer(tmp_path: Path) -> None:
    folder = write_stand_ins(tmp_path)
    found = read_pairs(folder, [Question("q", "asked in dev")])
    assert found.sources == {REDDIT: 2, TOPICS: 2}
    assert found.left_out == {"questions with the words of a query": 1, "topics at an end of a link": 2}
    assert {question.title for question in found.questions} == {"Fix my wifi?", "topic 1", "topic 2"}
    by_title = {question.title: answer.body for question, answer in zip(found.questions, found.best(), strict=True)}
    assert by_title["topic 2"] == "answer 1", "the one with more votes"
    some = read_pairs(folder, [Question("q", "asked in dev")], 2)
    assert some.questions == found.questions[:2], "a part is the beginning of the whole"
    assert some.digest() != found.digest()
    with pytest.raises(FormatError, match="contains no questionss with answers"):
        read_pairs(tmp_path / "nowhere", [])


def test_a_file_of_pairs_that_is_damaged_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "pairs.gz").write_bytes(gzip.compress(b'{"id": 1, "question": "a", "answer": "b"}\n{"id": 2}\n'))
    with pytest.raises(DamagedInputError, match=r"pairs.gz, line 2: KeyError\('question'\)"):
        list(read_reddit(tmp_path / "pairs.gz"))


def test_the_papers_data_is_found_and_some_of_its_queries_tune(data: DasData, tmp_path: Path) -> None:
    assert data.is_original
    one = data.sets[0]
    asked = [{query.title for query in task.queries.values()} for task in one.tasks()]
    assert len(asked[0] | asked[1]) == 20
    assert not asked[0] & asked[1]
    assert asked[0]
    assert len(data.pairs.questions) == 60
    assert data.pairs.best()[0].is_accepted
    assert len(read_data(tmp_path / "yahoo", 7).pairs.questions) == 7
    (tmp_path / "yahoo" / "labelled.tsv").unlink()
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="no archive of Yahoo! Answers, and none of the sets"):
        read_data(tmp_path / "empty")
    with pytest.raises(FormatError, match="0 labelled sets, expected one"):
        read_data(tmp_path / "yahoo")


def test_a_query_that_was_asked_in_the_archive_is_not_learned_from(tmp_path: Path) -> None:
    folder = write_yahoo(tmp_path / "yahoo")
    archive = folder / "FullOct2007.xml"
    archive.write_text(archive.read_text(encoding="utf-8").replace("trouble pain number1<", "QUERY3 visa<"), "utf-8")
    assert read_data(folder).pairs.left_out == {"questions with the words of a query": 1}


def test_translations_find_what_only_answers_tell(data: DasData, tmp_path: Path) -> None:
    learner = Learner(data, tmp_path / "out")
    word, translated = (language_answers(kind, 0, learner) for kind in ("lmir", "translation"))
    test = data.sets[0].tests[0]
    values = [judge(test, found.runs[test.name]).means["map"] for found in (word, translated)]
    assert values[0] < values[1] == 1


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_dev_takes_the_first_of_the_best_and_scores_are_those_of_the_model(
    kind: str, data: DasData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = list(grid(kind, 0))[:: max(1, len(list(grid(kind, 0))) // 7)]
    monkeypatch.setattr("askalike.papers.das2016.language.grid", lambda kind, seed: iter(few))
    learner, one = Learner(data, tmp_path / "out"), data.sets[0]
    found = language_answers(kind, 0, learner)
    tried = found.tried[one.name]
    assert len(tried) == len(few)
    best = max(tried, key=lambda choice: float(str(choice["dev_map"])))
    assert found.settings[one.name] == {name: value for name, value in best.items() if name != "dev_map"}
    options = KINDS[kind](**found.settings[one.name])  # type: ignore[arg-type]
    learned = Learned(
        learner.translations(),
        learner.phrases(options.phrase_learning) if options.phrase_learning else Learned().phrases,
        learner.topics(kind, options.topic_learning).topics if options.topic_learning else Learned().topics,
    )
    model = LanguageModel.build(
        LanguageSettings(kind, options), learner.texts.vocabulary, learner.collection(one.dev.statistics), learned
    )
    expected = Likelihoods(model).rerank(one.tests[0])
    for query, entries in found.runs[one.tests[0].name].items():
        np.testing.assert_allclose(*([score for _, score in run] for run in (entries, expected[query])), rtol=1e-9)


def test_what_was_learned_is_kept_and_learned_anew_from_other_pairs(data: DasData, tmp_path: Path) -> None:
    told: list[str] = []
    first = Learner(data, tmp_path / "out", told.append).translations()
    again = Learner(data, tmp_path / "out", told.append).translations()
    assert told == ["reading what is learned from", "learning translations"]
    np.testing.assert_array_equal(first.values, again.values)
    Learner(data, tmp_path / "out", told.append).topics("qatm", TopicLearning(topics=2, iterations=3))
    Learner(data, tmp_path / "out", told.append).topics("qatm", TopicLearning(topics=2, iterations=4))
    assert told[2:] == ["reading what is learned from", "learning qatm-2-seed0"] * 2, "of other settings: learned anew"
    del told[:]
    fewer = replace(
        data, pairs=replace(data.pairs, questions=data.pairs.questions[:30], answers=data.pairs.answers[:60])
    )
    Learner(fewer, tmp_path / "out", told.append).translations()
    assert told == ["reading what is learned from", "learning translations"]


class Pretending:
    """Questions as vectors by one word: what a siamese network would make of them."""

    def encode(self, questions: list[Question]) -> NDArray[np.float32]:
        rows = [[float("router" in one.title or "wifi" in one.title), 0.1] for one in questions]
        found = np.array(rows, np.float32)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def test_the_weight_of_a_network_beside_words_is_the_best_of_dev(data: DasData) -> None:
    alone, mixed = (siamese_answers(Pretending(), data, has_words=has_words) for has_words in (False, True))  # type: ignore[arg-type]
    name = data.sets[0].name
    assert not alone.settings
    curve = {one["alpha"]: one["dev_map"] for one in mixed.tried[name]}
    assert len(curve) == 21
    assert curve[mixed.settings[name]["alpha"]] == max(curve.values())  # type: ignore[type-var]
    dev = data.sets[0].dev
    assert judge(dev, alone.runs[dev.name]).means["map"] == pytest.approx(curve[1.0], abs=1e-6)


def test_an_outcome_is_kept_until_the_data_change(data: DasData, tmp_path: Path) -> None:
    made = runner(data, tmp_path / "out")
    assert made.finished(ROWS["lmir"], 0) is None
    outcome = made.run(ROWS["lmir"], 0)
    assert made.finished(ROWS["lmir"], 0) == outcome
    assert outcome.values.keys() == {"yahoo dev", "yahoo test"}
    assert set(outcome.first["yahoo dev"]) == set(data.sets[0].dev.queries)
    other = replace(data, pairs=replace(data.pairs, answers=data.pairs.answers[:-1]))
    assert runner(other, tmp_path / "out").finished(ROWS["lmir"], 0) is None
    (one,) = data.sets
    shown = {name: replace(found, title=f"{found.title}?") for name, found in one.tests[0].queries.items()}
    other = replace(data, sets=(replace(one, tests=(replace(one.tests[0], queries=shown),)),))
    assert runner(other, tmp_path / "out").finished(ROWS["lmir"], 0) is None
    (tmp_path / "out" / "rows" / "lmir-seed0.json").write_text("{", encoding="utf-8")
    assert made.finished(ROWS["lmir"], 0) is None


def test_outcomes_of_other_versions_are_found_where_they_are_of_the_same_texts(data: DasData, tmp_path: Path) -> None:
    by_ids_alone = {
        "bm25": "417414b64865350503f56454a7ae9c6bdce1e57b78c2be0f18754aebbc980974",
        "lmir": "a0106ebfdc2d2070abb9d38b1d83df19b3ac3d13bb0891a9da1845cc0d2d8b11",
    }
    by_texts = {
        "bm25": "b6af78f4698f8f26793e983d49f2a2507abcb214798ba585cdd23e1390c3f5ac",
        "lmir": "c52dbcf2a0292b8138a9b9d3f7ce102b421fedf7d738b0ffdf2a7c50c3413655",
    }
    made = runner(data, tmp_path)
    (tmp_path / "rows").mkdir()
    for fingerprints in (by_ids_alone, by_texts):
        for row, fingerprint in fingerprints.items():
            kept = {"row": row, "seed": 1, "fingerprint": fingerprint, "values": {}, "settings": {}, "tried": {}}
            (tmp_path / "rows" / f"{row}-seed1.json").write_text(json.dumps(kept), encoding="utf-8")
            assert (made.finished(ROWS[row], 1) is not None) == (fingerprints is by_texts)


def test_rows_are_tested_against_lmir_and_against_each_other(data: DasData, tmp_path: Path) -> None:
    made = runner(data, tmp_path / "out")
    rows = [ROWS[name] for name in ("lmir", "translation", "scqa")]
    for row in rows[:2]:
        made.run(row, 0)
    base, translated, missing = made.results(rows, range(2))
    assert (base.means["yahoo test"]["map"].p_value, missing.means) == (None, {})
    assert translated.means["yahoo test"]["map"].p_value is not None
    assert len(translated.outcomes) == 1, "nothing is drawn, so it has no second seed"
    (found,) = compared([base, translated, missing], COMPARED, ["yahoo test"])
    assert (found.better, found.worse) == ("translation", "lmir")
    means = [one.means["yahoo test"]["map"].over_queries.mean for one in (translated, base)]
    assert found.difference.mean == pytest.approx(means[0] - means[1])


def test_a_query_counts_by_its_mean_over_seeds() -> None:
    def result(row: str, *by_seed: float) -> RowResult[DasRow]:
        values = [{"t": {"map": {"q": value, "r": 0.5}}} for value in by_seed]
        return RowResult.of(ROWS[row], range(len(values)), values, [], ["map"])

    scqa, dsqa = result("scqa", 0.0, 1.0), result("dsqa", 0.25)
    (found,) = compared([dsqa, scqa], COMPARED, ["t"])
    assert found.difference.mean == 0.125
