"""What a suite's attempts say about a policy, as one plain object."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from statistics import fmean, median_low
from typing import Any

from gametape.evals.attempt import EvalAttempt
from gametape.evals.mistakes import breaches_by_step, derailed_at, error_cascades, recovery_rate, survival_observation
from gametape.evals.statistics import kaplan_meier, pass_at_k, pass_hat_k, wilson_interval


@dataclass(frozen=True)
class CostPerSuccess:
    """Of all attempts together, for each that passed; None where none did. Failed and broken attempts are paid for
    too: `spent_on_failures` is their share of the tokens, or of the seconds where no tokens were counted."""

    tokens: float | None
    usd: float | None
    seconds: float | None
    spent_on_failures: float | None


def cost_per_success(attempts: Iterable[EvalAttempt]) -> CostPerSuccess:
    every = list(attempts)
    passed = sum(bool(one.passed) for one in every)
    tokens, usd = sum(one.tokens for one in every), sum(one.cost_usd for one in every)
    seconds = sum(one.seconds for one in every)
    weights = [(one, float(one.tokens) if tokens else one.seconds) for one in every]
    whole = sum(weight for _, weight in weights)
    lost = sum(weight for one, weight in weights if not one.passed)
    return CostPerSuccess(
        tokens=tokens / passed if passed else None,
        usd=usd / passed if passed else None,
        seconds=seconds / passed if passed else None,
        spent_on_failures=lost / whole if whole else None,
    )


_DIGITS = 6


def build_report(attempts: Sequence[EvalAttempt], n: int, k: int) -> dict[str, Any]:
    """`n` attempts of each task were asked for. Those that the machinery broke off count as `errors` and nowhere else,
    but that they were paid for; a task with fewer than `k` others is in no estimate of pass@k."""
    judged = [attempt for attempt in attempts if attempt.passed is not None]
    by_task = [_counted(group) for _, group in _grouped(judged, "task")]
    enough = [(tried, passed) for tried, passed in by_task if tried >= k]
    derailed = [step for step in map(derailed_at, judged) if step is not None]
    by_run = [_rate(group) for _, group in _grouped(judged, "number")]
    found = {
        "n": n,
        "k": k,
        "tasks": len({attempt.task for attempt in attempts}),
        "attempts": len(attempts),
        "errors": len(attempts) - len(judged),
        "hacked": sum(attempt.hacked for attempt in judged),
        "success": _share(judged),
        "runs": {"mean": fmean(by_run), "min": min(by_run)} if by_run else None,
        "pass_at_k": fmean(pass_at_k(*counts, k) for counts in enough) if enough else None,
        "pass_hat_k": fmean(pass_hat_k(*counts, k) for counts in enough) if enough else None,
        "by_horizon": _shares(judged, "horizon"),
        "by_cell": _shares(judged, "cell"),
        "survival": [asdict(point) for point in kaplan_meier(filter(None, map(survival_observation, judged)))],
        "first_derailed_step": median_low(derailed) if derailed else None,
        "derailed_steps": {str(step): count for step, count in sorted(Counter(derailed).items())},
        "recovery_rate": recovery_rate(judged),
        "error_cascades": asdict(error_cascades(judged)),
        "breaches": {str(step): count for step, count in breaches_by_step(judged).items()},
        "accuracy": {"load_bearing": _accuracy(judged, True), "other": _accuracy(judged, False)},
        "cost_per_success": asdict(cost_per_success(attempts)),
    }
    rounded: dict[str, Any] = _rounded(found)
    return rounded


def _counted(attempts: Iterable[EvalAttempt]) -> tuple[int, int]:
    outcomes = [bool(attempt.passed) for attempt in attempts]
    return len(outcomes), sum(outcomes)


def _grouped(attempts: Sequence[EvalAttempt], field: str) -> list[tuple[Any, list[EvalAttempt]]]:
    key = attrgetter(field)
    return [(value, list(group)) for value, group in groupby(sorted(attempts, key=key), key)]


def _shares(attempts: Sequence[EvalAttempt], field: str) -> list[dict[str, Any]]:
    return [{field: value, **_share(group)} for value, group in _grouped(attempts, field)]


def _rate(attempts: Iterable[EvalAttempt]) -> float:
    tried, passed = _counted(attempts)
    return passed / tried


def _share(attempts: Sequence[EvalAttempt]) -> dict[str, Any]:
    tried, passed = _counted(attempts)
    low, high = wilson_interval(passed, tried)
    return {"n": tried, "passed": passed, "rate": passed / tried if tried else None, "low": low, "high": high}


def _accuracy(attempts: Iterable[EvalAttempt], load_bearing: bool) -> float | None:
    """Of the turns that the judge looked at, the share that was right."""
    turns = [turn for attempt in attempts for turn in attempt.turns if turn.correct is not None]
    right = [bool(turn.correct) for turn in turns if turn.load_bearing == load_bearing]
    return sum(right) / len(right) if right else None


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
