"""The page's files as text: what a strict content policy asks of them, and that all they name is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from askalike.types import LikelihoodWord

PAGE = Path(__file__).resolve().parents[2] / "src" / "askalike" / "server" / "page"
SCRIPTS = sorted(PAGE.rglob("*.js"))
DOCUMENTS = sorted(PAGE.glob("*.html"))
STYLES = sorted(PAGE.glob("*.css"))
ADDRESS = re.compile(r"https?://(?!www\.w3\.org/2000/svg|askalike\.example\.org)[\w.-]+\.[a-z]{2,}")


def name(path: Path) -> str:
    return path.relative_to(PAGE).as_posix()


def test_there_are_pages_scripts_and_styles() -> None:
    assert {name(path) for path in DOCUMENTS} == {"index.html", "example.html"}
    assert len(SCRIPTS) > 10
    assert len(STYLES) >= 3


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_script_never_reads_text_as_markup_or_as_a_program(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setHTML"):
        assert door not in text
    assert ".cookie" not in text


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_what_a_module_imports_exists_and_is_exported(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for names, source in re.findall(r"import \{([^}]*)\} from \"([^\"]+)\"", text):
        other = (path.parent / source).read_text(encoding="utf-8")
        for name in (part.strip() for part in names.split(",") if part.strip()):
            assert re.search(rf"export (async )?(function|const|class) {name.split(' as ')[0]}\b", other), (
                name,
                source,
            )


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_a_document_holds_no_script_or_style_of_its_own_and_names_files_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
    assert all(not inside.strip() for inside in re.findall(r"<script[^>]*>(.*?)</script>", text, flags=re.DOTALL))
    for file in re.findall(r"<(?:script|link|img)\s[^>]*(?:src|href)=\"([^\"]+)\"", text):
        assert (PAGE / file).is_file(), file


@pytest.mark.parametrize("path", [*SCRIPTS, *DOCUMENTS, *STYLES], ids=name)
def test_no_file_names_an_address_of_another_site(path: Path) -> None:
    assert ADDRESS.findall(path.read_text(encoding="utf-8")) == []


def test_the_page_and_the_widget_know_the_words_of_each_likelihood() -> None:
    for name in ("modules/likelihood.js", "widget.js"):
        text = (PAGE / name).read_text(encoding="utf-8")
        assert all(f'"{word}"' in text for word in get_args(LikelihoodWord) if word != "unknown"), name


def test_every_colour_has_one_for_light_and_one_for_dark() -> None:
    text = (PAGE / "style.css").read_text(encoding="utf-8")
    named = dict(re.findall(r"(--[\w-]+): ([^;]+);", re.findall(r":root \{([^}]*)\}", text)[0]))
    for name in named.keys() - {"--sans", "--mono"}:
        alike = re.sub(r"light-dark\((?:[^()]|\([^()]*\))*\)", "", named[name])
        assert alike != named[name], name
        assert re.search(r"#|rgb", alike) is None, name
