"""How likely it is that an attempt passed: what the agent said before and after, and what its trajectory shows.

The calibrated forecast is a logistic regression on a few features, fitted on other attempts than the one it judges.
Attempts at one task stay together, so that it is never asked about a task it has seen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gametape.core.trajectory import Trajectory

_FOLDS = 5
_SHRINKAGE = 1.0
_ROUNDS = 25


@dataclass(frozen=True)
class Attempt:
    """What a forecast is made from, and what happened."""

    task: str
    passed: bool
    features: tuple[float, ...]
    before: float | None = None
    after: float | None = None


def attempt_of(trajectory: Trajectory) -> Attempt | None:
    """None for an attempt that nobody judged."""
    if trajectory.outcome is None:
        return None
    extra = trajectory.extra or {}
    said = extra.get("confidence")
    before, after = (_probability(said.get(key)) if isinstance(said, dict) else None for key in ("before", "after"))
    after = _said_at_the_end(trajectory) if after is None else after
    task = str(extra.get("task") or trajectory.trajectory_id or "")
    return Attempt(task, trajectory.outcome == "passed", _features(trajectory, after), before, after)


def _said_at_the_end(trajectory: Trajectory) -> float | None:
    """What the agent gave `finish` as its confidence."""
    calls = [call for step in trajectory.steps for call in step.tool_calls or [] if call.function_name == "finish"]
    return _probability(calls[-1].arguments.get("confidence")) if calls else None


def _features(trajectory: Trajectory, after: float | None) -> tuple[float, ...]:
    """How long it was, how much failed, was repeated or went without a word, and whether and how it ended itself."""
    turns = [step for step in trajectory.steps if step.source == "agent"]
    calls = [call for step in turns for call in step.tool_calls or []]
    results = [result for step in turns for result in (step.observation.results if step.observation else [])]
    failed = sum(bool((result.extra or {}).get("failed")) for result in results)
    tokens = sum((step.metrics.completion_tokens or 0) for step in turns if step.metrics)
    different = len({(call.function_name, str(call.arguments)) for call in calls})
    return (
        math.log1p(len(turns)),
        math.log1p(tokens),
        failed / len(results) if results else 0.0,
        1 - different / len(calls) if calls else 0.0,
        sum(not step.message for step in turns) / len(turns) if turns else 0.0,
        float(bool(calls) and calls[-1].function_name == "finish"),
        0.5 if after is None else after,
    )


def calibrated(attempts: Sequence[Attempt]) -> list[float] | None:
    """A forecast for each attempt from the attempts at other tasks; None where there are too few of them."""
    tasks = {task: at for at, task in enumerate(sorted({attempt.task for attempt in attempts}))}
    folds = [tasks[attempt.task] % _FOLDS for attempt in attempts]
    forecasts = [0.0] * len(attempts)
    for fold in set(folds):
        others = [attempt for attempt, its in zip(attempts, folds, strict=True) if its != fold]
        if len({attempt.passed for attempt in others}) < 2:
            return None
        model = Logistic.fitted([attempt.features for attempt in others], [attempt.passed for attempt in others])
        for at, its in enumerate(folds):
            if its == fold:
                forecasts[at] = model.forecast(attempts[at].features)
    return forecasts


def forecasts_of(attempts: Sequence[Attempt]) -> dict[str, list[tuple[float, bool]]]:
    """Every kind of forecast there is, each with what happened."""
    learnt = calibrated(attempts) or []
    return {
        "before": [(attempt.before, attempt.passed) for attempt in attempts if attempt.before is not None],
        "after": [(attempt.after, attempt.passed) for attempt in attempts if attempt.after is not None],
        "calibrated": [(p, attempt.passed) for p, attempt in zip(learnt, attempts, strict=False)],
    }


@dataclass(frozen=True)
class Logistic:
    """Logistic regression on standardised features, shrunk towards the base rate."""

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    """The constant first."""

    @classmethod
    def fitted(cls, rows: Sequence[Sequence[float]], outcomes: Sequence[bool]) -> "Logistic":
        """Newton's method on the penalised likelihood."""
        columns = list(zip(*rows, strict=True))
        means = tuple(sum(column) / len(column) for column in columns)
        spreads = (math.sqrt(sum((x - m) ** 2 for x in c) / len(c)) for c, m in zip(columns, means, strict=True))
        scales = tuple(spread or 1.0 for spread in spreads)
        ready = [_standard(row, means, scales) for row in rows]
        size = len(means) + 1
        weights = [0.0] * size
        for _ in range(_ROUNDS):
            slope = [-_SHRINKAGE * weight if at else 0.0 for at, weight in enumerate(weights)]
            curve = [[_SHRINKAGE * (a == b and a > 0) + 1e-9 * (a == b) for b in range(size)] for a in range(size)]
            for row, outcome in zip(ready, outcomes, strict=True):
                p = _sigmoid(sum(w * x for w, x in zip(weights, row, strict=True)))
                for a in range(size):
                    slope[a] += (outcome - p) * row[a]
                    for b in range(size):
                        curve[a][b] += p * (1 - p) * row[a] * row[b]
            move = _solved(curve, slope)
            weights = [weight + step for weight, step in zip(weights, move, strict=True)]
            if max(map(abs, move)) < 1e-6:
                break
        return cls(means, scales, tuple(weights))

    def forecast(self, row: Sequence[float]) -> float:
        ready = _standard(row, self.means, self.scales)
        return _sigmoid(sum(w * x for w, x in zip(self.weights, ready, strict=True)))


def _standard(row: Sequence[float], means: Sequence[float], scales: Sequence[float]) -> list[float]:
    return [1.0, *((x - mean) / scale for x, mean, scale in zip(row, means, scales, strict=True))]


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gauss's elimination with pivots; both are used up."""
    size = len(right)
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(matrix[row][at]))
        matrix[at], matrix[pivot] = matrix[pivot], matrix[at]
        right[at], right[pivot] = right[pivot], right[at]
        for row in range(at + 1, size):
            factor = matrix[row][at] / matrix[at][at]
            right[row] -= factor * right[at]
            for column in range(at, size):
                matrix[row][column] -= factor * matrix[at][column]
    solution = [0.0] * size
    for at in reversed(range(size)):
        known = sum(matrix[at][column] * solution[column] for column in range(at + 1, size))
        solution[at] = (right[at] - known) / matrix[at][at]
    return solution


def _probability(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None
