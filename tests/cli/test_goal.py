"""`gametape goal` as a user runs it: real processes, and the desk's own database."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import GAMETAPE, run
from tests.desk.goals.shop import DONE, MENDED, call, lay, script, write
from tests.patience import HANG


def test_a_goal_is_reached_applied_listed_and_shown(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace")
    model = script(tmp_path / "turns.jsonl", [write("shop.py", MENDED), DONE])
    home = ("--home", tmp_path / "home")
    ran = run(
        "goal", "run", "--workspace", workspace, "--success", "pytest", "--model", model, "--apply", "--json", *home
    )
    assert ran.code == 0, ran.err
    answer = ran.answer
    assert (answer["reached"], answer["applied"], answer["assurance"]) == (True, True, "verifier")
    assert (workspace / "shop.py").read_text() == MENDED
    assert answer["pinned"] == ["tests/test_shop.py"]
    assert answer["assurance_detail"].startswith("All 5 tests pass with the product in another sandbox")
    assert "pinned: tests/test_shop.py" in ran.err
    assert all(Path(answer[name]).is_absolute() for name in ("patch", "trajectory", "summary"))
    (row,) = run("goal", "list", "--json", *home).answer["goals"]
    assert (row["goal_id"], row["state"]) == (answer["goal_id"], "reached")
    assert run("goal", "show", answer["goal_id"], "--json", *home).answer["branch"] == answer["branch"]
    assert run("goal", "cancel", answer["goal_id"], *home).code == 1
    again = run("goal", "resume", answer["goal_id"], "--json", *home)
    assert (again.code, again.answer["attempts"]) == (0, answer["attempts"])


@pytest.mark.slow
def test_an_interrupted_goal_goes_on(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace")
    turns = [
        call("shell", command="echo once >> log.txt"),
        call("shell", command="sleep 3"),
        write("shop.py", MENDED),
        DONE,
    ]
    model, home = script(tmp_path / "turns.jsonl", turns), tmp_path / "home"
    words = ("goal", "run", "--workspace", workspace, "--success", "pytest", "--model", model, "--home", home, "--json")
    begun = subprocess.Popen(
        [sys.executable, GAMETAPE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not any(path.read_bytes().count(b"\n") >= 4 for path in home.glob("goals/*/trajectory.jsonl")):
        assert begun.poll() is None
        time.sleep(0.05)
    os.kill(begun.pid, signal.SIGINT)
    _, said = begun.communicate(timeout=HANG)
    (goal_id,) = [path.name for path in (home / "goals").iterdir()]
    assert f"goal resume {goal_id}" in said.decode()
    assert b"Traceback" not in said
    ran = run("goal", "resume", goal_id, "--home", home, "--json")
    assert ran.code == 0, ran.err
    assert (Path(ran.answer["workspace"]) / "log.txt").read_text() == "once\n"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"--workspace": "nowhere"}, "no such workspace"),
        ({"--success": " "}, "empty"),
        ({"--success": "pytest | tail"}, "wrapped"),
        ({"--model": "scripted:nothing.jsonl"}, "no such script"),
        ({"--python": "no-python"}, "no such interpreter"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    lay(tmp_path / "workspace")
    script(tmp_path / "turns.jsonl", [DONE])
    options = {"--workspace": "workspace", "--success": "pytest", "--model": "scripted:turns.jsonl", "--home": "home"}
    words = [word for option, value in {**options, **changed}.items() for word in (option, value)]
    ran = run("goal", "run", *words, cwd=tmp_path)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "home" / "goals").exists()


def test_feedback_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    steps = [{"step_id": 1, "source": "user", "message": "do"}]
    agent = {"name": "a", "version": "1"}
    path.write_text(json.dumps({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": steps}))
    ran = run("feedback", path, "--kept", "--note", "fine", "--json")
    assert (ran.code, ran.answer["feedback"][0]["kind"]) == (0, "kept")
    assert run("feedback", path, "--kept", "--rejected").code == 2
    assert run("feedback", tmp_path / "none.json", "--kept").code == 2


def test_the_end_says_what_is_missing_and_each_attempt_counts_its_own_turns(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace")
    idle = {"text": "I think.", "tool_calls": []}
    model = script(tmp_path / "turns.jsonl", [call("read", path="shop.py"), DONE, *[idle] * 8])
    words = ("--workspace", workspace, "--success", "pytest", "--model", model, "--attempts", "2")
    ran = run("goal", "run", *words, "--home", tmp_path / "home")
    assert ran.code == 1, ran.err
    heads = [line.partition("  ")[0] for line in ran.err.splitlines() if line.startswith("attempt ")]
    assert heads[:3] == ["attempt 1 of 2, turn 1 of 50", "attempt 1 of 2, turn 2 of 50", "attempt 2 of 2, turn 1 of 50"]
    first, one, missing, two, ended, *_ = ran.out.splitlines()
    assert first == "not reached: all 2 attempts used"
    assert one.startswith("  attempt 1: 1 of 5 passed, ")
    assert missing.startswith("    failing: tests/test_shop.py::test_total[")
    assert missing.endswith(" and 1 more")
    assert two.startswith("  attempt 2: 1 of 5 passed, ")
    assert ended == "    ended early: 8 turns in a row without a call that could be run"
    (summary,) = (tmp_path / "home").glob("goals/*/summary.md")
    assert "Not reached: all 2 attempts used." in summary.read_text()
    assert "2. 1 of 5 passed; ended early: 8 turns in a row without a call" in summary.read_text()
    listed = run("goal", "list", "--home", tmp_path / "home").out
    assert listed.split()[:7] == ["goal", "state", "workspace", "created", "turns", "tokens", "success"]
    assert f"{summary.parent.name}  not reached  workspace" in listed
    assert listed.split()[-3:-2] == ["10"]
    for verb, code in (("show", 0), ("resume", 1), ("cancel", 1)):
        assert run("goal", verb, "last", "--home", tmp_path / "home").code == code
    assert f"{summary.parent.name}: has ended" in run("goal", "cancel", "last", "--home", tmp_path / "home").out
    nothing = run("goal", "show", "last", "--home", tmp_path / "empty")
    assert (nothing.code, "last: there is no goal in" in nothing.err) == (2, True)


def test_paths_of_the_check_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace")
    model = script(tmp_path / "turns.jsonl", [DONE])
    words = (
        "goal",
        "run",
        "--workspace",
        workspace,
        "--success",
        "pytest",
        "--model",
        model,
        "--home",
        tmp_path / "home",
    )
    for option, path in (("--held-out", tmp_path / "none"), ("--pin", "none"), ("--product", "../other")):
        ran = run(*words, option, path)
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        assert option in ran.err
