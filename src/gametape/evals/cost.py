"""What a success costs."""

from collections.abc import Iterable
from dataclasses import dataclass

from gametape.evals.attempt import Attempt


@dataclass(frozen=True)
class Cost:
    """Of all attempts together, for each that passed; None where none did. Failed and broken attempts are paid for
    too: `spent_on_failures` is their share of the tokens, or of the seconds where no tokens were counted."""

    tokens: float | None
    usd: float | None
    seconds: float | None
    spent_on_failures: float | None


def cost_per_success(attempts: Iterable[Attempt]) -> Cost:
    every = list(attempts)
    passed = sum(bool(one.passed) for one in every)
    tokens, usd = sum(one.tokens for one in every), sum(one.cost_usd for one in every)
    seconds = sum(one.seconds for one in every)
    weights = [(one, float(one.tokens) if tokens else one.seconds) for one in every]
    whole = sum(weight for _, weight in weights)
    lost = sum(weight for one, weight in weights if not one.passed)
    return Cost(
        tokens=tokens / passed if passed else None,
        usd=usd / passed if passed else None,
        seconds=seconds / passed if passed else None,
        spent_on_failures=lost / whole if whole else None,
    )
