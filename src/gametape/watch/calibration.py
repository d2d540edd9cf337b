"""How good forecasts are: Brier score, skill against the base rate, AUROC, and calibration error, with intervals.

Calibration error is taken over bins of equal mass. It is hardly ever zero: the report has a perfect forecaster's
error on as many outcomes beside it, and only the excess over that means something. Equal forecasts are one value:
where the edge of a bin falls among them, each bin gets its share of all of them. So no score depends on the order of
the forecasts.

The statistics are written here in plain Python: scipy and scikit-learn would be heavy dependencies of the base install,
and hundreds of attempts with seven features need neither.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gametape.core.trajectory import Trajectory

_BINS = 10
_RESAMPLES = 400

ForecastOutcomes = Sequence[tuple[float, bool]]
"""Pairs of a forecast and whether it happened."""


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ForecastScores:
    """`skill` and `auroc` are None where all outcomes are the same."""

    n: int
    base_rate: float
    brier: Estimate
    skill: Estimate | None
    auroc: Estimate | None
    ece: Estimate
    ece_if_perfect: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def score_forecasts(pairs: ForecastOutcomes, seed: int = 0) -> ForecastScores:
    """Score at least one forecast. The order of the pairs does not matter."""
    rng = random.Random(seed)
    pairs = sorted(pairs)
    n = len(pairs)
    resamples = [[pairs[rng.randrange(n)] for _ in range(n)] for _ in range(_RESAMPLES)]
    drawn = [[(p, rng.random() < p) for p, _ in pairs] for _ in range(_RESAMPLES // 4)]
    return ForecastScores(
        n=n,
        base_rate=sum(happened for _, happened in pairs) / n,
        brier=_estimated(brier, pairs, resamples),
        skill=_estimated_where_possible(brier_skill, pairs, resamples),
        auroc=_estimated_where_possible(auroc, pairs, resamples),
        ece=_estimated(equal_mass_ece, pairs, resamples),
        ece_if_perfect=sum(map(equal_mass_ece, drawn)) / len(drawn),
    )


def brier(pairs: ForecastOutcomes) -> float:
    return sum((p - happened) ** 2 for p, happened in pairs) / len(pairs)


def brier_skill(pairs: ForecastOutcomes) -> float | None:
    """1 is perfect, 0 is no better than always saying the base rate."""
    rate = sum(happened for _, happened in pairs) / len(pairs)
    return 1 - brier(pairs) / (rate * (1 - rate)) if 0 < rate < 1 else None


def auroc(pairs: ForecastOutcomes) -> float | None:
    """The chance that a success was given a higher forecast than a failure; ties count half."""
    successes = sum(happened for _, happened in pairs)
    failures = len(pairs) - successes
    if not successes or not failures:
        return None
    ordered = sorted(pairs)
    ranks, at = 0.0, 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end][0] == ordered[at][0]:
            end += 1
        ranks += sum(happened for _, happened in ordered[at:end]) * (at + 1 + end) / 2
        at = end
    return (ranks - successes * (successes + 1) / 2) / (successes * failures)


def equal_mass_ece(pairs: ForecastOutcomes) -> float:
    """The mean distance of forecast and frequency over ten bins that hold the same number of forecasts. The outcomes of
    equal forecasts are shared out evenly among the bins that they reach into."""
    outcomes: dict[float, list[bool]] = {}
    for p, happened in pairs:
        outcomes.setdefault(p, []).append(happened)
    n, bins = len(pairs), min(_BINS, len(pairs))
    gaps = [0.0] * bins
    begin = 0  # forecasts and edges are counted in parts of 1 / bins, so that both are whole numbers
    for p, known in sorted(outcomes.items()):
        end = begin + len(known) * bins
        gap = p - sum(known) / len(known)
        for at in range(begin // n, -(-end // n)):
            gaps[at] += gap * (min(end, (at + 1) * n) - max(begin, at * n))
        begin = end
    return sum(map(abs, gaps)) / (n * bins)


def _estimated(
    measure: Callable[[ForecastOutcomes], float], pairs: ForecastOutcomes, resamples: Sequence[ForecastOutcomes]
) -> Estimate:
    """The estimate of an error, never below 0. Resampling adds noise, and that adds error: it is subtracted."""
    value = measure(pairs)
    values = sorted(map(measure, resamples))
    bias = sum(values) / len(values) - value
    low, high = _middle(values)
    return Estimate(value, max(0.0, low - bias), high - bias)


def _estimated_where_possible(
    measure: Callable[[ForecastOutcomes], float | None], pairs: ForecastOutcomes, resamples: Sequence[ForecastOutcomes]
) -> Estimate | None:
    value = measure(pairs)
    if value is None:
        return None
    return Estimate(
        value,
        *_middle(sorted(sample for sample in map(measure, resamples) if sample is not None)),
    )


def _middle(ordered: Sequence[float]) -> tuple[float, float]:
    last = len(ordered) - 1
    return ordered[round(0.025 * last)], ordered[round(0.975 * last)]


_FOLDS = 5
_SHRINKAGE = 1.0
_ROUNDS = 25


@dataclass(frozen=True)
class ForecastAttempt:
    """The features of an attempt, its outcome, and the confidence that the agent stated before and after it."""

    task: str
    passed: bool
    features: tuple[float, ...]
    before: float | None = None
    after: float | None = None


def forecast_attempt(trajectory: Trajectory) -> ForecastAttempt | None:
    """The attempt of a trajectory; None if it has no outcome."""
    if trajectory.outcome is None:
        return None
    extra = trajectory.extra or {}
    stated = extra.get("confidence")
    before, after = (_probability(stated.get(key)) if isinstance(stated, dict) else None for key in ("before", "after"))
    after = _final_confidence(trajectory) if after is None else after
    task = str(extra.get("task") or trajectory.trajectory_id or "")
    return ForecastAttempt(task, trajectory.outcome == "passed", _features(trajectory, after), before, after)


def _final_confidence(trajectory: Trajectory) -> float | None:
    """The confidence that the agent passed to `finish`."""
    calls = [call for step in trajectory.steps for call in step.tool_calls or [] if call.function_name == "finish"]
    return _probability(calls[-1].arguments.get("confidence")) if calls else None


def _features(trajectory: Trajectory, after: float | None) -> tuple[float, ...]:
    """Length, shares of failed and repeated calls and of silent turns, and whether and how the agent finished."""
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


def cross_validated_forecasts(attempts: Sequence[ForecastAttempt]) -> list[float] | None:
    """A forecast for each attempt from the attempts at other tasks; None where there are too few of them."""
    tasks = {task: at for at, task in enumerate(sorted({attempt.task for attempt in attempts}))}
    folds = [tasks[attempt.task] % _FOLDS for attempt in attempts]
    forecasts = [0.0] * len(attempts)
    for fold in set(folds):
        others = [attempt for attempt, own in zip(attempts, folds, strict=True) if own != fold]
        others.sort(
            key=lambda attempt: (attempt.features, attempt.passed)
        )  # sums depend on the order in their last bits
        if len({attempt.passed for attempt in others}) < 2:
            return None
        model = LogisticRegression.fitted(
            [attempt.features for attempt in others], [attempt.passed for attempt in others]
        )
        for at, own in enumerate(folds):
            if own == fold:
                forecasts[at] = model.forecast(attempts[at].features)
    return forecasts


def forecasts_by_kind(attempts: Sequence[ForecastAttempt]) -> dict[str, list[tuple[float, bool]]]:
    """Every kind of forecast there is, each with what happened."""
    learnt = cross_validated_forecasts(attempts) or []
    return {
        "before": [(attempt.before, attempt.passed) for attempt in attempts if attempt.before is not None],
        "after": [(attempt.after, attempt.passed) for attempt in attempts if attempt.after is not None],
        "calibrated": [(p, attempt.passed) for p, attempt in zip(learnt, attempts, strict=False)],
    }


@dataclass(frozen=True)
class LogisticRegression:
    """Logistic regression on standardised features, shrunk towards the base rate."""

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    """The constant first."""

    @classmethod
    def fitted(cls, rows: Sequence[Sequence[float]], outcomes: Sequence[bool]) -> "LogisticRegression":
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
            move = _solve_linear(curve, slope)
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


def _solve_linear(matrix: list[list[float]], right: list[float]) -> list[float]:
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
