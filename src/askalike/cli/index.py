"""``askalike index``, ``reindex`` and ``attach``: an archive into a forum, its indexes anew, a forum in PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from askalike.cli.arguments import (
    ColumnOption,
    EngineOption,
    ForumArgument,
    JsonOption,
    MarkupOption,
    column_mapping,
    command,
    interruptible,
    same_again,
)
from askalike.cli.display import console, print_whole
from askalike.cli.encode import DEFAULT_VARIABLE, default_encoder, use_named
from askalike.cli.messages import BarProgress, print_json, safe
from askalike.data import GENERAL_LANGUAGE
from askalike.errors import EngineError, ForumNotFoundError, SettingError
from askalike.forum import Forum, ForumSettings, ImportOptions
from askalike.forum.forum import discarding_if_empty
from askalike.models.encoder_settings import SHAPES, EncoderSettings
from askalike.readers.detection import READERS, find_archive
from askalike.readers.frame import ReadOptions
from askalike.store import ForumLayout
from askalike.text.analyzer import reads_like
from askalike.text.markup import plain_text
from askalike.text.settings import NO_LANGUAGE, TextSettings

SHOWN_REJECTS = 5
SAMPLE = 500
"""Questions by which it is told whether a forum reads like its language."""


def index(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="A dump, export, table or folder of them.")],
    into: Annotated[Path, typer.Option("--into", help="The forum's folder; created if missing.")],
    form: Annotated[
        str, typer.Option("--format", help=f"One of {', '.join(sorted(READERS))}; detected if omitted.")
    ] = "",
    column: ColumnOption = None,
    source: Annotated[str, typer.Option("--source", help="Name of the archive; default: its path.")] = "",
    markup: MarkupOption = None,
    html_escaped: Annotated[
        bool | None,
        typer.Option(
            "--html-escaped/--no-html-escaped",
            help="Whether texts of a table or JSON Lines are escaped for HTML once more; detected if omitted.",
        ),
    ] = None,
    site_url: Annotated[
        str,
        typer.Option(
            "--site-url",
            help="The forum's address, for links to questions; {id} in it says where their ids go. It is remembered.",
        ),
    ] = "",
    language: Annotated[
        str,
        typer.Option(
            "--language",
            help="Language of a new forum, such as german or de; English if omitted."
            f" {NO_LANGUAGE}: words are kept as they are written. Several, the main one first, as en,de,fr:"
            " each question is read by the rules of its own.",
        ),
    ] = "",
    code: Annotated[
        bool | None,
        typer.Option("--code/--no-code", help="Whether code blocks count in a new forum (default: yes)."),
    ] = None,
    allow_mass_delete: Annotated[
        bool, typer.Option("--allow-mass-delete", help="Delete missing questions even if over half are missing.")
    ] = False,
    encode: Annotated[
        bool,
        typer.Option("--encode/--no-encode", help="Whether to encode questions too, which takes most of the time."),
    ] = True,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            help=f"What encodes: {SHAPES}. A new forum takes what {DEFAULT_VARIABLE} names, else, in English, general;"
            " an older one keeps what it has.",
        ),
    ] = "",
    engine: EngineOption = "",
    as_json: JsonOption = False,
) -> None:
    """Read an archive into a forum, or read it again.

    What is new is added, what was edited is updated, and what has gone is deleted.
    """
    form = form or ("table" if column else "")  # other formats have no columns to name
    options = ImportOptions(
        format=form,
        source=source,
        is_mass_delete_allowed=allow_mass_delete,
        read=ReadOptions(
            mapping=column_mapping(column or []),
            site_url=site_url,
            markup=markup,
            is_html_escaped_twice=html_escaped,
        ),
    )
    if form and form not in READERS:
        raise SettingError(f"there is no format {form!r}", f"expected one of {', '.join(sorted(READERS))}")
    began = time.monotonic()
    settings = ForumSettings(has_vectors=encode)
    find_archive(archive, form or None)  # a wrong path or format is said before a forum is made
    is_new = not ForumLayout(into).is_forum()
    with (
        interruptible(lambda: _state_after_stop(into, is_new)),
        BarProgress() as progress,
        _open_or_create(into, language, code, settings, progress) as forum,
    ):
        if engine:
            forum.indexes.use_engine(engine)
        named = encoder or (default_encoder() if is_new else "")
        if encode and named:
            use_named(forum, EncoderSettings.parse(named), progress)
        report = forum.load(archive, options=options, progress=progress)
        vectors, model_language = forum.indexes.state(), forum.analyzer.settings.model_language
        is_in_its_language = _is_in_its_language(forum)
    about_archive = asdict(report)
    counts = about_archive.pop("load")
    report_fields = {
        "forum": str(into),
        **about_archive,
        **counts,
        "seconds": round(time.monotonic() - began, 2),
        "model": vectors.model or None,
        "not_encoded": vectors.waiting if encode else None,
        "is_in_its_language": is_in_its_language,
    }
    if as_json:
        print_json(report_fields)
    else:
        _print_report(report_fields, into)
        if encode:
            for line in _about_language(model_language, report_fields, into):
                print_whole(line)


def reindex(
    forum: ForumArgument,
    encode: Annotated[
        bool,
        typer.Option(
            "--encode/--no-encode",
            help="Whether to encode questions again too, which takes most of the time; otherwise their vectors stay.",
        ),
    ] = True,
    language: Annotated[
        str,
        typer.Option("--language", help="Change the forum's languages, by their codes, the main one first, as en,de."),
    ] = "",
    engine: EngineOption = "",
    as_json: JsonOption = False,
) -> None:
    """Rebuild a forum's indexes from its archive.

    It does not matter what state they are in. With other languages, each question's is found out first.
    """
    settings = ForumSettings(has_vectors=encode)
    again = command(*(("encode", forum) if encode else ("reindex", forum, "--no-encode")))
    with (
        interruptible(lambda: ("the archive is complete; what was indexed and encoded is kept", again)),
        BarProgress() as progress,
    ):
        if language:
            Forum.change_languages(forum, language.split(","), settings=settings, progress=progress).close()
        with Forum.reindex(forum, settings=settings, engine=engine, progress=progress) as opened:
            indexed = opened.info().indexed
    if as_json:
        print_json({"forum": str(forum), "indexed": indexed})
    else:
        console.print(f"{indexed:,} questions indexed")


def _state_after_stop(into: Path, was_new: bool) -> tuple[str, str]:
    """Return what an import that was stopped leaves, and the command that goes on: reading is whole or not at all."""
    if not ForumLayout(into).is_forum():
        return "nothing has been stored; there is no forum yet", same_again()
    if was_new and ForumLayout(into).vectors.is_dir():  # vectors come last
        return f"all questions were read; vectors encoded so far are kept in {into}", command("encode", into)
    return f"everything read and encoded so far is kept in {into}", same_again()


def _print_report(report: dict[str, Any], into: Path) -> None:
    for kind in ("questions", "answers", "links", "judgements", "log"):
        counts = report[kind]
        stored = {name: value for name, value in counts.items() if value and name != "rejected"}  # told together below
        if stored:
            console.print(f"{kind:10s} {', '.join(f'{value:,} {name}' for name, value in stored.items())}")
    if report["links_without_question"]:
        console.print(f"           {report['links_without_question']:,} links wait for a question that is missing")
    if report["accepted_without_answer"]:
        console.print(f"           {report['accepted_without_answer']:,} accepted answers are not in the archive")
    for kind, count in report["skipped"].items():
        console.print(f"left out   {count:,} {safe(kind)}", markup=False)
    for kind, count in report["repaired"].items():
        console.print(f"mended     {count:,} {safe(kind)}", markup=False)
    if report["questions"]["kept"]:
        console.print("kept       questions missing from the archive, since some records could not be read")
    if report["rejected"]:
        count = f"{report['rejected']:,} record{'' if report['rejected'] == 1 else 's'}"
        print_whole(f"rejected   {count}, kept in {into / 'rejects.jsonl'}; the first:")
        for reject in report["first_rejects"][:SHOWN_REJECTS]:
            line = f"line {reject['line']}" if reject["line"] else ""
            record = f"record {safe(reject['record_id'])}" if reject["record_id"] else ""
            place = " ".join(filter(None, (safe(reject["file"]), ", ".join(filter(None, (line, record))))))
            print_whole(f"           {place}: {safe(reject['reason'])}")
    if report["not_encoded"]:
        print_whole(f"waiting    {report['not_encoded']:,} not encoded: {command('encode', into)}")
    print_whole(f"{into} is ready after {report['seconds']:.1f} s; ask it:")
    print_whole(f'  {command("search", into)} "your question"')


def _about_language(language: str, report: dict[str, Any], into: Path) -> Iterator[str]:
    """Yield what keeps the bundled encoder from being of use to a forum; nothing mostly."""
    if not report["model"] and language != GENERAL_LANGUAGE:
        named = "another language" if language == NO_LANGUAGE else language
        yield (
            f"searching by words only: the bundled encoder reads {GENERAL_LANGUAGE}, and the forum is in"
            f" {named}. A model of its own:\n  {command('train', into)}"
        )
    elif report["is_in_its_language"] is False and str(report["model"]).startswith("general"):
        yield (
            f"note: the text does not look like {language.title()}, the language of the bundled encoder, so matching by"
            " meaning will mislead; index into a new forum with --language german (or the right one), or with"
            " --no-encode"
        )


def _is_in_its_language(forum: Forum) -> bool | None:
    """Return whether a forum's first questions read like its language; None where it cannot be told."""
    first = islice(forum.questions(), SAMPLE)
    texts = (f"{question.title}\n{plain_text(question.body, question.markup)}" for question in first)
    return reads_like(texts, forum.analyzer.settings.language)


@contextmanager
def _open_or_create(
    into: Path, language: str, with_code: bool | None, settings: ForumSettings, progress: BarProgress
) -> Iterator[Forum]:
    """Give the forum; one that was made for an archive that cannot be read is taken away again.

    A forum that holds questions stays, whatever happens: what was loaded is on disk, and only indexing is not done. So
    does one that another process fills.
    """
    try:
        forum = Forum.open(into, settings=settings, progress=progress)
    except ForumNotFoundError:
        text = TextSettings.of(language or "english", with_code=with_code is not False)
        forum = Forum.create(into, text=text, settings=settings)
        with forum, discarding_if_empty(forum):
            yield forum
        return
    with forum:
        stored = forum.analyzer.settings
        wanted = TextSettings.of(
            language or stored.named, with_code=stored.with_code if with_code is None else with_code
        )
        if wanted != replace(stored, stem=wanted.stem, stop_words=wanted.stop_words):
            code = "code counts" if stored.with_code else "code does not count"
            raise SettingError(
                f"the forum at {into} was made with --language {stored.named}, and {code}",
                f"leave both out, or index into a new folder; {command('reindex', into)} --language changes languages",
            )
        yield forum


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
