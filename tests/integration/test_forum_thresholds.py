"""A forum's thresholds: by what chance drew and people judged, else by other forums; wherever a minimum is taken."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.command import Run

from askalike import Forum, Query, Question
from askalike.errors import SettingError
from askalike.forum.calibrations import JudgedPair
from askalike.forum.queue import stratum_of
from askalike.schemas import PairsQuery, SimilarRequest
from askalike.search.scorer import BY_WORDS, LEAST_SHOWN
from askalike.search.thresholds import needed
from askalike.server.handlers import Handlers
from askalike.store.pairs import Pair, permanent_number
from askalike.types import Draw, DrawnBy

pytestmark = pytest.mark.usefixtures("words_alone")

WIFI = ["wifi drops every evening", "wifi drops in the evening", "router drops wifi every evening at home"]
OTHERS = ["printer prints blank pages", "cat eats grass", "how to boil eggs", "tomatoes rot on the vine"]


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(f"q{number}", title) for number, title in enumerate([*WIFI, *OTHERS])])
        yield forum


def judged(count: int, by: DrawnBy, is_same: bool, likely: float, first: int = 1) -> list[JudgedPair]:
    logit = float(np.log(likely / (1 - likely)))
    return [JudgedPair((first, 1000 + number), logit, is_same, by) for number in range(count)]


def test_a_forum_that_nobody_judged_rests_on_other_forums_and_says_so(forum: Forum) -> None:
    threshold = forum.thresholds.find(precision=0.2)
    assert threshold.judgements == 0
    assert threshold.minimum is not None
    assert threshold.share.low < threshold.share.value < threshold.share.high
    assert "calibration on other forums: no judged pair was drawn by chance" in threshold.about
    assert f"it takes at least {2 * needed(0.2)} likely pairs of the sample" in threshold.about
    assert forum.pairs.store.count() > 0, "it has compared questions for that"


def test_pairs_that_chance_drew_carry_the_promise(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forum.indexes, "judged", lambda: judged(60, "sample", is_same=True, likely=0.95))
    threshold = forum.thresholds.find(precision=0.9)
    assert (threshold.judgements, threshold.minimum, threshold.share.value) == (60, pytest.approx(0.95), 1.0)
    assert threshold.about == "rests on 60 judged pairs that were drawn by chance"


@pytest.mark.parametrize("by", ["queue", "import", "search"])
def test_pairs_that_somebody_chose_carry_no_promise(forum: Forum, monkeypatch: pytest.MonkeyPatch, by: DrawnBy) -> None:
    monkeypatch.setattr(forum.indexes, "judged", lambda: judged(60, by, is_same=True, likely=0.95))
    assert forum.thresholds.find(precision=0.9).judgements == 0


def test_a_pair_of_the_queue_counts_where_chance_would_have_drawn_it_by_now(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, queued = (
        judged(60, "sample", is_same=True, likely=0.95),
        judged(60, "queue", is_same=True, likely=0.95, first=2),
    )
    reached = max(permanent_number(*proposal.pair, forum.queue.seed) for proposal in drawn)
    below = [proposal for proposal in queued if permanent_number(*proposal.pair, forum.queue.seed) <= reached]
    monkeypatch.setattr(forum.indexes, "judged", lambda: drawn + queued)
    assert len(below) > 0
    assert forum.thresholds.find(precision=0.9).judgements == 60 + len(below)


def test_too_few_drawn_pairs_are_said_to_be_too_few(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forum.indexes, "judged", lambda: judged(10, "sample", is_same=True, likely=0.95))
    threshold = forum.thresholds.find(precision=0.9)
    assert threshold.judgements == 0
    assert "of the judged pairs, chance drew 10, too few to tell (it takes at least 58 likely pairs" in threshold.about


def test_every_door_takes_a_number_a_promise_or_the_default(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forum.indexes, "judged", lambda: judged(60, "sample", is_same=True, likely=0.3))
    assert forum.thresholds.least_probability("precision:0.9") == pytest.approx(0.3)
    least = forum.thresholds.least_probability
    assert (least("default"), least(0.2), least("0.2")) == (LEAST_SHOWN[BY_WORDS], 0.2, 0.2)
    handlers = Handlers(forum)
    for minimum in (0.3, "0.3", "precision:0.9", "default"):
        least = forum.thresholds.least_probability(minimum)
        whole = [hit.score for hit in forum.search(Query(WIFI[0], k=10)).hits]
        scores = [hit.score for hit in forum.search(Query(WIFI[0], k=10, minimum=minimum)).hits]
        assert scores == [score for score in whole if score >= least] != []
        sent = handlers.similar(SimilarRequest(title=WIFI[0], minimum=minimum))
        assert [hit["score"] for hit in sent["hits"]] == scores
        assert all(pair.score >= least for pair in handlers.pairs(PairsQuery(minimum=minimum)).pairs)
    assert forum.search(Query("zebra crossing", minimum="default")).hits == ()
    for wrong in ("often", "precision:2"):
        with pytest.raises(SettingError, match="the minimum is"):
            forum.search(Query("wifi", minimum=wrong))
        with pytest.raises(SettingError, match="the minimum is"):
            handlers.pairs(PairsQuery(minimum=wrong))
    with pytest.raises(SettingError, match="says no probability"):
        forum.search(Query("wifi", ranker="words", minimum="precision:0.9"))
    for above in (1.5, "2"):
        with pytest.raises(SettingError, match="the minimum is"):
            handlers.pairs(PairsQuery(minimum=above))


def test_the_command_shows_the_threshold_and_on_what_it_rests(run: Run, forum: Forum) -> None:
    forum.close()
    done = run("threshold", forum.path, "--precision", 0.2)
    assert done.code == 0
    assert "minimum 0." in " ".join(done.out.split())
    assert "calibration on other forums" in done.out
    threshold = run("threshold", forum.path, "--recall", 0.9, "--json").json
    assert (threshold["promise"], threshold["share"], threshold["judgements"]) == ("recall", 0.9, 0)
    assert threshold["interval90"][0] <= threshold["recall"] <= threshold["interval90"][1]
    assert run("threshold", forum.path).code == 2
    assert run("search", forum.path, WIFI[0], "--minimum", "sometimes").code == 2
    shown = run("search", forum.path, WIFI[0], "--minimum", "recall:0.9", "--json").json
    assert [hit for hit in shown if hit["score"] < threshold["minimum"]] == []
    assert json.dumps(threshold)


def test_strata_are_counted_with_what_is_kept_of_the_unlikely(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "g") as forum:
        forum.add([Question(f"q{number}", f"question {number}") for number in range(20)])
        chance = random.Random(0)
        scores = {(number, other): chance.random() for number in range(1, 20) for other in range(number + 1, 21)}
        with forum.pairs.store.writing() as store:
            store.put([Pair(*pair, score) for pair, score in scores.items()])
        for number, stratum in enumerate(forum.queue.strata()):
            assert stratum.pairs == sum(stratum_of(score) == number for score in scores.values())
            assert stratum.kept == (0.05 if stratum.high <= 0.1 else 1.0)
    assert Draw().by == "queue"
