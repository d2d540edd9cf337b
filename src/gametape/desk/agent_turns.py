"""Idempotency keys for what a turn does outside its workspace."""

from collections.abc import Awaitable, Callable

from gametape.agent.limits import RolloutEnd
from gametape.agent.rollout import Rollout
from gametape.core.errors import GametapeError
from gametape.record.errors import OutOfDiskSpace


class TurnKeys:
    """Numbers the effects of one kind within each turn of an attempt: ATTEMPT/TURN/KIND-n. A turn that is run again
    after a kill asks in the same order, because its reply was kept, and so has the same keys."""

    def __init__(self, attempt: str, turn: Callable[[], int], kind: str) -> None:
        self.attempt = attempt
        self._turn, self._kind = turn, kind
        self._last = (-1, 0)

    @property
    def turn(self) -> int:
        return self._turn()

    def next(self) -> str:
        turn, number = self._last
        self._last = (self.turn, number + 1 if turn == self.turn else 1)
        return f"{self.attempt}/{self.turn}/{self._kind}-{self._last[1]}"


CancelCheck = Callable[[], Awaitable[bool]]


async def run_turns(rollout: Rollout, cancelled: CancelCheck) -> RolloutEnd:
    """Turn after turn until it is over; `cancelled` is asked before each. Raises `OutOfDiskSpace` where a turn
    cannot be put on record: then it has not happened, and the work goes on there when there is room."""
    try:
        while not await cancelled():
            await rollout.turn()
        return RolloutEnd("cancelled", "somebody asked for its end")
    except RolloutEnd as end:
        return end
    except OutOfDiskSpace:
        raise
    except GametapeError as error:
        return RolloutEnd("error", str(error))
