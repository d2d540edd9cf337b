"""Errands over a real database: each done once, by one process, and taken up by the next where one was cut off."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput, GametapeError
from gametape.desk import database, jobs, server, workflow_engine
from gametape.desk.desk import open_desk
from gametape.desk.jobs import Desk, Job, JobSteps
from gametape.desk.runner import acquire_runner_lock, job_runner, lock_holder, run_job, try_runner_lock
from gametape.desk.workflow_engine import open_job_client, request_cancel
from tests.desk.postgres import running_postgres
from tests.patience import HANG, wait_until

RAN: list[str] = []
AT_ONCE = (("short", 0.0), ("long", 0.7))


async def work(desk: Desk, steps: JobSteps, order: dict[str, Any]) -> dict[str, Any]:
    """Notes what it runs; `fail`, `wait` and `until_cancelled` say what else."""

    async def act() -> int:
        RAN.append(steps.key)
        if order.get("fail"):
            raise BadInput("no good")
        await asyncio.sleep(order.get("wait", 0))
        return len(RAN)

    first = await steps.once("first", act)
    while order.get("until_cancelled") and not await steps.cancelled():
        await asyncio.sleep(0.05)
    return {"first": first, "now": await steps.now()}


@pytest.fixture
def desk(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setitem(jobs.JOB_HANDLERS, "goal", f"{__name__}:work")
    monkeypatch.chdir(tmp_path)
    jobs.load_handler.cache_clear()
    RAN.clear()
    with open_desk(home) as opened:
        yield opened
    jobs.load_handler.cache_clear()
    assert [path.name for path in tmp_path.iterdir()] == ["home"], "nothing is left in the current directory"


def test_an_errand_is_done_once_however_often_it_is_handed_in(desk: Desk) -> None:
    first = asyncio.run(run_job(desk, Job("goal", "a", {"wait": 0.1})))
    assert asyncio.run(run_job(desk, Job("goal", "a", {"wait": 0.1}))) == first
    assert RAN == ["a"]


def test_the_error_of_an_errand_is_raised_where_it_is_waited_for(desk: Desk) -> None:
    for _ in range(2):
        with pytest.raises(GametapeError, match=r"^no good$") as raised:
            asyncio.run(run_job(desk, Job("goal", "a", {"fail": True})))
        assert raised.value.exit_code == 2
    assert RAN == ["a"]
    with pytest.raises(BadInput, match="unknown kind of job"):
        asyncio.run(run_job(desk, Job("mischief", "b")))


def test_two_at_once_share_one_runner_and_a_line_is_worked_off_one_by_one(desk: Desk) -> None:
    async def both() -> list[dict[str, Any]]:
        async with asyncio.timeout(HANG):
            held = await acquire_runner_lock(desk)
            with open_job_client(desk) as errands:
                for key in "abc":
                    errands.submit(Job("goal", key, {"wait": 0.3}, "line"))
                async with job_runner(desk, held):
                    await asyncio.sleep(0.2)
                    return [await run_job(desk, Job("goal", key, {}, "line")) for key in "abc"]

    results = asyncio.run(both())
    assert [result["first"] for result in results] == [1, 2, 3], "each began when the one before had ended"
    assert RAN == ["a", "b", "c"]


def test_what_is_cut_off_is_taken_up_by_the_next(desk: Desk) -> None:
    async def cut() -> None:
        held = await acquire_runner_lock(desk)
        with open_job_client(desk) as errands:
            errands.submit(Job("goal", "a", {"wait": 60}))
            async with job_runner(desk, held):
                while not RAN:
                    await asyncio.sleep(0.05)
            assert errands.state("a") in ("running", "queued")

    asyncio.run(cut())
    assert try_lock_and_release(desk), "the lock is free"

    async def ended() -> None:
        async with asyncio.timeout(HANG):
            await run_job(desk, Job("goal", "b", {}))
            while RAN.count("a") < 2:
                await run_job(desk, Job("goal", f"c-{len(RAN)}-{time.time()}", {"wait": 0.2}))

    asyncio.run(ended())


def test_a_server_tells_of_every_errand_once_also_of_those_between_two_looks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_POLL_SECONDS", 0.6)
    asyncio.run(run_job(desk, Job("goal", "before")))
    said: list[str] = []

    async def told() -> None:
        with open_job_client(desk) as errands:
            async with job_runner(desk, await acquire_runner_lock(desk)):
                reporting = asyncio.create_task(server._report(desk, errands, said.append))
                await asyncio.sleep(0.2)
                await asyncio.gather(*(run_job(desk, Job("goal", key, {"wait": wait})) for key, wait in AT_ONCE))
                await asyncio.to_thread(wait_until, lambda: len(said) >= 4, "the report of both")
                reporting.cancel()

    asyncio.run(told())
    assert sorted(said) == ["long: begun", "long: done", "short: begun", "short: done"]
    assert said.index("long: begun") < said.index("long: done")


def test_what_is_old_and_done_can_be_forgotten(desk: Desk) -> None:
    asyncio.run(run_job(desk, Job("goal", "heartbeat/a/1")))
    asyncio.run(run_job(desk, Job("goal", "goal-1")))
    with open_job_client(desk) as errands:
        assert errands.delete_finished("heartbeat/", time.time() - 60) == 0
        assert errands.delete_finished("heartbeat/", time.time() + 60) == 1
        assert (errands.state("heartbeat/a/1"), errands.state("goal-1")) == (None, "done")


def test_an_errand_sees_that_it_was_cancelled(desk: Desk) -> None:
    async def cancelled() -> dict[str, Any]:
        waiting = asyncio.create_task(run_job(desk, Job("goal", "a", {"until_cancelled": True})))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        request_cancel(desk, "a")
        async with asyncio.timeout(HANG):
            return await waiting

    assert asyncio.run(cancelled())["first"] == 1


def test_a_second_server_is_refused_in_one_line(desk: Desk) -> None:
    held = try_runner_lock(desk)
    assert held is not None
    command = [sys.executable, "-m", "gametape.cli.main", "desk", "serve", "--home", str(desk.home)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=HANG)
    held.release()
    assert done.returncode == 1
    assert done.stderr == f"gametape: process {os.getpid()} runs this desk already\n"


@pytest.mark.slow
def test_postgres_does_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jobs.JOB_HANDLERS, "goal", f"{__name__}:work")
    jobs.load_handler.cache_clear()
    with running_postgres() as url:
        with open_desk(tmp_path / "home", url) as desk:
            test_an_errand_is_done_once_however_often_it_is_handed_in(desk)
            held = try_runner_lock(desk)
            assert held is not None
            assert lock_holder(desk).startswith(f"process {os.getpid()} ")
            assert try_runner_lock(desk) is None
            held.release()
            assert try_lock_and_release(desk)
        with pytest.raises(BadInput, match="a database of its own"), open_desk(tmp_path / "other", url):
            pass
    jobs.load_handler.cache_clear()


def try_lock_and_release(desk: Desk) -> bool:
    held = try_runner_lock(desk)
    if held is not None:
        held.release()
    return held is not None


def test_no_variable_of_the_environment_makes_the_engine_speak_to_anybody_else(home: Path) -> None:
    """DBOS has a mode in which others choose its database, its names and whom it reports to."""
    code = (
        "import asyncio, sys; from pathlib import Path; from dbos._utils import GlobalParams\n"
        "from gametape.desk import workflow_engine; from gametape.desk.desk import open_desk\n"
        "async def run():\n"
        "    with open_desk(Path(sys.argv[1])) as desk:\n"
        "        workflow_engine.launch(desk)\n"
        "        print(GlobalParams.executor_id, GlobalParams.app_version)\n"
        "        await workflow_engine.close()\n"
        "asyncio.run(run())\n"
    )
    others = {"DBOS__CLOUD": "true", "DBOS__VMID": "other", "DBOS__APPVERSION": "other", "DBOS_APP_NAME": "other"}
    others |= {"DBOS_SYSTEM_DATABASE_URL": f"sqlite:///{home / 'other.sqlite'}"}
    others |= {f"DBOS__CONDUCTOR_{name}": "ws://127.0.0.1:9" for name in ("URL", "KEY", "APP_NAME")}
    done = subprocess.run(
        [sys.executable, "-c", code, home], env={**os.environ, **others}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [workflow_engine.EXECUTOR, workflow_engine.VERSION], done.stderr
    assert not (home / "other.sqlite").exists()


def test_a_database_whose_making_was_cut_off_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a kill or a full disk: half of the tables are there, and the next process begins anew."""

    def die(_url: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(database.TABLES, "create_all", die)
        with pytest.raises(KeyboardInterrupt), open_desk(tmp_path / "home"):
            pass
    assert not (tmp_path / "home/desk/desk.sqlite").exists()
    with open_desk(tmp_path / "home") as desk, open_job_client(desk) as jobs:
        assert jobs.unfinished() == []
    assert not list((tmp_path / "home/desk").glob("*.new*"))
