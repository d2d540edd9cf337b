"""A socket to a server in a sandbox, as the pair of message streams that an MCP session wants.

One message is one line of JSON. A line that is no message is an error for the session to see, a line without end ends
the connection, and so does talk without end.
"""

import asyncio
import socket
from types import TracebackType
from typing import Any, Self

_LONGEST_LINE = 4 << 20
_MOST_UNASKED = 5000
"""Messages in a row while nothing is said to the server; one that talks on and on would keep the host busy."""


class Line:
    """Two tasks carry messages to and fro until the server or the session ends."""

    def __init__(self, connection: socket.socket) -> None:
        import anyio  # noqa: PLC0415 - an optional extra
        from mcp.shared.message import SessionMessage  # noqa: PLC0415

        self._socket = connection
        self._arrived, self.read = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        self.write, self._leaving = anyio.create_memory_object_stream[SessionMessage](16)
        self._tasks: list[asyncio.Task[None]] = []
        self._unasked = 0
        self.over = False
        """Whether the server can be heard no more."""

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
            pass  # a line without end, or one side has gone: the session sees that no more comes
        finally:
            self.over = True

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._leaving:
                async for message in self._leaving:
                    self._unasked = 0
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    writer.write(text.encode() + b"\n")
                    await writer.drain()
        except OSError:
            self.over = True
            self._arrived.close()


def _parsed(line: bytes) -> Any:
    from mcp.shared.message import SessionMessage  # noqa: PLC0415
    from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error
