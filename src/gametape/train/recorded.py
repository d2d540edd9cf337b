"""Finished trajectories as groups to learn from: the verifier's reward, and what people then did with the work."""

from pathlib import Path

from gametape.agent.recording import spent_in
from gametape.core.config import RewardConfig
from gametape.core.errors import BadInput
from gametape.core.feedback import with_feedback
from gametape.core.segments import segments
from gametape.core.trajectory import Trajectory
from gametape.record.files import load
from gametape.train.rolled import Draw, Group, Rolled
from gametape.train.selection import Result


def recorded_groups(config: RewardConfig) -> tuple[Group, ...]:
    """Those below a directory, in groups of one task each; none where no directory is named."""
    if not config.recorded:
        return ()
    paths = sorted(Path(config.recorded).rglob("*.json"))
    if not paths:
        raise BadInput(f"reward.recorded: no trajectory below {config.recorded}")
    families: dict[str, list[Rolled]] = {}
    for path in paths:
        trajectory = load(path)
        families.setdefault(_task_of(trajectory), []).append(recorded(trajectory, config.feedback_weight))
    return tuple(
        Group(Draw(-number, 0, 0), tuple(rollouts)) for number, rollouts in enumerate(families.values(), start=1)
    )


def recorded(trajectory: Trajectory, feedback_weight: float) -> Rolled:
    """A rollout as it stands in its record. One without token ids is lost for learning."""
    extra, spent = trajectory.extra or {}, spent_in(trajectory.steps)
    verdict = extra.get("verdict") or {}
    passed = bool(verdict.get("passed", extra.get("outcome") == "passed"))
    reward = float(verdict.get("reward", 1.0 if passed else 0.0))
    lines = tuple(segments(trajectory.steps))
    return Rolled(
        segments=lines,
        result=Result(
            reward=with_feedback(reward, extra, feedback_weight),
            passed=passed,
            overlong=extra.get("outcome") == "limit",
            lost=not any(any(line.mask) for line in lines),
        ),
        turns=spent.turns,
        read=0,
        generated=0,
        reason=str(extra.get("reason", "")),
    )


def _task_of(trajectory: Trajectory) -> str:
    extra = trajectory.extra or {}
    return str(extra.get("task_digest") or extra.get("goal_id") or trajectory.trajectory_id)
