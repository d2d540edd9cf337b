"""How the learning rate moves over a run: factors that follow from counters, so that nothing has to be saved."""

import math
from typing import Literal

Schedule = Literal["constant", "linear", "cosine"]


def schedule_factor(schedule: Schedule, spent: float) -> float:
    """What to multiply the learning rate by when this share of the budget is used up: it stays (`constant`), or falls
    to nothing in a line or along half a cosine."""
    if schedule == "constant":
        return 1.0
    share = min(1.0, spent)
    return 1 - (share if schedule == "linear" else (1 - math.cos(math.pi * share)) / 2)


def warmed_up(step: int, warmup: int) -> float:
    """The factor besides: it rises in a line over the first `warmup` updates, which all do something."""
    return min(1.0, (step + 1) / (warmup + 1))
