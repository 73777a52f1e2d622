"""The documents agree with the program: commands, options, measures, formats, files, and code that runs."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import shlex
from pathlib import Path

import pytest
import typer
from tools.document import DOCUMENTS, RESULTS

import askalike
from askalike import Forum
from askalike.cli.display import console
from askalike.cli.main import app, main
from askalike.data import bundled_forum, default_model
from askalike.evaluation import MEASURES, PROTOCOLS
from askalike.evaluation.files import FORMATS
from askalike.evaluation.forum.evaluation import SYSTEMS
from askalike.readers.detection import READERS
from askalike.search.scorer import USUAL
from askalike.server.routes import service_document
from askalike.text.settings import LANGUAGES
from askalike.training.recipe import load_recipe

REPOSITORY = Path(__file__).resolve().parents[2]
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
DOCS = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


WITH_MODEL = pytest.mark.skipif(default_model() is None, reason="it shows scores of the general model, which is absent")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=WITH_MODEL) if name.endswith(".svg") else name for name in DOCUMENTS]
)
def test_a_written_document_is_what_the_program_writes_now(name: str) -> None:
    assert text_of(name) == DOCUMENTS[name](), f"{name} is old: run python -m tools.document"


def test_every_recipe_in_the_documents_can_be_used(tmp_path: Path) -> None:
    found = [block for path in DOCS for block in blocks(path, "toml")]
    assert len(found) >= 3
    for number, block in enumerate(found):
        file = tmp_path / f"{number}.toml"
        file.write_text(block, encoding="utf-8")
        load_recipe(file)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_askalike_command_in_the_documents_exists(path: Path) -> None:
    lines = [line for block in blocks(path, "sh") for line in block.replace("\\\n", " ").splitlines()]
    typed = [line[2:] for block in blocks(path, "console") for line in block.splitlines() if line.startswith("$ ")]
    for line in (*lines, *typed):
        if not line.startswith("askalike "):
            continue
        words = shlex.split(line, comments=True)
        words = words[: next((place for place, word in enumerate(words) if word in ("|", "||", "&&")), None)]
        assert words[1] in COMMANDS, line
        known = {
            option for parameter in COMMANDS[words[1]].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        used = {word.split("=")[0] for word in words[2:] if re.match(r"^--?[a-z]", word)}
        assert used <= known, line


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_readme_shows_its_result_by_line_20() -> None:
    top = "\n".join(text_of("README.md").splitlines()[:20])
    for needed in ("askalike search", "make demo", "the same (", "accepted answer"):
        assert needed in top


@WITH_MODEL
def test_the_readmes_screen_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed, *shown = blocks(REPOSITORY / "README.md", "console")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_width", 80)  # whatever the terminal of who runs the tests has
    with Forum.create("homenet.forum") as forum:
        forum.load(bundled_forum())
    monkeypatch.setattr("sys.argv", shlex.split(typed.removeprefix("$ ")))
    with contextlib.suppress(SystemExit):
        main()
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown


def test_the_widgets_document_names_its_default_minimum() -> None:
    row = next(line for line in text_of("docs/widget.md").splitlines() if line.startswith("| `data-minimum`"))
    assert [least for least in USUAL.values() if f"{least:g}" not in row] == []


def test_the_readme_can_be_read_at_one_sitting() -> None:
    assert len(text_of("README.md").splitlines()) <= 120


def test_every_public_name_and_every_route_is_in_the_reference() -> None:
    python, http = text_of("docs/python.md"), text_of("docs/http.md")
    names = [name for name in askalike.__all__ if not name.startswith("__")]
    methods = [name for name, found in vars(Forum).items() if not name.startswith("_") and inspect.isroutine(found)]
    assert [name for name in names if f"\n## {name}\n" not in python] == []
    assert [name for name in methods if f"\n### {name}\n" not in python] == []
    paths: dict[str, dict[str, object]] = service_document()["paths"]
    routes = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    assert [route for route in routes if f"\n## {route}\n" not in http] == []


@WITH_MODEL
def test_the_worked_example_of_a_search_has_the_programs_figures(capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(REPOSITORY / "docs" / "how-a-search-works.md", "python"):
        exec(compile(block, "docs/how-a-search-works.md", "exec"), {})
    score, cosine, share, title = capsys.readouterr().out.strip().split(" ", 3)
    row = next(line for line in text_of("docs/how-a-search-works.md").splitlines() if line.startswith(f"| {title} |"))
    assert all(figure.removeprefix("0") in row for figure in (score, cosine, share))


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ("docs/evaluation.md", [*PROTOCOLS, *SYSTEMS, *MEASURES]),
        ("docs/formats.md", list(READERS)),
        ("docs/cli.md", [f"askalike {name}" for name in COMMANDS]),
    ],
)
def test_a_document_names_everything_that_there_is(document: str, names: list[str]) -> None:
    text = text_of(document)
    assert [name for name in names if name not in text] == []


def test_the_file_formats_of_evaluation_are_documented() -> None:
    words = text_of("docs/evaluation.md").lower()
    assert [name for name in FORMATS if name.replace("-", " ") not in words] == []


def test_the_architecture_names_every_folder_and_no_file_that_is_not_there() -> None:
    text = text_of("ARCHITECTURE.md")
    package = REPOSITORY / "src" / "askalike"
    folders = {path.parent.name for path in package.glob("*/__init__.py")} - {"data"}
    assert [name for name in sorted(folders) if f"`{name}/" not in text] == []
    for row in re.findall(r"^\| (`[^|]+) \|", text, flags=re.MULTILINE):
        names = re.findall(r"`([^`]+)`", row)
        folder = names[0].rsplit("/", 1)[0] if "/" in names[0] else ""
        for name in names:
            path = name if "/" in name or not folder else f"{folder}/{name}"
            assert list(package.glob(path.rstrip("/"))), f"ARCHITECTURE.md names {path}"


def test_the_architecture_fits_its_length() -> None:
    assert len(text_of("ARCHITECTURE.md").splitlines()) <= 120


def test_every_make_target_that_documents_and_workflows_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.MULTILINE))
    workflows = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
    assert workflows
    lines = [line for path in workflows for line in re.findall(r"run: (.*)", path.read_text(encoding="utf-8"))]
    lines += [line for path in DOCS for block in blocks(path, "sh") for line in block.splitlines()]
    lines += text_of(".ci/run").splitlines()
    named = {match[1] for line in lines if (match := re.match(r"make ([a-z-]+)", line))}
    assert named >= {"check", "test", "docs", "release-check"}
    assert named <= targets


def test_every_result_says_how_it_was_made() -> None:
    for path in RESULTS.glob("*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        assert {"name", "command", "commit", "when", "machine"} <= set(result), path.name
        assert result["name"] == path.stem


def test_the_languages_are_those_of_snowball() -> None:
    assert {"english", "german", "russian", "turkish"} <= set(LANGUAGES)
