"""Nothing that the program can do is lost: every command, format, route, ranker and row stands in a committed list.

What is new is added with ``python -m tests.architecture.test_capabilities``, which never takes a name away.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
import typer

import askalike
from askalike import Forum
from askalike.cli.main import app
from askalike.cli.reproduce import PAPERS
from askalike.evaluation import MEASURES, PROTOCOLS
from askalike.evaluation.files import FORMATS
from askalike.evaluation.forum.evaluation import SYSTEMS, TASKS
from askalike.evaluation.forum.links import SPLITS
from askalike.models.encoders.settings import ENCODER_KINDS as ENCODERS
from askalike.models.encoders.settings import POOLINGS
from askalike.models.language.kinds import KINDS as LANGUAGE_MODELS
from askalike.models.siamese.config import SIAMESE_KINDS
from askalike.papers.das2016 import rows as das2016
from askalike.papers.das2016.data import SETS as DAS2016_SETS
from askalike.papers.lei2016 import rows as lei2016
from askalike.papers.zhang2018 import rows as zhang2018
from askalike.readers.detection import READERS
from askalike.readers.research.judged import JUDGED
from askalike.search import RANKER_NAMES
from askalike.text.settings import LANGUAGES
from askalike.training.recipe import OBJECTIVES, shipped_recipes
from askalike.training.vector_files import VECTOR_FORMATS as WORD_VECTORS

REPOSITORY = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("capabilities.json")


def commands() -> Iterator[str]:
    """Yield every command, and each of its arguments and options."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        yield name
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                yield f"{name} {option}"


def routes() -> Iterator[str]:
    """Yield every method and path, and each parameter, of the OpenAPI document, which another test compares."""
    described = json.loads((REPOSITORY / "docs" / "openapi.json").read_text(encoding="utf-8"))
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}"
            for parameter in operation.get("parameters", []):
                yield f"{method.upper()} {path} {parameter['name']}"


def pairs(compared: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{better} over {worse}" for better, worse in compared]


def capabilities() -> dict[str, list[str]]:
    """Return what there is, by what it is, from the program's own tables."""
    found: Mapping[str, Iterable[str]] = {
        "commands": commands(),
        "routes": routes(),
        "public names": askalike.__all__,
        "methods of a forum": (name for name in dir(Forum) if not name.startswith("_")),
        "rankers": RANKER_NAMES,
        "systems": SYSTEMS,
        "tasks": TASKS,
        "splits": SPLITS,
        "measures": MEASURES,
        "protocols": PROTOCOLS,
        "files of runs and judgements": FORMATS,
        "archive formats": READERS,
        "judged sets": (" ".join((name, *reader.splits)) for name, reader in JUDGED.items()),
        "recipes": shipped_recipes(),
        "objectives": OBJECTIVES,
        "encoders": ENCODERS,
        "poolings": POOLINGS,
        "language models": LANGUAGE_MODELS,
        "siamese networks": SIAMESE_KINDS,
        "files of word vectors": WORD_VECTORS,
        "languages": LANGUAGES,
        "papers": PAPERS,
        "lei2016 rows": lei2016.ROWS,
        "lei2016 comparisons": pairs(lei2016.COMPARED),
        "zhang2018 rows": zhang2018.row_names(),
        "zhang2018 comparisons": pairs(zhang2018.COMPARED),
        "das2016 rows": das2016.ROWS,
        "das2016 sets": DAS2016_SETS,
        "das2016 comparisons": pairs(das2016.COMPARED),
    }
    return {what: list(dict.fromkeys(names)) for what, names in found.items()}


def listed() -> dict[str, list[str]]:
    """Return the committed list."""
    return {what: list(names) for what, names in json.loads(LIST.read_text(encoding="utf-8")).items()}


@pytest.mark.parametrize("what", listed())
def test_nothing_that_is_listed_has_gone(what: str) -> None:
    there = set(capabilities()[what])
    assert [name for name in listed()[what] if name not in there] == []


def test_everything_that_there_is_is_listed() -> None:
    known = listed()
    new = {what: [one for one in names if one not in known.get(what, ())] for what, names in capabilities().items()}
    assert not any(new.values()), f"run python -m tests.architecture.test_capabilities: {new}"


if __name__ == "__main__":
    kept = listed() if LIST.exists() else {}
    made = {what: list(dict.fromkeys([*kept.get(what, ()), *names])) for what, names in capabilities().items()}
    LIST.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
