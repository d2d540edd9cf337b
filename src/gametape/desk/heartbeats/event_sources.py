"""The event sources of a heartbeat, which cost no tokens: each gives a fingerprint, and a change of it is an event.

Files and refs are read in this process, without following links out of the named directory. Commands and MCP servers
run in a sandbox with the workspace read-only and no network.
"""

import asyncio
import hashlib
import os
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gametape.agent.tools.mcp import McpServer, attach_server
from gametape.core.errors import BadInput
from gametape.desk.database import ticks
from gametape.desk.heartbeats.config import EventConfig, GitRef, HeartbeatConfig, McpSource
from gametape.desk.jobs import Desk
from gametape.record.errors import read_error
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.result import ExecResult

_FILES = 20_000
_SECONDS = 30.0
ASKED = "asked"
"""The outcome of a tick that asked the agent."""


async def read_fingerprints(desk: Desk, config: HeartbeatConfig) -> dict[str, str]:
    """The fingerprints of the configured sources, by source. Raises `GametapeError` where one of them cannot be
    read: that is no change."""
    event, fingerprints = config.event, dict[str, str]()
    if event is None:
        return fingerprints
    try:
        if event.files:
            fingerprints["files"] = await asyncio.to_thread(_files, Path(_workspace(config)), event)
        if event.git_ref is not None:
            fingerprints["git_ref"] = await asyncio.to_thread(_git_ref, event.git_ref)
    except OSError as error:
        raise read_error(Path(error.filename or "a source"), error) from None
    if event.command:
        result = await run_in_sandbox(config, event.command)
        fingerprints["command"] = _hash(f"{result.exit_code}\n{result.stdout}")
    if event.mcp is not None:
        fingerprints["mcp"] = _hash(await _mcp_answer(config, event.mcp))
    if event.heartbeat:
        fingerprints["heartbeat"] = await asyncio.to_thread(_last_answer, desk, event.heartbeat)
    return fingerprints


async def _mcp_answer(config: HeartbeatConfig, source: McpSource) -> str:
    """The answer of a tool. Raises `BadInput` where it fails: that is no event."""
    server = McpServer("source", source.command, SandboxPolicy(read_only=(_workspace(config),)), _SECONDS, _SECONDS)
    async with attach_server(server) as tools:
        tool = next((tool for tool in tools if tool.name == f"{server.name}.{source.tool}"), None)
        if tool is None:
            raise BadInput(f"the MCP server {source.command[0]} has no tool {source.tool!r}")
        workspace: Any = None  # an MCP tool does not use the workspace
        result = await tool.call(source.arguments, workspace)
    if result.failed:
        raise BadInput(f"the MCP tool {source.tool}: {result.content[:200]}")
    return result.content


def _workspace(config: HeartbeatConfig) -> str:
    if config.workspace is None or not config.workspace.is_dir():
        raise BadInput(f"no such workspace directory: {config.workspace}")
    return str(config.workspace.resolve())


async def run_in_sandbox(config: HeartbeatConfig, command: str) -> ExecResult:
    """Run a command of a heartbeat, with the workspace read-only at its own path."""
    workspace = _workspace(config)
    policy = SandboxPolicy(read_only=(workspace,)).with_limits(wall_seconds=_SECONDS)
    line = f"cd -- {shlex.quote(workspace)} && {command}"
    return await asyncio.to_thread(
        lambda: open_backend().start(SandboxSpec(policy=policy)).exec(["/bin/sh", "-c", line])
    )


def _files(workspace: Path, event: EventConfig) -> str:
    entries = (entry for entry in _walk(workspace) if any(_matches(entry[0], pattern) for pattern in event.files))
    return _hash("\n".join(f"{path}\0{size}\0{changed}" for path, size, changed in sorted(entries)))


def _walk(workspace: Path) -> Iterator[tuple[str, int, int]]:
    count = 0
    for directory, inner, names in os.walk(workspace):
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
