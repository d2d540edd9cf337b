"""The client of one server: JSON requests, JSON or event-stream answers. Every failure is an `EngineError`.

`ServerLimits` bounds the time and the memory that any answer can take, also one that comes a byte at a time or does not
end.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.tool_calls import load_finite_json
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.openai.address import ServerAddress
from gametape.engines.openai.errors import error_from_http, error_message, raise_for_status

_KEYS = ("GAMETAPE_API_KEY", "OPENAI_API_KEY")
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
    """The client of one server. `server` is its name in messages: scheme, host and port, never a key."""

    def __init__(self, address: ServerAddress, egress: EgressPolicy, limits: ServerLimits) -> None:
        self.server = str(address.socket_path or address.root_url.copy_with(path="/", userinfo=b"")).rstrip("/")
        self._address = address
        self._limits = limits
        self._egress = egress
        self._http: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        if self._http is not None and self._loop is asyncio.get_running_loop():
            await self._http.aclose()
        self._http = None

    async def get(self, path: str) -> dict[str, Any]:
        return await self._json_answer("GET", self._url(self._address.api_url, path), None)

    async def post(self, path: str, body: dict[str, Any], *, root: bool = False) -> dict[str, Any]:
        """Send a JSON object and return one. `root` uses the root URL, where `/tokenize` is."""
        return await self._json_answer(
            "POST", self._url(self._address.root_url if root else self._address.api_url, path), body
        )

    async def events(
        self, path: str, body: dict[str, Any], count_received: Callable[[], int]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a streamed answer, until the server says that it is done or closes the stream.

        `count_received` counts the tokens received so far, which are lost when the stream fails.
        """
        async with self._answer("POST", self._url(self._address.api_url, path), body, count_received) as response:
            async for line in self._lines(response, count_received):
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    return
                event = self._json(data, count_received)
                if event.get("error"):
                    message = error_message(_without_key(data))
                    raise EngineError("server_error", f"{self.server}: {message}", wasted_tokens=count_received())
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
            return self._json(bytes(content), _none_received)

    @asynccontextmanager
    async def _answer(
        self, method: str, url: httpx.URL, body: dict[str, Any] | None, count_received: Callable[[], int]
    ) -> AsyncIterator[httpx.Response]:
        """The response of a request that succeeded; failures until it is read become `EngineError`."""
        begun = False
        try:
            async with (
                asyncio.timeout(self._limits.total_seconds),
                self._connected().stream(method, url, json=body, headers=_headers()) as response,
            ):
                begun = True
                if response.status_code != 200:
                    body_read = _without_key(await _read_error_body(response))
                    raise_for_status(response.status_code, response.headers, body_read, self.server)
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

    def _json(self, data: bytes, count_received: Callable[[], int]) -> dict[str, Any]:
        try:
            document = load_finite_json(data.decode("utf-8"))
        except (ValueError, RecursionError):
            self._garbled("sends something that is not JSON", count_received())
        if not isinstance(document, dict):
            self._garbled("sends something that is not a JSON object", count_received())
        return document

    def _garbled(self, what: str, wasted: int) -> NoReturn:
        raise EngineError("garbled", f"{self.server} {what}", wasted_tokens=wasted)

    @staticmethod
    def _url(base: httpx.URL, path: str) -> httpx.URL:
        return base.copy_with(path=base.path.rstrip("/") + path)


def _key() -> str | None:
    for name in _KEYS:
        key = os.environ.get(name, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise BadInput(f"${name} holds characters that no header can carry")
        if key:
            return key
    return None


def _headers() -> dict[str, str]:
    headers = {"accept-encoding": "identity", "user-agent": "gametape"}
    key = _key()
    return headers | {"authorization": f"Bearer {key}"} if key else headers


def _without_key(body: bytes) -> bytes:
    """The body without the key, should the server repeat it."""
    key = _key()
    return body.replace(key.encode(), b"[key]") if key else body


async def _read_error_body(response: httpx.Response) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > _ERROR_BYTES:
            break
    return bytes(content[:_ERROR_BYTES])


def _none_received() -> int:
    return 0
