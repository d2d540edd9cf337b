"""One process runs the errands; the others hand them in and wait.

`perform` does both ways: it hands an errand in, durably, and then waits for its result or for the lock, whichever
comes first. So single commands need no server, two at once share safely, and nothing is run by two processes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gametape.core.errors import GametapeError
from gametape.desk import durable
from gametape.desk.errands import Desk, Errand, Json
from gametape.desk.lock import Held, holder, try_lock
from gametape.desk.room import listening
from gametape.record.trouble import NoRoom

_LOOK = 0.1
_SECONDS_BETWEEN_CHECKS = 2.0


class Refused(GametapeError):
    exit_code = 1


async def perform(desk: Desk, errand: Errand, meanwhile: Callable[[], None] = lambda: None) -> dict[str, Json]:
    """Have an errand done and give its result; the error it ended with is raised. Interrupted at any instant, the
    errand stays: handing in the same key goes on with it. `meanwhile` is called some times a second."""
    with durable.client(desk) as errands:
        await asyncio.to_thread(errands.submit, errand)
        while not await _is_over(errands, errand.key):
            held = await asyncio.to_thread(try_lock, desk)
            if held is not None:
                async with running(desk, held):
                    while not await _is_over(errands, errand.key):
                        await _wait(meanwhile)
            else:
                await _wait(meanwhile)
        meanwhile()
        return await asyncio.to_thread(errands.result, errand.key)


async def become_runner(desk: Desk) -> Held:
    """The lock, or `Refused`: there is one runner already."""
    held = await asyncio.to_thread(try_lock, desk)
    if held is None:
        raise Refused(f"{await asyncio.to_thread(holder, desk)} runs this desk already")
    return held


@asynccontextmanager
async def running(desk: Desk, held: Held) -> AsyncIterator[None]:
    """Run whatever is handed in or was left by others, until the end of the block; then what is under way is cut off
    where it is, for the next runner to take up. Losing the lock ends the block at once, and so does a full disk."""
    try:
        with listening(durable.give_up):
            durable.launch(desk)
            block = asyncio.current_task()
            watch = asyncio.create_task(_watch(held, block))
            try:
                yield
            except asyncio.CancelledError:
                if watch.done() and not watch.cancelled() and block and block.uncancel() == 0:
                    raise watch.result() from None
                raise
            finally:
                watch.cancel()
                await durable.close()
    finally:
        held.release()


async def _watch(held: Held, block: "asyncio.Task[object] | None") -> GametapeError:
    """Why the block had to end."""
    while (trouble := durable.trouble()) is None and await asyncio.to_thread(held.is_held):
        await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)
    if block is not None:
        block.cancel()
    if trouble is not None:
        return NoRoom(f"{trouble}; what was handed in goes on with the next run")
    return Refused("the database took the runner's lock away; start again")


async def _is_over(errands: durable.Errands, key: str) -> bool:
    return await asyncio.to_thread(errands.state, key) in ("done", "failed")


async def _wait(meanwhile: Callable[[], None]) -> None:
    meanwhile()
    await asyncio.sleep(_LOOK)
