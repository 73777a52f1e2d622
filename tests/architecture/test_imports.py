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
    "types": {"errors"},
    "errors": set(),
    "durable": set(),
    "mark": set(),
    "orphan": set(),
    "progress": set(),
    "stages": set(),
    "wire": {"types"},
    "client": {"errors"},
    "text": {"types", "errors"},
    "read": {"types", "errors", "text"},
    "evaluate": {"types", "errors"},
    "archive": {"types", "errors"},
    "lexical": {"types", "errors", "durable", "mark"},
    "similarity": {"types", "errors", "text", "lexical"},
    "encode": {"types", "errors", "durable", "text", "_version"},
    "language": {"types", "errors", "durable", "text", "lexical", "encode", "_version"},
    "train": {
        "types",
        "errors",
        "durable",
        "orphan",
        "progress",
        "text",
        "archive",
        "encode",
        "evaluate",
        "language",
        "siamese",
        "rank",
        "forum",
        "forum_evaluation",
        "data",
    },
    "siamese": {"types", "errors", "_version", "text", "encode"},
    "vectors": {"types", "errors", "durable", "mark"},
    "rank": {"types", "errors", "stages", "text", "lexical"},
    "forum": {
        *BASE,
        "durable",
        "mark",
        "progress",
        "text",
        "read",
        "archive",
        "lexical",
        "encode",
        "language",
        "siamese",
        "vectors",
        "rank",
        "data",
    },
    "serve": {
        *BASE,
        "durable",
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
        "read",
        "archive",
        "lexical",
        "encode",
        "language",
        "rank",
        "forum",
        "evaluate",
    },
    "papers": {
        "types",
        "errors",
        "durable",
        "orphan",
        "progress",
        "text",
        "read",
        "similarity",
        "encode",
        "language",
        "siamese",
        "rank",
        "forum",
        "evaluate",
        "train",
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
        "encode",
        "language",
        "siamese",
        "forum",
        "evaluate",
        "train",
        "forum_evaluation",
        "papers",
        "serve",
        "data",
    },
    "data": {"errors"},
    "__init__": {"_version", "types", "errors", "forum", "text", "encode"},
}
"""Folder or top module → what of the package it may import besides itself."""


def _room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


LAZY: dict[str, set[str]] = {"forum": {"train"}}
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
            parts = node.module.split(".")
            names.update([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            names.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("askalike."))
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


WITHOUT_HTTP = ("engine", "views", "states", "showing", "duplicates", "keeper", "highlights", "safe_html", "metrics")
"""Modules of ``serve`` that know no HTTP."""


@pytest.mark.parametrize("path", sorted((PACKAGE / "serve").glob("*.py")), ids=lambda path: str(path.stem))
def test_the_services_engine_knows_no_http_and_its_http_no_store(path: Path) -> None:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Import):
            found.update(one.name.split(".")[0] for one in node.names)
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
