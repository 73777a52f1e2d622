"""What the documents of the service say, works: curl and Python examples, and the files for deploying it."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tools.serving import serving

from askalike.cli.application import COMMANDS
from askalike.cli.main import MESSAGES
from askalike.operations import OPERATIONS, service_document
from askalike.server.app import build
from askalike.server.guards import Keys
from askalike.server.settings import ServeSettings

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = "".join((REPOSITORY / "docs" / name).read_text(encoding="utf-8") for name in ("http.md", "service.md"))
DEPLOY = REPOSITORY / "deploy"
ADDRESS = "http://127.0.0.1:8765"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def address(encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = Path(shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("documents") / "home.forum"))
    _, secret = Keys(folder).add("documents", "write")
    with pytest.MonkeyPatch.context() as patch, serving(build(ServeSettings(str(folder)))) as address:
        patch.setenv("ASKALIKE_KEY", secret)
        yield address


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="curl or bash is not here")
def test_every_curl_in_the_documents_succeeds(address: str, tmp_path: Path) -> None:
    commands = [block for block in blocks("sh") if "curl" in block]
    assert len(commands) >= 4
    for block in commands:
        script = "set -euo pipefail\n" + block.replace(ADDRESS, address)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert '"error"' not in done.stdout


def test_the_python_of_the_documents_runs(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("python")
    exec(compile(program.replace(ADDRESS, address), "http.md", "exec"), {})
    assert "Bluetooth" in capsys.readouterr().out


def test_the_documents_name_every_field_of_a_search() -> None:
    fields = service_document()["components"]["schemas"]["SimilarRequest"]["properties"]  # type: ignore[index]
    assert [name for name in fields if f"`{name}`" not in DOCUMENT] == []


def test_every_list_of_the_openapi_document_says_what_it_holds_in_words_that_all_generators_read() -> None:
    nodes: list[Any] = [service_document()]
    lists = 0
    while nodes:
        node = nodes.pop()
        nodes += node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
        if isinstance(node, dict) and node.get("type") == "array":
            lists += 1
            assert "prefixItems" not in node, node
            assert isinstance(node.get("items"), dict), node
    assert lists > 10


def test_the_openapi_document_says_where_the_service_is_and_has_an_example_of_each_body() -> None:
    assert service_document()["servers"] == [{"url": "./", "description": "The service that this document comes from."}]
    for operation in OPERATIONS:
        assert (operation.body is None) == (operation.example is None), operation.path
        if operation.body is not None:
            msgspec.convert(operation.example, operation.body)


# -- deploying ---------------------------------------------------------------------------------------------------------


def check_command(words: list[str]) -> None:
    """Check that the command line knows this command and its options."""
    known = {
        option for parameter in COMMANDS[words[0]].params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    known |= {*MESSAGES.values()}
    assert {word.split("=")[0] for word in words if word.startswith("-")} <= known, words


def test_the_dockerfile_copies_what_is_there_and_runs_what_there_is() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if line and not line.startswith("#")]
    for line in lines:
        words = line.split()
        if words[0] == "COPY" and not words[1].startswith("--"):
            assert all((REPOSITORY / word).exists() for word in words[1:-1]), line
    (entry,) = (json.loads(line.partition(" ")[2]) for line in lines if line.startswith("ENTRYPOINT"))
    (command,) = (json.loads(line.partition(" ")[2]) for line in lines if line.startswith("CMD"))
    assert entry == ["askalike"]
    check_command(command)
    assert any(line.startswith("USER") and "root" not in line for line in lines)


def test_the_compose_file_is_yaml_and_runs_what_there_is() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not here")
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["askalike"]
    check_command(service["command"])
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_unit_runs_what_there_is() -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "askalike.service", encoding="utf-8")
    assert parser.sections() == ["Unit", "Service", "Install"]
    program, *words = shlex.split(parser["Service"]["ExecStart"])
    assert Path(program).name == "askalike"
    check_command(words)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "askalike.service").read_text(encoding="utf-8")
    unit = tmp_path / "askalike.service"
    unit.write_text(text.replace("/opt/askalike/bin/askalike", shutil.which("true") or "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, env={**os.environ}, check=False
    )
    assert "Unknown key" not in done.stderr


def test_the_dockerfile_asks_for_extras_that_there_are() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert '"/source[$EXTRAS]"' in text
    samples = [
        text,
        *(path.read_text(encoding="utf-8") for path in [*DEPLOY.glob("*.yaml"), *DEPLOY.rglob("values.yaml")]),
    ]
    named = {tuple(extras.split(",")) for sample in samples for extras in re.findall(r"EXTRAS[=:] ?([a-z,]+)", sample)}
    assert named == {("serve",), ("serve", "postgresql"), ("serve", "postgresql", "milvus", "ray")}
    assert {name for names in named for name in names} <= set(extras)


@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="nginx or openssl is not here")
def test_nginx_takes_its_sample(tmp_path: Path) -> None:
    key, certificate = tmp_path / "privkey.pem", tmp_path / "fullchain.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=askalike.example.org"]
    subprocess.run([*request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    sample = (DEPLOY / "nginx.conf").read_text(encoding="utf-8").replace("/etc/ssl/askalike", str(tmp_path))
    (tmp_path / "askalike.conf").write_text(sample, encoding="utf-8")
    http = f"http {{ access_log off; include {tmp_path}/*.conf; }}"
    whole = f"pid {tmp_path}/pid; error_log {tmp_path}/log; events {{}} {http}"
    (tmp_path / "whole").write_text(whole, encoding="utf-8")
    done = subprocess.run(["nginx", "-t", "-c", tmp_path / "whole"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("caddy"), reason="Caddy is not here")
def test_caddy_takes_its_sample() -> None:
    words = ["caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
