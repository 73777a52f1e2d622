"""``askalike attach``: make or join a forum whose records are in PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askalike.cli.arguments import EngineOption, JsonOption, command
from askalike.cli.display import BarProgress, print_whole
from askalike.cli.messages import print_json
from askalike.errors import EngineError, SettingError
from askalike.forum import Forum
from askalike.text.settings import TextSettings


def attach(
    database: Annotated[str, typer.Argument(help="Such as postgresql://HOST/DATABASE.", show_default=False)],
    into: Annotated[Path, typer.Option("--into", help="The folder of the forum on this machine.")],
    language: Annotated[
        str | None,
        typer.Option("--language", help="Of a new forum: english by default, several as en,de.", show_default=False),
    ] = None,
    engine: EngineOption = "",
    as_json: JsonOption = False,
) -> None:
    """Make or join a forum in a PostgreSQL database.

    The folder holds this machine's indexes and models; every command takes it as any other forum. Several machines may
    attach one database: each sees what the others write. Secrets come from PGPASSWORD or ~/.pgpass.
    """
    _check_folder(into)
    text = None if language is None else TextSettings.of(language)
    with BarProgress() as progress, Forum.attach(into, database, text=text, engine=engine, progress=progress) as forum:
        forum.catch_up(progress=progress)
        questions, model = len(forum), None
        try:
            if forum.indexes.state().is_behind:
                forum.encode(progress=progress)
            model = forum.indexes.state().model or None
        except EngineError as error:  # a server that starts meanwhile serves
            progress.notice(f"what was stored is found when the engine is back: {error}")
    report = {"forum": str(into), "database": database, "questions": questions, "model": model}
    if as_json:
        print_json(report)
        return
    print_whole(f"{questions:,} questions in {database}, indexed in {into}")
    if not questions:
        print_whole(f"  {command('index', 'ARCHIVE', '--into', into)}")


def _check_folder(into: Path) -> None:
    """Refuse a database's address: each machine has a folder too."""
    if into.parts[:1] in (("postgresql:",), ("postgres:",)):
        raise SettingError("--into is the address of a database", "name a folder with --into, the database beside it")
