"""A real workspace in a real sandbox, for tests of tools."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.scheduler import RewindableWorkspace, SandboxScheduler
from gametape.sandbox.snapshots.store import SnapshotStore
from tests.patience import HANG

T = TypeVar("T")
SPEC = SandboxSpec(
    policy=SandboxPolicy(limits=SandboxLimits(wall_seconds=HANG, memory_mb=500, processes=60, disk_mb=100))
)


def within(files: Mapping[str, str | bytes], talk: Callable[[RewindableWorkspace], Awaitable[T]]) -> T:
    """Open an environment on these files, talk with it, and close it."""

    async def run(store: SnapshotStore, tree: Path) -> T:
        async with SandboxScheduler(store=store) as scheduler:
            return await talk(await scheduler.open_snapshot(store.import_tree(tree), SPEC))

    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        tree.mkdir()
        for path, content in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(content.encode() if isinstance(content, str) else content)
        with SnapshotStore(Path(directory) / "store") as store:
            return asyncio.run(run(store, tree))


def calls(files: Mapping[str, str | bytes], tool: Tool, *several: dict[str, Any], before: str = "") -> list[ToolResult]:
    """What a tool answers to several calls, after a shell command that prepares the ground."""

    async def talk(workspace: RewindableWorkspace) -> list[ToolResult]:
        if before:
            done = await workspace.shell(before)
            assert done.exit_code == 0, done.stderr
        return [await tool.call(arguments, workspace) for arguments in several]

    return within(files, talk)


def call(files: Mapping[str, str | bytes], tool: Tool, before: str = "", **arguments: Any) -> ToolResult:
    """What a tool answers to one call."""
    return calls(files, tool, arguments, before=before)[0]
