"""Jobs as DBOS workflows. This is the only file that imports DBOS.

DBOS stores the payload, the results of finished steps and the state of every job in the database. Its recovery takes up
what was pending for the same executor id and application version, so both are fixed here, and the runner's lock makes
sure that only one process has them. What is stored is JSON; nothing is pickled. The names of the workflow, the queues
and the steps are stored too: changing one would strand the jobs of existing databases.
"""

import asyncio
import logging
import logging.handlers
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions
from dbos._utils import GlobalParams

from gametape.core.errors import BadInput, GametapeError, MissingDependency
from gametape.desk.database import cancellations, insert_once
from gametape.desk.jobs import JOB_HANDLERS, Desk, Job, Json, load_handler
from gametape.desk.storage_errors import storage_error

_LOG_BYTES = 1 << 20


class _Log(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Drop a line that cannot be written; logging would print the error to the terminal."""


def log_to_file(path: Path) -> None:
    """Write DBOS's log to a file for the rest of this process; a second call changes nothing."""
    logger = silence_logger()
    if not any(isinstance(handler, _Log) for handler in logger.handlers):
        handler = _Log(path, maxBytes=_LOG_BYTES, backupCount=1)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)


def silence_logger() -> logging.Logger:
    """The logger of DBOS, cut off from the terminal."""
    logger = logging.getLogger("dbos")
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


VERSION = "desk-1"
"""Raised by hand when stored jobs change shape; jobs of another version are not taken up."""
EXECUTOR = "desk"
APPLICATION = "gametape-desk"
_WORKFLOW = "errand"
_SERIAL_QUEUE, _PARALLEL_QUEUE = "lines", "beside"
_CONCURRENCY = 4
"""Jobs without a partition key that run at the same time; of partitions, four times as many."""
_POLL_SECONDS = 0.1
_DELETE_LIMIT = 1000
_STATES = {"ENQUEUED": "queued", "PENDING": "running", "SUCCESS": "done"}


class JobFailed(GametapeError):
    """A job ended with an unexpected error; the log has its traceback."""

    exit_code = 1


@dataclass
class _RunnerState:
    """What the workflow function needs from this process, since DBOS calls it with stored values only."""

    desk: Desk | None = None
    trouble: GametapeError | None = None
    tasks: set["asyncio.Task[object]"] = field(default_factory=set)


_runner_state = _RunnerState()
GlobalParams.dbos_cloud = False
"""DBOS sets this from the environment when it is imported, and would then take its database, its names and the server
it reports to from there as well."""


class DbosSteps:
    """`JobSteps` over the DBOS workflow that is running."""

    def __init__(self, desk: Desk, key: str) -> None:
        self._desk, self.key = desk, key
        self._times = 0

    async def once(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        async def step() -> Json:
            try:
                with _leave_pending_on_storage_error():
                    result = {"result": await act()}
            except GametapeError as error:
                result = _error_to_dict(error)
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError  # `act` swallowed the cancellation: its result must not be stored
            return result

        return _result_or_raise(await DBOS.run_step_async({"name": name}, step))

    async def now(self) -> float:
        async def read() -> float:
            return time.time()

        self._times += 1
        return float(await self.once(f"now-{self._times}", read))

    async def cancelled(self) -> bool:
        return await asyncio.to_thread(is_cancel_requested, self._desk, self.key)


@DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=None)
async def _run_job(kind: str, payload: dict[str, Json]) -> dict[str, Json]:
    desk, task, key = _runner_state.desk, asyncio.current_task(), DBOS.workflow_id
    if desk is None or task is None or key is None:
        raise asyncio.CancelledError  # the runner is closing: left pending for the next one
    _runner_state.tasks.add(task)
    try:
        with _leave_pending_on_storage_error():
            return {"result": await load_handler(kind)(desk, DbosSteps(desk, key), payload)}
    except GametapeError as error:
        return _error_to_dict(error)
    finally:
        _runner_state.tasks.discard(task)


@contextmanager
def _leave_pending_on_storage_error() -> Iterator[None]:
    """On a full disk, leave the job pending and tell the runner to stop."""
    try:
        yield
    except Exception as error:
        if (full := storage_error(error)) is None:
            raise
        abort_jobs(full)
        raise asyncio.CancelledError from error


def abort_jobs(why: GametapeError) -> None:
    """Say that no job can go on in this process; the first reason is kept."""
    _runner_state.trouble = _runner_state.trouble or why


def abort_reason() -> GametapeError | None:
    """Why no job can go on in this process, or None."""
    return _runner_state.trouble


@contextmanager
def open_job_client(desk: Desk) -> Iterator["JobClient"]:
    """A client that submits jobs and reads their state, in a process that need not run them."""
    client = DBOSClient(
        system_database_url=desk.database_url, serializer=DBOSPortableJSONSerializer(), application_name=APPLICATION
    )
    try:
        yield JobClient(client)
    finally:
        client.destroy()


