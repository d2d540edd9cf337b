"""Live sandboxes under asyncio: many open, few busy, none lost."""

import asyncio
import threading
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.scheduler import LiveWorkspace, SandboxScheduler
from tests.patience import HANG, wait_until

SPEC = SandboxSpec(policy=SandboxPolicy(limits=SandboxLimits(wall_seconds=HANG, memory_mb=200, processes=40)))


def test_a_conversation(tmp_path: Path) -> None:
    async def talk() -> None:
        async with SandboxScheduler() as scheduler:
            workspace = await scheduler.open(SPEC)
            await workspace.put("main.py", b"import sys; print(sys.argv[1:])")
            assert (
                await workspace.run(["python3", "main.py", "a b", "$HOME"], timeout=HANG)
            ).stdout == "['a b', '$HOME']\n"
            assert (await workspace.run(["sleep", "100"], timeout=0.3)).killed_by == "time"
            await workspace.shell("cd /tmp; echo kept > kept")
            assert (await workspace.shell("cat kept")).stdout == "kept\n"
            assert await workspace.get("main.py") == b"import sys; print(sys.argv[1:])"

    asyncio.run(talk())


def _is_there(workspace: LiveWorkspace, name: str) -> bool:
    try:
        asyncio.run(workspace.get(name))
    except BadInput:
        return False
    return True


def test_a_cancelled_command_is_ended_and_the_next_one_runs() -> None:
    async def talk() -> None:
        async with SandboxScheduler(max_concurrent=1) as scheduler:
            workspace = await scheduler.open(SPEC)
            task = asyncio.create_task(workspace.shell("touch begun; sleep 100000"))
            await asyncio.to_thread(wait_until, lambda: _is_there(workspace, "begun"), "the start of the command")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await workspace.shell("pgrep -f '[s]leep 100000' | wc -l; echo next")).stdout == "0\nnext\n"

    asyncio.run(talk())


def test_sixty_sandboxes_take_turns() -> None:
    """More than could work at once: all answer, and never more than the scheduler allows are busy."""

    async def talk() -> list[str]:
        async with SandboxScheduler(max_concurrent=4) as scheduler:
            workspaces = await asyncio.gather(*(scheduler.open(SPEC) for _ in range(60)))
            commands = (workspace.shell(f"echo {n}; sleep 0.02") for n, workspace in enumerate(workspaces))
            return [result.stdout for result in await asyncio.gather(*commands)]

    assert asyncio.run(talk()) == [f"{n}\n" for n in range(60)]


def test_no_more_than_max_concurrent_run() -> None:
    busy, most = 0, 0
    three = threading.Barrier(3)

    async def talk() -> None:
        nonlocal busy, most

        def work() -> None:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            three.wait(HANG)
            busy -= 1

        scheduler = SandboxScheduler(max_concurrent=3)
        await asyncio.gather(*(scheduler.run_in_slot(work) for _ in range(12)))

    asyncio.run(talk())
    assert most == 3
