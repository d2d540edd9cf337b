"""Finished trajectories as groups to learn from: the verifier's reward, and what people then did with the work."""

from pathlib import Path

from gametape.agent.recorder import usage_from_steps
from gametape.core.config import RewardConfig
from gametape.core.errors import BadInput
from gametape.core.feedback import add_feedback_reward
from gametape.core.token_segments import split_segments
from gametape.core.trajectory import Trajectory
from gametape.record.trajectory_file import load_trajectory
from gametape.train.rollouts import PromptRequest, RolloutGroup, RolloutResult, RolloutSample


def load_recorded_groups(config: RewardConfig) -> tuple[RolloutGroup, ...]:
    """Those below a directory, in groups of one task each; none where no directory is named."""
    if not config.recorded_trajectories:
        return ()
    paths = sorted(Path(config.recorded_trajectories).rglob("*.json"))
    if not paths:
        raise BadInput(f"reward.recorded: no trajectory below {config.recorded_trajectories}")
    families: dict[str, list[RolloutSample]] = {}
    for path in paths:
        trajectory = load_trajectory(path)
        families.setdefault(_task_of(trajectory), []).append(sample_from_trajectory(trajectory, config.feedback_weight))
    return tuple(
        RolloutGroup(PromptRequest(-number, 0, 0), tuple(rollouts))
        for number, rollouts in enumerate(families.values(), start=1)
    )


def sample_from_trajectory(trajectory: Trajectory, feedback_weight: float) -> RolloutSample:
    """A rollout as it stands in its record. One without token ids is lost for learning."""
    extra, spent = trajectory.extra or {}, usage_from_steps(trajectory.steps)
    verdict = extra.get("verdict") or {}
    passed = bool(verdict.get("passed", extra.get("outcome") == "passed"))
    reward = float(verdict.get("reward", 1.0 if passed else 0.0))
    lines = tuple(split_segments(trajectory.steps))
    return RolloutSample(
        segments=lines,
        result=RolloutResult(
            reward=add_feedback_reward(reward, extra, feedback_weight),
            passed=passed,
            overlong=extra.get("outcome") == "limit",
            infra_error=not any(any(line.mask) for line in lines),
        ),
        turns=spent.turns,
        tokens_read=0,
        tokens_generated=0,
        reason=str(extra.get("reason", "")),
    )


def _task_of(trajectory: Trajectory) -> str:
    extra = trajectory.extra or {}
    return str(extra.get("task_digest") or extra.get("goal_id") or trajectory.trajectory_id)
