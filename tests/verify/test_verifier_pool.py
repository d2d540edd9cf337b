"""Verification in processes of its own: the same verdicts, more than one at a time, also after a process has died."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.keeper_client import SandboxError
from gametape.verify.verifier_pool import VerifierPool
from gametape.verify.verifier_process import Preparation
from tests.patience import family_of, living, wait_until
from tests.verify.small_task import RIGHT, START, small_task, workspace


def test_verdicts_come_from_processes_that_may_die(tmp_path: Path, prepared_home: Callable[[Path], Path]) -> None:
    task, home = small_task(), prepared_home(tmp_path / "home")
    places = [workspace(tmp_path / name, source) for name, source in (("right", RIGHT), ("start", START))]

    async def run() -> tuple[list[Verdict], Verdict]:
        async with VerifierPool(home, 2) as pool:
            pool.prepare(task)
            pool.prepare(task)
            assert len(pool._prepared) == 1
            both = await asyncio.gather(*(pool.verify(task, place, "train", "layered") for place in places))
            processes = [process.process for process in pool._free]
            for process in processes:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            after = await pool.verify(task, workspace(tmp_path / "again", RIGHT), "train", "layered")
            others = [process.process for process in pool._free]
            assert not {process.pid for process in processes} & {process.pid for process in others}
        assert [process.wait() for process in others] == [0, 0]
        return both, after

    both, after = asyncio.run(run())
    assert [verdict.passed for verdict in both] == [True, False]
    assert after.passed


def test_a_task_is_prepared_once_for_all_processes_of_all_pools(tmp_path: Path) -> None:
    """Two pools of two processes that share a home, as two runs do, with attempts that all end at once."""
    task, home = small_task(), tmp_path / "home"
    places = [workspace(tmp_path / str(number), f"{RIGHT}# {number}\n") for number in range(4)]

    async def run() -> tuple[list[dict[str, bool]], list[Verdict]]:
        async with VerifierPool(home, 2) as one, VerifierPool(home, 2) as other:
            pools = (one, other)
            asked = (pools[at % 2].verify(task, place, "train", "layered") for at, place in enumerate(places))
            verdicts = await asyncio.gather(*asked)
            return [pool.prepared for pool in pools], verdicts

    prepared, verdicts = asyncio.run(run())
    assert [verdict.passed for verdict in verdicts] == [True] * 4
    assert sorted(made for pool in prepared for made in pool.values()) == [False, True]


def test_what_is_prepared_ahead_leaves_room_and_is_taken_up_when_needed(tmp_path: Path) -> None:
    """Of a pool of two one process prepares ahead; a task whose verdict is asked for does not wait for it."""
    entered: list[str] = []

    async def run() -> None:
        async with VerifierPool(tmp_path / "home", 2) as pool:
            release = asyncio.Event()

            async def hold(task: LoadedTask, _work: object) -> Preparation:
                entered.append(task.task.name)
                await release.wait()
                return Preparation(made=True)

            pool._run = hold  # type: ignore[method-assign,assignment]
            tasks = [replace(small_task(), task=small_task().task.model_copy(update={"name": name})) for name in "abc"]
            for task in tasks:
                pool.prepare(task, ahead=True)
            for _ in range(10):
                await asyncio.sleep(0)
            assert entered == ["a"]
            pool.prepare(tasks[2])
            for _ in range(10):
                await asyncio.sleep(0)
            assert entered == ["a", "c"], "the one that is needed now"
            release.set()
            await asyncio.gather(*pool._prepared.values())
            assert set(entered) == {"a", "b", "c"}

    asyncio.run(run())


_BUSY = """
import asyncio, sys
from pathlib import Path
from gametape.verify.verifier_pool import VerifierPool
from tests.verify.small_task import START, small_task, workspace

async def main():
    async with VerifierPool(Path(sys.argv[1]) / "home", 2) as pool:
        hangs = workspace(Path(sys.argv[1]) / "w", "import time; time.sleep(1000)\\n" + START)
        print("begun", flush=True)
        await pool.verify(small_task(400.0), hangs, "train", "layered")

asyncio.run(main())
"""


def test_no_process_outlives_one_that_is_killed(tmp_path: Path, prepared_home: Callable[[Path], Path]) -> None:
    """Neither verifiers nor their sandboxes, which wait for a test that hangs."""
    prepared_home(tmp_path / "home")
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", _BUSY, str(tmp_path)]
    parent = subprocess.Popen(command, env=env, cwd=root, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"begun\n"
    wait_until(lambda: len(family_of(parent.pid)) > 4, "the verifiers and a sandbox")
    family = family_of(parent.pid)
    parent.kill()
    parent.wait()
    wait_until(lambda: not living(family), "the end of all processes")


def test_a_task_that_ends_its_process_each_time_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here every new process dies before it reads."""

    async def run() -> None:
        async with VerifierPool(tmp_path / "home", 1) as pool:
            monkeypatch.setattr("sys.executable", "/bin/false")
            await pool.verify(small_task(), workspace(tmp_path / "w", RIGHT), "train", "layered")

    with pytest.raises(SandboxError, match="ended 2 times"):
        asyncio.run(run())


def test_an_error_of_the_machine_is_told_and_the_process_lives(tmp_path: Path) -> None:
    """Where nothing can be written, as on a full disk; another verdict may go well."""
    (tmp_path / "home").touch()

    async def run() -> list[int]:
        async with VerifierPool(tmp_path / "home", 1) as pool:
            pids = []
            for name in ("one", "two"):
                with pytest.raises(SandboxError, match=r"^(NotADirectory|FileExists)Error: "):
                    await pool.verify(small_task(), workspace(tmp_path / name, RIGHT), "train", "layered")
                pids.append(pool._free[0].process.pid)
        return pids

    first, second = asyncio.run(run())
    assert first == second
