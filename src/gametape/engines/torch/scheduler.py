"""Who reads how many tokens in the next step, and who has to give up room for it. Pure decisions, oldest first.

Whoever came first is never stopped for somebody who came later, and alone it always fits: so it moves on at every step,
finishes, and the next one is the oldest. That is why nobody starves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SequenceDemand:
    """What one running sequence could use. They are given in the order in which they came."""

    remaining: int
    """Tokens to be read before it can sample; 1 is a decode, 0 is nothing in this step."""
    spare_tokens: int
    """Tokens for which it has room."""
    exclusive_blocks: int
    """Blocks that would be available if it let go."""


@dataclass(frozen=True)
class StepSchedule:
    """Tokens for each sequence, and those that have to let go of everything and wait."""

    tokens: list[int]
    preempted: list[int] = field(default_factory=list)


def schedule_step(
    demands: Sequence[SequenceDemand], available_blocks: int, block_size: int, token_budget: int
) -> StepSchedule:
    """Every decode goes first. Prompts share what is left of `budget` tokens, and at least a quarter of it."""
    tokens = [1 if want.remaining == 1 else 0 for want in demands]
    left = max(token_budget - sum(tokens), token_budget // 4)
    for at, want in enumerate(demands):
        if want.remaining > 1:
            tokens[at] = min(want.remaining, left)
            left -= tokens[at]
    stopped: list[int] = []
    last = len(demands) - 1
    for at, want in enumerate(demands):
        if at > last:
            break
        while -(-(tokens[at] - want.spare_tokens) // block_size) > available_blocks and at < last:
            available_blocks += demands[last].exclusive_blocks
            tokens[last] = 0
            stopped.append(last)
            last -= 1
        tokens[at] = min(tokens[at], want.spare_tokens + available_blocks * block_size)
        available_blocks -= max(0, -(-(tokens[at] - want.spare_tokens) // block_size))
    return StepSchedule(tokens, stopped)
