"""A trainer's watch: what it saw is on disk, its alarms are among the run's, and a restart changes neither."""

from pathlib import Path
from typing import Any

from gametape.core.step import Step
from gametape.record.json_lines import read_lines
from gametape.train.alarms import BehaviourMonitor
from gametape.train.rollouts import TurnText, turn_texts


def _healthy(count: int) -> list[TurnText]:
    return [
        {"text": f"Turn {at}", "tool_calls": [{"name": ("write", "delete", "read")[at % 3], "arguments": f"f{at}"}]}
        for at in range(count)
    ]


def _stuck(count: int) -> list[TurnText]:
    return [{"text": "", "tool_calls": [{"name": "write", "arguments": "f1"}], "result": "ok"}] * count


def _alarms(behaviour: BehaviourMonitor, updates: list[list[TurnText]], first: int = 1) -> list[tuple[int, str, float]]:
    looked = [(number, behaviour.observe(number, [said])) for number, said in enumerate(updates, start=first)]
    return [(number, alarm.name, alarm.value) for number, alarms in looked for alarm in alarms]


def test_a_policy_that_gets_stuck_is_told_of_with_its_evidence(tmp_path: Path) -> None:
    behaviour = BehaviourMonitor(tmp_path / "behaviour.jsonl")
    assert behaviour.observe(1, [_healthy(300)]) == []
    assert behaviour.rung is None
    alarms = behaviour.observe(2, [_stuck(40)])
    assert alarms
    assert alarms[0].name.startswith("watch: ")
    assert alarms[0].value >= alarms[0].limit
    assert "f1" in alarms[0].advice or "write" in alarms[0].advice
    behaviour.observe(3, [_stuck(200)])
    assert behaviour.rung == "stop"
    assert [line["step"] for line in read_lines(tmp_path / "behaviour.jsonl")] == [1] * 300 + [2] * 40 + [3] * 200


def test_a_restart_forgets_what_the_checkpoint_did_not_know_and_alarms_as_before(tmp_path: Path) -> None:
    updates = [_healthy(220), _stuck(8), _stuck(8), _stuck(60)]
    whole = _alarms(BehaviourMonitor(tmp_path / "whole.jsonl"), updates)
    assert whole
    path = tmp_path / "behaviour.jsonl"
    first = BehaviourMonitor(path)
    begun = _alarms(first, updates[:2])
    size = first.sync()
    first.observe(3, [_stuck(100)])
    first.close()
    again = BehaviourMonitor(path, size)
    assert begun + _alarms(again, updates[2:], first=3) == whole
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_rollouts_at_different_tasks_are_looked_at_side_by_side(tmp_path: Path) -> None:
    """Each task wants one tool: one after the other they would look like a new habit each."""
    rollouts: list[list[TurnText]] = [
        [{"text": "", "tool_calls": [{"name": f"tool{task}", "arguments": f"{turn}"}]} for turn in range(60)]
        for task in range(12)
    ]
    behaviour = BehaviourMonitor(tmp_path / "behaviour.jsonl")
    assert behaviour.observe(0, rollouts[:8]) == []
    assert behaviour.observe(1, rollouts[4:]) == []
    told = [line["tool_calls"][0]["name"] for line in read_lines(tmp_path / "behaviour.jsonl")]
    assert told[:9] == [*(f"tool{task}" for task in range(8)), "tool0"]


def test_turns_are_kept_in_words_and_within_bounds() -> None:
    call = {"tool_call_id": "a", "function_name": "write", "arguments": {"path": "x" * 9000}}
    document: dict[str, Any] = {
        "step_id": 2,
        "source": "agent",
        "message": "I write." + "y" * 9000,
        "tool_calls": [call],
        "observation": {"results": [{"source_call_id": "a", "content": "z" * 9000}]},
    }
    steps = [Step.model_validate({"step_id": 1, "source": "user", "message": "Do it."}), Step.model_validate(document)]
    (said,) = turn_texts(steps)
    assert said["text"].startswith("I write.")
    assert said["tool_calls"][0]["name"] == "write"
    assert len(said["text"]) + len(said["tool_calls"][0]["arguments"]) + len(said["result"]) == 6000
