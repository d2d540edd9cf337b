"""Attempts against the grader and pass rates over time, and what was deleted to make a task."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ..runs import HOSTILE, make_run, score
from .site import Markup, browser, check_harmless, open_site, step_of, update_line, write_tape

PATCH = """diff --git a/shop/bill.py b/shop/bill.py
index 1..2 100644
--- a/shop/bill.py
+++ b/shop/bill.py
@@ -1,2 +1,2 @@
 def total():
-    raise NotImplementedError
+    return sum_of_it
diff --git a/tests/test_bill.py b/tests/test_bill.py
--- a/tests/test_bill.py
+++ b/tests/test_bill.py
@@ -1 +1 @@
+    assert held_out_secret
diff --git a/shop/test_inside.py b/shop/test_inside.py
--- /dev/null
+++ b/shop/test_inside.py
@@ -0,0 +1 @@
+    assert held_out_secret
diff --git a/secrets.txt b/secrets.txt
--- a/secrets.txt
+++ b/secrets.txt
@@ -1 +1 @@
+held_out_secret
"""


def charts_of(page: Markup) -> list[Any]:
    return [chart for _, attributes in page.tags for chart in json.loads(attributes.get("data-charts") or "[]")]


def flagged(path: Path, rule: str, version: int | None = None, changed: float = 0.0) -> None:
    flag = {"rule": rule, "severity": "suspicious", "step": 1, "evidence": HOSTILE}
    told = {"task": "t", "outcome": "failed", "verdict": {"integrity": [flag] if rule else []}}
    ours = {} if version is None else {"extra": {"gametape": {"policy_versions": [version]}}}
    write_tape(path, [step_of(1, **ours)], extra=told)
    if changed:
        os.utime(path, (changed, changed))


def test_attempts_against_the_grader_are_counted_by_rule_and_weights(tmp_path: Path) -> None:
    kept = make_run(tmp_path / "run", "rlvr", [score(0, 0.2)]) / "trajectories"
    for number, (rule, version) in enumerate([("a", 0), ("a", 0), ("", 0), ("b", 24), ("a", 48)]):
        flagged(kept / f"d{number}.000.json", rule, version)
    page = check_harmless(browser(open_site(tmp_path)).get("/integrity?run=run").text)
    (chart,) = charts_of(page)
    assert chart["xLabel"] == "version of the weights"
    rates = {line["name"]: [value for _, value in line["points"]] for line in chart["lines"]}
    assert rates == {"a": [2 / 3, 0, 1], "b": [0, 1, 0]}
    for label in ("weights 0", "weights 24", "weights 48"):
        assert label in page.text
    assert "/tape?run=run&rollout=d3.000#step=1" in [attributes.get("href") for _, attributes in page.tags]


def test_without_weights_the_times_of_the_files_count(tmp_path: Path) -> None:
    kept = make_run(tmp_path / "run", "rlvr", [score(0, 0.2)]) / "trajectories"
    flagged(kept / "d1.000.json", HOSTILE, changed=1e9)
    flagged(kept / "d2.000.json", HOSTILE, changed=1e9 + 7200)
    page = check_harmless(browser(open_site(tmp_path)).get("/integrity?run=run").text)
    (chart,) = charts_of(page)
    assert chart["xLabel"] == "minutes since the first"
    assert chart["lines"][0]["points"] == [[0, 1], [110, 1]]
    assert "09 Sep 01:46:40" in page.text


def test_pass_rates_are_drawn_over_updates_with_what_is_retired(tmp_path: Path) -> None:
    log = make_run(tmp_path / "run", "rlvr", [score(0, 0.2)]) / "metrics.jsonl"
    with log.open("a") as file:
        file.write(update_line(1, pass_rates={"easy": 0.5, HOSTILE: 0.25, "none": None}, retired=[]))
        file.write('{"kind": "update", "pass_rates": [\n[]\n')
        file.write(update_line(2, pass_rates={"easy": 1.0}, retired=["easy"]))
        file.write(update_line(3, pass_rates={HOSTILE: 0.125}))
    page = check_harmless(browser(open_site(tmp_path)).get("/tasks?run=run").text)
    (chart,) = charts_of(page)
    lines = {line["name"][:4]: line["points"] for line in chart["lines"]}
    assert lines == {"<scr": [[1, 0.25], [3, 0.125]], "easy": [[1, 0.5], [2, 1.0]]}
    assert "100.0%2retired" in page.text
    assert "12.5%3not recorded" in page.text


@pytest.fixture
def mined(tmp_path: Path) -> Path:
    """A task, an attempt at it, a training run that kept a rollout of it, and an evaluation of it."""
    task = tmp_path / "demo" / "tasks" / "shop-1"
    (task / "solution").mkdir(parents=True)
    (task / "solution" / "reference.patch").write_text(PATCH)
    (task / "task.toml").write_text('[metadata.gametape]\nsource_paths = ["shop"]\ntest_paths = ["tests"]\n')
    told = {"task": "shop-1", "outcome": "failed"}
    write_tape(tmp_path / "demo" / "attempts" / "one" / "trajectory.json", [step_of(1)], extra=told)
    run = make_run(tmp_path / "demo" / "run", "rlvr", [score(0, 0.2)])
    write_tape(run / "trajectories" / "d1.000.json", [step_of(1)], extra=told)
    evaluation = tmp_path / "demo" / "eval"
    write_tape(evaluation / "trajectories" / "shop-1.000.json", [step_of(1)], extra=told)
    (evaluation / "attempts.jsonl").write_text(json.dumps({"suite": "s", "model": "m"}) + "\n")
    return tmp_path


@pytest.mark.parametrize("page", ["/tasks?run=demo/run", "/result?run=demo/attempts/one"])
def test_what_was_deleted_stands_beside_the_task_without_its_tests(mined: Path, page: str) -> None:
    text = check_harmless(browser(open_site(mined)).get(page).text).text
    assert "+    return sum_of_it" in text
    assert "held_out_secret" not in text


def test_nothing_of_a_reference_is_shown_for_an_evaluation(mined: Path) -> None:
    text = browser(open_site(mined)).get("/tasks?run=demo/eval").text
    assert "shop-1" in text
    assert "sum_of_it" not in text


def test_a_reference_outside_or_behind_a_link_is_not_read(mined: Path) -> None:
    task = mined / "demo" / "tasks" / "shop-1"
    assert "sum_of_it" not in browser(open_site(mined / "demo" / "attempts")).get("/result?run=one").text
    task.rename(mined / "elsewhere")
    task.symlink_to(mined / "elsewhere")
    assert "sum_of_it" not in browser(open_site(mined)).get("/result?run=demo/attempts/one").text
