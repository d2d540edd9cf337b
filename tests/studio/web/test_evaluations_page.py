"""Evaluations that are marked together share their charts, each line with its interval."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ..runs import HOSTILE, make_run, score
from .site import browser, check_harmless, open_site


def write_evaluation(root: Path, model: str, **fields: Any) -> None:
    root.mkdir()
    (root / "attempts.jsonl").write_text(json.dumps({"suite": "s", "model": model}) + "\n")
    if fields:
        (root / "report.json").write_text(json.dumps({"suite": "s", "suite_digest": "1", "model": model} | fields))


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    horizons = [{"horizon": at, "rate": 1 / at, "low": 0.5 / at, "high": 1.0, "n": 4} for at in (4, 2)]
    success = {"n": 8, "rate": 0.375, "low": 0.25, "high": 0.5}
    survival = [{"step": 1, "s": 1.0, "low": 0.9, "high": 1.0}, {"step": 2, "s": 0.5}, {"step": HOSTILE, "s": 1}]
    write_evaluation(tmp_path / "first", "small", by_horizon=horizons, survival=survival, success=success)
    write_evaluation(tmp_path / "second", HOSTILE, by_horizon=[{"horizon": 2, "rate": 0.75}], suite_digest=HOSTILE)
    write_evaluation(tmp_path / "third", "large")
    make_run(tmp_path / "run", "rlvr", [score(0, 0.2)])
    return browser(open_site(tmp_path))


def test_success_by_horizon_and_survival_stand_in_one_chart_each(client: TestClient) -> None:
    page = check_harmless(client.get("/evaluations?run=first&run=second&run=third").text)
    (charts,) = [
        json.loads(attributes["data-charts"] or "") for _, attributes in page.tags if "data-charts" in attributes
    ]
    horizon, survival = charts
    first, second, third = horizon["lines"]
    assert (horizon["xLabel"], first["name"], third["points"]) == ("horizon", "first, small", [])
    assert first["points"] == [[2, 0.5], [4, 0.25]]
    assert first["band"] == [[2, 0.25, 1.0], [4, 0.125, 1.0]]
    assert (second["points"], second["band"]) == ([[2, 0.75]], [])
    assert survival["lines"][0]["points"] == [[1, 1.0], [2, 0.5]]
    for shown in ("37.5%", "25.0% to 50.0%", "has not ended", "of different suites"):
        assert shown in page.text


def test_marked_evaluations_lead_there_and_training_runs_do_not_mix(client: TestClient) -> None:
    page = check_harmless(client.get("/run?run=first&run=second").text)
    assert "2 evaluations beside each other" in page.text
    assert client.get("/run?run=first&run=run").status_code == 422
    assert client.get("/evaluations?run=run").status_code == 422
    assert client.get("/evaluations").status_code == 422
    boxes = [attributes.get("value") for tag, attributes in check_harmless(client.get("/").text).tags if tag == "input"]
    assert sorted(filter(None, boxes)) == ["first", "run", "second", "third"]
