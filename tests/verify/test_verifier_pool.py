"""Verification in processes of its own: the same verdicts, more than one at a time, also after a process has died."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from gametape.core.verdict import Verdict
from gametape.sandbox.keeper_client import SandboxError
from gametape.verify.verifier_pool import VerifierPool
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
