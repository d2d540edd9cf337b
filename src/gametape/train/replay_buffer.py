"""Targets of earlier updates, learned from again: what the teacher says there, and how far the policy still is from it,
is worked out anew each time, so that no new rollout is needed."""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any

from gametape.core.config import TTFConfig
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.distill_target import DistillTarget


class ReplayBuffer:
    """The latest targets, each as a line that ends with it."""

    def __init__(self, config: TTFConfig, seed: int) -> None:
        self._replay, self._seed = config.replay, seed
        self._samples: deque[TrainSample] = deque(maxlen=config.replay_capacity)

    def with_replayed(self, batch: TrainBatch, step: int) -> TrainBatch:
        """With some of what is here; and what is new in the batch will be here afterwards."""
        if not self._replay:
            return batch
        rng = Random(seed_for(self._seed, "replay", step))
        new = [line for old in batch.samples for line in _replayable_samples(old)]
        drawn = rng.sample(list(self._samples), min(round(self._replay * len(new)), len(self._samples)))
        drawn.sort(key=lambda line: line.prompt_number)
        self._samples.extend(new)
        return replace(batch, samples=(*batch.samples, *drawn))

    def state(self) -> list[dict[str, Any]]:
        return [asdict(line) for line in self._samples]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        self._samples.clear()
        self._samples.extend(_sample_from_dict(told) for told in state)


def _replayable_samples(line: TrainSample) -> list[TrainSample]:
    """What of a line is learned apart from its reward."""
    if line.sft_weight:
        return [line]
    return [
        TrainSample(_truncated_at_target(line.segment, aim), line.prompt_number, targets=(aim,)) for aim in line.targets
    ]


def _truncated_at_target(segment: TokenSegment, aim: DistillTarget) -> TokenSegment:
    """The line up to the end of a target, with nothing else chosen: what else went wrong in it is not to be kept."""
    stop = aim.start + aim.length
    return TokenSegment(
        segment.ids[:stop],
        [*([0] * aim.start), *segment.mask[aim.start : stop]],
        segment.logprobs[:stop],
        segment.policy_versions[:stop],
        segment.steps[:stop],
    )


def _sample_from_dict(data: dict[str, Any]) -> TrainSample:
    aims = tuple(DistillTarget.from_dict(aim) for aim in data["aims"])
    return TrainSample(**data | {"segment": TokenSegment(**data["segment"]), "aims": aims})
