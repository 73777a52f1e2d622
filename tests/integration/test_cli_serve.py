"""``askalike serve`` and ``askalike keys`` as a user types them."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum
from askalike.cli.main import main
from askalike.serve.keys import Keys
from askalike.serve.settings import ServeSettings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Forum.create(tmp_path / "f.forum").close()
    return tmp_path / "f.forum"


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["askalike", *map(str, words)])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_keys_are_made_shown_and_taken_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "keys", folder, "--add", "read", "--name", "widget") == 0
    secret = capsys.readouterr().out.splitlines()[0]
    assert Keys(folder).rights(secret) == {"read"}
    assert run(monkeypatch, "keys", folder, "--add", "write", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert Keys(folder).rights(made["key"]) == {"read", "write"}
    assert run(monkeypatch, "keys", folder) == 0
    shown = capsys.readouterr().out
    assert "widget" in shown
    assert made["id"] in shown
    assert secret not in shown
    assert run(monkeypatch, "keys", folder, "--remove", made["id"]) == 0
    assert Keys(folder).rights(made["key"]) is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--add", "all"), 2),
        (("--add", "read", "--remove", "x"), 2),
        (("--name", "x"), 2),
        (("--remove", "x"), 1),
    ],
)
def test_keys_that_cannot_be_made_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    assert run(monkeypatch, "keys", folder, *words) == code
    assert Keys(folder).all() == ()


def test_a_service_for_others_needs_a_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "serve", folder, "--host", "0.0.0.0") == 2
    assert "no key" in capsys.readouterr().err
    assert run(monkeypatch, "serve", folder / "none") == 1


def test_what_is_said_reaches_the_service(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[ServeSettings] = []
    monkeypatch.setattr("askalike.serve.run.run", lambda settings, tell: told.append(settings))
    said = "--host 0.0.0.0 --port 1 --workers 2 --threads 3 --allow-origin https://a.example --allow-host a.example"
    more = "--insecure --open-read --rate 5 --timeout 2 --log-titles --reload-page"
    assert run(monkeypatch, "serve", folder, *said.split(), *more.split()) == 0
    (settings,) = told
    assert (settings.host, settings.port, settings.workers) == ("0.0.0.0", 1, 2)
    assert (settings.allow_origins, settings.allow_hosts) == (("https://a.example",), ("a.example",))
    assert (settings.limits.threads, settings.limits.rate, settings.limits.timeout_s) == (3, 5.0, 2.0)
    assert settings.is_insecure
    assert settings.is_read_open
    assert settings.has_titles_logged
    assert settings.is_page_reread
    assert "warning" in capsys.readouterr().err


def test_without_the_extra_the_service_says_how_to_get_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec

    def lacking(name: str, *more: Any) -> Any:
        return None if name == "uvicorn" else found(name, *more)

    monkeypatch.setattr("importlib.util.find_spec", lacking)
    assert run(monkeypatch, "serve", folder) == 1
    said = capsys.readouterr().err
    assert "uvicorn" in said
    assert "askalike[serve]" in said


def test_an_address_that_is_taken_is_refused_before_it_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(monkeypatch, "serve", folder, "--port", port) == 2
    told = capsys.readouterr().err
    assert f"nobody can listen at 127.0.0.1, port {port}" in told
    assert "Ctrl-C" not in told
