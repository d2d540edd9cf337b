"""Errands as workflows of DBOS: the one file that knows it.

Whatever happens to the process, DBOS has the order, the results of finished steps and the state of every errand in the
database. Its recovery takes up what was pending for the same executor id and application version, so both are fixed
here, and the runner's lock sees to it that only one process ever has them. What is stored is JSON; nothing is pickled.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions
from dbos._utils import GlobalParams

from gametape.core.errors import BadInput, GametapeError, Lacking
from gametape.desk.database import cancellations, insert_once
from gametape.desk.engine_log import log_to, quiet
from gametape.desk.errands import Desk, Errand, Json
from gametape.desk.kinds import KINDS, work_of
from gametape.desk.room import want_of_room

VERSION = "desk-1"
"""Raised by hand when stored errands change shape; those of another version are not taken up."""
EXECUTOR = "desk"
APPLICATION = "gametape-desk"
_WORKFLOW = "errand"
_LINES, _BESIDE = "lines", "beside"
_AT_ONCE = 4
"""Errands without a line that run at the same time, and lines that are worked on at the same time, four times that."""
_POLL = 0.1
_FORGOTTEN_AT_ONCE = 1000


class Failed(GametapeError):
    """An errand ended with an error that nobody foresaw; the log has the whole of it."""

    exit_code = 1


@dataclass
class _Now:
    """What the workflow function, which DBOS calls with nothing but stored values, finds in this process."""

    desk: Desk | None = None
    trouble: GametapeError | None = None
    tasks: set["asyncio.Task[object]"] = field(default_factory=set)


_now = _Now()
GlobalParams.dbos_cloud = False
"""Read from the environment when DBOS is imported: it would then take its database, its names and whom it reports to
from there as well."""


class StoredSteps:
    """`Steps` over the workflow that is running."""

    def __init__(self, desk: Desk, key: str) -> None:
        self._desk, self.key = desk, key
        self._times = 0

    async def once(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        async def step() -> Json:
            try:
                with _no_end_for_want_of_room():
                    result = {"result": await act()}
            except GametapeError as error:
                result = _told(error)
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError  # whoever swallowed it was cut off: this is no result to keep
            return result

        return _answer(await DBOS.run_step_async({"name": name}, step))

    async def now(self) -> float:
        async def read() -> float:
            return time.time()

        self._times += 1
        return float(await self.once(f"now-{self._times}", read))

    async def cancelled(self) -> bool:
        return await asyncio.to_thread(is_cancelled, self._desk, self.key)


@DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=None)
async def _errand(kind: str, order: dict[str, Json]) -> dict[str, Json]:
    desk, task, key = _now.desk, asyncio.current_task(), DBOS.workflow_id
    if desk is None or task is None or key is None:
        raise asyncio.CancelledError  # the runner is closing: left pending for the next one
    _now.tasks.add(task)
    try:
        with _no_end_for_want_of_room():
            return {"result": await work_of(kind)(desk, StoredSteps(desk, key), order)}
    except GametapeError as error:
        return _told(error)
    finally:
        _now.tasks.discard(task)


@contextmanager
def _no_end_for_want_of_room() -> Iterator[None]:
    """A disk that is full ends no errand: it is left pending, and the runner is told to leave."""
    try:
        yield
    except Exception as error:
        if (found := want_of_room(error)) is None:
            raise
        give_up(found)
        raise asyncio.CancelledError from error


def give_up(why: GametapeError) -> None:
    """No errand can go on in this process now; the first reason is kept."""
    _now.trouble = _now.trouble or why


def trouble() -> GametapeError | None:
    """Why no errand can go on now, if that is so."""
    return _now.trouble


@contextmanager
def client(desk: Desk) -> Iterator["Errands"]:
    """To hand in errands and to read their state, in a process that does not run them."""
    made = DBOSClient(
        system_database_url=desk.url, serializer=DBOSPortableJSONSerializer(), application_name=APPLICATION
    )
    try:
        yield Errands(made)
    finally:
        made.destroy()


class Errands:
    """What is known of errands. Safe to use from several threads."""

    def __init__(self, client: DBOSClient) -> None:
        self._client = client

    def submit(self, errand: Errand) -> None:
        """Durable when this returns. One whose key is known already changes nothing."""
        if errand.kind not in KINDS:
            raise BadInput(f"{errand.kind}: no kind of work; there are {', '.join(KINDS)}")
        options: EnqueueOptions = {
            "workflow_name": _WORKFLOW,
            "queue_name": _BESIDE if errand.line is None else _LINES,
            "workflow_id": errand.key,
            "app_version": VERSION,
        }
        if errand.line is not None:
            options["queue_partition_key"] = errand.line
        self._client.enqueue(options, errand.kind, errand.order)

    def state(self, key: str) -> str | None:
        """`queued`, `running`, `done` or `failed`; None where nobody handed it in."""
        found = self._client.list_workflows(workflow_ids=[key], load_input=False, load_output=False)
        return _STATES.get(found[0].status, "failed") if found else None

    def result(self, key: str) -> dict[str, Json]:
        """Of one that is done: its result, or the error it ended with, raised."""
        found = self._client.list_workflows(workflow_ids=[key], load_input=False)
        if not found or found[0].status != "SUCCESS":
            told = found[0].error or found[0].status if found else "unknown"
            raise Failed(f"{key}: failed: {told}")
        answer: dict[str, Json] = _answer(found[0].output)
        return answer

    def unfinished(self) -> list[str]:
        """The keys of errands that are waiting or running, oldest first."""
        found = self._client.list_workflows(status=["ENQUEUED", "PENDING"], load_input=False, load_output=False)
        return [status.workflow_id for status in found]

    def ended_of(self, since: float) -> list[str]:
        """The keys of errands that were handed in since then and have ended."""
        found = self._client.list_workflows(
            start_time=datetime.fromtimestamp(since, UTC).isoformat(),
            status=["SUCCESS", "ERROR"],
            load_input=False,
            load_output=False,
        )
        return [status.workflow_id for status in found]

    def forget(self, prefix: str, before: float) -> int:
        """Drop what is kept of finished errands whose keys begin so; how many there were. Their keys could be handed in
        anew after that."""
        moment = datetime.fromtimestamp(before, UTC).isoformat()
        found = self._client.list_workflows(
            workflow_id_prefix=prefix,
            status=["SUCCESS", "ERROR"],
            completed_before=moment,
            load_input=False,
            load_output=False,
            limit=_FORGOTTEN_AT_ONCE,
        )
        self._client.delete_workflows([status.workflow_id for status in found])
        return len(found)


_STATES = {"ENQUEUED": "queued", "PENDING": "running", "SUCCESS": "done"}


def cancel(desk: Desk, key: str) -> None:
    """Ask for an errand to end; its work sees it at its next look."""
    with desk.database.begin() as connection:
        insert_once(connection, cancellations, {"key": key, "at": time.time()})


def is_cancelled(desk: Desk, key: str) -> bool:
    with desk.database.connect() as connection:
        found = connection.scalar(sa.select(cancellations.c.key).where(cancellations.c.key == key))
    return found is not None


def migrate(url: str) -> None:
    """Create or upgrade the tables of DBOS, and the desk's queues in them."""
    quiet()
    DBOS.migrate(url)
    made = DBOSClient(system_database_url=url, serializer=DBOSPortableJSONSerializer(), application_name=APPLICATION)
    try:
        made.register_queue(_BESIDE, worker_concurrency=_AT_ONCE, polling_interval_sec=_POLL)
        made.register_queue(
            _LINES, partition_concurrency=1, worker_concurrency=4 * _AT_ONCE, polling_interval_sec=_POLL
        )
    finally:
        made.destroy()


