"""Tables and lists of questions without repeats, and a list of what was removed by what.

::

    result = askalike.deduplicate(frame)                # a data frame, a list or a file of questions
    result.kept                                         # the same kind of thing, without repeats
    result.removed                                      # every repeat, with the question that was kept in its place

Questions with the same text count once. Then likely pairs are found and joined as ``Groups.find`` does it, so that in
a group every question is as likely as the minimum the same as every other. Of each group the oldest question is kept;
of equal or unknown age, the first. What holds no text is kept too, and listed.
"""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from askalike.errors import FormatError, SettingError
from askalike.executors import Executor
from askalike.files import is_there, replacing_whole
from askalike.forum import Forum
from askalike.forum.encoders import AnyEncoder
from askalike.forum.exchange import arrow_table
from askalike.forum.groups import DEFAULT_MINIMUM, LEAST
from askalike.forum.indexes import ForumSettings
from askalike.progress import Progress, SilentProgress
from askalike.readers.files import plain_suffix
from askalike.readers.frame import ReadContext, ReadOptions
from askalike.readers.table import Row, Table, batch_rows, choose_columns, is_headerless, open_table, row_questions
from askalike.readers.values import Unreadable, check_has_text
from askalike.records import batches
from askalike.search.thresholds import check_minimum, parse_minimum
from askalike.text.markup import plain_text
from askalike.text.settings import TextSettings
from askalike.types import Markup, Question

