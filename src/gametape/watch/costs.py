"""What attempts cost, and how much of it went into failures: by model, task, tool and hint.

An attempt is a trajectory with an outcome, its subagents included. A turn's cost falls on the tools it called, in equal
parts. CPU seconds of sandboxes are reported as they are, and in dollars where their price is given.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.watch.observed_step import parse_number

NO_TOOL = "(no tool)"
UNKNOWN = "(unknown)"
NO_HINT = "(no hint)"


@dataclass
class CostSum:
    """A sum of costs."""

    cost_usd: float = 0.0
    tokens: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, other: "CostSum", share: float = 1.0) -> None:
        self.cost_usd += share * other.cost_usd
        self.tokens += share * other.tokens
        self.cpu_seconds += share * other.cpu_seconds


@dataclass
class CostAccount:
    """Attempts of one kind and their cost; `failed` is the cost of those that did not pass."""

    attempts: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    total: CostSum = field(default_factory=CostSum)
    failed: CostSum = field(default_factory=CostSum)

    def add(self, attempt: int, passed: bool, took: CostSum, share: float = 1.0) -> None:
        self.attempts.add(attempt)
        if passed:
            self.passed.add(attempt)
        else:
            self.failed.add(took, share)
        self.total.add(took, share)

    def to_dict(self) -> dict[str, Any]:
        total, attempts, passed = self.total, len(self.attempts), len(self.passed)
        return {
            "attempts": attempts,
            "passed": passed,
            "cost_usd": total.cost_usd,
            "tokens": round(total.tokens),
            "cpu_seconds": total.cpu_seconds,
            "cost_per_attempt": total.cost_usd / attempts if attempts else None,
            "cost_per_success": total.cost_usd / passed if passed else None,
            "tokens_per_success": total.tokens / passed if passed else None,
            "failed_share": self.failed.cost_usd / total.cost_usd if total.cost_usd else None,
            "failed_share_of_tokens": self.failed.tokens / total.tokens if total.tokens else None,
        }


@dataclass
class CostReport:
    """The total, and the same by each key. `unfinished` trajectories have no outcome; theirs is a sum of its own."""

    total: CostAccount = field(default_factory=CostAccount)
    by: dict[str, dict[str, CostAccount]] = field(
        default_factory=lambda: {key: defaultdict(CostAccount) for key in ("model", "task", "tool", "hint")}
    )
    unfinished: int = 0
    on_unfinished: CostSum = field(default_factory=CostSum)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.total.to_dict(),
            "unfinished": self.unfinished,
            "unfinished_cost_usd": self.on_unfinished.cost_usd,
            "unfinished_tokens": round(self.on_unfinished.tokens),
            "by": {
                key: {name: account.to_dict() for name, account in sorted(accounts.items())}
                for key, accounts in self.by.items()
            },
        }


def cost_report(trajectories: Iterable[Trajectory], cpu_hour_usd: float = 0.0) -> CostReport:
    costs = CostReport()
    for attempt, trajectory in enumerate(trajectories):
        try:
            if trajectory.outcome is not None:
                _add(costs, attempt, trajectory, cpu_hour_usd)
                continue
            costs.unfinished += 1
            for _, step, cpu_seconds in _turns(trajectory):
                costs.on_unfinished.add(_took(step, cpu_seconds, cpu_hour_usd))
        except BadInput as error:
            name = trajectory.trajectory_id or trajectory.session_id or f"attempt {attempt + 1}"
            raise BadInput(f"{name}: {error}") from None
    return costs


def _add(costs: CostReport, attempt: int, trajectory: Trajectory, cpu_hour_usd: float) -> None:
    passed = trajectory.outcome == "passed"
    extra = trajectory.extra or {}
    task, hint = str(extra.get("task") or UNKNOWN), str(extra.get("hint") or NO_HINT)
    costs.total.add(attempt, passed, CostSum())
    for model, step, cpu_seconds in _turns(trajectory):
        took = _took(step, cpu_seconds, cpu_hour_usd)
        costs.total.add(attempt, passed, took)
        costs.by["model"][model].add(attempt, passed, took)
        costs.by["task"][task].add(attempt, passed, took)
        costs.by["hint"][hint].add(attempt, passed, took)
        tools = [call.function_name for call in step.tool_calls or []] or [NO_TOOL]
        for tool in tools:
            costs.by["tool"][tool].add(attempt, passed, took, 1 / len(tools))


def _turns(trajectory: Trajectory) -> Iterator[tuple[str, Step, float]]:
    """Every turn that was paid for, with its model and its CPU seconds: the record has their sum so far."""
    before = 0.0
    for step in trajectory.steps:
        if step.source != "agent" or step.is_copied_context:
            continue
        reported = parse_number((step.gametape_extra.model_extra or {}).get("cpu_seconds"))
        total = before if reported is None else reported
        yield step.model_name or trajectory.agent.model_name or UNKNOWN, step, max(0.0, total - before)
        before = total
    for sub in trajectory.subagent_trajectories or []:
        yield from _turns(sub)


def _took(step: Step, cpu_seconds: float, cpu_hour_usd: float) -> CostSum:
    metrics = step.metrics
    cost = parse_number((metrics.cost_usd or 0.0) if metrics else 0.0)
    if cost is None or cost < 0:
        raise BadInput(f"step {step.step_id}: metrics.cost_usd: expected what a turn can cost")
    tokens = (metrics.prompt_tokens or 0) + (metrics.completion_tokens or 0) if metrics else 0
    return CostSum(cost + cpu_seconds / 3600 * cpu_hour_usd, tokens, cpu_seconds)
