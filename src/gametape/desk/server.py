"""`gametape desk serve`: runs submitted and unfinished jobs, schedules heartbeats, and reports what happens."""

import asyncio
import signal
import time
from collections.abc import Callable

from gametape.desk import workflow_engine
from gametape.desk.database import check_database
from gametape.desk.database_backup import back_up
from gametape.desk.heartbeats.registry import TICKS
from gametape.desk.heartbeats.scheduler import HeartbeatScheduler
from gametape.desk.jobs import Desk
from gametape.desk.runner import acquire_runner_lock, job_runner
from gametape.watch.text_features import printable

_SECONDS_BETWEEN_ROUNDS = 60.0
_SECONDS_TICKS_ARE_KEPT = 86_400.0
_POLL_SECONDS = 1.0
_OVERLAP = 5.0
"""In seconds: rows that were being written during one poll are seen by the next."""


async def serve(desk: Desk, log: Callable[[str], None], on_ready: Callable[[], None] = lambda: None) -> None:
    """Run the desk until SIGTERM or Ctrl-C. Unfinished jobs stay for the next run. Raises `RunnerConflict` where
    another process is the runner."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await asyncio.to_thread(check_database, desk.database_url)
    lock = await acquire_runner_lock(desk)
    with workflow_engine.open_job_client(desk) as client:
        unfinished = await asyncio.to_thread(client.unfinished)
        log(f"serving {desk.home}; {len(unfinished)} jobs to take up")
        async with job_runner(desk, lock):
            on_ready()
            jobs = [
                asyncio.create_task(HeartbeatScheduler(desk, client, log).run()),
                asyncio.create_task(_report(desk, client, log)),
                asyncio.create_task(_run_upkeep(desk, client)),
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
    log("ended; unfinished jobs continue with the next run")


async def _report(desk: Desk, client: workflow_engine.JobClient, log: Callable[[str], None]) -> None:
    """Log jobs that begin and end, even within one poll, and the notifications in between."""
    known: set[str] = set()
    since = looked = time.time()
    reported = set(await asyncio.to_thread(client.ended_since, looked - _OVERLAP))
    while True:
        before, looked = looked, time.time()
        now = set(await asyncio.to_thread(client.unfinished))
        ended = set(await asyncio.to_thread(client.ended_since, before - _OVERLAP))
        for key in sorted((now | ended) - known - reported):
            log(f"{key}: begun")
        for notice in await asyncio.to_thread(desk.notifications.since, since):
            log(f"notice from {notice.origin}: {printable(' '.join(notice.text.split()) or notice.title)}")
            since = notice.at
        finished = (known | ended) - now - reported
        for key in sorted(finished):
            log(f"{key}: {await asyncio.to_thread(client.state, key)}")
        known, reported = now, ended - now | finished
        await asyncio.sleep(_POLL_SECONDS)


async def _run_upkeep(desk: Desk, client: workflow_engine.JobClient) -> None:
    """Retry undelivered notifications, and delete the steps of old ticks; their outcomes stay in the tick log."""
    while True:
        await desk.notifications.retry()
        await asyncio.to_thread(back_up, desk.database_url)
        while await asyncio.to_thread(client.delete_finished, TICKS, time.time() - _SECONDS_TICKS_ARE_KEPT):
            pass
        await asyncio.sleep(_SECONDS_BETWEEN_ROUNDS)
