"""What the agent is told of its budgets: all of them at the start, and what is left when it begins to matter.

The line about what is left goes to the end of a turn's results, where it is recorded with them: a prompt that was sent
stays the beginning of the next one, and a resumed rollout says the same.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.agent.limits import RolloutLimits, RolloutUsage

_MARKS = (0.25, 0.5, 0.75, 0.9)
"""The shares of a budget after which the agent is told what is left."""


@dataclass(frozen=True)
class BudgetItem:
    """One budget: how much of it was used, and how much there is."""

    unit: str
    used: float
    most: float

    @property
    def share(self) -> float:
        return self.used / self.most

    @property
    def left(self) -> str:
        return f"{_amount(self.unit, max(0.0, self.most - self.used))} of {_amount(self.unit, self.most, True)}"


@dataclass(frozen=True)
class ToldBudget:
    """The budgets of one piece of work: an attempt, or an answer in a thread. Turns and seconds before it are not part
    of it. `deadline` is in seconds since the epoch, of work that began at `began`."""

    limits: RolloutLimits
    turns_before: int = 0
    seconds_before: float = 0.0
    deadline: float | None = None
    began: float = 0.0

    def opening(self, usage: RolloutUsage | None = None) -> str:
        """The budgets in one sentence, for the first prompt."""
        items = self.items(usage or RolloutUsage(turns=self.turns_before, earlier_seconds=self.seconds_before))
        return f"Your budget: {_listed([_amount(item.unit, item.most, True) for item in items])}."

    def items(self, usage: RolloutUsage, now: float | None = None) -> list[BudgetItem]:
        limits = self.limits
        items = [BudgetItem("turns", usage.turns - self.turns_before, limits.turns - self.turns_before)]
        if limits.tokens is not None:
            items.append(BudgetItem("tokens", usage.tokens, limits.tokens))
        if limits.cost_usd is not None:
            items.append(BudgetItem("dollars", usage.cost_usd, limits.cost_usd))
        if limits.wall_seconds is not None:
            before = self.seconds_before
            items.append(BudgetItem("seconds", usage.seconds - before, limits.wall_seconds - before))
        if self.deadline is not None:
            passed = (time.time() if now is None else now) - self.began
            items.append(BudgetItem("seconds", passed, max(1e-6, self.deadline - self.began)))
        return items

    def notice(self, before: Sequence[BudgetItem], after: Sequence[BudgetItem]) -> str | None:
        """What is left, if the last turn passed a mark of one of the budgets or only one more is allowed; else None."""
        turns_left = after[0].most - after[0].used
        passed = any(_marks(old.share) < _marks(new.share) for old, new in zip(before, after, strict=True))
        if turns_left < 1 or not (passed or turns_left == 1):
            return None
        last = " One turn is left." if turns_left == 1 else ""
        return f"[Budget left: {_listed([item.left for item in after])}.{last}]"


def _marks(share: float) -> int:
    return sum(share >= mark for mark in _MARKS)


def _amount(unit: str, amount: float, named: bool = False) -> str:
    if unit == "dollars":
        return f"${amount:,.2f}" if amount >= 0.01 else f"${amount:.4f}"
    return f"{amount:,.0f}{f' {unit}' if named else ''}"


def _listed(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