class JobClient:
    """Submits jobs and reads their state. Safe to use from several threads."""

    def __init__(self, client: DBOSClient) -> None:
        self._client = client

    def submit(self, job: Job) -> None:
        """The job is durable when this returns. A key that is known already changes nothing."""
        if job.kind not in JOB_HANDLERS:
            raise BadInput(f"{job.kind}: unknown kind of job; there are {', '.join(JOB_HANDLERS)}")
        options: EnqueueOptions = {
            "workflow_name": _WORKFLOW,
            "queue_name": _PARALLEL_QUEUE if job.partition_key is None else _SERIAL_QUEUE,
            "workflow_id": job.key,
            "app_version": VERSION,
        }
        if job.partition_key is not None:
            options["queue_partition_key"] = job.partition_key
        self._client.enqueue(options, job.kind, job.payload)

    def state(self, key: str) -> str | None:
        """`queued`, `running`, `done` or `failed`; None for an unknown key."""
        workflows = self._client.list_workflows(workflow_ids=[key], load_input=False, load_output=False)
        return _STATES.get(workflows[0].status, "failed") if workflows else None

    def result(self, key: str) -> dict[str, Json]:
        """The result of a finished job; the error it ended with is raised."""
        workflows = self._client.list_workflows(workflow_ids=[key], load_input=False)
        if not workflows or workflows[0].status != "SUCCESS":
            reason = workflows[0].error or workflows[0].status if workflows else "unknown"
            raise JobFailed(f"{key}: failed: {reason}")
        answer: dict[str, Json] = _result_or_raise(workflows[0].output)
        return answer

    def unfinished(self) -> list[str]:
        """The keys of jobs that are queued or running, oldest first."""
        workflows = self._client.list_workflows(status=["ENQUEUED", "PENDING"], load_input=False, load_output=False)
        return [status.workflow_id for status in workflows]

    def ended_since(self, since: float) -> list[str]:
        """The keys of jobs that were submitted since then and have ended."""
        workflows = self._client.list_workflows(
            start_time=datetime.fromtimestamp(since, UTC).isoformat(),
            status=["SUCCESS", "ERROR"],
            load_input=False,
            load_output=False,
        )
        return [status.workflow_id for status in workflows]

    def delete_finished(self, prefix: str, before: float) -> int:
        """Delete finished jobs whose keys begin with a prefix, and return how many there were. Their keys could be
        submitted again after that."""
        moment = datetime.fromtimestamp(before, UTC).isoformat()
        workflows = self._client.list_workflows(
            workflow_id_prefix=prefix,
            status=["SUCCESS", "ERROR"],
            completed_before=moment,
            load_input=False,
            load_output=False,
            limit=_DELETE_LIMIT,
        )
        self._client.delete_workflows([status.workflow_id for status in workflows])
        return len(workflows)


def request_cancel(desk: Desk, key: str) -> None:
    """Ask for a job to end; its handler sees that at its next check."""
    with desk.database.begin() as connection:
        insert_once(connection, cancellations, {"key": key, "at": time.time()})


def is_cancel_requested(desk: Desk, key: str) -> bool:
    with desk.database.connect() as connection:
        query = sa.select(cancellations.c.key).where(cancellations.c.key == key)
        return connection.scalar(query) is not None


def migrate(url: str) -> None:
    """Create or upgrade the tables of DBOS, and the desk's queues in them."""
    silence_logger()
    DBOS.migrate(url)
    client = DBOSClient(system_database_url=url, serializer=DBOSPortableJSONSerializer(), application_name=APPLICATION)
    try:
        client.register_queue(_PARALLEL_QUEUE, worker_concurrency=_CONCURRENCY, polling_interval_sec=_POLL_SECONDS)
        client.register_queue(
            _SERIAL_QUEUE,
            partition_concurrency=1,
            worker_concurrency=4 * _CONCURRENCY,
            polling_interval_sec=_POLL_SECONDS,
        )
    finally:
        client.destroy()


def launch(desk: Desk) -> None:
    """Begin to run jobs on the running event loop; the caller holds the runner's lock."""
    _runner_state.desk, _runner_state.trouble = desk, None
    log_to_file(desk.home / "desk" / "desk.log")
    config: DBOSConfig = {
        "name": APPLICATION,
        "system_database_url": desk.database_url,
        "executor_id": EXECUTOR,
        "application_version": VERSION,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "WARNING",
        "run_migrations": False,
        "enable_otlp": False,
        "notification_listener_polling_interval_sec": _POLL_SECONDS,
    }
    try:
        DBOS(config=config)
        DBOS.launch()
    except sa.exc.DBAPIError as error:
        raise MissingDependency(f"the desk's database cannot be used: {error.orig}") from error


async def close() -> None:
    """Stop running jobs: each is cut off where it is, and stays pending for the next runner."""
    _runner_state.desk = None
    tasks = list(_runner_state.tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as stopping:  # DBOS replaced the loop's thread pool with its own, and ends it
        await loop.run_in_executor(stopping, DBOS.destroy)
    loop.set_default_executor(ThreadPoolExecutor())


def _error_to_dict(error: GametapeError) -> dict[str, Json]:
    return {"error": str(error), "exit_code": error.exit_code}


def _result_or_raise(stored: Json) -> Json:
    if "error" not in stored:
        return stored["result"]
    error = GametapeError(stored["error"])
    error.exit_code = stored["exit_code"]
    raise error
