"""Targets of earlier updates, learned from again. The teacher's choices there, and how far the policy still is from
them, are computed anew each time, so that no new rollout is needed."""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any

from pydantic import TypeAdapter

from gametape.core.config import TTFConfig
from gametape.core.seeds import seed_for
from gametape.train.batch import TrainBatch, TrainSample, target_sample
from gametape.train.rollouts import with_current_state_keys


class ReplayBuffer:
    """The latest targets, each as a sample that ends with it; and the latest imitated samples."""

    def __init__(self, config: TTFConfig, seed: int) -> None:
        self._replay, self._prefix_gradient, self._seed = config.replay, config.prefix_gradient, seed
        self._samples: deque[TrainSample] = deque(maxlen=config.replay_capacity)

    def with_replayed(self, batch: TrainBatch, step: int) -> TrainBatch:
        """The batch with some of the buffer's samples; what is new in the batch is in the buffer afterwards."""
        if not self._replay:
            return batch
        rng = Random(seed_for(self._seed, "replay", step))
        gradient = self._prefix_gradient
        new = [replayable for sample in batch.samples for replayable in _replayable_samples(sample, gradient)]
        drawn = rng.sample(list(self._samples), min(round(self._replay * len(new)), len(self._samples)))
        drawn.sort(key=lambda sample: sample.prompt_number)
        self._samples.extend(new)
        return replace(batch, samples=(*batch.samples, *drawn))

    def state(self) -> list[dict[str, Any]]:
        return [asdict(sample) for sample in self._samples]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        self._samples.clear()
        self._samples.extend(TypeAdapter(list[TrainSample]).validate_python(with_current_state_keys(state)))


def _replayable_samples(sample: TrainSample, prefix_gradient: bool) -> list[TrainSample]:
    """What of a sample is learned apart from its reward."""
    if sample.sft_weight:
        return [sample]
    return [target_sample(sample.segment, sample.prompt_number, target, prefix_gradient) for target in sample.targets]
