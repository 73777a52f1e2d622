"""The alert rules and the dashboard ask for metrics that the service has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
NAMES = re.compile(r"\baskalike_[a-z_]+")


def test_alerts_and_dashboard_ask_for_metrics_that_there_are(tmp_path: Path) -> None:
    testclient = pytest.importorskip("starlette.testclient", reason="the extra serve is not installed")
    from askalike import Forum, Question
    from askalike.server.app import build
    from askalike.server.settings import ServeSettings

    with Forum.create(tmp_path / "f") as forum:
        forum.add(Question("1", "Wifi drops at night"))
    with testclient.TestClient(build(ServeSettings(str(tmp_path / "f"))), base_url="http://localhost:8765") as client:
        client.post("/v1/similar", json={"title": "wifi"})
        metrics = set(NAMES.findall(client.get("/metrics").text))
    for file in ("alerts.yaml", "dashboard.json"):
        names = set(NAMES.findall((MONITORING / file).read_text(encoding="utf-8")))
        assert names
        assert names <= metrics
