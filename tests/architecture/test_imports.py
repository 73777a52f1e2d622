"""The allowed imports between the package's folders, as data; and that importing the package stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import askalike

PACKAGE = Path(askalike.__file__).parent

BASE = {"types", "errors", "settings", "_version"}
PLUMBING = {*BASE, "files", "processes", "progress", "text"}
SEGMENTS = {"index.cursor", "index.checked_file", "index.segments"}
INDEX = {"index", "index.words", "index.postings", "index.vectors", *SEGMENTS}
MODEL = {"models.folder", "models.vocabulary", "models.encoders", "models.adapted"}
TRANSFORMERS = {"models.transformer", "models.transformer_folder", "models.general"}
OTHER_ENCODERS = {"models.text_encoder", "models.remote", *TRANSFORMERS}
NAMED_MODELS = {"models.encoder_settings", "models.text_questions"}
FORUM = {"search", "index", "forum", "evaluation", "evaluation.forum"}
ALLOWED: dict[str, set[str]] = {
    "_version": set(),
    "errors": set(),
    "types": {"errors", "settings"},
    "addresses": {"errors"},
    "files": {"errors"},
    "settings": {"errors"},
    "processes": set(),
    "executors": {"types", "errors", "processes", "store", "_version"},
    "web": set(),
    "progress": set(),
    "schemas": {"types", "errors"},
    "operations": {"types", "schemas", "_version"},
    "client": {"types", "errors", "schemas", "operations"},
    "data": {"errors"},
    "text": {"types", "errors", "settings"},
    "records": {"types", "errors"},
    "readers": {"types", "errors", "evaluation", "addresses", "files", "text", "records"},
    "agreement": {"files"},
    "store": {"types", "errors", "addresses", "files", "agreement", "progress"},
    "evaluation": {"types", "errors"},
    "models": set(),
    "models.term_weighting": {"errors"},
    "models.folder": {*BASE, "files", "models.vocabulary"},
    "models.vocabulary": {"types", "errors", "text"},
    "models.encoders": {*BASE, "files", "text", "models.folder", "models.vocabulary"},
    "models.wordpiece": set(),
    "models.transformer_folder": {"errors"},
    "models.transformer_graph": {"errors", "models.transformer_folder"},
    "models.transformer": {
        *("errors", "types", "processes"),
        *("models.text_encoder", "models.transformer_folder", "models.transformer_graph"),
    },
    "models.graph_weights": {"errors"},
    "models.general": {
        "errors",
        "models.graph_weights",
        "models.transformer",
        "models.transformer_folder",
        "models.wordpiece",
    },
    "models.adapted": {
        *("types", "errors", "data", "models.encoders", "models.folder", "models.general", "models.graph_weights"),
        "models.text_encoder",
    },
    "models.text_encoder": {"errors", "types", "text"},
    "models.encoder_settings": {"agreement", "data", "errors", "settings", "models.general"},
    "models.text_questions": {"data", "errors", "types", "models.encoder_settings", *OTHER_ENCODERS},
    "models.remote": {"errors", "types", "web", "models.text_encoder"},
    "index.cursor": set(),
    "index.checked_file": {"errors", "files"},
    "index.segments": {"errors", "files", "index.cursor", "index.checked_file"},
    "index.postings": {"errors", "index.checked_file"},
    "index.words": {"types", "errors", "files", "index.postings", *SEGMENTS},
    "index.vector_codes": {"errors"},
    "index.product_codes": {"index.checked_file", "index.vector_codes"},
    "index.vector_segments": {"index.product_codes", "index.vector_codes", *SEGMENTS},
    "index.nearest": {"index.vector_segments"},
    "index.vectors": {
        *("errors", "index.nearest", "index.product_codes", "index.vector_codes", "index.vector_segments"),
        *SEGMENTS,
    },
    "search": {"types", "errors", "text", "models.term_weighting"},
    "index": {
        *(PLUMBING | INDEX | MODEL | NAMED_MODELS),
        *("agreement", "data", "executors", "models.text_encoder", "search", "store"),
    },
    "forum": {
        *(PLUMBING | INDEX | MODEL | NAMED_MODELS),
        *("data", "executors", "models.text_encoder", "readers", "records", "search", "store"),
    },
    "batch": {
        *("types", "errors", "executors", "files", "forum", "index", "models.encoder_settings", "progress"),
        *("readers", "records", "store", "text"),
    },
    "deduplication": {
        *("types", "errors", "executors", "files", "forum", "progress", "readers", "records", "search", "text"),
    },
    "evaluation.forum": {
        *(PLUMBING - {"processes"} | MODEL),
        *("evaluation", "forum", "index", "models.term_weighting", "search", "store"),
    },
    "training": {
        *(PLUMBING | MODEL | NAMED_MODELS | FORUM),
        *("data", "models.general", "models.graph_weights", "models.text_encoder", "models.wordpiece", "store"),
    },
    "papers": {*(PLUMBING | MODEL | FORUM), "models.term_weighting", "readers", "training"},
    "follow": {"types", "errors", "files", "progress", "web", "readers", "store", "forum"},
    "server": {*BASE, "follow", "files", "processes", "schemas", "operations", "text", "store", "search", "forum"},
    "cli": {
        *(PLUMBING | MODEL | FORUM),
        "models.encoder_settings",
        *(
            "addresses",
            "agreement",
            "batch",
            "data",
            "deduplication",
            "executors",
            "follow",
            "papers",
            "readers",
            "records",
        ),
        *("schemas", "server", "store", "training", "web"),
    },
    "__init__": {"_version", "types", "errors", "deduplication", "forum", "text", "models.encoders"},
    "__main__": {"cli"},
}
"""Folder or module → what of the package it may import besides itself; a nested one has a row of its own."""


def _named(parts: tuple[str, ...]) -> str:
    """Return the longest name of a row that holds a module, given by its parts."""
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in ALLOWED), parts[0])


def _room(path: Path) -> str:
    return _named(path.relative_to(PACKAGE).with_suffix("").parts)


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
    imported: tuple[set[str], set[str]] = set(), set()
    for node in ast.walk(tree):
        names = imported[node in later]
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "askalike":
            parts = tuple(node.module.split(".")[1:])
            names.update([_named(parts)] if parts else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            modules = (alias.name for alias in node.names if alias.name.startswith("askalike."))
            names.update(_named(tuple(name.split(".")[1:])) for name in modules)
    return imported


def test_a_module_imports_only_what_its_folder_may() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        room = _room(path)
        at_once, later = _imports(path)
        allowed = ALLOWED.get(room, set()) | {room}
        extra = (at_once - allowed) | (later - allowed - LAZY.get(room, set()))
        where = path.relative_to(PACKAGE)
        wrong += [f"{where} imports {name}" for name in sorted(extra)]
        wrong += [f"{where}: {room} has no row in the table"] if room not in ALLOWED else []
    assert wrong == []


def test_the_allowed_imports_have_no_cycle() -> None:
    done: set[str] = set()
    rooms = {
        room: allowed & set(ALLOWED) - {room} for room, allowed in ALLOWED.items() if room not in ("__init__", "data")
    }
    while rooms:
        free = {room for room, allowed in rooms.items() if allowed - {"data"} <= done}
        assert free, f"these import each other: {sorted(rooms)}"
        done |= free
        rooms = {room: allowed for room, allowed in rooms.items() if room not in free}


def test_no_part_of_a_forum_imports_its_face() -> None:
    parts = sorted(path for path in (PACKAGE / "forum").glob("*.py") if path.stem not in ("__init__", "forum"))
    assert [path.name for path in parts if "askalike.forum.forum" in path.read_text(encoding="utf-8")] == []


def test_sqlite_files_are_opened_in_one_place_and_the_store_alone_knows_its_database() -> None:
    opener = PACKAGE / "store" / "sqlite_file.py"
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name, is_store = path.relative_to(PACKAGE), path.is_relative_to(PACKAGE / "store")
        source = path.read_text(encoding="utf-8")
        wrong += [f"{name} opens an SQLite file"] * (path != opener and "sqlite3.connect(" in source)
        for node in () if is_store else ast.walk(ast.parse(source)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            wrong += [
                f"{name} imports {module}" for module in modules if module in ("sqlite3", "askalike.store.sqlite")
            ]
    assert wrong == []


HEAVY = (
    "torch",
    "fastapi",
    "starlette",
    "uvicorn",
    "pydantic",
    "prometheus_client",
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


def loaded_by(module: str, names: Sequence[str]) -> str:
    """Return which of these modules an import loads, in a process of its own."""
    program = f"import sys, {module}; print([name for name in {names!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("askalike.cli.main", (*HEAVY, "numpy", "rich", "faiss", "tantivy", "typer")) == "[]"
    assert loaded_by("askalike", ("numpy", "msgspec")) == "[]"
    assert loaded_by("askalike.forum", (*HEAVY, "ssl", "http.client", "faiss")) == "[]"


def test_every_public_name_of_the_package_exists_and_is_listed() -> None:
    assert askalike.__all__ == sorted(askalike.__all__)
    assert [name for name in askalike.__all__ if not hasattr(askalike, name)] == []
