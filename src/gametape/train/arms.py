"""What each arm learns from the groups of an update."""

from collections.abc import Sequence

from gametape.core.config import RunConfig
from gametape.train.batch import Batch, reinforced, taken
from gametape.train.loop import Arm
from gametape.train.recorded import recorded_groups
from gametape.train.rolled import Group


def arm_of(config: RunConfig) -> Arm:
    if config.arm == "sft":
        return _shown
    if config.arm == "rejection":
        return _accepted
    recorded = recorded_groups(config.reward)
    return lambda groups: reinforced([*groups, *recorded], config.rl.advantage)


def _shown(groups: Sequence[Group]) -> Batch:
    """Every demonstration, right or wrong, as it was given."""
    return taken(groups, lambda _rolled: True)


def _accepted(groups: Sequence[Group]) -> Batch:
    """Rejection sampling: what passed, and ended by itself, is imitated."""
    return taken(groups, lambda rolled: rolled.result.passed and not rolled.result.overlong)
