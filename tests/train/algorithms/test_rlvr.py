"""People's word in the reward of recorded work."""

import copy
import json
from collections import Counter
from pathlib import Path

import pytest
import torch

from gametape.core.config import OptimConfig, RewardConfig, RLConfig, RunConfig, TinyConfig
from gametape.core.errors import BadInput
from gametape.core.feedback import add_feedback_reward
from gametape.core.token_segments import TokenSegment
from gametape.core.trajectory import Trajectory
from gametape.train.algorithms.rlvr import Rlvr, rollout_advantages
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.learner import LocalLearner
from gametape.train.policy import create_tiny_policy, load_policy
from gametape.train.recorded_groups import RecordedGroups, load_recorded_groups, sample_from_trajectory

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


def test_recorded_work_without_a_call_was_not_cut_short() -> None:
    idle = _trajectory("t")
    idle["extra"] |= {"outcome": "limit", "reason": "50 turns"}  # type: ignore[operator]
    busy = copy.deepcopy(idle)
    busy["steps"][1]["tool_calls"] = [{"tool_call_id": "1", "function_name": "read", "arguments": {}}]  # type: ignore[index]
    both = [sample_from_trajectory(Trajectory.model_validate(record), 0.0).result.overlong for record in (idle, busy)]
    assert both == [False, True]


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


def _written(place: Path, tasks: int) -> RewardConfig:
    for task in range(tasks):
        for name, kind in (("a", "accepted"), ("b", "rejected")):
            document = _trajectory(f"{task}{name}", kind)
            document["extra"]["task_digest"] = str(task)  # type: ignore[index]
            (place / f"{task}{name}.json").write_text(json.dumps(document))
    return RewardConfig(
        recorded_trajectories=str(place),
        feedback_weight=_WEIGHT,
        recorded_per_update=2,
        recorded_uses=3,
        recorded_max_age=5,
    )


def test_recorded_work_is_used_a_few_times_and_not_for_ever(tmp_path: Path) -> None:
    config = _written(tmp_path, tasks=3)
    recorded = RecordedGroups(config, seed=1)
    recorded.load()
    drawn = [[group.request.number for group in recorded.next_groups()] for _ in range(3)]
    resumed = RecordedGroups(config, seed=1)
    resumed.load()
    resumed.restore(json.loads(json.dumps(recorded.state())))
    later = [[group.request.number for group in resumed.next_groups()] for _ in range(4)]
    assert [len(numbers) for numbers in [*drawn, *later]] == [2, 2, 2, 2, 1, 0, 0]
    uses = Counter(number for numbers in [*drawn, *later] for number in numbers)
    assert set(uses) == {-1, -2, -3}
    assert max(uses.values()) == 3
    few = RecordedGroups(config.model_copy(update={"recorded_max_age": 2}), seed=1)
    few.load()
    assert [len(few.next_groups()) for _ in range(4)] == [2, 2, 0, 0]


def test_recorded_work_is_marked_in_the_batch(tmp_path: Path) -> None:
    algorithm = Rlvr(RunConfig(arm="rlvr", tasks="worlds:easy", reward=_written(tmp_path, tasks=1)))
    algorithm.setup(None)  # which this algorithm does not look at
    batch = algorithm.build_batch([])
    assert [(sample.recorded, sample.prompt_number, sample.rollout_index) for sample in batch.samples] == [
        (True, -1, 0),
        (True, -1, 1),
    ]
    assert (batch.rollouts, batch.tokens) == (2, 4)


def test_work_without_log_probabilities_counts_as_lost() -> None:
    document = _trajectory("t", "kept")
    assert not sample_from_trajectory(Trajectory.model_validate(document), _WEIGHT).result.infra_error
    del document["steps"][1]["metrics"]["logprobs"]  # type: ignore[index]
    assert sample_from_trajectory(Trajectory.model_validate(document), _WEIGHT).result.infra_error


def test_bad_work_that_is_learned_from_again_and_again_falls_no_further_than_clipping_allows(tmp_path: Path) -> None:
    """After 40 updates that all learn from it there is no gradient left."""
    place = tmp_path / "tiny"
    create_tiny_policy(place, TinyConfig(layers=2, width=32, heads=2, window=64), seed=2)
    policy = load_policy(place)
    ids = torch.randint(0, 150, (24,), generator=torch.Generator().manual_seed(1)).tolist()
    mask = [0] * 8 + [1] * 16
    config = RunConfig(
        arm="rlvr",
        tasks="worlds:easy",
        optim=OptimConfig(learning_rate=1e-4),
        rl=RLConfig(normalizer_tokens=16),
    )
    learner = LocalLearner(policy, config)
    unsampled = TrainSample(TokenSegment(ids, mask, [0.0] * 24, [-1] * 24, mask), 0)
    (before,) = learner.score([unsampled])
    logged = [0.0] * 8 + before.tolist()
    bad = TrainSample(TokenSegment(ids, mask, logged, [-1] * 24, mask), 0, advantage=-1.0, recorded=True)
    updates = [learner.update(TrainBatch((bad,), rollouts=1), step, 0) for step in range(40)]
    (after,) = learner.score([unsampled])
    assert updates[0].gradient
    assert updates[-1].gradient == 0.0
    assert updates[-1].ratio == pytest.approx({**(updates[-1].ratio or {}), "clipped": 1.0})
    assert 0.2 < float((before - after).mean()) < 0.6
