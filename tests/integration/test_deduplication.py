"""Repeats removed from frames, lists and files: what is kept, in what form, and what was removed by what."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from tests.command import Run
from tests.embedding_server import WordHashes

import askalike
from askalike import Deduplication, Forum, Question, TextSettings, deduplicate
from askalike.deduplication import unique_path
from askalike.errors import FormatError, InputError, SettingError

OFFLINE = "Printer is offline after a power cut"
REWORDED = "Power cut, and now the printer is offline"
WIFI = "Which channel for the wifi?"
EGGS = "How long do eggs boil?"


def rows_of(result: Deduplication) -> list[tuple[int, int, bool]]:
    return [(removal.row, removal.kept_row, removal.is_exact) for removal in result.removed]


def test_the_first_of_several_texts_is_kept_and_each_removal_names_it() -> None:
    texts = [OFFLINE, WIFI, f"  {OFFLINE.upper()} ", REWORDED, EGGS]
    result = deduplicate(texts, minimum=0.5)
    assert result.kept == [OFFLINE, WIFI, EGGS]
    assert rows_of(result) == [(2, 0, True), (3, 0, False)]
    exact, likely = result.removed
    assert (exact.text, exact.kept_text, exact.probability) == (OFFLINE.upper(), OFFLINE, 1.0)
    assert 0.5 <= likely.probability < 1
    assert repr(result) == "<Deduplication: 2 of 5 rows removed, 1 exact, 1 likely>"
    assert (result.rows, result.unread) == (5, [])


def test_a_minimum_of_1_removes_exact_repeats_alone() -> None:
    assert deduplicate([OFFLINE, REWORDED, OFFLINE], minimum=1).kept == [OFFLINE, REWORDED]


def test_the_oldest_question_is_kept_where_there_are_dates() -> None:
    titles = [
        Question("late", OFFLINE, created=datetime(2024, 1, 1, tzinfo=UTC)),
        Question("unknown", OFFLINE),
        Question("early", OFFLINE, created=datetime(2020, 1, 1, tzinfo=UTC)),
    ]
    result = deduplicate(titles, minimum=1)
    assert result.kept == [titles[2]]
    assert [(removal.id, removal.kept_id) for removal in result.removed] == [("late", "early"), ("unknown", "early")]


def test_dictionaries_are_returned_as_they_were_given() -> None:
    items = [{"key": 7, "subject": WIFI}, {"key": 8, "subject": WIFI, "seen": True}, {"key": 9}]
    result = deduplicate(items, columns={"id": "key", "title": "subject"}, minimum=1)
    assert [id(item) for item in result.kept] == [id(items[0]), id(items[2])]
    assert [(removal.id, removal.kept_id) for removal in result.removed] == [(8, 7)]
    assert [(row.row, row.id) for row in result.unread] == [(2, 9)]


def test_a_pandas_frame_keeps_its_ids_types_and_index() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"id": [1.5, float("nan"), 3.0, 4.0], "title": [WIFI, EGGS, float("nan"), WIFI], "n": [1, 2, 3, 4]},
        index=["a", "b", "c", "d"],
    )
    result = deduplicate(frame, minimum=1)
    pandas.testing.assert_frame_equal(result.kept, frame.loc[["a", "b", "c"]])
    assert [(removal.id, removal.kept_id) for removal in result.removed] == [(4.0, 1.5)]
    assert [(row.row, row.id, row.reason) for row in result.unread] == [(2, 3.0, "title and body are empty")]
    series = deduplicate(frame.title, minimum=1)
    pandas.testing.assert_series_equal(series.kept, frame.title.loc[["a", "b", "c"]])
    assert [(removal.id, removal.kept_id) for removal in series.removed] == [("d", "a")]
    assert len(deduplicate(frame.iloc[:0]).kept) == 0


def test_pandas_own_gaps_and_moments_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "title": pandas.array([WIFI, pandas.NA, WIFI], dtype="string"),
            "created": pandas.to_datetime(["2024-01-02", None, "2024-01-01"]),
        }
    )
    result = deduplicate(frame, minimum=1)
    assert rows_of(result) == [(0, 2, True)]
    assert [row.row for row in result.unread] == [1]


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_other_frames_come_back_as_frames(library: str) -> None:
    columns = {"question": [WIFI, EGGS, WIFI], "number": [1, 2, 3]}
    frame: Any = pyarrow.table(columns) if library == "pyarrow" else pytest.importorskip(library).DataFrame(columns)
    result = deduplicate(frame, minimum=1)
    assert type(result.kept) is type(frame)
    assert list(result.kept["number"].to_pylist() if library == "pyarrow" else result.kept["number"]) == [1, 2]


class Translations(WordHashes):
    """Reads German words as the English ones that they mean."""

    meanings: Final = {"drucker": "printer", "ist": "is", "nach": "after", "stromausfall": "outage", "eier": "eggs"}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().vectors(
            [" ".join(self.meanings.get(word, word) for word in text.lower().split()) for text in texts]
        )


def test_an_encoder_of_several_languages_finds_repeats_across_them() -> None:
    items = [
        {"title": "Printer is offline after outage", "language": "en"},
        {"title": "Drucker ist offline nach Stromausfall", "language": "de"},
        {"title": "Eier kochen", "language": "de"},
        {"title": "Tomatoes rot on the vine", "language": "en"},
    ]
    result = deduplicate(items, minimum=0.5, text=TextSettings(languages=("en", "de")), encoder=Translations())
    assert rows_of(result) == [(1, 0, False)]


def test_nothing_given_is_nothing_kept() -> None:
    result = deduplicate(iter(()))
    assert (result.kept, result.rows, result.removed, result.unread) == ([], 0, [], [])
    assert deduplicate([None, float("nan")]).unread[1].row == 1
    assert deduplicate([WIFI]).kept == [WIFI]


def test_announcements_are_no_repeats_but_copies_of_one_are() -> None:
    meetings = [
        {"title": f"Weekly meeting 2019-05-{day:02}", "created": f"2019-05-{day:02}"} for day in (5, 12, 19, 26)
    ]
    result = deduplicate([*meetings, meetings[1]], minimum=0.5)
    assert rows_of(result) == [(4, 1, True)]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([WIFI], {"minimum": 0.3}, "the minimum is 0.3"),
        ([WIFI], {"minimum": "often"}, "the minimum is 'often'"),
        ([WIFI], {"minimum": None}, "the minimum is 'None'"),
        ([WIFI], {"minimum": "precision:0.9"}, "rows without judged pairs promise nothing"),
        (300 * WIFI, {}, "is no file"),
        (WIFI, {}, r"is no file \(expected the path of a table, a data frame, or a list of texts"),
        ([WIFI], {"into": "out.csv"}, "without a path"),
        ([WIFI, 7], {}, "item 1 of the list is a int, and the first is a str"),
        ([7], {}, "a list of int was given"),
        (7, {}, "a int was given"),
        ({"title": [WIFI]}, {}, "a dict was given"),
        ([{"title": WIFI}], {"columns": ["title"]}, "columns are given as a list"),
        ([{"title": WIFI}], {"columns": {"title": "subject"}}, "no column 'subject'"),
        (pyarrow.table({"id": ["1"], "title": [WIFI], "parent_id": ["2"]}), {}, "holds answers too: 'parent_id'"),
    ],
)
def test_what_cannot_be_used_is_named(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        deduplicate(data, **options)


def test_a_frame_of_pandas_with_columns_that_are_none_is_named() -> None:
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame([[WIFI, EGGS]], columns=["title", "title"])
    with pytest.raises(SettingError, match="two columns of one name: 'title'"):
        deduplicate(twice)
    with pytest.raises(SettingError, match=r"no column of one type: .*column title"):
        deduplicate(pandas.DataFrame({"title": [WIFI, 7]}))


def test_ids_that_python_has_no_value_for_are_no_obstacle() -> None:
    moments = pyarrow.array([2**62, 0], pyarrow.timestamp("s"))
    result = deduplicate(pyarrow.table({"id": moments, "title": [WIFI, WIFI]}), minimum=1)
    assert [removal.id.year for removal in result.removed] == [1970]


def test_rows_without_text_are_counted_beside_what_was_removed() -> None:
    result = deduplicate(pyarrow.table({"title": pyarrow.array([None, None], pyarrow.string())}))
    assert repr(result) == "<Deduplication: 0 of 2 rows removed, 0 exact, 0 likely; 2 rows kept unread>"


def test_a_frame_without_texts_names_its_columns() -> None:
    with pytest.raises(FormatError, match="no column is known to hold a title or a body; the columns are 'n'"):
        deduplicate(pyarrow.table({"n": [1]}))


# -- files -----------------------------------------------------------------------------------------------------


def test_the_lines_of_a_file_that_are_kept_are_copied_as_they_are(tmp_path: Path) -> None:
    kept = b'\xef\xbb\xbfid;title\r\n01;"Wifi; ""which""\r\nchannel?"\r\n\r\n2;one;too many\r\n3;\r\n'
    removed = b'4;"wifi; ""which"" channel?"\r\n\r\n'
    path = tmp_path / "posts.csv"
    path.write_bytes(kept + removed + b"5;Eggs")
    result = deduplicate(path, minimum=1)
    assert result.kept == tmp_path / "posts.unique.csv"
    assert result.kept.read_bytes() == kept + b"5;Eggs"
    assert [(removal.id, removal.kept_id, removal.row, removal.kept_row) for removal in result.removed] == [
        ("4", "01", 3, 0)
    ]
    assert [(row.row, row.reason) for row in result.unread] == [
        (1, "3 cells, expected 2"),
        (2, "title and body are empty"),
    ]
    assert path.read_bytes().startswith(kept), "what was read is not changed"


def test_lines_that_a_carriage_return_ends_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(b"title\rWifi\rEggs\rwifi\rTea\r")
    assert deduplicate(path, minimum=1).kept.read_bytes() == b"title\rWifi\rEggs\rTea\r"


def test_json_lines_and_packed_files_are_written_in_their_own_form(tmp_path: Path) -> None:
    lines = [json.dumps({"id": number, "title": title}) for number, title in enumerate([WIFI, EGGS, WIFI, "Tea"])]
    path = tmp_path / "posts.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    result = deduplicate(str(path), minimum=1)
    assert result.kept == unique_path(path) == tmp_path / "posts.unique.jsonl.gz"
    assert gzip.decompress(result.kept.read_bytes()).decode() == "\n".join([*lines[:2], lines[3]])
    assert result.removed[0].id == 2, "as JSON has it"
    plain = deduplicate(path, into=tmp_path / "posts.jsonl", minimum=1).kept
    assert plain.read_text().splitlines() == [*lines[:2], lines[3]]


def test_a_parquet_file_keeps_its_columns(tmp_path: Path) -> None:
    table = pyarrow.table({"title": [WIFI, EGGS, WIFI], "n": pyarrow.array([1, 2, 3], pyarrow.int16())})
    parquet.write_table(table, tmp_path / "posts.parquet")
    result = deduplicate(tmp_path / "posts.parquet", minimum=1, into=tmp_path / "out.parquet")
    assert parquet.read_table(result.kept).equals(table.slice(0, 2))


@pytest.mark.parametrize(
    ("name", "into", "kind", "message"),
    [
        ("posts.csv", "posts.csv", SettingError, "is what is read"),
        ("posts.csv", "posts.parquet", SettingError, "ends in .csv"),
        ("posts.csv", "away/out.csv", SettingError, "there is no folder"),
        ("posts.csv", "folder.csv", SettingError, "folder.csv is a folder"),
        ("posts.xml", "out.xml", FormatError, "is no table"),
        ("none.csv", "out.csv", InputError, "none.csv"),
        ("n\0ne.csv", "out.csv", InputError, "null byte"),
        (f"{'long' * 100}.csv", "out.csv", InputError, "too long"),
    ],
)
def test_a_file_that_cannot_be_read_or_written_is_named(
    tmp_path: Path, name: str, into: str, kind: type[Exception], message: str
) -> None:
    for there in ("posts.csv", "posts.xml"):
        (tmp_path / there).write_text("title\nwifi\n")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(kind, match=message):
        deduplicate(tmp_path / name, into=tmp_path / into)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "posts.csv", "posts.xml"]


def test_the_command_writes_what_is_kept_and_what_was_removed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(f"id,title\n1,{OFFLINE}\n2,{WIFI}\n3,{OFFLINE}\n4,\n")
    removed = tmp_path / "removed.csv"
    shown = run("deduplicate", path, "--into", tmp_path / "out.csv", "--removed", removed, "--min", 1)
    assert shown.code == 0
    assert "1 of 4 rows removed: 1 exact\n" in shown.out
    assert "1 rows were kept unread, the first is row 3: title and body are empty" in shown.out
    assert (tmp_path / "out.csv").read_text() == f"id,title\n1,{OFFLINE}\n2,{WIFI}\n4,\n"
    assert "in place of the file that was there" not in shown.out
    assert "in place of the file that was there" in run("deduplicate", path, "--into", tmp_path / "out.csv").out
    assert run("deduplicate", path, "--min", "precision:0.9").code == 2
    (row,) = csv.DictReader(removed.read_text().splitlines())
    assert (row["id"], row["row"], row["kept_id"], row["kept_row"], row["text"]) == ("3", "2", "1", "0", OFFLINE)
    assert run("deduplicate", path, "--removed", tmp_path / "away" / "removed.csv").code == 2
    report = run("deduplicate", path, "--min", 1, "--column", "title=title", "--json").json
    assert (report["rows"], report["kept"], report["into"]) == (4, 3, str(tmp_path / "in.unique.csv"))
    assert (report["removed"][0]["probability"], report["unread"][0]["id"]) == (1.0, "4")


def test_python_and_the_command_line_take_the_same_encoder_by_default(run: Run, tmp_path: Path) -> None:
    table = pyarrow.table({"id": ["1", "2"], "title": [WIFI, EGGS]})
    parquet.write_table(table, tmp_path / "posts.parquet")
    assert run("index", tmp_path / "posts.parquet", "--into", tmp_path / "command", "--json").code == 0
    with (
        Forum.open(tmp_path / "command") as by_command,
        Forum.from_dataframe(tmp_path / "python", table) as by_python,
        Forum.from_dataframe(tmp_path / "own", table, encoder=WordHashes()) as by_own,
    ):
        assert by_command.models.encoder == by_python.models.encoder
        assert by_own.models.encoder == WordHashes().name
    assert askalike.deduplicate is deduplicate