TEXT_FORMS: Final = (".csv", ".tsv", ".jsonl", ".ndjson")
PARQUET: Final = ".parquet"
_BATCH: Final = 2_000
_SHOWN: Final = 200
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_LONE_RETURN: Final = re.compile(rb"(?<=\r)(?!\n)")
"""Where a line ends that a carriage return alone ends; the reader of tables counts lines so too."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A row that was removed, and the row that was kept in its place.

    Args:
        row: its place in what was given; 0 is the first.
        id: its id as it was given: in the column of ids, or else the label in the index of a pandas frame.
        text: its title, or the beginning of its body.
        probability: of asking the same as the kept row, in [0, 1].
        is_exact: both have the same text, but for markup, case and white space.
    """

    row: int
    id: Any
    text: str
    kept_row: int
    kept_id: Any
    kept_text: str
    probability: float
    is_exact: bool


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row that was kept without being compared, and why."""

    row: int
    id: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Deduplication:
    """What ``deduplicate`` returns.

    Args:
        kept: what was given, without repeats: a data frame, a list, or the path of the file that was written.
        rows: how many rows were given.
        removed: by their rows; ``rows == kept rows + len(removed)``.
        unread: rows that were kept without being compared.
        minimum: the least probability of two questions of a group.
    """

    kept: Any = field(repr=False)
    rows: int
    removed: list[Removal] = field(repr=False)
    unread: list[UnreadRow] = field(repr=False)
    minimum: float

    @property
    def exact(self) -> int:
        """Return how many of the removed rows have the same text as the row that was kept."""
        return sum(removal.is_exact for removal in self.removed)

    def __repr__(self) -> str:
        likely = len(self.removed) - self.exact
        unread = f"; {len(self.unread):,} rows kept unread" if self.unread else ""
        return (
            f"<Deduplication: {len(self.removed):,} of {self.rows:,} rows removed,"
            f" {self.exact:,} exact, {likely:,} likely{unread}>"
        )


class _Source(NamedTuple):
    """What is compared, and how it is returned.

    Args:
        questions: of each row its question, whose id is the number of the row, or why it has none; read once.
        id_of: a row's id; asked when all rows were read.
        keep: removed rows → what is left.
    """

    questions: Iterator[Question | str]
    id_of: Callable[[int], Any]
    keep: Callable[[set[int]], Any]


def deduplicate(
    data: Any,
    *,
    minimum: float | str = DEFAULT_MINIMUM,
    into: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    markup: Markup | None = None,
    text: TextSettings | None = None,
    encoder: AnyEncoder | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Deduplication:
    """Return what was given without repeated questions, and what was removed by what.

    Args:
        data: a frame or series of pandas or polars, a table of pyarrow; an iterable of texts, of dictionaries or of
            ``Question``, of which a list is returned; or the path of a CSV, TSV, JSON Lines or Parquet file. The first
            line of a text is its title.
        minimum: the least probability of two questions of a group, from .5 to 1; 1 removes exact repeats alone, and
            encodes nothing.
        into: the file that is written for a path; by default ``NAME.unique.csv`` beside ``NAME.csv``. The lines of
            text files are copied as they are.
        columns: our field → the column, such as ``{"title": "subject"}``; what is not named is guessed, as from a CSV
            file's names. "" for a field that no column holds.
        markup: how bodies are written; None finds out.
        text: language and other text settings; by default English.
        encoder: as ``Forum.create`` takes it; None takes the bundled one.
        executor: as ``Forum.create`` takes it.
        progress: receives how far it has come.

    Raises:
        SettingError: the minimum is out of range, or it is none of these kinds of data.
        FormatError, InputError: no column is known to hold texts, or the file cannot be read.
        EncoderError, MissingExtraError: the encoder, or pyarrow for Parquet, cannot be had.

    Example:
        >>> result = deduplicate(["Wifi drops at night", "Boil eggs", "wifi  drops at night"], minimum=1)
        >>> result.kept, [(repeat.row, repeat.kept_row, repeat.is_exact) for repeat in result.removed]
        (['Wifi drops at night', 'Boil eggs'], [(2, 0, True)])
    """
    least = parse_minimum(minimum)
    if not isinstance(least, float):
        hint = "a forum with labelled pairs proves one: forum.thresholds.find(precision=0.9, labels=pairs)"
        raise SettingError(f"the minimum is {minimum}, and rows without judged pairs promise nothing", hint)
    check_minimum(least, LEAST)
    if into is not None and not isinstance(data, str | os.PathLike):
        raise SettingError("into= was given without a path to read", "leave it out: what is kept is returned")
    shown = progress or SilentProgress()
    read = ReadContext(ReadOptions(mapping=columns or {}, markup=markup), notice=shown.notice)
    source = _source(data, into, read)
    settings = ForumSettings(has_vectors=least < 1)
    with (
        tempfile.TemporaryDirectory(prefix="askalike-") as folder,
        Forum.create(
            Path(folder) / "forum",
            text=text,
            settings=settings,
            encoder=encoder if least < 1 else None,
            executor=executor,
        ) as forum,
    ):
        rows, unread = _fill(forum, source.questions, shown)
        removed = list(_removals(forum, least, source.id_of, shown))
    kept = source.keep({removal.row for removal in removed})
    unread_rows = [UnreadRow(row, source.id_of(row), reason) for row, reason in unread]
    return Deduplication(kept, rows, removed, unread_rows, least)


def _source(data: Any, into: str | Path | None, context: ReadContext) -> _Source:
    if isinstance(data, str) and plain_suffix(Path(data)) not in (*TEXT_FORMS, PARQUET) and not is_there(Path(data)):
        hint = "expected the path of a table, a data frame, or a list of texts, such as [first, second]"
        raise SettingError(f"{data[:60]!r} is no file", hint)
    if isinstance(data, str | os.PathLike):
        return _file_source(Path(data), None if into is None else Path(into), context)
    if any(hasattr(data, name) for name in ("iloc", "to_frame", "__arrow_c_stream__", "__dataframe__")):
        return _frame_source(data, context)
    if isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        return _list_source(list(data), context)
    raise SettingError(
        f"a {type(data).__name__} was given",
        "expected a data frame of pandas, polars or pyarrow, a list of texts, dictionaries or Questions, or a path",
    )


# -- the forum that compares -----------------------------------------------------------------------------------


def _fill(forum: Forum, questions: Iterable[Question | str], progress: Progress) -> tuple[int, list[tuple[int, str]]]:
    """Store all questions; return how many rows there are, and those without a question, with the reason."""
    rows, unread = 0, list[tuple[int, str]]()
    progress.start("reading", 0, "rows")
    for batch in batches(questions, _BATCH):
        unread += [(rows + place, reason) for place, reason in enumerate(batch) if isinstance(reason, str)]
        forum.put_unindexed([question for question in batch if isinstance(question, Question)])
        rows += len(batch)
        progress.advance(len(batch))
    return rows, unread


def _removals(forum: Forum, minimum: float, id_of: Callable[[int], Any], progress: Progress) -> Iterator[Removal]:
    """Compare all questions, and yield the rows that repeat another, in their order."""
    if len(forum) < 2:
        return
    forum.catch_up(progress=progress)
    if minimum < 1 and forum.indexes.can_encode():
        forum.encode(progress=progress)
    forum.pairs.compare(progress=progress, is_exact=minimum == 1)
    same_texts = forum.pairs.store.texts()
    groups = [] if minimum == 1 else [node.nums for node in forum.groups.nodes(minimum)]
    questions: dict[int, Question] = {}
    for batch in batches(sorted({num for nums in (*same_texts, *groups) for num in nums}), _BATCH):
        questions.update(forum.store.questions_by_num(batch))
    rows = {num: int(question.id) for num, question in questions.items()}
    kept_of: dict[int, int] = {}
    for nums in (*same_texts, *groups):  # a group holds all questions with the text of one of it
        oldest = min(nums, key=lambda num: (questions[num].created or _LATEST, rows[num]))
        kept_of.update((num, oldest) for num in nums if num != oldest)
    text_of = {num: nums[0] for nums in same_texts for num in nums}
    probabilities = {
        frozenset((text_of.get(pair.first, pair.first), text_of.get(pair.second, pair.second))): pair.score
        for pair in (forum.pairs.store.pairs_of(minimum=LEAST) if groups else ())
    }
    for num in sorted(kept_of, key=rows.__getitem__):
        kept = kept_of[num]
        texts = frozenset((text_of.get(num, num), text_of.get(kept, kept)))
        is_exact = len(texts) == 1
        yield Removal(
            rows[num],
            id_of(rows[num]),
            _shown_text(questions[num]),
            rows[kept],
            id_of(rows[kept]),
            _shown_text(questions[kept]),
            1.0 if is_exact else probabilities[texts],
            is_exact,
        )


def _shown_text(question: Question) -> str:
    return question.title or " ".join(plain_text(question.body, question.markup).split())[:_SHOWN]


# -- data frames and lists -------------------------------------------------------------------------------------


def _frame_source(data: Any, context: ReadContext) -> _Source:
    """Return the source of a frame or series of pandas or polars, or of a table that speaks Arrow."""
    is_series, is_pandas = hasattr(data, "to_frame"), hasattr(data, "iloc")
    whole = arrow_table(data.to_frame("title") if is_series else data)
    names = ["title"] if is_series else whole.column_names[: data.shape[1]]  # what follows is an index of pandas
    columns = _text_columns(names, context, "the data frame")
    places = sorted(set(columns.values()))
    read = whole.select(places)
    chosen = {name: places.index(place) for name, place in columns.items()}
    ids: list[Any] = []
    table = Table([names[place] for place in places], batch_rows(read.to_batches(_BATCH)))

    def keep(removed: set[int]) -> Any:
        kept = [row for row in range(whole.num_rows) if row not in removed]
        if is_pandas:
            return data.iloc[kept]
        return data[kept] if type(data).__module__.partition(".")[0] == "polars" else whole.take(kept)

    return _Source(
        _keep_ids(row_questions(table, chosen, "the data frame", context), chosen, ids),
        ids.__getitem__ if "id" in columns else data.index.__getitem__ if is_pandas else lambda _: None,
        keep,
    )


def _list_source(items: list[Any], context: ReadContext) -> _Source:
    def keep(removed: set[int]) -> list[Any]:
        return [item for row, item in enumerate(items) if row not in removed]

    first = next((item for item in items if not _is_gap(item)), "")
    kind = next((kind for kind in (str, Mapping, Question) if isinstance(first, kind)), None)
    if kind is None:
        raise SettingError(
            f"a list of {type(first).__name__} was given", "expected texts, dictionaries or Questions in it"
        )
    typed = [_typed_item(item, kind, row) for row, item in enumerate(items)]
    if kind is Question:
        return _Source(
            (_checked(question, row) for row, question in enumerate(typed)),
            lambda row: None if typed[row] is None else typed[row].id,
            keep,
        )
    mappings = [_title_and_body(item or "") if kind is str else item or {} for item in typed]
    header = list(dict.fromkeys(str(key) for mapping in mappings for key in mapping)) or ["title"]
    columns = _text_columns(header, context, "the list")
    rows = (Row(number, [mapping.get(name) for name in header]) for number, mapping in enumerate(mappings))
    questions = (question for _, question in row_questions(Table(header, rows), columns, "the list", context))
    id_name = header[columns["id"]] if "id" in columns else ""
    return _Source(questions, lambda row: mappings[row].get(id_name), keep)


def _title_and_body(text: str) -> dict[str, str]:
    title, _, body = text.strip().partition("\n")
    return {"title": title, "body": body}


def _is_gap(item: Any) -> bool:
    return item is None or (isinstance(item, float) and item != item)


def _typed_item(item: Any, kind: type, row: int) -> Any:
    """Return an item of a list, None for a gap.

    Raises:
        SettingError: it is of another kind than the first.
    """
    if _is_gap(item):
        return None
    if not isinstance(item, kind):
        raise SettingError(
            f"item {row} of the list is a {type(item).__name__}, and the first is a {kind.__name__}",
            "give items of one kind",
        )
    return item


def _checked(question: Question | None, row: int) -> Question | str:
    if question is None:
        return "no question"
    try:
        check_has_text(question.title, question.body, question.markup)
    except Unreadable as error:
        return str(error)
    return replace(question, id=str(row))


def _text_columns(header: Sequence[str], context: ReadContext, name: str) -> dict[str, int]:
    """Return field → place of its column.

    Raises:
        SettingError: the table holds answers too, or a column is named that it lacks.
        FormatError: no column is known to hold texts.
    """
    columns = choose_columns(header, context.options.mapping, name)
    if "parent_id" in columns:
        raise SettingError(
            f"{name} holds answers too: {header[columns['parent_id']]!r} names what they answer",
            'index it, and ask for "askalike duplicates --groups"; or say that it does not: --column parent_id=, and in'
            ' Python columns={"parent_id": ""}',
        )
    return columns


def _keep_ids(
    rows: Iterable[tuple[Row, Question | str]], columns: Mapping[str, int], ids: list[Any]
) -> Iterator[Question | str]:
    """Yield the questions of rows; the id of each is added to a list, None where it has none."""
    for row, question in rows:
        ids.append(row.cells[columns["id"]] if "id" in columns and not row.problem else None)
        yield question


# -- files -----------------------------------------------------------------------------------------------------


def check_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there, and a folder in its place, before anything is compared.

    Raises:
        SettingError: there is no such folder, or one of the file's name.
    """
    if is_there(path) and path.is_dir():
        raise SettingError(f"{path} is a folder", "name a file to write")
    if not path.absolute().parent.is_dir():
        raise SettingError(f"there is no folder {path.parent} to write {path.name} into", "make it first")


