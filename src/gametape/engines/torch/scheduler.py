"""Decides how many tokens each sequence reads in the next step, and which are preempted. Pure, oldest first.

An older sequence is never preempted for a younger one, and alone it always fits: so the oldest advances at every step
and finishes, and then the next one is the oldest. No sequence starves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SequenceDemand:
    """What one running sequence needs. Demands are in the order of arrival."""

    remaining: int
    """Tokens to be read before it can sample; 1 is a decode, 0 is no work in this step."""
    spare_tokens: int
    """Tokens for which it has room in its blocks."""
    exclusive_blocks: int
    """Blocks that would be available if it were preempted."""


@dataclass(frozen=True)
class StepSchedule:
    """Tokens for each sequence, and the sequences that release their blocks and wait."""

    tokens: list[int]
    preempted: list[int] = field(default_factory=list)


def schedule_step(
    demands: Sequence[SequenceDemand], available_blocks: int, block_size: int, token_budget: int
) -> StepSchedule:
    """Every decode goes first. Prompts share what is left of `token_budget`, and at least a quarter of it."""
    tokens = [1 if demand.remaining == 1 else 0 for demand in demands]
    left = max(token_budget - sum(tokens), token_budget // 4)
    for at, demand in enumerate(demands):
        if demand.remaining > 1:
            tokens[at] = min(demand.remaining, left)
            left -= tokens[at]
    preempted: list[int] = []
    last = len(demands) - 1
    for at, demand in enumerate(demands):
        if at > last:
            break
        while -(-(tokens[at] - demand.spare_tokens) // block_size) > available_blocks and at < last:
            available_blocks += demands[last].exclusive_blocks
            tokens[last] = 0
            preempted.append(last)
            last -= 1
        tokens[at] = min(tokens[at], demand.spare_tokens + available_blocks * block_size)
        available_blocks -= max(0, -(-(tokens[at] - demand.spare_tokens) // block_size))
    return StepSchedule(tokens, preempted)
