"""The event sources of a heartbeat, which cost no tokens: each gives a fingerprint, and a change of it is an event.

Files and refs are read in this process, without following links out of the named directory. Commands and MCP servers
run in a sandbox with the workspace read-only and no network.
"""

import asyncio
import hashlib
import os
import shlex
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import sqlalchemy as sa

from gametape.agent.tools.mcp import McpServer, attach_server
from gametape.core.errors import BadInput
from gametape.desk.database import ticks
from gametape.desk.heartbeats.config import EventConfig, GitRef, HeartbeatConfig, McpSource
from gametape.desk.jobs import Desk
from gametape.record.directory_walk import walk
from gametape.record.errors import read_error
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.result import ExecResult

_FILES = 20_000
_SECONDS = 30.0
_SECONDS_TO_CLOSE = 5.0
ANSWERS = "heartbeat"
"""The name of the source that another heartbeat's answers are."""
T = TypeVar("T")
ASKED = "asked"
"""The outcome of a tick that asked the agent."""


def event_sources(desk: Desk, config: HeartbeatConfig) -> dict[str, Callable[[], Awaitable[str]]]:
    """The configured sources, by name; each reads its own fingerprint. Raises `GametapeError` where it cannot be read
    within half a minute: that is no change."""
    event, sources = config.event, dict[str, Callable[[], Awaitable[str]]]()
    if event is None:
        return sources
    if event.files:
        sources["files"] = lambda: _in_own_thread(lambda: _files(Path(_workspace(config)), event))
    if (ref := event.git_ref) is not None:
        sources["git_ref"] = lambda: _in_own_thread(lambda: _git_ref(ref))
    if event.command:
        sources["command"] = lambda: _command_output(config, event.command)
    if (mcp := event.mcp) is not None:
        sources["mcp"] = lambda: _mcp_answer(config, mcp)
    if event.heartbeat:
        sources[ANSWERS] = lambda: asyncio.to_thread(_last_answer, desk, event.heartbeat)
    return {name: partial(_within_time, name, read) for name, read in sources.items()}


async def read_fingerprints(desk: Desk, config: HeartbeatConfig) -> dict[str, str]:
    """The fingerprints of all configured sources. Raises `GametapeError` where one of them cannot be read."""
    sources = event_sources(desk, config)
    return dict(zip(sources, await asyncio.gather(*(read() for read in sources.values())), strict=True))


async def _within_time(name: str, read: Callable[[], Awaitable[str]]) -> str:
    try:
        async with asyncio.timeout(_SECONDS + _SECONDS_TO_CLOSE):
            return await read()
    except TimeoutError:
        raise BadInput(f"{name}: took longer than {_SECONDS:.0f} s to read") from None
    except OSError as error:
        raise read_error(Path(error.filename or "a source"), error) from None


async def _in_own_thread(act: Callable[[], T]) -> T:
    """Run in a thread that nothing waits for: a directory that hangs holds up neither other sources nor the end."""
    future, loop = Future[T](), asyncio.get_running_loop()

    def run() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(act())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future, loop=loop)


async def _command_output(config: HeartbeatConfig, command: str) -> str:
    result = await run_in_sandbox(config, command)
    if result.killed_by == "time":
        raise BadInput(f"the event's command took longer than {_SECONDS:.0f} s")
    return _hash(f"{result.exit_code}\n{result.stdout}")


async def _mcp_answer(config: HeartbeatConfig, source: McpSource) -> str:
    """The fingerprint of a tool's answer. Raises `BadInput` where it fails: that is no event."""
    server = McpServer("source", source.command, SandboxPolicy(read_only=(_workspace(config),)), _SECONDS, _SECONDS)
    async with attach_server(server) as tools:
        tool = next((tool for tool in tools if tool.name == f"{server.name}.{source.tool}"), None)
        if tool is None:
            raise BadInput(f"the MCP server {source.command[0]} has no tool {source.tool!r}")
        workspace: Any = None  # an MCP tool does not use the workspace
        result = await tool.call(source.arguments, workspace)
    if result.failed:
        raise BadInput(f"the MCP tool {source.tool}: {result.content[:200]}")
    return _hash(result.content)


def _workspace(config: HeartbeatConfig) -> str:
    if config.workspace is None or not config.workspace.is_dir():
        raise BadInput(f"no such workspace directory: {config.workspace}")
    return str(config.workspace.resolve())


async def run_in_sandbox(config: HeartbeatConfig, command: str) -> ExecResult:
    """Run a command of a heartbeat, with the workspace read-only at its own path."""
    workspace = _workspace(config)
    policy = SandboxPolicy(read_only=(workspace,)).with_limits(wall_seconds=_SECONDS)
    line = f"cd -- {shlex.quote(workspace)} && {command}"
    return await _in_own_thread(lambda: open_backend().start(SandboxSpec(policy=policy)).exec(["/bin/sh", "-c", line]))


def _files(workspace: Path, event: EventConfig) -> str:
    entries = (entry for entry in _walk(workspace) if any(_matches(entry[0], pattern) for pattern in event.files))
    return _hash("\n".join(f"{path}\0{size}\0{changed}" for path, size, changed in sorted(entries)))


def _walk(workspace: Path) -> Iterator[tuple[str, int, int]]:
    count = 0
    for directory, inner, names in walk(workspace):
        inner[:] = [name for name in inner if name != ".git"]
        for name in names:
            count += 1
            if count > _FILES:
                raise BadInput(f"{workspace}: more than {_FILES} files to look at; watch a smaller directory")
            try:
                status = os.lstat(path := os.path.join(directory, name))
            except FileNotFoundError:
                continue
            yield os.path.relpath(path, workspace), status.st_size, status.st_mtime_ns


def _matches(path: str, pattern: str) -> bool:
    return path == pattern or path.startswith(pattern.rstrip("/") + "/") or fnmatchcase(path, pattern)


def _git_ref(source: GitRef) -> str:
    """The commit of a ref, read from git's files: git is not run in a repository that an agent may have prepared."""
    if not source.repository.is_dir():
        raise BadInput(f"no such repository: {source.repository}")
    directory = source.repository / ".git"
    directory = directory if directory.is_dir() else source.repository
    name = source.ref
    for _ in range(5):
        if (text := _ref_text(directory, name)) is None or not text.startswith("ref: "):
            return text or ""
        name = text.removeprefix("ref: ").strip()
    raise BadInput(f"{source.repository}: {source.ref} names a ref that names a ref, and so on")


def _ref_text(directory: Path, name: str) -> str | None:
    if name.startswith("/") or ".." in name.split("/"):
        raise BadInput(f"{name!r}: not a git ref")
    candidates = (name, f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/tags/{name}")
    for candidate in candidates:
        if (path := directory / candidate).is_file():
            return path.read_text(errors="replace").strip()
    packed = directory / "packed-refs"
    for line in packed.read_text(errors="replace").splitlines() if packed.is_file() else ():
        commit, _, ref = line.partition(" ")
        if ref in candidates:
            return commit
    return None


def _last_answer(desk: Desk, name: str) -> str:
    query = sa.select(ticks.c.key).where(ticks.c.heartbeat == name, ticks.c.outcome == ASKED)
    with desk.database.connect() as connection:
        return connection.scalar(query.order_by(ticks.c.at.desc()).limit(1)) or ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
