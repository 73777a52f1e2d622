"""The allowed imports between the package's folders, as data; and that importing the package stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import askalike

PACKAGE = Path(askalike.__file__).parent

BASE = {"types", "errors", "_version"}
ALLOWED: dict[str, set[str]] = {
    "_version": set(),
    "models": set(),
    "types": {"errors"},
    "errors": set(),
    "durable": {"errors"},
    "mark": set(),
    "orphan": set(),
    "progress": set(),
    "removal": set(),
    "stages": set(),
    "wire": {"types"},
    "client": {"errors"},
    "text": {"types", "errors"},
    "read": {"types", "errors", "durable", "text"},
    "evaluation": {"types", "errors"},
    "archive": {"types", "errors", "durable"},
    "lexical": {"types", "errors", "durable", "mark", "removal"},
    "models.similarity": {"types", "errors", "text", "lexical"},
    "models.encoders": {"types", "errors", "durable", "text", "_version", "removal"},
    "models.query_likelihood": {"errors", "models.encoders"},
    "models.translation": {"errors", "models.query_likelihood"},
    "models.topics": {"errors", "models.query_likelihood"},
    "models.language": {
        *BASE,
        "durable",
        "text",
        "lexical",
        "models.encoders",
        "models.query_likelihood",
        "models.translation",
        "models.topics",
    },
    "training": {
        "types",
        "errors",
        "durable",
        "orphan",
        "progress",
        "removal",
        "text",
        "archive",
        "models.encoders",
        "models.query_likelihood",
        "models.translation",
        "models.topics",
        "models.language",
        "models.siamese",
        "rank",
        "forum",
        "evaluation",
        "forum_evaluation",
        "data",
    },
    "models.transformer": {"errors"},
    "models.siamese": {"types", "errors", "_version", "text", "models.encoders"},
    "vectors": {"types", "errors", "durable", "mark", "removal"},
    "models.ramn": {"types", "errors"},
    "rank": {"types", "errors", "stages", "text", "lexical", "models.ramn"},
    "forum": {
        *BASE,
        "durable",
        "mark",
        "progress",
        "removal",
        "text",
        "read",
        "archive",
        "lexical",
        "models.encoders",
        "models.query_likelihood",
        "models.translation",
        "models.topics",
        "models.language",
        "models.siamese",
        "vectors",
        "rank",
        "data",
    },
    "serve": {
        *BASE,
        "durable",
        "orphan",
        "stages",
        "wire",
        "text",
        "archive",
        "rank",
        "forum",
    },
    "forum_evaluation": {
        "types",
        "errors",
        "durable",
        "progress",
        "text",
        "archive",
        "lexical",
        "models.encoders",
        "models.query_likelihood",
        "models.language",
        "models.ramn",
        "rank",
        "forum",
        "evaluation",
    },
    "papers": {
        "types",
        "errors",
        "durable",
        "orphan",
        "progress",
        "text",
        "read",
        "models.similarity",
        "models.encoders",
        "models.query_likelihood",
        "models.translation",
        "models.topics",
        "models.language",
        "models.siamese",
        "models.ramn",
        "rank",
        "forum",
        "evaluation",
        "training",
        "forum_evaluation",
    },
    "cli": {
        *BASE,
        "durable",
        "orphan",
        "progress",
        "wire",
        "text",
        "read",
        "archive",
        "lexical",
        "rank",
        "models.encoders",
        "models.query_likelihood",
        "models.translation",
        "models.topics",
        "models.language",
        "models.siamese",
        "forum",
        "evaluation",
        "training",
        "forum_evaluation",
        "papers",
        "serve",
        "data",
    },
    "data": {"errors"},
    "__init__": {"_version", "types", "errors", "forum", "text", "models.encoders"},
    "__main__": {"cli"},
}
"""Folder or top module → what of the package it may import besides itself."""


NESTED = {"models"}
"""Folders whose folders are rooms of their own: ``models.encoders``."""


def _named(parts: tuple[str, ...]) -> str:
    return ".".join(parts[:2]) if parts[0] in NESTED else parts[0]


def _room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    folders = relative.parts[:-1]
    return _named(folders) if folders else relative.stem


LAZY: dict[str, set[str]] = {"forum": {"training"}}
"""Folder → what it may import besides, within a function or for type checkers alone, since that imports the folder."""


def _imports(path: Path) -> tuple[set[str], set[str]]:
    """Return what a module imports of the package when it is loaded, and what later or for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    later = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for inner in ast.walk(node)
    }
    found: tuple[set[str], set[str]] = set(), set()
    for node in ast.walk(tree):
        names = found[node in later]
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "askalike":
            parts = tuple(node.module.split(".")[1:])
            names.update([_named(parts)] if parts else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            modules = (alias.name for alias in node.names if alias.name.startswith("askalike."))
            names.update(_named(tuple(name.split(".")[1:])) for name in modules)
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_folder_may(path: Path) -> None:
    room = _room(path)
    assert room in ALLOWED, f"{room} has no row in the table of allowed imports"
    at_once, later = _imports(path)
    assert at_once - {room} <= ALLOWED[room]
    assert later - {room} <= ALLOWED[room] | LAZY.get(room, set())


def test_the_allowed_imports_have_no_cycle() -> None:
    done: set[str] = set()
    rooms = {room: allowed & set(ALLOWED) for room, allowed in ALLOWED.items() if room not in ("__init__", "data")}
    while rooms:
        free = {room for room, allowed in rooms.items() if allowed - {"data"} <= done}
        assert free, f"these import each other: {sorted(rooms)}"
        done |= free
        rooms = {room: allowed for room, allowed in rooms.items() if room not in free}


WITHOUT_HTTP = (
    "engine",
    "schemas",
    "states",
    "serializers",
    "duplicates",
    "maintenance",
    "highlights",
    "safe_html",
    "metrics",
)
"""Modules of ``serve`` that know no HTTP."""


@pytest.mark.parametrize("path", sorted((PACKAGE / "serve").glob("*.py")), ids=lambda path: str(path.stem))
def test_the_services_engine_knows_no_http_and_its_http_no_store(path: Path) -> None:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Import):
            found.update(one.name.split(".")[0] for one in node.names)
    assert all((PACKAGE / "serve" / f"{name}.py").is_file() for name in WITHOUT_HTTP), "a module has another name now"
    if path.stem in WITHOUT_HTTP:
        assert not found & {"starlette", "uvicorn", "pydantic"}
    assert not found & {"sqlite3", "tantivy", "numpy", "faiss"}


HEAVY = (
    "torch",
    "fastapi",
    "starlette",
    "uvicorn",
    "pydantic",
    "nh3",
    "markdown_it",
    "pyarrow",
    "scipy",
    "sklearn",
    "gensim",
    "matplotlib",
    "pandas",
    "transformers",
    "py7zr",
)


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = f"import sys, askalike.cli.main; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_of_the_package_exists_and_is_listed() -> None:
    assert askalike.__all__ == sorted(askalike.__all__)
    for name in askalike.__all__:
        assert hasattr(askalike, name)
