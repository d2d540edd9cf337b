"""Earlier work as groups to learn from: trajectories with people's feedback on them.

It is off-policy, and there is little of it. So each group is compared with the policy that did the work (see
`references`), used a few times and then no more, and left alone once the policy has changed for long.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from gametape.agent.limits import is_overlong
from gametape.agent.recorded_steps import usage_from_steps
from gametape.core.config import RewardConfig
from gametape.core.errors import BadInput
from gametape.core.feedback import add_feedback_reward
from gametape.core.seeds import seed_for
from gametape.core.token_segments import split_segments
from gametape.core.trajectory import Trajectory
from gametape.record.trajectory_file import load_trajectory
from gametape.train.rollouts import PromptRequest, RolloutGroup, RolloutResult, RolloutSample


class RecordedGroups:
    """Hands out some groups for each update, those that were used least first."""

    def __init__(self, config: RewardConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._groups: Sequence[RolloutGroup] = ()
        self._uses: dict[str, int] = {}
        """By the number of a group."""
        self._updates = 0

    def load(self) -> None:
        """Read the directory that the configuration names, where it names one."""
        self._groups = load_recorded_groups(self._config)

    def next_groups(self) -> Sequence[RolloutGroup]:
        """The groups of the next update, which count as used with it."""
        number, config = self._updates, self._config
        self._updates += 1
        if number >= config.recorded_max_age:
            return ()
        left = [group for group in self._groups if group.kind == "mixed" and self._used(group) < config.recorded_uses]
        Random(seed_for(self._seed, "recorded", number)).shuffle(left)
        drawn = sorted(left, key=self._used)[: config.recorded_per_update]
        for group in drawn:
            self._uses[str(group.request.number)] = self._used(group) + 1
        return drawn

    def state(self) -> dict[str, Any]:
        return {"uses": self._uses, "updates": self._updates}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._uses, self._updates = dict(state.get("uses", {})), state.get("updates", 0)

    def _used(self, group: RolloutGroup) -> int:
        return self._uses.get(str(group.request.number), 0)


def load_recorded_groups(config: RewardConfig) -> tuple[RolloutGroup, ...]:
    """The trajectories below a directory, in groups of one task each; none where no directory is named. They are
    numbered from -1 downwards: requests of a run count from 0."""
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
    """A rollout as its record has it. One without token ids, or without the log-probabilities of its sampler, counts as
    lost: there is nothing to compare the policy with."""
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
            overlong=bool(usage.calls) and is_overlong(extra.get("outcome"), str(extra.get("reason", ""))),
            infra_error=not (segments and _has_logprobs(trajectory)),
        ),
        turns=usage.turns,
        tokens_read=0,
        tokens_generated=0,
        reason=str(extra.get("reason", "")),
    )


def _has_logprobs(trajectory: Trajectory) -> bool:
    turns = (turn for step in trajectory.steps if not step.is_copied_context and (turn := step.tokens()))
    return all(turn.logprobs for turn in turns if any(turn.loss_mask or ()))


def _task_of(trajectory: Trajectory) -> str:
    extra = trajectory.extra or {}
    return str(extra.get("task_digest") or extra.get("goal_id") or trajectory.trajectory_id)
