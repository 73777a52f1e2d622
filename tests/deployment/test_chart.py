"""The Helm chart: Helm's own linter and renderer, the schemas of Kubernetes, and a pod's commands run as rendered."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum, __version__

helm = pytest.importorskip("helm_python", reason="helm-python-sdk is not installed")
kubernetes = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
yaml = pytest.importorskip("yaml", reason="PyYAML is not here")

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "askalike"
KUBERNETES = "1.37"
START_S = 180.0
INGRESS = {"enabled": True, "class": "nginx", "tlsSecret": "certificate", "annotations": {"example.org/note": "1"}}
FOLLOWED = {"from": "https://forum.example.org", "arguments": ["--key-variable=DISCOURSE_KEY"]}
VALUES: dict[str, dict[str, Any]] = {
    "as they are": {},
    "servers of one's own": {"database": "postgresql://db.example.org/travel", "engine": "milvus://search.example.org"},
    "one volume's class": {"server": {"storage": {"size": "1Ti", "class": "fast"}}, "image": {"pullSecrets": ["pull"]}},
    "ingress": {"ingress": INGRESS, "server": {"hosts": ["a.example.org", "b.example.org"]}},
    "ray": {"ray": {"enabled": True, "workers": 3}},
    "all": {"engine": "chart", "ray": {"enabled": True}, "ingress": INGRESS, "follower": FOLLOWED},
}
PARTS: dict[str, set[str]] = {
    "as they are": {"postgresql", "server"},
    "servers of one's own": {"server"},
    "one volume's class": {"postgresql", "server"},
    "ingress": {"postgresql", "server"},
    "ray": {"postgresql", "server", "ray", "ray-worker"},
    "all": {"postgresql", "server", "follower", "milvus", "etcd", "objects", "ray", "ray-worker"},
}


def rendered(values: dict[str, Any], chart: Path = CHART, release: str = "travel") -> list[dict[str, Any]]:
    """Return the manifests that Helm would send to a cluster."""
    with helm.Chart.load(chart) as loaded:
        files = loaded.render(values, name=release, namespace="forums")
    texts = [text for name, text in files.items() if not name.endswith(".txt")]
    return [part for text in texts for part in yaml.safe_load_all(text) if part]


def faults(manifests: list[dict[str, Any]]) -> list[str]:
    """Return what the schemas of Kubernetes say against the manifests."""
    errors = []
    for manifest in manifests:
        try:
            kubernetes.validate(manifest, KUBERNETES, strict=True)
        except kubernetes.ValidationError as error:
            errors.append(f"{manifest['kind']} {manifest['metadata']['name']}: {error}")
    return errors


def pods(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the pod's template of each part that runs on."""
    workloads = [manifest for manifest in manifests if manifest["kind"] in ("StatefulSet", "Deployment")]
    templates = {
        workload["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: workload["spec"]["template"]
        for workload in workloads
    }
    assert len(templates) == len(workloads)
    return templates


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


@pytest.mark.parametrize("name", VALUES)
def test_helm_and_kubernetes_find_no_fault_and_every_object_is_there_once(name: str) -> None:
    report = helm.lint(CHART, VALUES[name], strict=True, kube_version=f"v{KUBERNETES}.0")
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []  # 1: it would like an icon
    manifests = rendered(VALUES[name])
    assert faults(manifests) == []
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests]
    assert len(set(names)) == len(names)
    assert set(pods(manifests)) == PARTS[name]


