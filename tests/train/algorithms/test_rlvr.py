"""People's word in the reward of recorded work."""

import json
from pathlib import Path

import pytest

from gametape.core.config import RewardConfig
from gametape.core.errors import BadInput
from gametape.core.feedback import add_feedback_reward
from gametape.core.trajectory import Trajectory
from gametape.train.algorithms.rlvr import load_recorded_groups, rollout_advantages, sample_from_trajectory

_WEIGHT = 0.25


def _trajectory(name: str, *kinds: str, reward: float = 0.5) -> dict[str, object]:
    feedback = [{"kind": kind, "time": "2026-11-15T10:00:00+00:00"} for kind in kinds]
    turn = {"prompt_token_ids": [1, 2], "completion_token_ids": [3, 4], "logprobs": [-0.5, -0.1]}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": name,
        "trajectory_id": name,
        "agent": {"name": "gametape", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "do it"},
            {
                "step_id": 2,
                "source": "agent",
                "message": "done",
                "metrics": turn,
                "extra": {"gametape": {"loss_mask": [1, 1], "policy_versions": [0, 0]}},
            },
        ],
        "extra": {"task_digest": "one", "outcome": "failed", "verdict": {"reward": reward}, "feedback": feedback},
    }


def test_a_kept_trajectory_is_worth_more_than_a_reverted_one_by_the_weight() -> None:
    kept, silent, reverted = (
        sample_from_trajectory(Trajectory.model_validate(_trajectory("t", *kinds)), _WEIGHT).result.reward
        for kinds in (("kept",), (), ("reverted",))
    )
    assert (kept, silent, reverted) == (0.5 + _WEIGHT, 0.5, 0.5 - _WEIGHT)


def test_several_words_are_averaged_and_nothing_makes_up_for_a_proven_hack() -> None:
    document = {"feedback": [{"kind": "survived", "time": "t", "share": 0.75}, {"kind": "rejected", "time": "t"}]}
    assert add_feedback_reward(0.5, document, 1.0) == 0.25
    assert add_feedback_reward(-1.0, {"feedback": [{"kind": "kept", "time": "t"}]}, 1.0) == -1.0
    assert add_feedback_reward(0.9, {"feedback": [{"kind": "kept", "time": "t"}]}, 1.0) == 1.0


def test_recorded_work_on_one_task_is_a_group_that_feedback_alone_can_tell_apart(tmp_path: Path) -> None:
    for name, kind in (("a", "accepted"), ("b", "rejected")):
        (tmp_path / f"{name}.json").write_text(json.dumps(_trajectory(name, kind)))
    (group,) = load_recorded_groups(RewardConfig(recorded_trajectories=str(tmp_path), feedback_weight=_WEIGHT))
    assert rollout_advantages(group, "loo") == {0: pytest.approx(2 * _WEIGHT), 1: pytest.approx(-2 * _WEIGHT)}
    (without,) = load_recorded_groups(RewardConfig(recorded_trajectories=str(tmp_path)))
    assert rollout_advantages(without, "loo") == {}
    assert load_recorded_groups(RewardConfig()) == ()
    with pytest.raises(BadInput):
        load_recorded_groups(RewardConfig(recorded_trajectories=str(tmp_path / "nothing")))
