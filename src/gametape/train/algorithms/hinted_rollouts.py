"""Hinted rollouts, fewer and fewer (arm `rlvr_hinted_rollouts`): a failed rollout that the coach has hints for is
played once more with them, each before its turn. The new one joins its group, and where it does better it is imitated
by its advantage, without the hints. The share of such second attempts falls to nothing over `[algorithm] until` of the
run's episodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.hinted_engine import with_hints
from gametape.core.config import RunConfig
from gametape.core.config_section import ConfigSection, Positive
from gametape.core.hint import Hint
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment
from gametape.engines.token_conversation import TokenModel
from gametape.sandbox.keeper_client import SandboxError
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.batch import TrainSample
from gametape.train.coach_annotator import CoachAnnotator
from gametape.train.rollouts import DistillTarget, GroupAnnotator, RolloutGroup, RolloutSample


class HintedRolloutSettings(ConfigSection):
    """The table `[algorithm]` of the arm."""

    until: Positive = 0.5
    """The share of the run's episodes over which second attempts fade out; above 1 some are left at its end."""


class HintedRollouts(Rlvr):
    """Verified rewards, in groups with some second attempts."""

    Settings: ClassVar[type[ConfigSection]] = HintedRolloutSettings

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self._annotator: SecondAttempts | None = None

    def make_annotator(self, model: TokenModel, limits: RolloutLimits) -> GroupAnnotator:
        assert isinstance(self.settings, HintedRolloutSettings)
        fade = self.settings.until * self.config.episodes
        self._annotator = SecondAttempts(self.config, model, limits, self.score_group, fade)
        return self._annotator

    def rewarded_sample(self, group: RolloutGroup, index: int, segment: TokenSegment, advantage: float) -> TrainSample:
        """The tokens of a second attempt were sampled after hints that the policy is to do without, so that they are no
        sample of it and their ratios say nothing: what is better than the rest is imitated, what is worse is left."""
        if not group.rollouts[index].hinted:
            return super().rewarded_sample(group, index, segment, advantage)
        return TrainSample(segment, group.request.number, sft_weight=max(0.0, advantage), rollout_index=index)

    def segment_samples(
        self, group: RolloutGroup, index: int, number: int, segment: TokenSegment, advantage: float
    ) -> Sequence[TrainSample]:
        if not group.rollouts[index].hinted:
            return super().segment_samples(group, index, number, segment, advantage)
        sample = self.rewarded_sample(group, index, segment, advantage)
        return [sample] if sample.sft_weight else []

    def state(self) -> dict[str, Any]:
        return super().state() | {"coach": self._annotator.state() if self._annotator else {}}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        if self._annotator and state["coach"]:
            self._annotator.restore(state["coach"])


class SecondAttempts(CoachAnnotator):
    """Plays some failures once more, with what the coach has to say about them."""

    reads_targets: ClassVar[bool] = False

    def __init__(
        self,
        config: RunConfig,
        model: TokenModel,
        limits: RolloutLimits,
        score_group: Callable[[RolloutGroup], Mapping[int, float]],
        fade: float,
    ) -> None:
        super().__init__(config, model, limits, False, score_group)
        self._limits, self._seed, self._fade = limits, config.seed, fade
        self._episodes = 0
        """Those of the run so far."""

    def targets_for(self, episode: Episode, hints: Sequence[Hint], name: str, index: int) -> list[DistillTarget]:
        """Where the hints are to be said; nothing is distilled."""
        used = self.controlled_hints(episode, hints)
        return [self.distill_target(episode, hint, name, index) for hint in used]

    async def _annotate_group(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:
        share = max(0.0, 1 - self._episodes / self._fade)
        self._episodes += len(episodes)
        annotated = await super()._annotate_group(group, episodes)
        by_rollout: dict[int, dict[int, str]] = {}
        for target in annotated.targets:
            turn = group.rollouts[target.rollout_index].sampled_steps.index(target.step) + 1
            by_rollout.setdefault(target.rollout_index, {})[turn] = target.text
        attempts = [
            await self._play(episodes[at], f"d{group.request.number:08}.{at:03}.again", hints)
            for at, hints in by_rollout.items()
            if Random(seed_for(self._seed, "again", group.request.number, at)).random() < share
        ]
        return replace(annotated, rollouts=(*annotated.rollouts, *attempts), targets=())

    async def _play(self, episode: Episode, name: str, hints: Mapping[int, str]) -> RolloutSample:
        sampling = self.sampling.model_copy(update={"seed": seed_for(self._seed, name)})
        model = with_hints(self.model, hints)
        config = rollout_config_for(episode.environment, model, sampling, self._limits, name)
        with self.model.engine.participant():
            again = await run_episode(episode.environment, config, SandboxError)
        return replace(RolloutSample.from_episode(again), hinted=True)

    def state(self) -> dict[str, Any]:
        return super().state() | {"episodes": self._episodes}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._episodes = state["episodes"]
