"""Tools of an MCP server that runs in a sandbox of its own.

The server is hostile: it sees only what its policy grants, its descriptions are sanitized and cut, and every call ends
with an answer.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gametape.core.errors import BadInput, MissingDependency
from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool, Workspace
from gametape.record.installation import pip_install
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.interactive import InteractiveProcess, open_interactive
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.output import sanitize, secret_values
from gametape.sandbox.policy import SandboxPolicy

_LONGEST_LINE = 4 << 20
_MOST_UNASKED = 5000
"""Messages in a row without a request; a server that never stops sending would keep the host busy."""


class McpConnection:
    """Two tasks carry messages in both directions until the server or the session ends."""

    def __init__(self, connection: socket.socket) -> None:
        import anyio  # noqa: PLC0415 - an optional extra
        from mcp.shared.message import SessionMessage  # noqa: PLC0415

        self._socket = connection
        self._arrived, self.read = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        self.write, self._leaving = anyio.create_memory_object_stream[SessionMessage](16)
        self._tasks: list[asyncio.Task[None]] = []
        self._unasked = 0
        self.closed = False
        """Whether the connection has ended."""

    async def __aenter__(self) -> Self:
        reader, writer = await asyncio.open_connection(sock=self._socket.dup(), limit=_LONGEST_LINE)
        self._writer = writer
        self._tasks = [asyncio.create_task(self._receive(reader)), asyncio.create_task(self._send(writer))]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writer.transport.abort()
        for stream in (self._arrived, self.read, self.write, self._leaving):
            stream.close()

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        import anyio  # noqa: PLC0415

        try:
            async with self._arrived:
                while (line := await reader.readline()) and self._unasked < _MOST_UNASKED:
                    self._unasked += 1
                    await self._arrived.send(_parsed(line))
        except (OSError, ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # a line without end, or one side has closed: the session sees the end of the stream
        finally:
            self.closed = True

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._leaving:
                async for message in self._leaving:
                    self._unasked = 0
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    writer.write(text.encode() + b"\n")
                    await writer.drain()
        except OSError:
            self.closed = True
            self._arrived.close()


def _parsed(line: bytes) -> Any:
    from mcp.shared.message import SessionMessage  # noqa: PLC0415
    from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp_types import Tool as Declared

_LIFETIME = 24 * 3600.0
_MOST_TOOLS = 64
_MOST_PAGES = 8
_LONGEST_DESCRIPTION = 1000
_MOST_SCHEMA = 8000
_MOST_ANSWER = 200_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

_SHIM = "import os, sys; os.dup2(0, 1); os.execvp(sys.argv[1], sys.argv[1:])"
"""The sandbox gives one socket as standard input; this makes it standard output as well."""


@dataclass(frozen=True)
class McpServer:
    """A server to attach. Its policy is all it may do; the default has no network and nothing of the host."""

    name: str
    command: tuple[str, ...]
    policy: SandboxPolicy = field(default_factory=SandboxPolicy)
    call_seconds: float = 60.0
    start_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"{self.name!r} is no name for a server; use letters, digits, - and _")
        if not self.command:
            raise BadInput(f"the server {self.name} has no command")


@contextlib.asynccontextmanager
async def attach_server(server: McpServer, backend: str = "bubblewrap") -> AsyncIterator[list[Tool]]:
    """Start a server and yield its tools. Raises `SandboxError` where it does not come up or does not speak MCP."""
    if importlib.util.find_spec("mcp") is None:
        raise MissingDependency(f"attaching MCP servers needs the mcp package: {pip_install('mcp')}")
    policy = server.policy.with_limits(wall_seconds=_LIFETIME)
    argv = ["python3", "-I", "-c", _SHIM, *server.command]
    process = await asyncio.to_thread(open_interactive, SandboxSpec(policy=policy), argv, backend)
    process.watch_closely()
    ready: asyncio.Future[list[Tool]] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()
    session = asyncio.create_task(_run_session(server, process, ready, done))
    try:
        either: set[asyncio.Future[Any]] = {ready, session}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            error = session.exception()
            reason = await asyncio.to_thread(_last_stderr_line, process)
            message = _plain(str(error), 200) or "time is up"
            raise SandboxError(f"the MCP server {server.name} did not come up: {message}{reason}") from error
        yield ready.result()
    finally:
        done.set()
        await asyncio.gather(session, return_exceptions=True)
        await asyncio.to_thread(process.close)


async def _run_session(
    server: McpServer, process: InteractiveProcess, ready: "asyncio.Future[list[Tool]]", done: asyncio.Event
) -> None:
    """Keep a session open in a task of its own, so that an error in the caller is not raised inside the session."""
    from mcp import ClientSession  # noqa: PLC0415 - an optional extra

    failure: Exception | None = None
    async with McpConnection(process.socket) as connection, ClientSession(connection.read, connection.write) as session:
        try:
            async with asyncio.timeout(server.start_seconds):
                await session.initialize()
                declared = await _list_tools(session)
        except Exception as error:  # raised again below, outside of the session, which would wrap it in a group
            failure = error
        else:
            ready.set_result(
                [McpTool(server, session, connection, tool) for tool in declared if _NAME.fullmatch(tool.name)]
            )
            await done.wait()
    if failure:
        raise failure


async def _list_tools(session: "ClientSession") -> "list[Declared]":
    from mcp_types import PaginatedRequestParams  # noqa: PLC0415

    tools: list[Declared] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools[:_MOST_TOOLS]


class McpTool:
    """One tool of a server, named `server.tool`."""

    def __init__(
        self, server: McpServer, session: "ClientSession", connection: McpConnection, declared: "Declared"
    ) -> None:
        self.name = f"{server.name}.{declared.name}"
        self._server = server
        self._session = session
        self._connection = connection
        self._inner = declared.name
        schema = declared.input_schema
        self._definition = {
            "name": self.name,
            "description": _plain(declared.description or "", _LONGEST_DESCRIPTION),
            "parameters": _plain_schema(schema if isinstance(schema, dict) else {}),
        }

    @property
    def definition(self) -> dict[str, Any]:
        return self._definition

    async def call(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:  # noqa: ARG002
        from mcp import MCPError  # noqa: PLC0415

        if self._connection.closed:
            return self._failed("the server has ended")
        try:
            async with asyncio.timeout(self._server.call_seconds):
                result = await self._session.call_tool(self._inner, arguments)
        except TimeoutError:
            return self._failed(f"no answer within {self._server.call_seconds:g} seconds")
        except (MCPError, ValueError, RuntimeError) as error:
            reason = "the server has ended" if self._connection.closed else _plain(str(error), 500)
            return self._failed(reason or type(error).__name__)
        text = _plain(_text(result.content), _MOST_ANSWER)
        return ToolResult(content=text or "[no content]", failed=bool(result.is_error))

    def _failed(self, reason: str) -> ToolResult:
        return ToolResult(content=f"{self.name}: {reason}", failed=True)


def _text(content: Sequence[Any]) -> str:
    """The text of an answer; other parts are named by their type."""
    parts = []
    for part in content:
        text = getattr(part, "text", None)
        parts.append(text if isinstance(text, str) else f"[{getattr(part, 'type', 'something')} left out]")
    return "\n".join(parts)


def _plain(text: str, limit: int) -> str:
    return sanitize(text[: 2 * limit], secret_values(os.environ))[:limit]


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The server's schema of the arguments, sanitized; a schema that is too long is replaced by an empty one."""
    try:
        text = json.dumps(schema)
    except (ValueError, TypeError, RecursionError):
        text = ""
    if not text or len(text) > _MOST_SCHEMA:
        return {"type": "object"}
    return {**_sanitized(schema), "type": "object"}


def _sanitized(value: Any) -> Any:
    if isinstance(value, str):
        return _plain(value, _LONGEST_DESCRIPTION)
    if isinstance(value, list):
        return [_sanitized(item) for item in value]
    if isinstance(value, dict):
        return {_plain(str(key), 100): _sanitized(item) for key, item in value.items()}
    return value


def _last_stderr_line(process: InteractiveProcess) -> str:
    """The last line that the server printed to stderr, as the end of a sentence."""
    process.kill()
    result = process.result()
    lines = result.stderr.strip().splitlines()
    return f"; it said: {lines[-1][:300]}" if lines else ""
