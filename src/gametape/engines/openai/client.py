"""JSON in, JSON or a stream of events out, over one guarded HTTP client. Every failure is an `EngineError`.

Nothing a server does can hold us for longer, or make us keep more, than the bounds say: neither a body that drips a
byte at a time, nor a stream without an end.
"""

import asyncio
import json
import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx

from gametape.core.errors import BadInput
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.openai.address import ServerAddress
from gametape.engines.openai.errors import error_from_http, error_message, raise_for_status

_KEYS = ("GAMETAPE_API_KEY", "OPENAI_API_KEY")
_ERROR_BYTES = 64 * 1024


@dataclass(frozen=True)
class ServerLimits:
    """How long a server may take and how much it may say."""

    connect_seconds: float = 10.0
    idle_seconds: float = 120.0
    total_seconds: float = 900.0
    answer_bytes: int = 64 * 1024 * 1024
    event_bytes: int = 4 * 1024 * 1024


class ServerClient:
    """Speaks to one server. `server` is what messages call it: scheme, host and port, and never a key."""

    def __init__(self, address: ServerAddress, egress: EgressPolicy, limits: ServerLimits) -> None:
        self.server = str(address.socket_path or address.root_url.copy_with(path="/", userinfo=b"")).rstrip("/")
        self._address = address
        self._bounds = limits
        self._perimeter = egress
        self._http: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        if self._http is not None and self._loop is asyncio.get_running_loop():
            await self._http.aclose()
        self._http = None

    async def get(self, path: str) -> dict[str, Any]:
        return await self._whole("GET", self._at(self._address.api_url, path), None)

    async def post(self, path: str, body: dict[str, Any], *, root: bool = False) -> dict[str, Any]:
        """One JSON object for another. `root` asks above the API, where `/tokenize` is."""
        return await self._whole(
            "POST", self._at(self._address.root_url if root else self._address.api_url, path), body
        )

    async def events(
        self, path: str, body: dict[str, Any], count_received: Callable[[], int]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a streamed answer, until the server says that it is done or closes the stream.

        `wasted` counts the tokens received so far: what is lost when the stream ends in trouble.
        """
        async with self._answer("POST", self._at(self._address.api_url, path), body, count_received) as response:
            async for line in self._lines(response, count_received):
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    return
                event = self._json(data, count_received)
                if event.get("error"):
                    said = error_message(_without_key(data))
                    raise EngineError("server_error", f"{self.server}: {said}", wasted_tokens=count_received())
                yield event

    def _connected(self) -> httpx.AsyncClient:
        """Connections belong to one event loop; in another one, others are made."""
        loop = asyncio.get_running_loop()
        if self._http is None or self._loop is not loop:
            silence = httpx.Timeout(self._bounds.idle_seconds, connect=self._bounds.connect_seconds)
            self._http, self._loop = self._perimeter.http_client(silence, self._address.socket_path), loop
        return self._http

    async def _whole(self, method: str, url: httpx.URL, body: dict[str, Any] | None) -> dict[str, Any]:
        async with self._answer(method, url, body, _nothing) as response:
            content = bytearray()
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > self._bounds.answer_bytes:
                    self._garbled("sends more than an answer can hold", 0)
            return self._json(bytes(content), _nothing)

    @asynccontextmanager
    async def _answer(
        self, method: str, url: httpx.URL, body: dict[str, Any] | None, wasted: Callable[[], int]
    ) -> AsyncIterator[httpx.Response]:
        """The response of a request that succeeded; whatever goes wrong until it is read is trouble."""
        begun = False
        try:
            async with (
                asyncio.timeout(self._bounds.total_seconds),
                self._connected().stream(method, url, json=body, headers=_headers()) as response,
            ):
                begun = True
                if response.status_code != 200:
                    body_read = _without_key(await _beginning(response))
                    raise_for_status(response.status_code, response.headers, body_read, self.server)
                if response.headers.get("content-encoding", "identity") != "identity":
                    self._garbled("compresses its answer, which it was not asked to do", 0)
                yield response
        except TimeoutError as error:
            text = f"{self.server} took longer than {self._bounds.total_seconds:g} s"
            raise EngineError("timeout", text, wasted_tokens=wasted()) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise error_from_http(error, self.server, begun, wasted()) from error

    async def _lines(self, response: httpx.Response, wasted: Callable[[], int]) -> AsyncIterator[bytes]:
        rest, total = bytearray(), 0
        async for chunk in response.aiter_raw():
            total += len(chunk)
            rest += chunk
            if total > self._bounds.answer_bytes:
                self._garbled("does not stop sending", wasted())
            if b"\n" in chunk:
                *lines, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in lines:
                    yield line.rstrip(b"\r")
            if len(rest) > self._bounds.event_bytes:
                self._garbled("sends an event without an end", wasted())
        if rest:
            yield bytes(rest)

    def _json(self, data: bytes, wasted: Callable[[], int]) -> dict[str, Any]:
        try:
            document = json.loads(data.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
        except (ValueError, RecursionError):
            self._garbled("sends something that is not JSON", wasted())
        if not isinstance(document, dict):
            self._garbled("sends something that is not a JSON object", wasted())
        return document

    def _garbled(self, what: str, wasted: int) -> NoReturn:
        raise EngineError("garbled", f"{self.server} {what}", wasted_tokens=wasted)

    @staticmethod
    def _at(base: httpx.URL, path: str) -> httpx.URL:
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
    """What a server said, less the key should it repeat it."""
    key = _key()
    return body.replace(key.encode(), b"[key]") if key else body


async def _beginning(response: httpx.Response) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > _ERROR_BYTES:
            break
    return bytes(content[:_ERROR_BYTES])


def _nothing() -> int:
    return 0


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