def unique_path(path: Path) -> Path:
    """Return where the questions of a file go that are no repeats.

    >>> unique_path(Path("data/posts.csv.gz")).name
    'posts.unique.csv.gz'
    """
    suffixes = path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]
    ending = "".join(suffixes)
    return path.with_name(f"{path.name.removesuffix(ending)}.unique{ending}")


def _file_source(path: Path, into: Path | None, context: ReadContext) -> _Source:
    form = plain_suffix(path)
    if form not in (*TEXT_FORMS, PARQUET):
        raise FormatError(
            f"{path} is no table",
            "expected CSV, TSV, JSON Lines or Parquet; index another archive, and ask for"
            ' "askalike duplicates FORUM --groups"',
        )
    target = unique_path(path) if into is None else into
    if plain_suffix(target) != form:
        raise SettingError(f"{path} would be written into {target}", f"name a file that ends in {form}, as it does")
    if is_there(target) and is_there(path) and target.samefile(path):
        raise SettingError(f"{target} is what is read", "name another file to write")
    check_folder(target)
    table = open_table(path, path.name, context, has_header=not is_headerless(context.options.mapping))
    columns = _text_columns(table.header, context, path.name)
    ids: list[Any] = []
    lines: list[int] = []

    def numbered_rows() -> Iterator[tuple[Row, Question | str]]:
        for row, question in row_questions(table, columns, path.name, context):
            lines.append(row.line)
            yield row, question

    def keep(removed: set[int]) -> Path:
        with replacing_whole(target) as file:
            if form == PARQUET:
                _copy_parquet(path, file, removed)
            else:
                _copy_lines(path, file, removed, lines, is_packed=target.suffix.lower() == ".gz")
        return target

    return _Source(_keep_ids(numbered_rows(), columns, ids), ids.__getitem__, keep)


