"""An agent's turns on the desk: the loop that goals and threads share, and idempotency keys for effects of a turn."""

from collections.abc import Awaitable, Callable

from gametape.agent.limits import RolloutEnd
from gametape.agent.rollout import Rollout
from gametape.core.errors import GametapeError
from gametape.record.errors import OutOfDiskSpace


class TurnKeys:
    """Keys for the effects of one kind within each turn of an attempt: ATTEMPT/TURN/KIND-n. A turn that is run again
    after a kill has the same reply and so asks for the same keys in the same order."""

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
    """Run turns until the rollout ends or `cancelled` says so; it is asked before each turn. Raises `OutOfDiskSpace`
    where a turn cannot be recorded: that turn has not happened, and is run again when there is space."""
    try:
        while not await cancelled():
            await rollout.turn()
        return RolloutEnd("cancelled", "it was cancelled")
    except RolloutEnd as end:
        return end
    except OutOfDiskSpace:
        raise
    except GametapeError as error:
        return RolloutEnd.from_error(error)
