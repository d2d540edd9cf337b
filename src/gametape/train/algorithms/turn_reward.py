"""The error flag as a reward of the turn (arm `rlvr_turn_reward`): where the coach finds that a turn went wrong, that
turn gets -1, compared with the same turn of the other rollouts, beside the reward of the whole. No hint is read: it is
what a coach's *where* is worth without its *what*. `[algorithm] weight` is the factor of a turn's reward.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.core.config_section import ConfigSection, Positive
from gametape.core.hint import Hint
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.engines.token_conversation import TokenModel
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.batch import TrainSample
from gametape.train.coach_annotator import CoachAnnotator
from gametape.train.losses import group_advantages
from gametape.train.rollouts import DistillTarget, GroupAnnotator, RolloutGroup, distill_target_at, gradient_members


class TurnRewardSettings(ConfigSection):
    """The table `[algorithm]` of the arm."""

    weight: Positive = 1.0
    """The factor of a turn's reward, beside that of the whole rollout."""


class TurnReward(Rlvr):
    """Verified rewards, and those of turns."""

    Settings: ClassVar[type[ConfigSection]] = TurnRewardSettings

    def make_annotator(self, model: TokenModel, limits: RolloutLimits) -> GroupAnnotator:
        return FlagAnnotator(self.config, model, limits, False, self.score_group)

    def rewarded_sample(self, group: RolloutGroup, index: int, segment: TokenSegment, advantage: float) -> TrainSample:
        """A turn's advantage is that of the rollout, or of its part of the work, and its own on top."""
        sample = super().rewarded_sample(group, index, segment, advantage)
        own = turn_advantages(group, self.config.ttf.annotated_per_group, self.config.rl.advantage).get(index, {})
        if not own or index not in gradient_members(group.results):
            return sample
        assert isinstance(self.settings, TurnRewardSettings)
        by_step = dict(sample.step_advantages)
        for step, value in own.items():
            by_step[step] = by_step.get(step, sample.advantage) + self.settings.weight * value
        return replace(sample, step_advantages=tuple(by_step.items()))


def turn_advantages(group: RolloutGroup, annotated: int, variant: str) -> Mapping[int, Mapping[int, float]]:
    """By rollout and step: how much better a turn was than the same turn of the others, by number. Failed rollouts that
    the coach has not looked at say nothing; turns of those that passed are taken to be right."""
    failed = [at for at, result in enumerate(group.results) if not (result.passed or result.infra_error)]
    passed = [at for at, result in enumerate(group.results) if result.passed and not result.infra_error]
    known = sorted([*failed[:annotated], *passed])
    flagged = {(target.rollout_index, target.step) for target in group.targets}
    steps = {at: group.rollouts[at].sampled_steps for at in known}
    found: dict[int, dict[int, float]] = {at: {} for at in known}
    for number in range(max(map(len, steps.values()), default=0)):
        present = [(at, steps[at][number]) for at in known if number < len(steps[at])]
        rewards_G = torch.tensor([-1.0 if turn in flagged else 0.0 for turn in present])
        if len(present) < 2 or not rewards_G.any():
            continue
        for (at, step), value in zip(present, group_advantages(rewards_G, variant).tolist(), strict=True):
            found[at][step] = value
    return found


class FlagAnnotator(CoachAnnotator):
    """Marks the turns that went wrong, whatever the hint for them would be."""

    reads_targets: ClassVar[bool] = False

    def targets_for(self, episode: Episode, hints: Sequence[Hint], name: str, index: int) -> list[DistillTarget]:
        segments = split_segments(episode.steps)
        return [
            replace(
                distill_target_at(segments, hint.step, (), hint.type, ""),
                learn="penalty",
                trajectory_id=name,
                rollout_index=index,
                author=hint.author,
            )
            for hint in hints
        ]
