"""``askalike serve`` and ``askalike keys`` as a user types them."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run

from askalike import Forum
from askalike.server.guards import Keys
from askalike.server.settings import ServeSettings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Forum.create(tmp_path / "f.forum").close()
    return tmp_path / "f.forum"


def test_keys_are_made_shown_and_taken_back(folder: Path, run: Run) -> None:
    assert f"no keys; askalike keys {folder} --add read makes one" in run("keys", folder).out
    assert run("keys", folder, "--json").json == []
    done = run("keys", folder, "--add", "read", "--name", "widget")
    assert done.code == 0
    secret = done.out.removesuffix("\n")
    assert "not shown again" in done.err
    key = Keys(folder).get(secret)
    assert key is not None
    assert key.may == "read"
    done = run("keys", folder, "--add", "write", "--json")
    assert done.code == 0
    added = done.json
    assert (Keys(folder).get(added["key"]), added["may"]) != (None, "read")
    code, shown, _ = run("keys", folder)
    assert code == 0
    assert "widget" in shown
    assert added["id"] in shown
    assert secret not in shown
    assert run("keys", folder, "--remove", added["id"]).code == 0
    assert Keys(folder).get(added["key"]) is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--add", "all"), 2),
        (("--add", "read", "--remove", "x"), 2),
        (("--name", "x"), 2),
        (("--remove", "x"), 1),
    ],
)
def test_keys_that_cannot_be_made_are_refused(folder: Path, run: Run, words: tuple[str, ...], code: int) -> None:
    assert run("keys", folder, *words).code == code
    assert Keys(folder).all() == ()


def test_a_service_for_others_needs_a_key(folder: Path, run: Run) -> None:
    done = run("serve", folder, "--host", "0.0.0.0")
    assert done.code == 2
    assert "without an API key" in done.err
    assert run("serve", folder / "none").code == 1


def test_what_is_said_reaches_the_service(folder: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    served: list[ServeSettings] = []
    monkeypatch.setattr("askalike.server.workers.run", lambda settings, on_start: served.append(settings))
    said = "--host 0.0.0.0 --port 1 --workers 2 --threads 3 --allow-origin https://a.example --allow-host a.example"
    proxies = "--trusted-proxy 127.0.0.1 --trusted-proxy 10.0.0.0/8"
    more = "--insecure --open-read --rate 5 --timeout 2"
    done = run("serve", folder, *said.split(), *proxies.split(), *more.split())
    assert done.code == 0
    (settings,) = served
    assert (settings.host, settings.port, settings.workers) == ("0.0.0.0", 1, 2)
    assert (settings.allow_origins, settings.allow_hosts) == (("https://a.example",), ("a.example",))
    assert (settings.limits.threads, settings.limits.rate, settings.limits.timeout_s) == (3, 5.0, 2.0)
    assert settings.trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    assert settings.is_insecure
    assert settings.is_read_open
    assert "warning" in done.err


def test_without_the_extra_the_service_says_how_to_get_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    find_spec = importlib.util.find_spec

    def lacking(name: str, *more: Any) -> Any:
        return None if name == "uvicorn" else find_spec(name, *more)

    monkeypatch.setattr("importlib.util.find_spec", lacking)
    done = run("serve", folder)
    assert done.code == 1
    said = done.err
    assert "uvicorn" in said
    assert "pip install" in said
    assert '"uvicorn>=' in said


def test_an_address_that_is_taken_is_refused_before_it_is_told(folder: Path, run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("serve", folder, "--port", port)
        assert done.code == 2
    message = done.err
    assert f"nobody can listen at 127.0.0.1, port {port}" in message
    assert "Ctrl-C" not in message