def launch(desk: Desk) -> None:
    """Begin to run errands on the running event loop; the caller holds the runner's lock."""
    _now.desk, _now.trouble = desk, None
    log_to(desk.home / "desk" / "desk.log")
    config: DBOSConfig = {
        "name": APPLICATION,
        "system_database_url": desk.url,
        "executor_id": EXECUTOR,
        "application_version": VERSION,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "WARNING",
        "run_migrations": False,
        "enable_otlp": False,
        "notification_listener_polling_interval_sec": _POLL,
    }
    try:
        DBOS(config=config)
        DBOS.launch()
    except sa.exc.DBAPIError as error:
        raise Lacking(f"the desk's database cannot be used: {error.orig}") from error


async def close() -> None:
    """Stop running errands, in order: each is cut off where it is, and stays pending for the next runner."""
    _now.desk = None
    tasks = list(_now.tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as stopping:  # DBOS made its own threads those of the loop, and ends them
        await loop.run_in_executor(stopping, DBOS.destroy)
    loop.set_default_executor(ThreadPoolExecutor())


def _told(error: GametapeError) -> dict[str, Json]:
    return {"error": str(error), "exit_code": error.exit_code}


def _answer(kept: Json) -> Json:
    if "error" not in kept:
        return kept["result"]
    error = GametapeError(kept["error"])
    error.exit_code = kept["exit_code"]
    raise error
