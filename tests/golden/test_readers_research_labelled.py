"""Labelled pairs: the judged set of Zhang et al. and the Quora pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, FormatError, SettingError
from askalike.readers.frame import ReadContext
from askalike.readers.research.judged import has_labelled_judgments, read_judged
from askalike.types import Question

LINES = [
    "how to boil an egg\thow long to cook an egg\t1\tk1",
    "how to boil an egg\twhat is an egg\t0\tk2",
    "what do cats eat\tcat food\t0\tk3",
    "how to boil an egg\tboiling eggs\t1\tk4",
    "what do cats eat\twhat to feed a cat\t1\tk5",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "english.tsv"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_lines_are_grouped_by_query_and_ids_are_positions(file: Path) -> None:
    judged = read_judged(file, "labelled")
    assert has_labelled_judgments(file)
    assert judged.name == "english"
    assert judged.queries == {"q1": Question("q1", "how to boil an egg"), "q2": Question("q2", "what do cats eat")}
    assert judged.qrels == {"q1": {"q1-1": 1, "q1-2": 0, "q1-3": 1}, "q2": {"q2-1": 0, "q2-2": 1}}
    assert judged.candidates["q2"] == [("q2-1", 0.0), ("q2-2", 0.0)]
    assert judged.documents["q1-3"] == Question("q1-3", "boiling eggs")


def test_an_order_that_gives_the_labels_away_is_told(file: Path) -> None:
    notices: list[str] = []
    context = ReadContext(notice=notices.append)
    read_judged(file, "labelled", context=context)
    assert notices == []
    file.write_text("\n".join(LINES[:2]), encoding="utf-8")
    read_judged(file, "labelled", context=context)
    assert "lists positives first" in notices[0]


def test_a_line_that_cannot_be_read_stops_the_set_and_splits_are_refused(file: Path) -> None:
    for odd in (b"", b"1\tone\ttwo\t18\n", b"\x1f\x8b\x00broken", b"{" * 5000):
        file.write_bytes(odd)
        assert not has_labelled_judgments(file)
    file.write_text("\n".join([*LINES, "a\tb\t2\tk6"]), encoding="utf-8")
    with pytest.raises(DamagedInputError, match=r"first english.tsv, line 6: expected query, candidate, label"):
        read_judged(file, "labelled")
    with pytest.raises(SettingError, match="the file is one set"):
        read_judged(file, "labelled", "dev")
    file.write_bytes(b"a\tb\t1\tk\xff\n")
    with pytest.raises(DamagedInputError, match="line 1: not UTF-8 at byte 8 of the line"):
        read_judged(file, "labelled")


def test_names_that_are_not_known_and_paths_that_are_not_there_are_errors(file: Path) -> None:
    with pytest.raises(FormatError, match=r"known: askubuntu, labelled, semeval"):
        read_judged(file, "trec")
    with pytest.raises(FormatError, match="there is nothing at"):
        read_judged(file.with_name("gone"), "labelled")
