"""Alarms of a run: thresholds, behaviour monitors and hints that leak; a restart changes none."""

from pathlib import Path
from typing import Any

from gametape.core.config import AlarmConfig
from gametape.core.step import Step
from gametape.core.token_segments import TokenSegment
from gametape.record.json_lines import read_lines
from gametape.train.alarms import AlarmMonitor, BehaviourMonitor, TrainingAlarm, TrainingHealth, hint_leak_rate
from gametape.train.rollouts import DistillTarget, TurnText, turn_texts


def _names(alarms: list[TrainingAlarm]) -> list[str]:
    return [alarm.name for alarm in alarms]


def test_a_restart_remembers_the_start_and_what_is_ringing() -> None:
    first = AlarmMonitor(AlarmConfig())
    first.check_health(TrainingHealth(length=4.0))
    first.filter_new([TrainingAlarm("watch: phrase", 2e5, 1e5, "look")])
    again = AlarmMonitor(AlarmConfig())
    again.restore(first.state())
    assert again.filter_new([TrainingAlarm("watch: phrase", 3e5, 1e5, "look")]) == []
    assert _names(again.check_health(TrainingHealth(length=9.0))) == ["length"]


def test_hints_that_come_back_and_teachers_that_know_no_better_are_told() -> None:
    alarms = AlarmMonitor(AlarmConfig())
    assert _names(alarms.check_health(TrainingHealth(hint_leak=0.005, teacher_gain=0.5))) == []
    assert _names(alarms.check_health(TrainingHealth(hint_leak=0.02, teacher_gain=-0.1))) == ["teacher", "hint_leak"]


def test_what_is_forgotten_is_told_once() -> None:
    alarms = AlarmMonitor(AlarmConfig())
    assert _names(alarms.check_health(TrainingHealth(forgotten=0.005))) == []
    assert _names(alarms.check_health(TrainingHealth(forgotten=0.04))) == ["forgotten"]
    assert _names(alarms.check_health(TrainingHealth(forgotten=0.2))) == []


def _healthy(count: int) -> list[TurnText]:
    return [
        {"text": f"Turn {at}", "tool_calls": [{"name": ("write", "delete", "read")[at % 3], "arguments": f"f{at}"}]}
        for at in range(count)
    ]


def _stuck(count: int) -> list[TurnText]:
    return [{"text": "", "tool_calls": [{"name": "write", "arguments": "f1"}], "result": "ok"}] * count


def _alarms(behaviour: BehaviourMonitor, updates: list[list[TurnText]], first: int = 1) -> list[tuple[int, str, float]]:
    looked = [(number, behaviour.observe(number, [turns])) for number, turns in enumerate(updates, start=first)]
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
    tools = [line["tool_calls"][0]["name"] for line in read_lines(tmp_path / "behaviour.jsonl")]
    assert tools[:9] == [*(f"tool{task}" for task in range(8)), "tool0"]


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
    (text,) = turn_texts(steps)
    assert text["text"].startswith("I write.")
    assert text["tool_calls"][0]["name"] == "write"
    assert len(text["text"]) + len(text["tool_calls"][0]["arguments"]) + len(text["result"]) == 6000


HINT = DistillTarget(0, 1, 0, hint_ids=(10, 11, 12, 13, 14))


def segment(*turns: list[int]) -> TokenSegment:
    ids, mask, steps = [], [], []
    for number, turn in enumerate(turns, start=1):
        ids += [10, 11, 12, 13, 14, *turn]
        mask += [0] * 5 + [1] * len(turn)
        steps += [number] * (5 + len(turn))
    return TokenSegment(ids, mask, [0.0] * len(ids), [0] * len(ids), steps)


def test_a_turn_that_repeats_the_hint_is_counted() -> None:
    assert hint_leak_rate([segment([1, 11, 12, 13, 14], [1, 2]), segment([3], [10, 11, 12, 13])], [HINT]) == 0.5


def test_what_was_only_read_is_no_leak() -> None:
    assert hint_leak_rate([segment([1, 2, 3, 4, 5])], [HINT]) == 0.0


def test_shorter_runs_are_no_leak_and_neither_are_runs_over_two_turns() -> None:
    split = TokenSegment([10, 11, 12, 13], [1, 1, 1, 1], [0.0] * 4, [0] * 4, [1, 1, 2, 2])
    assert hint_leak_rate([segment([10, 11, 12]), split], [HINT]) == 0.0


def test_without_hints_or_turns_nothing_is_known() -> None:
    assert hint_leak_rate([segment([1])], []) is None
    assert hint_leak_rate([], [HINT]) is None
