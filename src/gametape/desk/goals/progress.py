"""What happened to a goal so far, and what follows from it: pure decisions, the same each time they are made."""

from dataclasses import dataclass, field
from typing import Any

from gametape.desk.errands import Json
from gametape.desk.goals.goal import Goal


@dataclass(frozen=True)
class Tried:
    """An attempt: the files it left, and how it was judged."""

    checkpoint: str
    passed: int
    tampered: bool


@dataclass
class Story:
    """All attempts so far. `before` is how much passed before the first of them."""

    before: int
    tried: list[Tried] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    tokens: int = 0
    cost_usd: float = 0.0
    reason: str | None = None
    """Why it is over; None while it goes on."""

    def take(self, ended: dict[str, Json], judged: dict[str, Json], goal: Goal, late: bool) -> None:
        """One more attempt: how the agent's part ended, with what it has cost in all, and what the judge said."""
        self.tried.append(Tried(ended["checkpoint"], judged["passed"], bool(judged["tampering"])))
        self.attempts.append(
            {
                "n": len(self.tried),
                "criterion": judged["criterion"],
                "tampering": judged["tampering"],
                "tokens": ended["tokens"] - self.tokens,
                "cost_usd": ended["cost_usd"] - self.cost_usd,
                **({"unsettled": judged["unsettled"]} if judged["unsettled"] else {}),
            }
        )
        self.tokens, self.cost_usd = ended["tokens"], ended["cost_usd"]
        self.reason = "reached" if judged["reached"] else self._why_over(ended, goal, late)

    def _why_over(self, ended: dict[str, Json], goal: Goal, late: bool) -> str | None:
        if ended["outcome"] == "cancelled":
            return "cancelled"
        if late:
            return "deadline"
        if goal.budget_tokens is not None and self.tokens >= goal.budget_tokens:
            return "budget"
        if ended["outcome"] == "error":
            return f"error: {ended['reason']}"
        if ended["tripped"]:
            return str(ended["reason"])
        return "attempts" if len(self.tried) >= goal.attempts else None

    @property
    def best(self) -> int | None:
        """The attempt whose files are worth keeping: of those that tampered with nothing, the one that most tests pass
        with, and of several the last, which has the most work in it. None while all made it worse than it was."""
        best: int | None = None
        for at, one in enumerate(self.tried):
            if not one.tampered and one.passed >= (self.before if best is None else self.tried[best].passed):
                best = at
        return best

    @property
    def checkpoint(self) -> str | None:
        """The best files; None for those that the goal began with."""
        return self.tried[self.best].checkpoint if self.best is not None else None

    def feedback(self, judged: dict[str, Json]) -> str:
        """What the agent is told before its next attempt."""
        state = "The files are as you left them."
        if self.best != len(self.tried) - 1:
            passed = self.tried[self.best].passed if self.best is not None else self.before
            state = f"The files have been put back to the best state so far: {passed} of {judged['demanded']}."
        return (
            f"The command does not succeed yet.\n\n{judged['told']}\n\n{state} Go on, and call finish when it is done."
        )

    def answer(self) -> dict[str, Json]:
        return {
            "reached": self.reason == "reached",
            "reason": self.reason,
            "attempts": self.attempts,
            "best": self.best,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
        }
