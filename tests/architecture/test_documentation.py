"""The documents agree with the program: commands, options, measures, formats, files, and code that runs."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from pathlib import Path

import pytest
from tools.reference import EXAMPLES, cli_document
from tools.render import RESULTS, load
from tools.tables import TABLES, filled, pages, shown

from askalike.cli.application import COMMANDS
from askalike.cli.display import console
from askalike.cli.main import main
from askalike.data import general_folder
from askalike.evaluation import MEASURES, PROTOCOLS
from askalike.evaluation.files import FORMATS
from askalike.evaluation.forum.evaluation import SYSTEMS
from askalike.readers.detection import READERS
from askalike.search.scorer import LEAST_SHOWN
from askalike.training.recipe import read_recipe

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = REPOSITORY / "docs" / "reference"
"""Written when the documentation is built, and not committed."""
DOCS = [
    path
    for path in sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
    if not path.is_relative_to(BUILT)
]


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def blocks(path: Path, language: str) -> list[str]:
    return blocks_in(path.read_text(encoding="utf-8"), language)


def blocks_in(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


WITH_MODEL = pytest.mark.skipif(general_folder() is None, reason="it shows scores of the bundled encoder")


def test_the_tables_in_the_pages_are_what_the_results_say() -> None:
    old = [str(page) for page in pages() if filled(text_of(str(page)), page) != text_of(str(page))]
    assert old == [], "run python -m tools.tables"


def test_every_table_is_shown_and_every_result_is_in_a_table() -> None:
    on_pages = {name for page in pages() for name in shown(page)}
    assert sorted(TABLES.keys() - on_pages) == []
    linked = {name for page in pages() for name in re.findall(r"results/([\w-]+)\.json\)", text_of(str(page)))}
    assert sorted({path.stem for path in RESULTS.iterdir()} ^ linked) == []


def test_every_recipe_in_the_documents_can_be_used(tmp_path: Path) -> None:
    recipes = [block for path in DOCS for block in blocks(path, "toml")]
    assert recipes
    for number, block in enumerate(recipes):
        file = tmp_path / f"{number}.toml"
        file.write_text(block, encoding="utf-8")
        read_recipe(file)


def typed_commands() -> list[tuple[str, str]]:
    """Return where an askalike command stands in the documents and the reference, and its line."""
    texts = {str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8") for path in DOCS}
    lines = []
    for name, text in (texts | {"the reference": cli_document()}).items():
        typed = [line for block in blocks_in(text, "sh") for line in block.replace("\\\n", " ").splitlines()]
        typed += [
            line[2:] for block in blocks_in(text, "console") for line in block.splitlines() if line.startswith("$ ")
        ]
        lines += [(name, line) for line in typed if line.startswith("askalike ")]
    return lines


def test_every_askalike_command_in_the_documents_exists() -> None:
    wrong = []
    for name, line in typed_commands():
        words = shlex.split(line, comments=True)
        words = words[: next((place for place, word in enumerate(words) if word in ("|", "||", "&&")), None)]
        parameters = COMMANDS[words[1]].params if words[1] in COMMANDS else []
        known = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.split("=")[0] for word in words[2:] if re.match(r"^--?[a-z]", word)}
        if words[1] not in COMMANDS or not used <= known:
            wrong.append(f"{name}: {line}")
    assert wrong == []


def test_every_command_has_an_example_in_the_reference() -> None:
    assert sorted(EXAMPLES.keys() ^ COMMANDS.keys()) == []


def test_links_between_documents_lead_somewhere() -> None:
    wrong = []
    for path in DOCS:
        for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            place = (path.parent / target).resolve()
            is_built = place.is_relative_to(BUILT) or place == BUILT.parent / "openapi.json"
            if "://" not in target and not is_built and not place.exists():
                wrong.append(f"{path.relative_to(REPOSITORY)} links to {target}")
    assert wrong == []


def test_the_readme_shows_its_result_by_line_20() -> None:
    top = "\n".join(text_of("README.md").splitlines()[:20])
    for needed in ("askalike search", "make demo", "the same (", "accepted answer"):
        assert needed in top


@WITH_MODEL
def test_the_readmes_screen_is_what_the_command_prints(
    encoded_homenet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed, *shown = blocks(REPOSITORY / "README.md", "console")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_width", 80)  # whatever the terminal of who runs the tests has
    shutil.copytree(encoded_homenet, "homenet.forum")
    monkeypatch.setattr("sys.argv", shlex.split(typed.removeprefix("$ ")))
    with contextlib.suppress(SystemExit):
        main()
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown


def test_the_widgets_document_names_its_default_minimum() -> None:
    row = next(line for line in text_of("docs/widget.md").splitlines() if line.startswith("| `data-minimum`"))
    assert [least for least in LEAST_SHOWN.values() if f"{least:g}" not in row] == []


@WITH_MODEL
def test_the_worked_example_of_a_search_has_the_programs_figures(capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(REPOSITORY / "docs" / "how-a-search-works.md", "python"):
        exec(compile(block, "docs/how-a-search-works.md", "exec"), {})
    rows = capsys.readouterr().out.splitlines()
    assert [row for row in rows if row not in text_of("docs/how-a-search-works.md")] == []


def test_the_documents_name_every_protocol_system_measure_and_format() -> None:
    evaluation, formats = text_of("docs/evaluation.md"), text_of("docs/formats.md")
    assert [name for name in (*PROTOCOLS, *SYSTEMS, *MEASURES) if name not in evaluation] == []
    assert [name for name in FORMATS if name.replace("-", " ") not in evaluation.lower()] == []
    assert [name for name in READERS if name not in formats] == []


def test_the_architecture_names_every_folder_and_no_file_that_is_not_there() -> None:
    text = text_of("ARCHITECTURE.md")
    package = REPOSITORY / "src" / "askalike"
    folders = {path.parent.name for path in package.glob("*/__init__.py")} - {"data"}
    assert [name for name in sorted(folders) if f"`{name}/" not in text] == []
    missing = []
    for row in re.findall(r"^\| (`[^|]+) \|", text, flags=re.MULTILINE):
        names = re.findall(r"`([^`]+)`", row)
        folder = names[0].rsplit("/", 1)[0] if "/" in names[0] else ""
        paths = [name if "/" in name or not folder else f"{folder}/{name}" for name in names]
        missing += [path for path in paths if not list(package.glob(path.rstrip("/")))]
    assert missing == []


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
    stamp = {"name", "command", "commit", "when", "machine"}
    names = [path.stem for path in RESULTS.iterdir()]
    assert [name for name in names if not stamp <= load(name).keys() or load(name)["name"] != name] == []
