"""The client of one server: JSON requests, JSON or event-stream answers. Every failure is an `EngineError`.

`ServerLimits` bounds the time and the memory that any answer can take, also one that comes a byte at a time or does not
end.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx

from gametape.engines.chat_formats.tool_calls import load_finite_json
from gametape.engines.conversation import Reply
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.server.address import ServerAddress
from gametape.engines.server.errors import error_from_http, raise_for_event, raise_for_status
from gametape.engines.server.keys import ServerKey, find_key
from gametape.engines.server.reply_check import clean_reply

_ANTHROPIC_VERSION = "2023-06-01"
_ERROR_BYTES = 64 * 1024


@dataclass(frozen=True)
class ServerLimits:
    """How long a server may take and how much it may send."""

    connect_seconds: float = 10.0
    idle_seconds: float = 120.0
    total_seconds: float = 900.0
    answer_bytes: int = 64 * 1024 * 1024
    event_bytes: int = 4 * 1024 * 1024


class ServerClient:
    """The client of one server. `server` is its name in messages: scheme, host and port, never a key.

    Made only where the policy allows the host and the key can be sent: no request is needed to find that out. `key` is
    what is sent instead of the address's own.
    """

    def __init__(
        self, address: ServerAddress, egress: EgressPolicy, limits: ServerLimits, key: ServerKey | None = None
    ) -> None:
        self.server = address.server
        if address.socket_path is None:
            egress.allowed_addresses(address.api_url.host)
        self._key = find_key(address, egress) if key is None else key
        self._headers = _headers(address, self._key)
        self._address = address
        self._limits = limits
        self._egress = egress
        self._http: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def hide_key(self, text: str) -> str:
        """A text of the server for a message, without the key."""
        return self._key.hide(text)

    def clean_reply(self, reply: Reply) -> Reply:
        """The reply as it may be recorded: without the key, and in valid text."""
        try:
            return clean_reply(reply, self._key.mask)
        except ValueError:
            self._garbled("sends something that is nested too deeply", reply.usage.completion_tokens)

    async def close(self) -> None:
        if self._http is not None and self._loop is asyncio.get_running_loop():
            await self._http.aclose()
        self._http = None

    async def get(self, path: str, *, root: bool = False) -> dict[str, Any]:
        return await self._json_answer("GET", self._url(path, root), None)

    async def post(self, path: str, body: dict[str, Any], *, root: bool = False) -> dict[str, Any]:
        """Send a JSON object and return one. `root` uses the root URL, where `/tokenize` is."""
        return await self._json_answer("POST", self._url(path, root), body)

    async def events(
        self, path: str, body: dict[str, Any], count_received: Callable[[], int]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a streamed answer, until the server says that it is done or closes the stream.

        `count_received` counts the tokens received so far, which are lost when the stream fails.
        """
        async with aclosing(self.lines(path, body, count_received)) as lines:
            async for line in lines:
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    return
                event = self.parse_json(data, count_received)
                if event.get("error"):
                    raise_for_event(data, self.server, count_received(), self._key)
                yield event

    async def lines(
        self, path: str, body: dict[str, Any], count_received: Callable[[], int]
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a streamed answer, without their ends, until the server closes the stream."""
        async with self._answer("POST", self._url(path, False), body, count_received) as response:
            async for line in self._lines(response, count_received):
                yield line

    async def json_lines(
        self, path: str, body: dict[str, Any], count_received: Callable[[], int]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The objects of an answer that is streamed as JSON lines, until the server closes the stream."""
        async with aclosing(self.lines(path, body, count_received)) as lines:
            async for line in lines:
                if not line.strip():
                    continue
                event = self.parse_json(line, count_received)
                if event.get("error"):
                    raise_for_event(line, self.server, count_received(), self._key)
                yield event

    def _connected(self) -> httpx.AsyncClient:
        """Connections belong to one event loop; another loop gets new ones."""
        loop = asyncio.get_running_loop()
        if self._http is None or self._loop is not loop:
            timeout = httpx.Timeout(self._limits.idle_seconds, connect=self._limits.connect_seconds)
            self._http, self._loop = self._egress.http_client(timeout, self._address.socket_path), loop
        return self._http

    async def _json_answer(self, method: str, url: httpx.URL, body: dict[str, Any] | None) -> dict[str, Any]:
        async with self._answer(method, url, body, _none_received) as response:
            content = bytearray()
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > self._limits.answer_bytes:
                    self._garbled("sends more than an answer can hold", 0)
            return self.parse_json(bytes(content), _none_received)

    @asynccontextmanager
    async def _answer(
        self, method: str, url: httpx.URL, body: dict[str, Any] | None, count_received: Callable[[], int]
    ) -> AsyncIterator[httpx.Response]:
        """The response of a request that succeeded; failures until it is read become `EngineError`."""
        begun = False
        try:
            async with (
                asyncio.timeout(self._limits.total_seconds),
                self._connected().stream(method, url, json=body, headers=self._headers) as response,
            ):
                begun = True
                if response.status_code != 200:
                    body_read = await _read_error_body(response)
                    raise_for_status(response.status_code, response.headers, body_read, self.server, self._key)
                if response.headers.get("content-encoding", "identity") != "identity":
                    self._garbled("compresses its answer, which it was not asked to do", 0)
                yield response
        except TimeoutError as error:
            text = f"{self.server} took longer than {self._limits.total_seconds:g} s"
            raise EngineError("timeout", text, wasted_tokens=count_received()) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise error_from_http(error, self.server, begun, count_received()) from error

    async def _lines(self, response: httpx.Response, count_received: Callable[[], int]) -> AsyncIterator[bytes]:
        rest, total = bytearray(), 0
        async for chunk in response.aiter_raw():
            total += len(chunk)
            rest += chunk
            if total > self._limits.answer_bytes:
                self._garbled("does not stop sending", count_received())
            if b"\n" in chunk:
                *lines, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in lines:
                    yield line.rstrip(b"\r")
            if len(rest) > self._limits.event_bytes:
                self._garbled("sends an event without an end", count_received())
        if rest:
            yield bytes(rest)

    def parse_json(self, data: bytes, count_received: Callable[[], int]) -> dict[str, Any]:
        """One JSON object of an answer."""
        try:
            document = load_finite_json(data.decode("utf-8"))
        except (ValueError, RecursionError):
            self._garbled("sends something that is not JSON", count_received())
        if not isinstance(document, dict):
            self._garbled("sends something that is not a JSON object", count_received())
        return document

    def _garbled(self, what: str, wasted: int) -> NoReturn:
        raise EngineError("garbled", f"{self.server} {what}", wasted_tokens=wasted)

    def _url(self, path: str, root: bool) -> httpx.URL:
        base = self._address.root_url if root else self._address.api_url
        return base.copy_with(path=base.path.rstrip("/") + path)


def _headers(address: ServerAddress, key: ServerKey) -> dict[str, str]:
    headers = {"accept-encoding": "identity", "user-agent": "gametape"}
    if address.provider.protocol == "anthropic":
        headers["anthropic-version"] = _ANTHROPIC_VERSION
        return headers | {"x-api-key": key.value} if key.value else headers
    return headers | {"authorization": f"Bearer {key.value}"} if key.value else headers


async def _read_error_body(response: httpx.Response) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > _ERROR_BYTES:
            break
    return bytes(content[:_ERROR_BYTES])


def _none_received() -> int:
    return 0
