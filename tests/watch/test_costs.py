"""Every cent is counted once in each view."""

from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.core.trajectory import Trajectory
from gametape.watch.costs import NO_HINT, NO_TOOL, cost_report


def _turn(number: int, cost: float, tools: list[str], cpu: float, **more: Any) -> dict[str, Any]:
    calls = [
        {"tool_call_id": f"{number}-{at}", "function_name": tool, "arguments": {}} for at, tool in enumerate(tools)
    ]
    return {
        "step_id": number,
        "source": "agent",
        "message": "",
        "tool_calls": calls,
        "metrics": {"cost_usd": cost, "prompt_tokens": 90, "completion_tokens": 10},
        "extra": {"gametape": {"cpu_seconds": cpu}},
        **more,
    }


def _attempt(outcome: str | None, steps: list[dict[str, Any]], **more: Any) -> Trajectory:
    extra = {"task": "t1", **({"outcome": outcome} if outcome else {}), **more.pop("extra", {})}
    agent = {"name": "a", "version": "1", "model_name": "small"}
    document = {"schema_version": "ATIF-v1.7", "agent": agent, "steps": steps, "extra": extra, **more}
    return Trajectory.model_validate(document)


PASSED = _attempt("passed", [_turn(1, 1.0, ["read", "edit"], 2.0), _turn(2, 1.0, [], 5.0, model_name="large")])
FAILED = _attempt("failed", [_turn(1, 6.0, ["read"], 3.0)], extra={"task": "t2", "hint": "types"})
RUNNING = _attempt(None, [_turn(1, 50.0, ["read"], 1.0)])


def test_what_success_costs_and_what_failure_takes() -> None:
    found = cost_report([PASSED, FAILED, RUNNING]).to_dict()
    assert (found["attempts"], found["passed"], found["unfinished"]) == (2, 1, 1)
    assert (found["cost_usd"], found["cost_per_attempt"], found["cost_per_success"]) == (8.0, 4.0, 8.0)
    assert found["failed_share"] == 0.75
    assert found["cpu_seconds"] == 8.0
    assert found["tokens"] == 300


@pytest.mark.parametrize("key", ["model", "task", "tool", "hint"])
def test_every_view_adds_up(key: str) -> None:
    found = cost_report([PASSED, FAILED]).to_dict()
    assert sum(account["cost_usd"] for account in found["by"][key].values()) == pytest.approx(found["cost_usd"])
    assert sum(account["cpu_seconds"] for account in found["by"][key].values()) == pytest.approx(found["cpu_seconds"])


def test_a_turn_falls_on_its_tools_in_equal_parts() -> None:
    by = cost_report([PASSED, FAILED]).to_dict()["by"]
    assert {tool: account["cost_usd"] for tool, account in by["tool"].items()} == {
        NO_TOOL: 1.0,
        "edit": 0.5,
        "read": 6.5,
    }
    assert by["model"]["large"]["cpu_seconds"] == 3.0
    assert by["hint"]["types"]["cost_per_success"] is None
    assert by["hint"][NO_HINT]["passed"] == 1


def test_the_price_of_cpu_time_and_what_subagents_take() -> None:
    sub = _attempt(None, [_turn(1, 2.0, [], 4.0)], trajectory_id="sub").model_dump()
    whole = _attempt("passed", [_turn(1, 1.0, [], 2.0)], subagent_trajectories=[sub])
    found = cost_report([whole], cpu_hour_usd=3600.0).to_dict()
    assert found["cost_usd"] == pytest.approx(3.0 + 6.0)


def test_nothing_costs_nothing() -> None:
    assert cost_report([]).to_dict()["cost_per_attempt"] is None
    free = cost_report([_attempt("failed", [_turn(1, 0.0, [], 0.0)])]).to_dict()
    assert (free["failed_share"], free["failed_share_of_tokens"], free["cost_per_success"]) == (None, 1.0, None)


@pytest.mark.parametrize("cost", [-5.0, 1.7e308])
def test_what_no_turn_can_cost_is_refused(cost: float) -> None:
    with pytest.raises(BadInput, match=r"session 7: step 1: metrics\.cost_usd"):
        cost_report([PASSED, _attempt("passed", [_turn(1, cost, [], 0.0)], session_id="session 7")])


def test_seconds_that_cannot_be_are_as_if_not_told() -> None:
    steps = [_turn(1, 1.0, [], 1e308), _turn(2, 1.0, [], 3.0)]
    assert cost_report([_attempt("passed", steps)], 1e6).to_dict()["cpu_seconds"] == 3.0
