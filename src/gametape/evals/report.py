"""The report of an evaluation: estimates over all attempts of a suite, as one JSON object."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from statistics import fmean, median_low
from typing import Any

from gametape.evals.attempt import EvalAttempt
from gametape.evals.estimators import pass_at_k, pass_hat_k
from gametape.evals.mistakes import breaches_by_step, derailed_at, error_cascades, recovery_rate, survival_observation
from gametape.evals.statistics import kaplan_meier, wilson_interval


@dataclass(frozen=True)
class CostPerSuccess:
    """The cost of all attempts divided by the number that passed; None where none did. `spent_on_failures` is the share
    of the tokens, or of the seconds where no tokens were counted, that failed and broken attempts took."""

    tokens: float | None
    usd: float | None
    seconds: float | None
    spent_on_failures: float | None


def cost_per_success(attempts: Iterable[EvalAttempt]) -> CostPerSuccess:
    attempts = list(attempts)
    passed = sum(bool(attempt.passed) for attempt in attempts)
    tokens, usd, seconds = (sum(map(attrgetter(name), attempts)) for name in ("tokens", "cost_usd", "seconds"))
    weights = [(attempt, float(attempt.tokens) if tokens else attempt.seconds) for attempt in attempts]
    total = sum(weight for _, weight in weights)
    wasted = sum(weight for attempt, weight in weights if not attempt.passed)
    return CostPerSuccess(
        tokens=tokens / passed if passed else None,
        usd=usd / passed if passed else None,
        seconds=seconds / passed if passed else None,
        spent_on_failures=wasted / total if total else None,
    )


_DIGITS = 6


def build_report(attempts: Sequence[EvalAttempt], n: int, k: int) -> dict[str, Any]:
    """`n` attempts of each task were asked for. Attempts that an infrastructure failure broke off count as `errors` and
    in the cost only; a task with fewer than `k` other attempts is in no estimate of pass@k."""
    scored = [attempt for attempt in attempts if attempt.passed is not None]
    by_task = [_counted(group) for _, group in _grouped(scored, "task")]
    enough = [(tried, passed) for tried, passed in by_task if tried >= k]
    derailed = [step for step in map(derailed_at, scored) if step is not None]
    by_run = [_rate(group) for _, group in _grouped(scored, "number")]
    report = {
        "n": n,
        "k": k,
        "tasks": len({attempt.task for attempt in attempts}),
        "attempts": len(attempts),
        "errors": len(attempts) - len(scored),
        "error_reasons": dict(Counter(attempt.reason for attempt in attempts if attempt.passed is None).most_common(8)),
        "cut_off": sum(attempt.cut_off > 0 for attempt in attempts),
        "hacked": sum(attempt.hacked for attempt in scored),
        "success": _share(scored),
        "runs": {"mean": fmean(by_run), "min": min(by_run)} if by_run else None,
        "pass_at_k": fmean(pass_at_k(*counts, k) for counts in enough) if enough else None,
        "pass_hat_k": fmean(pass_hat_k(*counts, k) for counts in enough) if enough else None,
        "by_horizon": _shares(scored, "horizon", "horizon"),
        "by_cell": _shares(scored, "bucket", "cell"),
        "survival": [asdict(point) for point in kaplan_meier(filter(None, map(survival_observation, scored)))],
        "first_derailed_step": median_low(derailed) if derailed else None,
        "derailed_steps": {str(step): count for step, count in sorted(Counter(derailed).items())},
        "recovery_rate": recovery_rate(scored),
        "error_cascades": asdict(error_cascades(scored)),
        "breaches": {str(step): count for step, count in breaches_by_step(scored).items()},
        "accuracy": {"load_bearing": _accuracy(scored, True), "other": _accuracy(scored, False)},
        "cost_per_success": asdict(cost_per_success(attempts)),
    }
    rounded: dict[str, Any] = _rounded(report)
    return rounded


def _counted(attempts: Iterable[EvalAttempt]) -> tuple[int, int]:
    outcomes = [bool(attempt.passed) for attempt in attempts]
    return len(outcomes), sum(outcomes)


def _grouped(attempts: Sequence[EvalAttempt], field: str) -> list[tuple[Any, list[EvalAttempt]]]:
    key = attrgetter(field)
    return [(value, list(group)) for value, group in groupby(sorted(attempts, key=key), key)]


def _shares(attempts: Sequence[EvalAttempt], field: str, key: str) -> list[dict[str, Any]]:
    return [{key: value, **_share(group)} for value, group in _grouped(attempts, field)]


def _rate(attempts: Iterable[EvalAttempt]) -> float:
    tried, passed = _counted(attempts)
    return passed / tried


def _share(attempts: Sequence[EvalAttempt]) -> dict[str, Any]:
    tried, passed = _counted(attempts)
    low, high = wilson_interval(passed, tried)
    return {"n": tried, "passed": passed, "rate": passed / tried if tried else None, "low": low, "high": high}


def _accuracy(attempts: Iterable[EvalAttempt], load_bearing: bool) -> float | None:
    """Of the turns that the environment marked, the share that was correct."""
    turns = [turn for attempt in attempts for turn in attempt.turns if turn.correct is not None]
    correct = [bool(turn.correct) for turn in turns if turn.load_bearing == load_bearing]
    return sum(correct) / len(correct) if correct else None


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