def _copy_lines(path: Path, file: BinaryIO, removed: set[int], lines: Sequence[int], *, is_packed: bool) -> None:
    """Copy all lines of a text file but those of removed rows.

    Args:
        lines: of each row the number of its first line.
    """
    row_at = {line: row for row, line in enumerate(lines)}
    written: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if is_packed else file
    is_removed, number = False, 0
    by_returns = plain_suffix(path) in (".csv", ".tsv")
    with path.open("rb") as stored:
        opened: Any = gzip.GzipFile(fileobj=stored) if path.suffix.lower() == ".gz" else stored
        for whole_line in opened:
            for line in _LONE_RETURN.split(whole_line) if by_returns and b"\r" in whole_line else (whole_line,):
                number += 1
                is_removed = row_at[number] in removed if number in row_at else is_removed
                if not is_removed:
                    written.write(line)
    if is_packed:
        written.close()


def _copy_parquet(path: Path, file: BinaryIO, removed: set[int]) -> None:
    """Copy all rows of a Parquet file but those that are removed."""
    import pyarrow
    from pyarrow import parquet

    opened, first = parquet.ParquetFile(path), 0
    with opened, parquet.ParquetWriter(file, opened.schema_arrow, compression="zstd") as writer:
        for batch in opened.iter_batches(batch_size=_BATCH):
            mask = pyarrow.array([first + place not in removed for place in range(len(batch))], pyarrow.bool_())
            writer.write_batch(batch.filter(mask))
            first += len(batch)
