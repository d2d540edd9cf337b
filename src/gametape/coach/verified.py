"""The gate that counts: does the hint lead to success. Asked by playing on, with it and without it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gametape.agent.playing import Played
from gametape.coach.forking import Ground
from gametape.coach.locating import located
from gametape.coach.posterior import NONE, Count, count, probability_of_gain
from gametape.coach.target import Target
from gametape.coach.turns import case_of
from gametape.core.hint import Gate

FORKS = 32
"""At least so many, those with the hint and those without it together, over all targets of a type."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Branches:
    """Of some forks: in how many the turn's own check held, and in how many the whole succeeded."""

    check: Count = NONE
    success: Count = NONE

    def __add__(self, other: "Branches") -> "Branches":
        return Branches(self.check + other.check, self.success + other.success)


_NO_BRANCHES = Branches()


@dataclass(frozen=True)
class Trial:
    """Forks without a hint and with it, pooled over targets of a type."""

    plain: Branches = _NO_BRANCHES
    hinted: Branches = _NO_BRANCHES
    tokens: int = 0

    def __add__(self, other: "Trial") -> "Trial":
        return Trial(self.plain + other.plain, self.hinted + other.hinted, self.tokens + other.tokens)

    @property
    def forks(self) -> int:
        return self.plain.success.trials + self.hinted.success.trials

    @property
    def check_gain(self) -> float:
        return probability_of_gain(self.plain.check, self.hinted.check)

    @property
    def success_gain(self) -> float:
        return probability_of_gain(self.plain.success, self.hinted.success)


def g2(trial: Trial, least: int = FORKS, confidence: float = CONFIDENCE) -> Gate:
    """Passed where it is sure that more succeed with the hint; or that the turn's own check holds more often, while
    nothing shows that fewer succeed. The value is the larger probability of a gain that decides."""
    helps = trial.success_gain >= confidence
    harms = trial.success_gain <= 1 - confidence
    value = trial.success_gain if helps or harms else max(trial.success_gain, trial.check_gain)
    told = (
        f"the turn's own check {trial.plain.check} -> {trial.hinted.check}, "
        f"success {trial.plain.success} -> {trial.hinted.success}"
    )
    enough = trial.forks >= least
    return Gate(
        passed=enough and value >= confidence,
        value=value,
        detail=told if enough else f"{told}: too few forks",
        forks=trial.forks,
        tokens=trial.tokens,
    )


async def tried(ground: Ground, target: Target, others: Sequence[Target], pairs: int) -> Trial:
    """Forks in pairs that share a seed, from the earliest known target on; all others are hinted in both branches.

    Otherwise a fault that was made before this turn, or is made after it, would hide what the hint is worth.
    """
    known = {other.turn: other.hint for other in others if other.turn != target.turn}
    first = min([target.turn, *known])
    before = ground.cost.tokens
    seeds = [1000 * target.turn + number for number in range(pairs)]
    plain = await ground.branches(first, known, seeds)
    hinted = await ground.branches(first, {**known, target.turn: target.hint}, seeds)
    return Trial(_branches(plain, target.turn), _branches(hinted, target.turn), ground.cost.tokens - before)


def _branches(played: Sequence[Played], turn: int) -> Branches:
    """Forks in which the machinery failed say nothing."""
    judged = [one for one in played if one.judged is not None]
    return Branches(
        count([not any(target.turn == turn for target in located(case_of(one))) for one in judged]),
        count([bool(one.judged and one.judged.passed) for one in judged]),
    )
