"""What the strip of a tape is coloured by: the mean over the tokens of each step, for steps that have one."""

from collections.abc import Mapping, Sequence
from typing import Any

from gametape.studio.step_view import amount, count
from gametape.studio.web.tape import Tape
from gametape.studio.web.target_log import TargetLog

_DECIMALS = 5
_TOKENS, _SURPRISAL = 2, 4


def step_means(
    tape: Tape, name: str, targets: TargetLog | None, advantage: float | None
) -> dict[str, dict[int, float]]:
    """By what it is, by step. The targeted signal is as the last update measured it, else as the coach did."""
    means: dict[str, dict[int, float]] = {"entropy": {}, "mismatch": {}, "targeted": {}, "advantage": {}}
    for step, reading in tape.readings.items():
        row = tape.facts[step - 1] if 0 < step <= len(tape.facts) else None
        if row is None:
            continue
        entropy, learner = _column(reading.get("entropy")), _column(reading.get("learner"))
        if entropy and len(entropy) == row[_TOKENS]:
            means["entropy"][step] = _mean(entropy)
        surprisal = row[_SURPRISAL]
        if learner and len(learner) == row[_TOKENS] and surprisal is not None:
            means["mismatch"][step] = round(_mean(learner) + surprisal, _DECIMALS)
    measured = targets.of(name) if targets else {}
    for hint in tape.hints:
        step = count(hint.get("step"))
        update = next((line for line in reversed(measured.get(step, [])) if line.get("text") == hint.get("text")), None)
        gap = _gap(update, "student", "teacher") or _gap(hint, "student_logprobs", "teacher_logprobs")
        if step and gap:
            means["targeted"][step] = _mean(gap)
    if advantage is not None:
        means["advantage"] = dict.fromkeys(sorted(tape.learned), advantage)
    return means


def _gap(record: Mapping[str, Any] | None, student: str, teacher: str) -> list[float]:
    """Teacher minus student at each token; empty where the two are not of the same tokens."""
    before, after = (_column((record or {}).get(key)) for key in (student, teacher))
    return [new - old for old, new in zip(before, after, strict=True)] if len(before) == len(after) else []


def _column(values: Any) -> list[float]:
    numbers = values if isinstance(values, list) else []
    return [amount(number) for number in numbers] if all(isinstance(one, int | float) for one in numbers) else []


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), _DECIMALS)
