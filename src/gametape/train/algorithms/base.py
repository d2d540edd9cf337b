"""What every algorithm is: a class with hooks that the loop and the learner ask.

An arm of your own is a subclass in one file: give it to `gametape.train_policy(algorithm=...)`, or name it in a
configuration as `arm = "module:Class"`. Override `score_group` for another advantage, `build_batch` for another choice
of samples, `loss` or `extra_loss` for another objective, `make_source` or `make_annotator` for other rollouts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from gametape.agent.limits import RolloutLimits
from gametape.core.config import ConfigSection, RunConfig
from gametape.core.errors import BadInput
from gametape.core.token_segments import TokenSegment
from gametape.core.validation import problems_from
from gametape.engines.token_conversation import TokenModel
from gametape.train.batch import PackedBatch, TrainBatch, TrainSample
from gametape.train.losses import normaliser, rl_loss, sft_loss
from gametape.train.policy import TrainablePolicy
from gametape.train.prompts import PromptDataset
from gametape.train.replay_buffer import ReplayBuffer
from gametape.train.rollouts import (
    AnnotatedEpisode,
    GroupAnnotator,
    GroupSource,
    RolloutGroup,
    RolloutSample,
    TargetMetrics,
)
from gametape.train.sources import NullAnnotator, Reward, environment_reward


@dataclass(frozen=True)
class MicroBatch:
    """What a loss sees of a part of a batch that goes through one forward."""

    batch: TrainBatch
    """The whole update."""
    micro_batches: Sequence[Sequence[TrainSample]]
    """All parts of the update, of which this is one."""
    packed: PackedBatch
    logp_M: Tensor
    """The policy's log-probabilities of the chosen tokens, with a gradient."""
    hidden_NE: Tensor
    """The last hidden states and, below, the matrix that makes logits of them: leaves to take gradients at."""
    head_VE: Tensor
    start_logprobs: Callable[[PackedBatch], Tensor]
    """Log-probabilities of chosen tokens under the weights that the run began with."""

    @property
    def logp_BT(self) -> Tensor:
        return self.packed.to_padded(self.logp_M)


@dataclass(frozen=True)
class ExtraLoss:
    """A loss beside the main one, whose gradient at the last hidden states is scaled down to `clip_norm`."""

    loss: Tensor
    clip_norm: float
    tokens_read: int = 0
    """Tokens that were read for it without a gradient."""


class Algorithm:
    """The defaults: rollouts of the policy, no annotator, and a loss with two streams, policy gradient on advantages
    and imitation on weights. A subclass gives samples the one or the other."""

    Settings: ClassVar[type[ConfigSection]] = ConfigSection
    """The type of the `[algorithm]` table of a run's configuration."""
    compares_rollouts: ClassVar[bool] = False
    """Whether it learns from differences within a group: groups without one are sampled again."""
    samples_policy: ClassVar[bool] = True
    """Its rollouts are sampled by the policy, so that sampling can overlap with learning."""
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

    def _read_settings(self, table: Mapping[str, Any]) -> ConfigSection:
        try:
            return self.Settings.model_validate(table)
        except ValidationError as error:
            problem = problems_from(error, table)[0]
            if problem.expected != "no such field":
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

    def make_source(self, dataset: PromptDataset, policy: TrainablePolicy) -> GroupSource | None:  # noqa: ARG002
        """A source of its own; None for rollouts of the policy."""
        return None

    def make_annotator(self, model: TokenModel, limits: RolloutLimits) -> GroupAnnotator:  # noqa: ARG002
        """What looks at finished groups before they are learned from."""
        return NullAnnotator()

    def setup(self, network: nn.Module) -> None:
        """Called once with the policy's network, before the first update."""

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
        index: int,  # noqa: ARG002
        number: int,  # noqa: ARG002
        segment: TokenSegment,
        advantage: float,
    ) -> Sequence[TrainSample]:
        """The samples of one segment, the `number`-th of the group's rollout `index`."""
        return [TrainSample(segment, group.request.number, advantage)] if advantage else []

    def loss(self, micro: MicroBatch) -> Tensor:
        """Samples with an advantage and imitated ones are two streams, each with its own constant normaliser."""
        rl, packed, samples = self.config.rl, micro.packed, micro.packed.samples
        logp_BT, mask_BT, rollouts = micro.logp_BT, packed.mask_BT, micro.batch.rollouts
        loss = micro.logp_M.sum() * 0.0
        if any(sample.advantage for sample in samples):
            loss = loss + rl_loss(
                logp_BT,
                logp_BT.detach(),
                torch.tensor([sample.advantage for sample in samples]),
                mask_BT,
                rl.loss,
                rl.clip_low,
                rl.clip_high,
                normaliser(rl.loss, rollouts, rl.normalizer_tokens),
                behaviour_logp_BT=packed.to_padded(packed.sampled_logp_M) if self.asynchronous else None,
                importance_cap=rl.importance_cap,
            )
        weights_B1 = torch.tensor([sample.sft_weight for sample in samples])[:, None]
        if weights_B1.any():
            loss = loss + sft_loss(weights_B1 * logp_BT, mask_BT & (weights_B1 > 0), rollouts * rl.normalizer_tokens)
        return loss

    def extra_loss(self, micro: MicroBatch) -> ExtraLoss | None:  # noqa: ARG002
        """A third stream, with a gradient cap of its own; None without one."""
        return None

    def lr_factor(self, batch: TrainBatch) -> float:  # noqa: ARG002
        """A factor of the learning rate for this batch."""
        return 1.0

    def after_update(self, network: nn.Module) -> None:
        """Called with the policy's network after every step of the optimiser."""

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
