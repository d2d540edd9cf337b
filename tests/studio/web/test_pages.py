"""Every page shows what the files say, escapes what an agent wrote, and says plainly what is missing."""

import fcntl
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ..runs import HOSTILE, make_run, make_trajectory, score, target
from .site import browser, check_harmless, open_site, step_of, update_line, write_tape


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    kept = [target("large.000", 2.5, HOSTILE)]
    root = make_run(tmp_path / "first" / "ttf", HOSTILE.partition("\x1b")[0], [score(0, 0.2), score(640, 0.8)], kept)
    with (root / "metrics.jsonl").open("a") as log:
        log.write(update_line(11, pass_rates={HOSTILE: 0.5}))
        log.write(json.dumps({"kind": "alarm", "step": 11, "name": HOSTILE, "value": 3, "limit": 1, "advice": HOSTILE}))
        log.write("\n")
    make_trajectory(root, "large.000", HOSTILE)
    make_run(tmp_path / "plain", "rlvr", [score(0, 0.2)])
    flag = {"rule": HOSTILE, "severity": "proven", "file": HOSTILE, "line": 3, "step": 2, "evidence": HOSTILE}
    told = {"task": HOSTILE, "outcome": "failed", "verdict": {"passed": False, "integrity": [flag]}}
    write_tape(tmp_path / "attempt" / "trajectory.json", [step_of(1, message=HOSTILE), step_of(2)], extra=told)
    return tmp_path


@pytest.fixture
def client(runs: Path) -> TestClient:
    return browser(open_site(runs))


PAGES = [
    "/",
    "/run?run=first/ttf",
    "/run?run=first/ttf&run=plain",
    "/rollouts?run=first/ttf",
    "/tape?run=first/ttf&rollout=large.000",
    "/group?run=first/ttf&group=large",
    "/compare?run=first/ttf&rollout=large.000&run=attempt&rollout=trajectory",
    "/tasks?run=first/ttf",
    "/integrity?run=attempt",
    "/costs?run=first/ttf",
    "/evaluation?run=first/ttf",
    "/behaviour?run=first/ttf",
    "/result?run=attempt",
    "/calibration?run=attempt",
    "/desk",
    "/desk?message=%3Cscript%3E",
]


@pytest.mark.parametrize("address", PAGES)
def test_what_agents_wrote_is_text_on_every_page(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    check_harmless(answer.text)


def test_the_list_has_every_run_with_its_last_figures(client: TestClient) -> None:
    text = check_harmless(client.get("/").text).text
    assert "3 runs" in text
    rows = {row["name"]: row for row in client.get("/data/runs").json()["rows"]}
    assert rows.keys() == {"first/ttf", "plain", "attempt"}
    assert (rows["first/ttf"]["success"], rows["first/ttf"]["updates"], rows["first/ttf"]["reward"]) == (0.8, 11, 1.1)
    assert (rows["first/ttf"]["kind"], rows["first/ttf"]["state"], rows["attempt"]["kind"]) == (
        "training",
        "ended",
        "attempt",
    )


def test_without_runs_it_says_the_command_that_makes_one(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "nothing"):
        assert "gametape demo" in browser(open_site(directory)).get("/").text


def test_a_run_whose_lock_is_held_is_running(client: TestClient, runs: Path) -> None:
    with (runs / "plain" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        states = {row["name"]: row["state"] for row in client.get("/data/runs").json()["rows"]}
        assert (states["plain"], states["first/ttf"]) == ("running", "ended")


def test_compared_runs_show_what_differs_in_their_settings(client: TestClient, runs: Path) -> None:
    (runs / "plain" / "config.toml").write_text('arm = "rlvr"\nepisodes = 640\n[optim]\nlearning_rate = 0.5\n')
    page = check_harmless(client.get("/run?run=first/ttf&run=plain").text)
    assert "optim.learning_rate" in page.text
    assert "episodes" not in page.text.partition("Settings that differ")[2].partition("Alarms")[0]
    (names,) = [attributes["data-runs"] for _, attributes in page.tags if "data-runs" in attributes]
    assert json.loads(names or "") == ["first/ttf", "plain"]


def test_flags_lead_to_their_step(client: TestClient) -> None:
    page = check_harmless(client.get("/integrity?run=attempt").text)
    assert "proven" in page.text
    hrefs = [attributes.get("href") for tag, attributes in page.tags if tag == "a"]
    assert "/tape?run=attempt&rollout=trajectory#step=2" in hrefs


def test_siblings_stand_beside_each_other(client: TestClient, runs: Path) -> None:
    for number, outcome in enumerate(("passed", "failed", "failed")):
        extra = {"task": "t", "outcome": outcome, "reward": 1.0 - number}
        write_tape(runs / "plain" / "trajectories" / f"d7.{number:03}.json", [step_of(1)], extra=extra)
    page = check_harmless(client.get("/group?run=plain&group=d7").text)
    assert "3 rollouts of the same prompt" in page.text
    assert page.text.count("first wrong") == 3


def test_costs_divide_what_was_spent_by_what_passed(client: TestClient, runs: Path) -> None:
    for name, outcome in (("a.0", "passed"), ("a.1", "failed")):
        metrics = {"prompt_tokens": 60, "completion_tokens": 40, "cost_usd": 0.25}
        extra = {"task": "t", "outcome": outcome}
        write_tape(runs / "plain" / "trajectories" / f"{name}.json", [step_of(1, metrics=metrics)], extra=extra)
    text = check_harmless(client.get("/costs?run=plain").text).text
    assert "Of the 2 kept rollouts" in text
    for shown in ("0.5", "200", "50.0%"):
        assert shown in text


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "../x",
        "first/../plain",
        "/etc",
        "first//ttf",
        "nothing",
        "first",
        "a\0b",
        "home:..",
        "first/ttf/start",
    ],
)
def test_names_that_are_no_run_are_not_there(client: TestClient, name: str) -> None:
    for page in ("/run", "/data/series", "/data/tape", "/events"):
        answer = client.get(page, params={"run": name})
        assert answer.status_code == 404 if name else answer.status_code in (404, 422), (page, answer.text)


