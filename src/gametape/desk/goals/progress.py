"""The attempts at a goal so far, and the decisions that follow from them. Pure: the same input, the same decision."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

from gametape.desk.goals.goal import Goal
from gametape.desk.jobs import Json

ALREADY_HOLDS = "already holds"
"""The reason of a goal that needed no work."""


@dataclass(frozen=True)
class JudgedAttempt:
    """The checkpoint of an attempt, and how it was judged."""

    checkpoint: str
    passed: int
    tampered: bool
    evidence: dict[str, Any] | None = None
    """What the verdict rests on."""

    @property
    def rank(self) -> tuple[int, int]:
        """The passing tests: those of the command first, then those that the agent never sees."""
        held_out = (self.evidence or {}).get("held_out") or {}
        return self.passed, held_out.get("passed", 0)


@dataclass
class GoalProgress:
    """All attempts so far. `passed_before` is how many tests or conditions passed before the first."""

    passed_before: int
    judged_attempts: list[JudgedAttempt] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    tokens: int = 0
    cost_usd: float = 0.0
    cut_off: int = 0
    """Turns that the limit of tokens cut off."""
    reason: str | None = None
    """Why the goal ended; None while it goes on."""
    exit_code: int = 1
    """Where an error ended it: 3 if something is missing here, else 1."""
    evidence_before: dict[str, Any] | None = None
    """What a verdict on the untouched workspace rests on."""

    def hold_already(self) -> None:
        """The command succeeds over the untouched workspace, and nothing else was asked for."""
        self.reason = ALREADY_HOLDS

    def break_off(self, agent_result: dict[str, Json]) -> None:
        """The model did not answer at all in this attempt, so there is nothing to judge."""
        self.tokens, self.cost_usd = agent_result["tokens"], agent_result["cost_usd"]
        self._end_by_error(agent_result)

    def _end_by_error(self, agent_result: dict[str, Json]) -> None:
        self.reason = f"error: {agent_result['reason']}"
        self.exit_code = agent_result.get("exit_code", 1)

    def add_attempt(
        self, agent_result: dict[str, Json], verdict: dict[str, Json], goal: Goal, deadline_passed: bool
    ) -> None:
        """Add an attempt: what `GoalAgent.attempt` returned, with the total cost so far, and the judge's verdict."""
        evidence = verdict.get("evidence")
        held_out = (evidence or {}).get("held_out")
        self.judged_attempts.append(
            JudgedAttempt(agent_result["checkpoint"], verdict["passed"], bool(verdict["tampering"]), evidence)
        )
        self.attempts.append(
            {
                "n": len(self.judged_attempts),
                "criterion": verdict["criterion"],
                "tampering": verdict["tampering"],
                "tokens": agent_result["tokens"] - self.tokens,
                "cost_usd": agent_result["cost_usd"] - self.cost_usd,
                "demanded": verdict["demanded"],
                "failing": verdict.get("failing", []),
                "ended": str(agent_result["reason"]) if agent_result["outcome"] else "",
                **({"unsettled": verdict["unsettled"]} if verdict["unsettled"] else {}),
                **({"held_out": held_out} if held_out else {}),
            }
        )
        self.tokens, self.cost_usd = agent_result["tokens"], agent_result["cost_usd"]
        self.cut_off = agent_result.get("cut_off", 0)
        self.reason = "reached" if verdict["reached"] else self._end_reason(agent_result, goal, deadline_passed)

    def _end_reason(self, agent_result: dict[str, Json], goal: Goal, deadline_passed: bool) -> str | None:
        if agent_result["outcome"] == "cancelled":
            return "cancelled"
        if deadline_passed:
            return "deadline"
        if self.tokens >= (goal.budget_tokens or inf) or self.cost_usd >= (goal.budget_usd or inf):
            return "budget"
        if agent_result["outcome"] == "error":
            self._end_by_error(agent_result)
            return self.reason
        if agent_result["tripped"]:
            return str(agent_result["reason"])
        return "attempts" if len(self.judged_attempts) >= goal.attempts else None

    @property
    def best(self) -> int | None:
        """The index of the best attempt: without tampering, with the most passing tests, and of several the last. None
        while every attempt is worse than the start."""
        best: int | None = None
        for at, attempt in enumerate(self.judged_attempts):
            if not attempt.tampered and attempt.rank >= (
                (self.passed_before, 0) if best is None else self.judged_attempts[best].rank
            ):
                best = at
        return best

    @property
    def evidence(self) -> dict[str, Any] | None:
        """What the verdict on the state that is delivered rests on."""
        return self.judged_attempts[self.best].evidence if self.best is not None else self.evidence_before

    @property
    def checkpoint(self) -> str | None:
        """The checkpoint of the best attempt; None for the start."""
        return self.judged_attempts[self.best].checkpoint if self.best is not None else None

    def feedback(self, verdict: dict[str, Json]) -> str:
        """What the agent is told before its next attempt."""
        state = "The files are as you left them."
        if self.best != len(self.judged_attempts) - 1:
            passed = self.judged_attempts[self.best].passed if self.best is not None else self.passed_before
            state = f"The files have been put back to the best state so far: {passed} of {verdict['demanded']}."
        return (
            f"The command does not succeed yet.\n\n{verdict['told']}\n\n{state} Go on, and call finish when it is done."
        )

    def to_dict(self) -> dict[str, Json]:
        return {
            "reached": self.reason in ("reached", ALREADY_HOLDS),
            "reason": self.reason,
            "attempts": self.attempts,
            "best": self.best,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "cut_off": self.cut_off,
            "exit_code": 0 if self.reason in ("reached", ALREADY_HOLDS) else self.exit_code,
        }
