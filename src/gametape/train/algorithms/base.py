"""What every algorithm is: a class with hooks that the loop and the learner ask.

An arm of your own is a subclass in one file: give it to `gametape.train_policy(algorithm=...)`, or name it in a
configuration as `arm = "module:Class"`. Override `score_group` for another advantage, `build_batch` for another choice
of samples, `loss` or `extra_loss` for another objective, `make_source` or `make_annotator` for other rollouts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from pydantic import ValidationError
from torch import Tensor

from gametape.agent.limits import RolloutLimits
from gametape.core.config import RunConfig
from gametape.core.config_section import ConfigSection
from gametape.core.errors import BadInput
from gametape.core.token_segments import TokenSegment
from gametape.core.validation import NO_SUCH_FIELD, problems_from
from gametape.engines.token_conversation import TokenModel
from gametape.train.annotator_states import add_news
from gametape.train.batch import PackedBatch, TrainBatch, TrainSample
from gametape.train.losses import RolloutSums, TokenImportance, normaliser, rl_loss, sft_loss, token_importance
from gametape.train.policy import TrainablePolicy
from gametape.train.policy_module import PolicyModule
from gametape.train.prompts import PromptDataset
from gametape.train.references import TokenReferences
from gametape.train.replay_buffer import ReplayBuffer
from gametape.train.rollouts import (
    AnnotatedEpisode,
    GroupAnnotator,
    GroupSource,
    RolloutGroup,
    RolloutSample,
    TargetMetrics,
    TokenReading,
)
from gametape.train.sources import NullAnnotator, Reward, environment_reward


@dataclass(frozen=True)
class MicroBatch:
    """What a loss sees of a part of a step that goes through one forward. M tokens were chosen in it, in N rows."""

    batch: TrainBatch
    """The whole step: a minibatch of an update."""
    packed: PackedBatch
    logp_M: Tensor
    """The policy's log-probabilities of the chosen tokens, with a gradient."""
    hidden_ME: Tensor
    """The last hidden states that predict them and, below, the matrix that makes logits of these: leaves to take
    gradients at."""
    head_VE: Tensor
    hidden_NE: Tensor
    """All last hidden states, without a gradient."""
    references: TokenReferences
    """Log-probabilities of the chosen tokens under the policies to compare with."""
    rollouts: RolloutSums
    """For each sample, sums over all segments of its rollout."""
    start_logprobs: Callable[[PackedBatch], Tensor]
    """Log-probabilities of chosen tokens under the weights that the run began with."""

    @cached_property
    def logp_BT(self) -> Tensor:
        return self.packed.to_padded(self.logp_M)


@dataclass(frozen=True)
class ExtraLoss:
    """A loss beside the main one. Its gradient is taken at the hidden states of the chosen tokens and at the head, and
    scaled down where its norm over the whole step is above `clip_norm`."""

    loss: Tensor
    clip_norm: float
    tokens_read: int = 0
    """Tokens that were read for it without a gradient."""
    target_metrics: Callable[[], Sequence[TargetMetrics]] = tuple
    """Asked when the step is over: a GPU has to be waited for."""