def test_no_link_is_followed_out_of_the_runs(
    client: TestClient, runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = make_run(tmp_path_factory.mktemp("outside") / "secret", "rlvr", [score(0, 0.2)])
    make_trajectory(outside, "x")
    (runs / "link").symlink_to(outside)
    (runs / "plain" / "trajectories").mkdir()
    (runs / "plain" / "trajectories" / "x.json").symlink_to(outside / "trajectories" / "x.json")
    assert "link" not in {row["name"] for row in client.get("/data/runs").json()["rows"]}
    assert client.get("/run?run=link").status_code == 404
    assert client.get("/data/tape?run=plain&rollout=x").status_code == 404


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("metrics.jsonl", '{"kind": "update", "st'),
        ("metrics.jsonl", '{"kind": "update", "step": NaN, "reward": 1e999, "time": 3}\n[]\nnull\n\xff\n'),
        ("config.toml", "arm = "),
        ("config.toml", "\0"),
        ("targets.jsonl", '{"rollout": "large.000", "step": "x"}\n{"rollout": "\\ud800"}\n{"rollout": 3}\n'),
        ("trajectories/large.000.json", "{"),
        ("trajectories/large.000.json", ""),
        ("start/tokenizer.json", "{}"),
    ],
)
def test_broken_files_are_said_and_the_rest_is_shown(client: TestClient, runs: Path, file: str, text: str) -> None:
    (runs / "first" / "ttf" / file).write_text(text, "latin-1")
    broken = file.startswith("trajectories")
    for address in [*PAGES, "/data/runs", "/data/series?run=first/ttf"]:
        assert client.get(address).status_code == 200, address
    for address in ("tape?", "steps?first=0&"):
        answer = client.get(f"/data/{address}run=first/ttf&rollout=large.000")
        assert answer.status_code == (422 if broken else 200), answer.text
        assert not broken or "large.000.json" in answer.json()["error"]
    rows = {row["name"]: row["state"] for row in client.get("/data/runs").json()["rows"]}
    assert rows["first/ttf"] == ("broken" if file == "config.toml" else rows["first/ttf"])
    assert rows["plain"] == "ended"


def test_what_was_deleted_meanwhile_is_said(client: TestClient, runs: Path) -> None:
    address = "/data/steps?run=first/ttf&rollout=large.000&first=0"
    assert client.get(address).status_code == 200
    (runs / "first" / "ttf" / "trajectories" / "large.000.json").unlink()
    answer = client.get(address)
    assert (answer.status_code, "deleted meanwhile" in answer.json()["error"]) == (404, True)


def test_many_rollouts_are_listed_by_the_page(client: TestClient, runs: Path) -> None:
    directory = runs / "plain" / "trajectories"
    for number in range(250):
        write_tape(directory / f"d{number:04}.000.json", [step_of(1)])
    page = check_harmless(client.get("/rollouts?run=plain&first=200").text)
    assert "201 to 250 of 250" in page.text


