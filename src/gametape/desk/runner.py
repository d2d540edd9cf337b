"""The runner: the one process per database that runs jobs, and the lock that makes it the only one.

The lock is on an open file (SQLite) or belongs to a database session (PostgreSQL): both are released when the process
is killed. The holder writes its process id beside it, for people to read.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from gametape.core.errors import GametapeError
from gametape.desk import workflow_engine
from gametape.desk.database import connect, is_sqlite
from gametape.desk.database_backup import back_up
from gametape.desk.jobs import Desk, Job, Json
from gametape.desk.storage_errors import DamagedDatabase, report_storage_errors
from gametape.record.errors import OutOfDiskSpace, write_error
from gametape.record.lock import try_lock

_KEY = 7161954
"""The key of the session lock: any number that nothing else in the database uses."""


class RunnerLock(Protocol):
    """The runner's lock, held by this process."""

    def is_held(self) -> bool:
        """Whether it is still held: a database that restarts releases its locks."""
        ...

    def release(self) -> None: ...


def try_runner_lock(desk: Desk) -> RunnerLock | None:
    """The runner's lock, or None while another process holds it."""
    url = desk.database_url
    return try_file_lock(url) if is_sqlite(url) else _SessionLock.take(url)


def try_file_lock(url: str) -> RunnerLock | None:
    """The same for an SQLite database, which need not be one that can be read."""
    return _FileLock.take(_lock_path(url))


def lock_holder(desk: Desk) -> str:
    """A description of the process that holds the lock, as far as it is known."""
    if not is_sqlite(desk.database_url):
        query = sa.text(
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) "
            "WHERE locktype = 'advisory' AND objid = :key AND granted"
        )
        with desk.database.connect() as connection:
            return connection.scalar(query, {"key": _KEY}) or "another process"
    return file_lock_holder(desk.database_url)


def file_lock_holder(url: str) -> str:
    """The same for an SQLite database, which need not be one that can be read."""
    path = _lock_path(url)
    text = path.read_text(errors="replace").strip() if path.exists() else ""
    return f"process {text}" if text else "another process"


def _lock_path(url: str) -> Path:
    return Path(str(sa.make_url(url).database)).with_suffix(".lock")


@dataclass(frozen=True)
class _FileLock:
    fd: int

    @classmethod
    def take(cls, path: Path) -> "_FileLock | None":
        try:
            fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise write_error(path, error) from None
        try:
            if not try_lock(fd):
                os.close(fd)
                return None
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(fd)
            raise write_error(path, error) from None
        return cls(fd)

    def is_held(self) -> bool:
        return True

    def release(self) -> None:
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


@dataclass(frozen=True)
class _SessionLock:
    engine: sa.Engine
    connection: sa.Connection

    @classmethod
    def take(cls, url: str) -> "_SessionLock | None":
        engine = connect(url, f"process {os.getpid()} on {os.uname().nodename}"[:63])
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if connection.scalar(sa.text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
            return cls(engine, connection)
        connection.close()
        engine.dispose()
        return None

    def is_held(self) -> bool:
        try:
            return bool(self.connection.scalar(sa.text("SELECT 1")))
        except sa.exc.DBAPIError:
            return False

    def release(self) -> None:
        self.connection.invalidate()
        self.engine.dispose()


_POLL_SECONDS = 0.1
_SECONDS_BETWEEN_CHECKS = 2.0


class RunnerConflict(GametapeError):
    exit_code = 1


async def run_job(desk: Desk, job: Job, on_poll: Callable[[], None] = lambda: None) -> dict[str, Json]:
    """Submit a job, wait for it and return its result; the error it ended with is raised. This process becomes the
    runner if there is none. Interrupted at any instant, the job stays: submitting the same key continues it.
    `on_poll` is called several times a second."""
    with workflow_engine.open_job_client(desk) as client:
        await asyncio.to_thread(client.submit, job)
        while not await _has_ended(client, job.key):
            lock = await asyncio.to_thread(try_runner_lock, desk)
            if lock is not None:
                async with job_runner(desk, lock):
                    while not await _has_ended(client, job.key):
                        await _wait(on_poll)
            else:
                await _wait(on_poll)
        on_poll()
        return await asyncio.to_thread(client.result, job.key)


async def acquire_runner_lock(desk: Desk) -> RunnerLock:
    """The lock. Raises `RunnerConflict` where there is a runner already."""
    lock = await asyncio.to_thread(try_runner_lock, desk)
    if lock is None:
        raise RunnerConflict(f"{await asyncio.to_thread(lock_holder, desk)} runs this desk already")
    return lock


@asynccontextmanager
async def job_runner(desk: Desk, lock: RunnerLock) -> AsyncIterator[None]:
    """Run submitted and unfinished jobs until the end of the block. Jobs that are running then are cut off, and the
    next runner continues them. Losing the lock or a full disk ends the block at once."""
    try:
        with report_storage_errors(workflow_engine.abort_jobs):
            await asyncio.to_thread(back_up, desk.database_url)
            workflow_engine.launch(desk)
            block = asyncio.current_task()
            watch = asyncio.create_task(_watch(lock, block))
            try:
                yield
            except asyncio.CancelledError:
                if watch.done() and not watch.cancelled() and block and block.uncancel() == 0:
                    raise watch.result() from None
                raise
            finally:
                watch.cancel()
                await workflow_engine.close()
    finally:
        lock.release()


async def _watch(lock: RunnerLock, block: "asyncio.Task[object] | None") -> GametapeError:
    """Wait until the block has to end, cancel it, and return the reason."""
    while (reason := workflow_engine.abort_reason()) is None and await asyncio.to_thread(lock.is_held):
        await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)
    if block is not None:
        block.cancel()
    if reason is not None:
        kind = DamagedDatabase if isinstance(reason, DamagedDatabase) else OutOfDiskSpace
        return kind(f"{reason}; submitted jobs continue with the next run")
    return RunnerConflict("the database took the runner's lock away; start again")


async def _has_ended(client: workflow_engine.JobClient, key: str) -> bool:
    return await asyncio.to_thread(client.state, key) in ("done", "failed")


async def _wait(on_poll: Callable[[], None]) -> None:
    on_poll()
    await asyncio.sleep(_POLL_SECONDS)
