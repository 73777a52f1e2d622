"""The commands of the command line, and its help, which starts no command and so loads nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

ABOUT: Final = """Finds the questions in a community forum that ask the same thing, so that
good answers are reused."""

OPTIONS: Final[Mapping[str, str]] = {
    "--version": "Show the version and stop.",
    "--quiet": "Before or after a command: errors only, no notes.",
    "--verbose": "Before or after a command: times, traces of errors.",
    "--log-json": "Before or after a command: notes as JSON, one a line.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell.",
    "-h, --help": "Show this message, or what a command takes.",
}

GROUPS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Commands": {
        "index": ("index", "Read an archive into a forum, or read it again."),
        "search": ("search", "Find the earlier questions most similar to a new one."),
        "similar": ("search", "Find the questions most similar to one of the forum."),
        "show": ("show", "Show a question with its answers, links and judgements."),
        "duplicates": ("duplicates", "List pairs of the forum's questions that may be duplicates."),
        "deduplicate": ("deduplicate", "Remove repeated questions from a table."),
        "judge": ("judge", "Store whether two questions are duplicates."),
        "serve": ("serve", "Serve a forum over HTTP, with a page and a widget."),
        "info": ("info", "Show what a forum holds and whether its indexes are in step."),
    },
    "Making a forum better": {
        "encode": ("encode", "Encode the questions that are not encoded yet."),
        "train": ("train", "Adapt the encoder to a forum's own questions and answers."),
        "threshold": ("judge", "Find the least probability that keeps a promise."),
        "evaluate": ("evaluate", "Measure how well a forum's known duplicates are found."),
    },
    "Running a forum": {
        "follow": ("follow", "Keep a forum in step with a site, from its first question on."),
        "keys": ("serve", "Make, list and revoke the keys of a forum's service."),
        "export": ("export", "Write all records and judgements to files."),
        "backup": ("export", "Write the archive of a forum to a new file."),
        "check": ("info", "Look for damage in a forum's files, and repair it."),
        "reindex": ("index", "Rebuild a forum's indexes from its archive."),
        "attach": ("index", "Make or join a forum in a PostgreSQL database."),
        "batch": ("batch", "Encode or compare a whole archive, also on a cluster."),
    },
    "Research": {
        "demo": ("demo", "Index the bundled forum and answer three questions."),
        "score": ("evaluate", "Score a run against relevance judgements."),
        "reproduce": ("reproduce", "Reproduce a paper's tables beside the figures it reports."),
    },
}
"""Heading of the help → command → the module that holds its function, which has its name, and what it does."""

MODULES: Final = {name: module for commands in GROUPS.values() for name, (module, _) in commands.items()}


def help_lines(program: str) -> Iterator[str]:
    """Yield the lines of the help: the options, and the commands under their headings.

    Args:
        program: as it was called.
    """
    yield f"Usage: {program} [OPTIONS] COMMAND [ARGS]..."
    yield ""
    yield from (f"  {line}" for line in ABOUT.splitlines())
    rows = {"Options": OPTIONS} | {
        heading: {name: about for name, (_, about) in commands.items()} for heading, commands in GROUPS.items()
    }
    for heading, about_of in rows.items():
        width = max(map(len, OPTIONS if heading == "Options" else MODULES))
        yield ""
        yield f"{heading}:"
        yield from (f"  {name:{width}}  {about}" for name, about in about_of.items())
