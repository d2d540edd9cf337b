"""Alarms of a run: thresholds, behaviour monitors and hints that leak; a restart changes none."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gametape.core.config import RunConfig
from gametape.core.step import Step
from gametape.core.token_segments import TokenSegment
from gametape.record.json_lines import read_lines
from gametape.train.alarm_advice import ArmTraits
from gametape.train.alarms import AlarmMonitor, BehaviourMonitor, Share, TrainingAlarm, TrainingHealth, hint_leaks
from gametape.train.algorithms import make_algorithm
from gametape.train.rollouts import DistillTarget, TurnText, turn_texts

_TRAITS = {
    "warm": {"samples_policy": False, "compares_rollouts": False},
    "sft": {"samples_policy": False, "compares_rollouts": False},
    "rejection": {"compares_rollouts": False},
    "rlvr": {},
    "rlvr_ttf": {"distils_hints": True},
    "rlvr_ttf_gated": {"distils_hints": True, "gates_hints": True},
}


def _traits(arm: str = "rlvr", **settings: Any) -> ArmTraits:
    config = RunConfig.model_validate({"arm": arm, "tasks": "worlds:easy", **settings})
    return ArmTraits.of_algorithm(make_algorithm(config))


def _names(alarms: list[TrainingAlarm]) -> list[str]:
    return [alarm.name for alarm in alarms]


@pytest.mark.parametrize("arm", _TRAITS)
def test_an_arm_is_known_by_its_algorithm(arm: str) -> None:
    traits = _traits(arm)
    assert traits == ArmTraits(traits.config, **_TRAITS[arm])


_SICK = {
    "entropy": TrainingHealth(entropy=0.001),
    "entropy_spike": TrainingHealth(entropy=4.0),
    "kl_to_start": TrainingHealth(kl_to_start=5.0),
    "length": TrainingHealth(length=40.0),
    "mismatch": TrainingHealth(mismatch=0.5),
    "forgotten": TrainingHealth(forgotten=0.2),
    "lost": TrainingHealth(lost=Share(6, 8), lost_reason="no room"),
    "hack_rate": TrainingHealth(hacked=Share(2, 8)),
    "zero_variance": TrainingHealth(without_signal=Share(4, 4), flat_kind="all_fail"),
    "hint_leak": TrainingHealth(hint_leaks=Share(10, 100)),
    "teacher": TrainingHealth(teacher_gain=Share(-1.0, 8)),
    "saturated": TrainingHealth(saturated=True),
}
_FIRST = TrainingHealth(entropy=1.0, length=8.0)
_NEVER_IN = {
    "warm": {"entropy", "length", "hack_rate", "zero_variance", "hint_leak", "saturated"},
    "sft": {"entropy", "length", "hack_rate", "zero_variance", "hint_leak", "saturated"},
    "rejection": {"zero_variance", "hint_leak"},
    "rlvr": {"hint_leak"},
    "rlvr_ttf": set(),
    "rlvr_ttf_gated": set(),
}
_CHANGES = {"entropy", "entropy_spike", "kl_to_start", "length"}
_AT_ONCE = {"mismatch", "forgotten", "saturated"}


@pytest.mark.parametrize("arm", _TRAITS)
@pytest.mark.parametrize("name", _SICK)
def test_each_alarm_waits_for_its_evidence_in_each_arm(name: str, arm: str) -> None:
    """Before the first update, at the first look, at the second, while it lasts, and when it is over."""
    monitor = AlarmMonitor(_traits(arm))
    assert monitor.check_health(_FIRST) == []
    told = {"start": [], "first": [], "second": [], "lasting": []}
    if name in _CHANGES:
        told["start"] = monitor.check_health(_SICK[name])
    sick = replace(_SICK[name], version=1)
    told["first"], told["second"] = monitor.check_health(sick), monitor.check_health(sick)
    told["lasting"] = monitor.check_health(sick) + monitor.check_health(sick)
    wanted = [] if name in _NEVER_IN[arm] else [name]
    when = "first" if name in _AT_ONCE else "second"
    assert {phase: _names(alarms) for phase, alarms in told.items()} == {
        phase: wanted if phase == when else [] for phase in told
    }
    assert monitor.take_over() == []
    for _ in range(21):
        assert monitor.check_health(replace(_FIRST, version=1)) == []
    assert monitor.take_over() == wanted
    assert monitor.take_over() == []


def test_a_start_that_is_unsure_does_not_come_apart() -> None:
    """An untrained policy of many words has a high entropy; only what rises above it is told."""
    monitor = AlarmMonitor(_traits())
    for version in range(4):
        assert monitor.check_health(TrainingHealth(version=version, entropy=4.2)) == []
    assert monitor.check_health(TrainingHealth(version=5, entropy=5.5)) == []
    assert _names(monitor.check_health(TrainingHealth(version=6, entropy=5.5))) == ["entropy_spike"]


def test_a_distance_that_most_updates_do_not_measure_is_told_at_the_second_look() -> None:
    monitor, far = AlarmMonitor(_traits()), _SICK["kl_to_start"]
    for version in range(1, 4):
        assert monitor.check_health(TrainingHealth(version=version)) == []
    assert monitor.check_health(replace(far, version=4)) == []
    for version in range(5, 8):
        assert monitor.check_health(TrainingHealth(version=version)) == []
    assert _names(monitor.check_health(replace(far, version=8))) == ["kl_to_start"]


def test_one_hack_in_few_rollouts_is_no_rate() -> None:
    monitor = AlarmMonitor(_traits())
    assert monitor.check_health(TrainingHealth(hacked=Share(1, 8))) == []
    assert monitor.check_health(TrainingHealth(hacked=Share(0, 8))) == []
    assert monitor.check_health(TrainingHealth(hacked=Share(1, 64))) == []


@pytest.mark.parametrize("arm", _TRAITS)
@pytest.mark.parametrize("name", [*_SICK, "ordinary", "hinted"])
@pytest.mark.parametrize("kind", ["all_fail", "all_pass", ""])
def test_no_advice_contradicts_its_arm(arm: str, name: str, kind: str) -> None:
    advice = _traits(arm).advice(name, kind)
    if _TRAITS[arm].get("distils_hints"):
        assert "rlvr_ttf)" not in advice
    elif name not in ("hint_leak", "teacher"):
        assert "ttf." not in advice
    if arm == "rlvr_ttf_gated":
        assert "rlvr_ttf_gated" not in advice
    if kind == "all_pass":
        assert "easier" not in advice
    if kind == "all_fail" and name == "zero_variance":
        assert "harder" not in advice
        assert "easier" in advice
    assert "clip_high" not in advice


def test_a_control_is_not_told_to_gate_its_hints() -> None:
    assert "ttf.control" in _traits("rlvr_ttf", ttf={"control": "shuffled"}).advice("teacher")
    assert "rlvr_ttf_gated" in _traits("rlvr_ttf").advice("teacher")
    assert "gates.delta" in _traits("rlvr_ttf_gated").advice("teacher")


def _score(episodes: int, **shares: float) -> dict[str, Any]:
    return {"episodes": episodes, "ordinary": None, "hinted": None, **shares}


def test_a_loss_in_few_episodes_is_noise_and_one_that_ends_is_said() -> None:
    few = AlarmMonitor(_traits())
    assert few.check_evaluation(_score(8, ordinary=0.9), _score(8, ordinary=0.95)) == []
    many = AlarmMonitor(_traits())
    first = _score(256, ordinary=0.99)
    assert many.check_evaluation(first, first) == []
    assert _names(many.check_evaluation(_score(256, ordinary=0.9), first)) == ["ordinary"]
    assert many.check_evaluation(_score(256, ordinary=0.9), first) == []
    assert many.check_evaluation(_score(256, ordinary=0.99), first) == []
    assert many.take_over() == ["ordinary"]


def test_a_restart_remembers_the_start_the_evidence_and_what_is_ringing() -> None:
    first = AlarmMonitor(_traits())
    first.check_health(TrainingHealth(length=4.0, hacked=Share(2, 10)))
    first.check_health(TrainingHealth(version=1, length=9.0))
    first.filter_new([TrainingAlarm("watch: phrase", 2e5, 1e5, "look")])
    again = AlarmMonitor(_traits())
    again.restore(json.loads(json.dumps(first.state())))
    assert again.filter_new([TrainingAlarm("watch: phrase", 3e5, 1e5, "look")]) == []
    told = again.check_health(TrainingHealth(version=2, length=9.0, hacked=Share(1, 10)))
    assert _names(told) == ["length", "hack_rate"]


def test_a_checkpoint_from_before_evidence_was_counted_still_loads() -> None:
    monitor = AlarmMonitor(_traits())
    monitor.restore({"length": 4.0, "ringing": {"mismatch": 3}})
    assert monitor.check_health(TrainingHealth(version=1, mismatch=1.0)) == []


def test_what_is_forgotten_is_told_once() -> None:
    alarms = AlarmMonitor(_traits())
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


def test_a_start_that_repeats_itself_is_no_alarm_about_training(tmp_path: Path) -> None:
    """Nothing was learned yet: a loop there is what later turns are compared with."""
    behaviour = BehaviourMonitor(tmp_path / "behaviour.jsonl")
    behaviour.trained = False
    assert behaviour.observe(0, [_stuck(40)]) == []
    assert behaviour.observe(1, [_stuck(400)]) == []
    assert behaviour.rung is None
    again = BehaviourMonitor(tmp_path / "behaviour.jsonl", behaviour.sync())
    assert again.rung is None


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
    assert hint_leaks([segment([1, 11, 12, 13, 14], [1, 2]), segment([3], [10, 11, 12, 13])], [HINT]) == Share(2, 4)


def test_what_was_only_read_is_no_leak() -> None:
    assert hint_leaks([segment([1, 2, 3, 4, 5])], [HINT]) == Share(0, 1)


def test_shorter_runs_are_no_leak_and_neither_are_runs_over_two_turns() -> None:
    split = TokenSegment([10, 11, 12, 13], [1, 1, 1, 1], [0.0] * 4, [0] * 4, [1, 1, 2, 2])
    assert hint_leaks([segment([10, 11, 12]), split], [HINT]) == Share(0, 3)


def test_without_hints_or_turns_nothing_is_known() -> None:
    assert hint_leaks([segment([1])], []) == Share()
    assert hint_leaks([], [HINT]) == Share()