@pytest.mark.parametrize("name", VALUES)
def test_services_reach_a_port_of_one_part_and_volumes_are_there(name: str) -> None:
    manifests = rendered(VALUES[name])
    parts = pods(manifests)
    for service in (manifest for manifest in manifests if manifest["kind"] == "Service"):
        chosen = service["spec"]["selector"].items()
        (pod,) = (pod for pod in parts.values() if chosen <= pod["metadata"]["labels"].items())
        ports = {
            port.get("name"): port["containerPort"]
            for container in containers(pod)
            for port in container.get("ports", [])
        }
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            assert target in ports or target in ports.values() or service["spec"].get("clusterIP") == "None"
    claims = {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "PersistentVolumeClaim"}
    for manifest in manifests:
        if manifest["kind"] not in ("StatefulSet", "Deployment"):
            continue
        pod = manifest["spec"]["template"]
        assert manifest["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        own = {claim["metadata"]["name"] for claim in manifest["spec"].get("volumeClaimTemplates", [])}
        volumes = pod["spec"].get("volumes", [])
        assert {v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v} <= claims
        mounted = {mount["name"] for container in containers(pod) for mount in container["volumeMounts"]}
        assert mounted == own | {volume["name"] for volume in volumes}


def test_addresses_name_services_that_the_chart_makes() -> None:
    manifests = rendered(VALUES["all"])
    services = {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "Service"}
    text = json.dumps(manifests)
    named = re.findall(r"(?:://|value\": \"|address=|urls=http://)(travel-askalike-[a-z]+)", text)
    assert {"travel-askalike-" + part for part in ("postgresql", "milvus", "etcd", "objects", "ray")} <= set(named)
    assert set(named) <= services


def test_the_version_is_the_packages() -> None:
    with helm.Chart.load(CHART) as loaded:
        assert (loaded.metadata["version"], loaded.metadata["appVersion"]) == (__version__, __version__)
    (serve,) = pods(rendered({}))["server"]["spec"]["containers"]
    assert serve["image"].endswith(f":{__version__}")


def test_names_of_any_release_are_short_enough() -> None:
    for release in ("askalike", "a" * 53, "my-askalike-" + "b" * 41):
        manifests = rendered(VALUES["all"], release=release)
        assert faults(manifests) == []
        assert (
            max(len(manifest["metadata"]["name"]) for manifest in manifests) <= 52
        )  # a StatefulSet appends eleven characters


def test_secrets_are_named_and_none_is_made() -> None:
    manifests = rendered(VALUES["all"])
    assert "Secret" not in {manifest["kind"] for manifest in manifests}
    for part, pod in pods(manifests).items():
        for container in containers(pod):
            for variable in container.get("env", []):
                secret = re.search(r"PASSWORD|SECRET|TOKEN|_USER|KEY", variable["name"])
                assert ("valueFrom" in variable) == bool(secret), (part, variable)


def test_no_pod_may_gain_rights_and_ours_write_nowhere_but_on_their_volumes() -> None:
    for part, pod in pods(rendered(VALUES["all"])).items():
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["spec"]["securityContext"].get("runAsNonRoot", False) is (part != "milvus")
        for container in containers(pod):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "askalike:" not in container["image"] or context["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"database": "mysql://db.example.org/travel"}, "/database"),
        ({"database": "postgresql://me:secret@db.example.org/travel"}, "/database"),
        ({"engine": "opensearch://search.example.org"}, "/engine"),
        ({"server": {"replicas": "2"}}, "/server/replicas': got string, want integer"),
        ({"server": {"hosts": []}}, "/server/hosts"),
        ({"secrets": {"environment": "PGPASSWORD=x"}}, "/secrets/environment"),
        ({"postgres": {"enabled": True}}, "'postgres' not allowed"),
        ({"forum": "../travel"}, "/forum"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(helm.HelmValuesError) as refused:
        rendered(values)
    assert message in str(refused.value)


def test_the_command_line_knows_what_the_chart_calls() -> None:
    from askalike.cli.application import COMMANDS
    from askalike.cli.main import MESSAGES

    called = []
    for pod in pods(rendered(VALUES["all"])).values():
        for container in containers(pod):
            if "askalike:" in container["image"] and "command" not in container:
                name, *words = [word for word in container["args"] if word not in MESSAGES.values()]
                COMMANDS[name].make_context(name, list(words)).close()
                called.append(name)
    assert sorted(called) == ["attach", "attach", "follow", "serve"]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def test_what_a_pod_of_the_chart_runs_answers_its_probes(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    from tests.postgres_server import new_database

    database, port = new_database(), free_port()
    folder = tmp_path / "travel"
    forum = Forum.create(tmp_path / "keys.forum")
    forum.close()
    program = [sys.executable, "-m", "askalike"]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "home"), "ASKALIKE_DATABASES": database}
    subprocess.run(
        [*program, "keys", tmp_path / "keys.forum", "--add", "write"], check=True, env=environment, capture_output=True
    )
    pod = pods(rendered({"server": {"processes": 1}}))["server"]["spec"]
    own = {"/forum/": f"{tmp_path}/", "postgresql://travel-askalike-postgresql/askalike": database}

    def here(container: dict[str, Any]) -> list[str]:
        words = container["args"]
        for there, place in own.items():
            words = [word.replace(there, place) for word in words]
        return [*program, *words]

    def asked(path: str, name: str) -> urllib.request.Request:
        return urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": name})

    attach, serve = here(pod["initContainers"][0]), here(pod["containers"][0])
    for _ in range(2):  # a pod that starts again attaches again
        subprocess.run(attach, check=True, env=environment, capture_output=True)
    shutil.copy(tmp_path / "keys.forum" / "keys.json", folder / "keys.json")
    with subprocess.Popen([*serve, f"--port={port}"], env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                path = pod["containers"][0][probe]["httpGet"]["path"]
                assert answered(asked(path, f"10.1.2.3:{port}"), process) == 200
            names = ("askalike.example.org", "travel-askalike-server", "other.example.org")
            statuses = [answered(asked("/v1/questions", name), process) for name in names]
            assert statuses == [200, 200, 421], "the ingress and other pods ask under names that the chart gives"
        finally:
            process.terminate()


def answered(request: urllib.request.Request, process: subprocess.Popen[bytes]) -> int:
    """Return the status of the first answer."""
    end = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the service did not start")
