"""How the learning rate moves over a run: a factor from the step's number alone, so that nothing has to be saved."""

import math
from typing import Literal

Schedule = Literal["constant", "linear", "cosine"]


def schedule_factor(schedule: Schedule, step: int, steps: int, warmup: int = 0, floor: float = 0.0) -> float:
    """What to multiply the learning rate by at `step`, the first being 0, of `steps`.

    It rises in a line over the first `warmup` steps, which all do something, and is 1 after them; from there it stays
    (`constant`), or falls in a line or along half a cosine to `floor`, which a step after the last would have.
    """
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if schedule == "constant":
        return 1.0
    share = min(1.0, (step - warmup) / max(1, steps - warmup))
    fall = share if schedule == "linear" else (1 - math.cos(math.pi * share)) / 2
    return 1 - (1 - floor) * fall
