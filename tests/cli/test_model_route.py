"""The router by name: `--model LOCAL,FRONTIER`, with two scripted models."""

import json
from pathlib import Path

import pytest

from gametape.record.model_outcomes import measure_odds
from tests.cli.command import Ran, run
from tests.desk.goals.shop import BY_EXIT_CODE, DONE, MENDED, call, lay, script, write

pytestmark = pytest.mark.usefixtures("tasks_prepared_once")


@pytest.fixture
def local(tmp_path: Path) -> str:
    """Calls its work done without any."""
    return script(tmp_path / "local.jsonl", [call("shell", command="echo hello > note.txt"), DONE])


@pytest.fixture
def frontier(tmp_path: Path) -> str:
    return script(tmp_path / "frontier.jsonl", [write("shop.py", MENDED), DONE])


def reach(tmp_path: Path, model: str, *words: str) -> Ran:
    workspace = lay(tmp_path / "workspace")
    goal = ("goal", "run", "--workspace", workspace, "--success", BY_EXIT_CODE, "--model", model, "--json")
    return run(*goal, "--home", tmp_path / "home", *words)


def test_the_frontier_model_takes_over_after_a_failed_attempt(tmp_path: Path, local: str, frontier: str) -> None:
    ran = reach(tmp_path, f"{local},{frontier}")
    assert ran.code == 0, ran.err
    answer = ran.answer
    assert answer["reached"]
    assert len(answer["attempts"]) == 2
    first, second = answer["models"]
    assert (first["name"], second["name"]) == (local, frontier)
    assert "odds of" in first["why"]
    assert "0.50" in first["why"]
    assert second["why"] == "escalated: attempt 1 did not reach the goal"
    (escalation,) = answer["escalations"]
    steps = json.loads(Path(answer["trajectory"]).read_text())["steps"]
    handed_over = steps[escalation["step"] - 1]
    assert "Another agent has worked on this" in handed_over["message"]
    assert "You are done when this command succeeds" in handed_over["message"]
    home = tmp_path / "home"
    assert (measure_odds(home, local).passed, measure_odds(home, local).attempts) == (0, 1)
    assert (measure_odds(home, frontier).passed, measure_odds(home, frontier).attempts) == (1, 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LOCAL,", "a route is two models"),
        (",LOCAL", "a route is two models"),
        ("LOCAL,smollm2,smollm2", "a route is two models"),
        ("LOCAL,LOCAL", "twice"),
        ("LOCAL,scripted:none.jsonl", "no such script"),
        ("LOCAL,openai:m@ftp://x", "expected a URL"),
    ],
)
def test_a_route_that_cannot_be_meant_is_one_line(tmp_path: Path, local: str, name: str, said: str) -> None:
    ran = reach(tmp_path, name.replace("LOCAL", local))
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_loop_in_an_attempt_hands_the_work_over(tmp_path: Path) -> None:
    """The breaker's stronger rungs begin a fresh context, and the frontier model has it."""
    task = Path(__file__).parents[2] / "examples" / "tasks" / "slugs"
    looping = script(tmp_path / "loop.jsonl", [call("shell", command="ls")] * 400)
    words = ("solve", task, "--model", f"{looping},scripted:expert", "--out", tmp_path / "out", "--max-turns", "400")
    ran = run(*words, "--home", tmp_path / "home", "--json")
    assert ran.code == 0, ran.err
    assert [model["name"] for model in ran.answer["models"]] == [looping, "scripted:expert"]
    assert ran.answer["escalations"]
    assert measure_odds(tmp_path / "home", looping).attempts == 1
    assert measure_odds(tmp_path / "home", "scripted:expert").passed == 1
