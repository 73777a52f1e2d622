"""``askalike export`` and ``backup``: a forum's records in other files, to read back or to work with elsewhere."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from askalike.cli.arguments import CsvOption, ForumArgument, JsonOption, ParquetOption, command, form_of
from askalike.cli.display import print_file, print_whole
from askalike.cli.messages import BarProgress, print_json
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.forum.exchange import records_of
from askalike.records import TABLES
from askalike.store import ForumLayout, open_store


def backup(
    forum: ForumArgument,
    file: Annotated[Path, typer.Argument(help="A new file for the archive.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Write the archive of a forum to a new file.

    It is as it was at one moment; others may read and write the forum meanwhile. To restore it, put the file into a new
    folder as archive.sqlite; the next command builds the indexes.
    """
    with closing(open_store(ForumLayout(forum))) as store:
        store.backup(file)
    size = file.stat().st_size
    if as_json:
        print_json({"forum": str(forum), "file": str(file), "size_bytes": size})
    else:
        print_whole(f"{size:,} bytes in {file}")


def export(
    forum: ForumArgument,
    into: Annotated[
        Path | None, typer.Option("--into", help="A folder for one file per table; without it, one table is printed.")
    ] = None,
    questions: Annotated[bool, typer.Option("--questions", help="Export the questions.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Export the answers.")] = False,
    links: Annotated[bool, typer.Option("--links", help="Export the links.")] = False,
    judgements: Annotated[bool, typer.Option("--judgements", help="Export the judgements, with who judged.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Export the moderators' log.")] = False,
    as_csv: CsvOption = False,
    as_parquet: ParquetOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Report what was written as JSON.")] = False,
) -> None:
    """Write all records and judgements to files.

    All tables where none is named, as JSON Lines, which "askalike index" reads back: the same questions, answers,
    links, judgements and log come out. What waits to be written back and how often questions helped stay. --csv and
    --parquet are for other programs.
    """
    are_wanted = zip(TABLES, (questions, answers, links, judgements, log), strict=True)
    tables = [name for name, is_wanted in are_wanted if is_wanted]
    form = form_of(False, as_csv, as_parquet) or "jsonl"
    if into is None and len(tables) != 1:
        raise SettingError("expected one table, or a folder with --into", f"name one of --{', --'.join(TABLES)}")
    if into is None and as_json:
        raise SettingError("--json reports what was written to a folder", "name one with --into, or leave --json out")
    with BarProgress() as progress, Forum.open(forum, progress=progress) as opened:
        if into is None:
            print_file(records_of(opened.store, tables[0]), TABLES[tables[0]], form)
            return
        written = opened.export(into, form=form, tables=tables or tuple(TABLES), progress=progress)
    if as_json:
        print_json({"into": str(into), "form": form, "tables": written})
    else:
        names = {"log": "decisions of the log"}
        counts = ", ".join(f"{count:,} {names.get(table, table)}" for table, count in written.items() if count)
        print_whole(f"Wrote {counts or 'no records'} to {into}.{' Index them with' if form == 'jsonl' else ''}")
        if form == "jsonl":
            print_whole(f"  {command('index', into, '--into', 'NEW.forum')}")