def test_siblings_are_said_to_part_where_they_first_differ(client: TestClient, runs: Path) -> None:
    for number, words in enumerate((["a", "b", "c"], ["a", "b", "d"], ["a", "b"])):
        steps = [step_of(at, message=word) for at, word in enumerate(words, start=1)]
        write_tape(runs / "plain" / "trajectories" / f"d7.{number:03}.json", steps)
    assert "part in turn 3" in client.get("/group?run=plain&group=d7").text
    (runs / "plain" / "trajectories" / "d7.002.json").unlink()
    write_tape(
        runs / "plain" / "trajectories" / "d7.001.json",
        [step_of(at, message=w) for at, w in [(1, "a"), (2, "b"), (3, "c")]],
    )
    assert "they never part" in client.get("/group?run=plain&group=d7").text


def test_behaviour_shows_the_alarms_of_the_monitors_at_their_steps(client: TestClient, runs: Path) -> None:
    assert "no log" in client.get("/behaviour?run=plain").text
    calls = [{"tool_call_id": "c", "function_name": f"run {HOSTILE}", "arguments": {"command": "ls"}}]
    back = {"results": [{"source_call_id": "c", "content": f"same {HOSTILE}"}]}
    steps = [step_of(n, message="", tool_calls=calls, observation=back) for n in range(1, 60)]
    write_tape(runs / "attempt" / "trajectory.json", steps)
    page = check_harmless(client.get("/behaviour?run=attempt").text)
    assert "59 steps were watched" in page.text
    hrefs = [attributes.get("href") or "" for tag, attributes in page.tags if tag == "a"]
    assert [href for href in hrefs if href.startswith("/tape?run=attempt#step=")]


def test_calibration_has_each_score_with_its_interval(client: TestClient, runs: Path) -> None:
    assert "No attempt has an outcome" in client.get("/calibration?run=plain").text
    for number in range(6):
        told = {
            "task": f"t{number % 3}",
            "outcome": "passed" if number % 2 else "failed",
            "confidence": 0.25 + number / 10,
        }
        write_tape(runs / "plain" / "trajectories" / f"c.{number}.json", [step_of(1)], extra=told)
    text = check_harmless(client.get("/calibration?run=plain").text).text
    assert "6 attempts with an outcome, 3 of which passed" in text
    assert " to " in text


def test_a_result_has_attempts_tampering_layers_and_the_patch(client: TestClient, runs: Path) -> None:
    goal = runs / "goal"
    goal.mkdir()
    (goal / "goal.json").write_text(json.dumps({"instruction": HOSTILE, "success": "pytest -q"}))
    flag = {"rule": "edited tests", "file": HOSTILE, "evidence": HOSTILE}
    attempt = {"n": 1, "criterion": {"passed": 3, "exit_code": 1}, "tokens": 1234, "tampering": [flag]}
    (goal / "result.json").write_text(json.dumps({"reached": False, "reason": "budget", "attempts": [attempt, 3]}))
    (goal / "patch.diff").write_text(f"--- a\n+++ b\n+{HOSTILE}\n")
    page = check_harmless(client.get("/result?run=goal").text)
    for shown in ("not reached: budget", "pytest -q", "edited tests", "1,234", "+++ b"):
        assert shown in page.text
    assert "failed" in check_harmless(client.get("/result?run=attempt").text).text
    assert client.get("/result?run=plain").status_code == 422


def test_an_evaluation_has_its_intervals_and_what_was_proven(client: TestClient, runs: Path) -> None:
    evaluation = runs / "evals" / "one"
    evaluation.mkdir(parents=True)
    attempt = {"task": HOSTILE, "outcome": "failed", "reason": HOSTILE, "passed": False, "tokens": 1234}
    (evaluation / "attempts.jsonl").write_text(json.dumps({"suite": "worlds:x", "model": HOSTILE}) + "\n")
    assert {row["name"]: row["state"] for row in client.get("/data/runs").json()["rows"]}["evals/one"] == "halted"
    with (evaluation / "attempts.jsonl").open("a") as log:
        log.write(json.dumps(attempt) + "\n")
    rate = {"rate": 0.25, "low": 0.2, "high": 0.3}
    report = {"model": HOSTILE, "k": 1, "pass_at_k": 0.25, "pass_hat_k": 0.25, "success": rate, "hacked": 2}
    (evaluation / "report.json").write_text(json.dumps(report))
    row = {row["name"]: row for row in client.get("/data/runs").json()["rows"]}["evals/one"]
    assert (row["state"], row["success"], row["what"]) == ("ended", 0.25, "worlds:x")
    page = check_harmless(client.get("/evaluation?run=evals/one").text)
    for shown in ("20.0% to 30.0%", "pass@1", "1,234"):
        assert shown in page.text
    assert "In 2 attempts" in check_harmless(client.get("/integrity?run=evals/one").text).text
