"""Rejection sampling (arm `rejection`): the policy's own successes are imitated. It has no table of its own."""

from collections.abc import Sequence

from gametape.train.algorithms.base import Algorithm, imitation_batch
from gametape.train.batch import TrainBatch
from gametape.train.rollouts import RolloutGroup


class RejectionSampling(Algorithm):
    """What passed, and ended by itself, is imitated."""

    def build_batch(self, groups: Sequence[RolloutGroup]) -> TrainBatch:
        return imitation_batch(groups, lambda rollout: rollout.result.passed and not rollout.result.overlong)
