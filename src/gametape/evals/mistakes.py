"""At which step attempts derail, how often they recover, and how many mistakes follow a first one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gametape.evals.attempt import AttemptTurn, EvalAttempt
from gametape.evals.statistics import SurvivalObservation


def derailed_at(attempt: EvalAttempt) -> int | None:
    """The step at which the attempt derailed; None if it passed, or if its outcome is not known.

    In a task with stages a step is a stage, and the attempt derailed at the first that does not hold in the end.
    Elsewhere a step is a turn: the first one that the environment marks as wrong. Where it marks none, it is the first
    turn whose failure was never made up for, else the turn after the last one that did something new.
    """
    if attempt.passed is not False:
        return None
    if attempt.stages:
        return next((number for number, holds in enumerate(attempt.stages, start=1) if not holds), len(attempt.stages))
    turns = attempt.turns
    if any(turn.correct is not None for turn in turns):
        return next((number for number, turn in enumerate(turns, start=1) if turn.correct is False), len(turns))
    return _never_made_up_for(turns) or _no_progress_after(turns)


def survival_observation(attempt: EvalAttempt) -> SurvivalObservation | None:
    """The attempt as a point of the survival curve; None if its outcome is not known."""
    if attempt.passed is None:
        return None
    step = derailed_at(attempt)
    return SurvivalObservation(step or max(1, len(attempt.stages) or len(attempt.turns)), step is not None)


def recovery_rate(attempts: Iterable[EvalAttempt]) -> float | None:
    """Of the attempts with a mistake in them, the share that passed all the same; None if there are none."""
    passed = [bool(attempt.passed) for attempt in attempts if attempt.passed is not None and _mistakes(attempt)]
    return sum(passed) / len(passed) if passed else None


@dataclass(frozen=True)
class ErrorCascades:
    """What follows a first mistake, and how often turns are mistaken before and after one."""

    attempts: int
    follow_on: float
    """Further mistakes, on average."""
    longest: int
    """The longest run of mistaken turns."""
    rate_before: float | None
    rate_after: float | None


def error_cascades(attempts: Iterable[EvalAttempt]) -> ErrorCascades:
    """The rate before counts every turn up to a first mistake, so a policy that errs at random has equal rates."""
    erred = follow_on = longest = before = after = 0
    for attempt in attempts:
        wrong = _mistakes(attempt)
        first = wrong[0] if wrong else len(attempt.turns)
        before += first
        if not wrong:
            continue
        erred += 1
        follow_on += len(wrong) - 1
        after += len(attempt.turns) - first
        longest = max(longest, _longest_run(wrong))
    return ErrorCascades(
        attempts=erred,
        follow_on=follow_on / erred if erred else 0.0,
        longest=longest,
        rate_before=erred / before if before else None,
        rate_after=follow_on / after if after else None,
    )


def breaches_by_step(attempts: Iterable[EvalAttempt]) -> dict[int, int]:
    """The number of attempts to break a standing constraint, by turn."""
    breaches: Counter[int] = Counter()
    for attempt in attempts:
        breaches.update({number: turn.breaches for number, turn in enumerate(attempt.turns, start=1) if turn.breaches})
    return dict(sorted(breaches.items()))


def _mistakes(attempt: EvalAttempt) -> list[int]:
    return [number for number, turn in enumerate(attempt.turns, start=1) if turn.mistaken]


def _longest_run(numbers: Sequence[int]) -> int:
    longest = run = 0
    last = -1
    for number in numbers:
        run = run + 1 if number == last + 1 else 1
        longest, last = max(longest, run), number
    return longest


def _never_made_up_for(turns: Sequence[AttemptTurn]) -> int | None:
    """A failure is made up for once a later turn uses one of the same tools without failing. A failure without a tool
    is made up for by any later call that succeeds."""
    for number, turn in enumerate(turns, start=1):
        if not turn.failed:
            continue
        later = [tool for other in turns[number:] if not other.failed for tool in other.tools]
        if not (set(turn.tools) & set(later) if turn.tools else later):
            return number
    return None


def _no_progress_after(turns: Sequence[AttemptTurn]) -> int:
    """The turn after the last one with a call that had not been made before; at the latest the last turn."""
    seen: set[str] = set()
    last = 0
    for number, turn in enumerate(turns, start=1):
        if set(turn.done) - seen:
            last = number
        seen.update(turn.done)
    return min(last + 1, max(1, len(turns)))
