"""What each arm learns from the groups of an update."""

from collections.abc import Sequence

from gametape.core.config import RunConfig
from gametape.train.batch import TrainBatch, imitation_batch, rl_batch
from gametape.train.loop import BatchBuilder
from gametape.train.recorded_rollouts import load_recorded_groups
from gametape.train.rollouts import RolloutGroup


def batch_builder_for(config: RunConfig) -> BatchBuilder:
    if config.arm == "sft":
        return _demonstration_batch
    if config.arm == "rejection":
        return _accepted_batch
    recorded = load_recorded_groups(config.reward)
    return lambda groups: rl_batch([*groups, *recorded], config.rl.advantage)


def _demonstration_batch(groups: Sequence[RolloutGroup]) -> TrainBatch:
    """Every demonstration, right or wrong, as it was given."""
    return imitation_batch(groups, lambda _rolled: True)


def _accepted_batch(groups: Sequence[RolloutGroup]) -> TrainBatch:
    """Rejection sampling: what passed, and ended by itself, is imitated."""
    return imitation_batch(groups, lambda rolled: rolled.result.passed and not rolled.result.overlong)
