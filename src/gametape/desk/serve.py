"""The process that stays: it runs what is handed in, takes up what was left, and looks after the heartbeats."""

import asyncio
import signal
import time
from collections.abc import Callable

from gametape.desk import durable
from gametape.desk.errands import Desk
from gametape.desk.heartbeats.book import TICKS
from gametape.desk.heartbeats.scheduling import Schedule
from gametape.desk.runner import become_runner, running
from gametape.watch.words import printable

_SECONDS_BETWEEN_ROUNDS = 60.0
_SECONDS_TICKS_ARE_KEPT = 86_400.0
_LOOK = 1.0
_OVERLAP = 5.0
"""In seconds: what was on its way into the database at one look is seen at the next."""


async def serve(desk: Desk, tell: Callable[[str], None], ready: Callable[[], None] = lambda: None) -> None:
    """Run the desk until SIGTERM or Ctrl-C; then everything is left where it is, for the next one. Raises `Refused`
    where another process is the runner."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    held = await become_runner(desk)
    with durable.client(desk) as errands:
        left = await asyncio.to_thread(errands.unfinished)
        tell(f"serving {desk.home}; {len(left)} errands to take up")
        async with running(desk, held):
            ready()
            jobs = [
                asyncio.create_task(Schedule(desk, errands, tell).run(time.time)),
                asyncio.create_task(_report(desk, errands, tell)),
                asyncio.create_task(_keep_house(desk, errands)),
            ]
            try:
                waiting = asyncio.create_task(ended.wait())
                done, _ = await asyncio.wait([waiting, *jobs], return_when=asyncio.FIRST_COMPLETED)
                for job in done:
                    job.result()
            finally:
                for job in (waiting, *jobs):
                    job.cancel()
                await asyncio.gather(waiting, *jobs, return_exceptions=True)
    tell("ended; whatever was under way goes on with the next run")


async def _report(desk: Desk, errands: durable.Errands, tell: Callable[[str], None]) -> None:
    """Say what begins and ends, also where both happen between two looks, and what people are told in between."""
    known: set[str] = set()
    since = looked = time.time()
    told = set(await asyncio.to_thread(errands.ended_of, looked - _OVERLAP))
    while True:
        before, looked = looked, time.time()
        now = set(await asyncio.to_thread(errands.unfinished))
        ended = set(await asyncio.to_thread(errands.ended_of, before - _OVERLAP))
        for key in sorted((now | ended) - known - told):
            tell(f"{key}: begun")
        for notice in await asyncio.to_thread(desk.notices.since, since):
            tell(f"notice from {notice.origin}: {printable(' '.join(notice.text.split()) or notice.title)}")
            since = notice.at
        over = (known | ended) - now - told
        for key in sorted(over):
            tell(f"{key}: {await asyncio.to_thread(errands.state, key)}")
        known, told = now, ended - now | over
        await asyncio.sleep(_LOOK)


async def _keep_house(desk: Desk, errands: durable.Errands) -> None:
    """Try again what could not be delivered, and drop the steps of old ticks; what they came to is in the log."""
    while True:
        await desk.notices.retry()
        while await asyncio.to_thread(errands.forget, TICKS, time.time() - _SECONDS_TICKS_ARE_KEPT):
            pass
        await asyncio.sleep(_SECONDS_BETWEEN_ROUNDS)
