"""What each arm learns from the groups of an update."""

from collections.abc import Sequence

from gametape.core.config import RunConfig
from gametape.train.batch import Batch, accepted, imitated, reinforced
from gametape.train.loop import Arm
from gametape.train.rolled import Group


def arm_of(config: RunConfig) -> Arm:
    if config.arm == "sft":
        return _shown
    if config.arm == "rejection":
        return accepted
    return lambda groups: reinforced(groups, config.rl.advantage)


def _shown(groups: Sequence[Group]) -> Batch:
    """Every demonstration, right or wrong, as it was given."""
    return imitated(segment for group in groups for rolled in group.rollouts for segment in rolled.segments)
