"""Which prompt comes next: what is learned already retires, and is looked at again now and then."""

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

from gametape.train.seeds import seed_for

_REMEMBERED = 4
"""Times the number of samples that a decision needs: old successes do not count for ever."""


class Curriculum:
    """Draws cells. A cell is a prompt, or a family of prompts that never recur."""

    def __init__(self, cells: int, pass_rate: float, samples: int, replay: float, seed: int) -> None:
        self._pass_rate, self._samples, self._replay, self._seed = pass_rate, samples, replay, seed
        self._seen = [deque[bool](maxlen=samples * _REMEMBERED) for _ in range(cells)]

    @property
    def cells(self) -> int:
        return len(self._seen)

    @property
    def retired(self) -> list[int]:
        return [cell for cell, seen in enumerate(self._seen) if self._is_learned(seen)]

    def draw(self, number: int) -> int:
        """The cell of the n-th draw. With everything retired there is nothing better to do than to go on."""
        dice = random.Random(seed_for(self._seed, "cell", number))
        retired = set(self.retired)
        active = [cell for cell in range(len(self._seen)) if cell not in retired]
        pool = sorted(retired) if retired and (not active or dice.random() < self._replay) else active
        return dice.choice(pool)

    def record(self, cell: int, passed: Sequence[bool]) -> None:
        self._seen[cell].extend(passed)

    def state(self) -> list[list[bool]]:
        return [list(seen) for seen in self._seen]

    def restore(self, state: Any) -> None:
        for seen, told in zip(self._seen, state, strict=True):
            seen.clear()
            seen.extend(told)

    def _is_learned(self, seen: deque[bool]) -> bool:
        return len(seen) >= self._samples and sum(seen) >= self._pass_rate * len(seen)
