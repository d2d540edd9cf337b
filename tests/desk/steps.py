"""Job steps in memory that can die at will: what a kill does to a job, without a process to kill."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


class Killed(BaseException):
    """Nothing in the package may catch it, as nothing can catch SIGKILL."""


@dataclass
class Kept:
    """What outlives a death: give it to the next `MemoryRecorder` of the same errand."""

    results: list[tuple[str, Any]] = field(default_factory=list)
    cancelled: bool = False


class MemoryRecorder:
    """`JobSteps` over `stored`. It dies in the `die_at`-th new step (from 1): after `act` was run and before its result
    was stored, or with `after_keeping` right after that."""

    def __init__(
        self,
        key: str = "errand",
        stored: Kept | None = None,
        die_at: int | None = None,
        after_keeping: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.key = key
        self.kept = stored if stored is not None else Kept()
        self._die_at, self._after_keeping, self._clock = die_at, after_keeping, clock
        self._asked = 0
        self._new = 0

    async def once(self, name: str, act: Callable[[], Awaitable[Any]]) -> Any:
        self._asked += 1
        if self._asked <= len(self.kept.results):
            known, result = self.kept.results[self._asked - 1]
            assert known == name, f"the step was {known} the first time, {name} this time"
            return result
        assert name not in dict(self.kept.results), f"two steps of the name {name}"
        result = await act()
        self._new += 1
        if self._new == self._die_at and not self._after_keeping:
            raise Killed
        self.kept.results.append((name, result))
        if self._new == self._die_at:
            raise Killed
        return result

    async def now(self) -> float:
        async def read() -> float:
            return self._clock()

        return float(await self.once(f"now-{self._asked}", read))

    async def cancelled(self) -> bool:
        return self.kept.cancelled
