"""Which rollouts teach what: the rules of sparse rewards in groups, as pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["mixed", "all_fail", "all_pass", "lost"]


@dataclass(frozen=True)
class Result:
    """What the rules look at in a rollout."""

    reward: float
    passed: bool
    overlong: bool = False
    """It ran into a limit. What it got counts for the others; it gets no gradient of its own."""
    lost: bool = False
    """The machinery failed: nothing was learned about the policy."""


def kind_of(group: Sequence[Result]) -> Kind:
    """`mixed` groups carry a policy gradient; those that all fail go to the coach; a group needs two to compare."""
    counted = [result for result in group if not result.lost]
    if len(counted) < 2:
        return "lost"
    if len({result.reward for result in counted}) > 1 and with_gradient(group):
        return "mixed"
    return "all_pass" if all(result.passed for result in counted) else "all_fail"


def baseline_members(group: Sequence[Result]) -> list[int]:
    """Whose rewards make up the group's statistics."""
    return [at for at, result in enumerate(group) if not result.lost]


def with_gradient(group: Sequence[Result]) -> list[int]:
    """Who gets a gradient, given that the group is mixed."""
    return [at for at, result in enumerate(group) if not (result.lost or result.overlong)]


def missing(kinds: Sequence[Kind], wanted: int, most: int) -> int:
    """How many groups to sample again: as many as lack a signal, within the budget for one update."""
    return max(0, min(wanted - sum(kind == "mixed" for kind in kinds), most - len(kinds)))
