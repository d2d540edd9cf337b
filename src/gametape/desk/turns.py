"""The turns of an agent at the desk: whatever stops them is an end, but for a disk that is full."""

from collections.abc import Awaitable, Callable

from gametape.agent.limits import Over
from gametape.agent.rollout import Rollout
from gametape.core.errors import GametapeError
from gametape.record.trouble import NoRoom

Ask = Callable[[], Awaitable[bool]]


async def turns(rollout: Rollout, cancelled: Ask) -> Over:
    """Turn after turn until it is over; `cancelled` is asked before each. Raises `NoRoom` where a turn cannot be put on
    record: then it has not happened, and the work goes on there when there is room."""
    try:
        while not await cancelled():
            await rollout.turn()
        return Over("cancelled", "somebody asked for its end")
    except Over as over:
        return over
    except NoRoom:
        raise
    except GametapeError as error:
        return Over("error", str(error))