class Algorithm:
    """The defaults: rollouts of the policy, no annotator, and a loss with two streams, policy gradient on advantages
    and imitation on weights. A subclass gives samples the one or the other."""

    Settings: ClassVar[type[ConfigSection]] = ConfigSection
    """The type of the `[algorithm]` table of a run's configuration."""
    compares_rollouts: ClassVar[bool] = False
    """Whether it learns from differences within a group: groups without one are sampled again."""
    samples_policy: ClassVar[bool] = True
    """Its rollouts are sampled by the policy, so that sampling can overlap with learning."""
    needs_start: bool = False
    """Whether its loss asks for `MicroBatch.start_logprobs`."""
    packs_hints: bool = False
    """Hinted spans go through the policy's own forward."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.settings = self._read_settings(config.algorithm)
        self.replay_buffer = ReplayBuffer(config.ttf, config.seed)
        self.reward: Reward = environment_reward
        """The reward of an episode, from its score; a function of your own may replace it."""
        self.target_metrics: list[TargetMetrics] = []
        """What the targets of the last update did."""
        self.token_readings: list[TokenReading] = []
        """What the last update saw at the tokens of the rollouts with targets."""
        self.last_learned: AnnotatedEpisode | None = None
        """The last rollout with a target that an update has learned from."""

    def _read_settings(self, table: Mapping[str, Any]) -> ConfigSection:
        try:
            return self.Settings.model_validate(table)
        except ValidationError as error:
            problem = problems_from(error, table)[0]
            if problem.expected != NO_SUCH_FIELD:
                raise BadInput(f"algorithm.{problem}") from None
            known = ", ".join(self.Settings.model_fields)
            there = f"there are: {known}" if known else f"{type(self).__name__} has none"
            raise BadInput(f"algorithm.{problem.path}: there is no such setting ({there})") from None

    @property
    def asynchronous(self) -> bool:
        return self.config.rl.asynchronous and self.samples_policy

    @property
    def last_annotated(self) -> AnnotatedEpisode | None:
        """The last rollout with a target."""
        return None

    def keep_learned(self) -> None:
        """After an update. Where groups are sampled ahead, the last one with a target may still wait for its own."""
        annotated = self.last_annotated
        if annotated is not None:
            readings = [one for one in self.token_readings if one.rollout == annotated.name]
            self.last_learned = replace(annotated, readings=readings) if readings else self.last_learned

    def make_source(self, dataset: PromptDataset, policy: TrainablePolicy) -> GroupSource | None:  # noqa: ARG002
        """A source of its own; None for rollouts of the policy."""
        return None

    def make_annotator(self, model: TokenModel, limits: RolloutLimits) -> GroupAnnotator:  # noqa: ARG002
        """What looks at finished groups before they are learned from."""
        return NullAnnotator()

    def combine_annotator_states(
        self, known: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """What annotators of several samplers know together: `known`, and what one of them has learned between two
        states of its own. By default counts add up, lists grow, and of anything else the latest counts."""
        return add_news(known, before, after)

    def setup(self, module: PolicyModule) -> None:
        """Called once with the policy, before the first update and before anything is sharded."""

    def modules(self) -> Sequence[PolicyModule]:
        """Networks of its own beside the policy's, which the learner shards as it does that."""
        return ()

    def score_group(self, group: RolloutGroup) -> Mapping[int, float]:  # noqa: ARG002
        """The advantages of a group's rollouts, by their index. Those that are not there get no gradient."""
        return {}

    def build_batch(self, groups: Sequence[RolloutGroup]) -> TrainBatch:
        """What an update learns from its groups."""
        samples: list[TrainSample] = []
        for group in groups:
            advantages = self.score_group(group)
            for index, rollout in enumerate(group.rollouts):
                for number, segment in enumerate(rollout.segments):
                    samples += self.segment_samples(group, index, number, segment, advantages.get(index, 0.0))
        return TrainBatch.of_groups(samples, groups)

    def segment_samples(
        self,
        group: RolloutGroup,
        index: int,
        number: int,  # noqa: ARG002
        segment: TokenSegment,
        advantage: float,
    ) -> Sequence[TrainSample]:
        """The samples of one segment, the `number`-th of the group's rollout `index`."""
        return [TrainSample(segment, group.request.number, advantage, rollout_index=index)] if advantage else []

    def loss(self, micro: MicroBatch) -> Tensor:
        """Samples with an advantage and imitated ones are two streams, each with its own constant normaliser."""
        rl, packed, samples, rollouts = self.config.rl, micro.packed, micro.packed.samples, micro.batch.rollouts
        loss = micro.logp_M.sum() * 0.0
        if any(sample.has_advantage for sample in samples):
            denominator = normaliser(rl.loss, rollouts, rl.normalizer_tokens, micro.batch.tokens)
            loss = loss + rl_loss(micro.logp_BT, **self._rl_arguments(micro), denominator=denominator)
        if any(sample.sft_weight for sample in samples):
            weights_B1 = packed.imitated_B.to(torch.float32)[:, None]
            loss = loss + sft_loss(
                weights_B1 * micro.logp_BT, packed.mask_BT & (weights_B1 > 0), rollouts * rl.normalizer_tokens
            )
        return loss

    def importance(self, micro: MicroBatch) -> TokenImportance | None:
        """The ratios and weights of the tokens with an advantage, for the log; None where there are none."""
        if not any(sample.has_advantage for sample in micro.packed.samples):
            return None
        importance: TokenImportance = token_importance(micro.logp_BT, **self._rl_arguments(micro))
        return importance

    def _rl_arguments(self, micro: MicroBatch) -> dict[str, Any]:
        rl, packed = self.config.rl, micro.packed
        return {
            "old_logp_BT": packed.to_padded(micro.references.old),
            "adv_B": packed.to_padded(packed.advantages_M),
            "mask_BT": packed.learned_BT,
            "variant": rl.loss,
            "clip_low": rl.clip_low,
            "clip_high": rl.clip_high,
            "behaviour_logp_BT": packed.to_padded(micro.references.behaviour),
            "importance_cap": rl.importance_cap,
            "rollouts": micro.rollouts,
        }

    def has_extra_loss(self, samples: Sequence[TrainSample]) -> bool:  # noqa: ARG002
        """Whether `extra_loss` would find something in these samples."""
        return type(self).extra_loss is not Algorithm.extra_loss

    def extra_loss(self, micro: MicroBatch) -> ExtraLoss | None:  # noqa: ARG002
        """A third stream, with a gradient cap of its own; None without one."""
        return None

    def lr_factor(self, batch: TrainBatch) -> float:  # noqa: ARG002
        """A factor of the learning rate for this batch."""
        return 1.0

    def after_update(self, module: PolicyModule) -> None:
        """Called with the policy after every step of the optimiser."""

    def after_batch(self) -> None:
        """Called when an update is over and `target_metrics` are those of its targets."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds of it, as JSON; and below as tensors."""
        return {"coach": {}, "shelf": self.replay_buffer.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.replay_buffer.restore(state["shelf"])

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` gave."""


def imitation_batch(groups: Sequence[RolloutGroup], accepts: Callable[[RolloutSample], bool]) -> TrainBatch:
    """The rollouts that are accepted, to be imitated."""
    samples = [
        TrainSample(segment, group.request.number, sft_weight=1.0)
        for group in groups
        for rollout in group.rollouts
        if accepts(rollout)
        for segment in rollout.segments
    ]
    return TrainBatch.of_groups(samples, groups)
