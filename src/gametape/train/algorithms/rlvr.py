"""Reinforcement learning from verified rewards (arm `rlvr`): the group-relative policy gradient, with the table `[rl]`.

Trajectories of earlier work can be learned from as well (`[reward] recorded_trajectories`): the verifier's reward, and
what people said about the work.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from gametape.agent.recorder import usage_from_steps
from gametape.core.config import RewardConfig, RunConfig
from gametape.core.errors import BadInput
from gametape.core.feedback import add_feedback_reward
from gametape.core.token_segments import split_segments
from gametape.core.trajectory import Trajectory
from gametape.record.trajectory_file import load_trajectory
from gametape.train.algorithms.base import Algorithm
from gametape.train.batch import TrainBatch
from gametape.train.losses import group_advantages
from gametape.train.rollouts import (
    PromptRequest,
    RolloutGroup,
    RolloutResult,
    RolloutSample,
    baseline_members,
    gradient_members,
)


class Rlvr(Algorithm):
    """Rollouts of mixed groups, each with its advantage over the others. Rollouts that may not have a gradient get
    none, and count in the baseline of the others."""

    compares_rollouts = True

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self._recorded: Sequence[RolloutGroup] = ()

    def setup(self, network: nn.Module) -> None:  # noqa: ARG002
        self._recorded = load_recorded_groups(self.config.reward)

    def score_group(self, group: RolloutGroup) -> Mapping[int, float]:
        return rollout_advantages(group, self.config.rl.advantage)

    def build_batch(self, groups: Sequence[RolloutGroup]) -> TrainBatch:
        return super().build_batch([*groups, *self._recorded])


def rollout_advantages(group: RolloutGroup, variant: str) -> dict[int, float]:
    """By rollout, of those that get a gradient: how much better it was than the rest. Only mixed groups have any."""
    if group.kind != "mixed":
        return {}
    counted = baseline_members(group.results)
    rewards_G = torch.tensor([group.results[at].reward for at in counted])
    values = dict(zip(counted, group_advantages(rewards_G, variant).tolist(), strict=True))
    return {at: values[at] for at in gradient_members(group.results)}


def load_recorded_groups(config: RewardConfig) -> tuple[RolloutGroup, ...]:
    """The trajectories below a directory, in groups of one task each; none where no directory is named."""
    if not config.recorded_trajectories:
        return ()
    paths = sorted(Path(config.recorded_trajectories).rglob("*.json"))
    if not paths:
        raise BadInput(f"reward.recorded_trajectories: no trajectory below {config.recorded_trajectories}")
    by_task: dict[str, list[RolloutSample]] = {}
    for path in paths:
        trajectory = load_trajectory(path)
        by_task.setdefault(_task_of(trajectory), []).append(sample_from_trajectory(trajectory, config.feedback_weight))
    return tuple(
        RolloutGroup(PromptRequest(-number, 0, 0), tuple(rollouts))
        for number, rollouts in enumerate(by_task.values(), start=1)
    )


def sample_from_trajectory(trajectory: Trajectory, feedback_weight: float) -> RolloutSample:
    """A rollout as its record has it. One without token ids counts as lost."""
    extra, usage = trajectory.extra or {}, usage_from_steps(trajectory.steps)
    verdict = extra.get("verdict") or {}
    passed = bool(verdict.get("passed", extra.get("outcome") == "passed"))
    reward = float(verdict.get("reward", 1.0 if passed else 0.0))
    segments = tuple(split_segments(trajectory.steps))
    return RolloutSample(
        segments=segments,
        result=RolloutResult(
            reward=add_feedback_reward(reward, extra, feedback_weight),
            passed=passed,
            overlong=extra.get("outcome") == "limit",
            infra_error=not any(any(segment.mask) for segment in segments),
        ),
        turns=usage.turns,
        tokens_read=0,
        tokens_generated=0,
        reason=str(extra.get("reason", "")),
    )


def _task_of(trajectory: Trajectory) -> str:
    extra = trajectory.extra or {}
    return str(extra.get("task_digest") or extra.get("goal_id") or trajectory.trajectory_id)
