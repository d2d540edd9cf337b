"""One connection of a sandbox to the network proxy: read the request, decide, and carry it out.

A plain http request is parsed whole and written anew, so that the server cannot read anything else in it than was
checked; one request to a connection. A CONNECT is a tunnel whose first bytes must be a TLS greeting that asks for the
host that was allowed. TLS is not opened: what is said inside is not seen.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import h11

from gametape.core.errors import GametapeError
from gametape.sandbox import host_names, proxy_target
from gametape.sandbox.client_hello import server_name
from gametape.sandbox.host_names import IpAddress
from gametape.sandbox.network_policy import NetworkAccess, RequestRefused
from gametape.sandbox.network_record import NetworkRecord
from gametape.sandbox.proxy_target import ProxyTarget, RawTarget, read_target, request_headers, response_headers
from gametape.sandbox.result import NetworkRequest

_CHUNK = 1 << 16
_LONGEST_HEAD = 1 << 15
_LINGER_SECONDS, _LINGER_CHUNKS = 5.0, 16
_ENDED = "ended with the sandbox"


class TrafficLimit(Exception):
    """A limit on bytes or time ended a connection."""


@dataclass
class TrafficCounter:
    """The bytes of all connections of one sandbox, against their limits."""

    sent_left: int
    received_left: int

    def sent(self, count: int) -> None:
        self.sent_left -= count
        if self.sent_left < 0:
            raise TrafficLimit("limit on bytes sent")

    def received(self, count: int) -> None:
        self.received_left -= count
        if self.received_left < 0:
            raise TrafficLimit("limit on bytes received")


@dataclass
class ProxyConnection:
    """One connection, from its acceptance to its end. `run` never raises but for cancellation."""

    access: NetworkAccess
    record: NetworkRecord
    traffic: TrafficCounter
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _http: h11.Connection = field(
        default_factory=lambda: h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
    )
    _request: NetworkRequest | None = None
    _began: float = 0.0
    _sent: int = 0
    _received: int = 0
    _address: str = ""

    async def run(self) -> None:
        raw, reason = RawTarget(), _ENDED
        self._began = time.monotonic()
        try:
            async with asyncio.timeout(self.access.seconds):
                reason = await self._serve(raw)
        except TimeoutError:
            reason = "limit on time"
        except (RequestRefused, TrafficLimit) as end:
            reason = str(end)
        except (OSError, EOFError, h11.ProtocolError, GametapeError) as error:
            reason = "connection failed" if isinstance(error, (OSError, EOFError)) else "bad response"
        finally:
            self._finish(raw, reason)
            await self._close(at_once=reason == _ENDED)

    def _finish(self, raw: RawTarget, reason: str) -> None:
        with contextlib.suppress(GametapeError):  # the record cannot be written: nothing was, or will be, let through
            if self._request and self._request.allowed:
                seconds = round(time.monotonic() - self._began, 3)
                counts = {"sent_bytes": self._sent, "received_bytes": self._received}
                self.record.end(self._request, reason=reason, address=self._address, seconds=seconds, **counts)
            elif self._request is None and (raw.method or reason not in ("", _ENDED)):
                self.record.add(**vars(raw), allowed=False, reason=reason)

    async def _close(self, at_once: bool) -> None:
        """Close after what was written has gone out; what the client still sends is read, or the kernel would throw
        away the answer that it has not yet read."""
        try:
            if not at_once and not self.writer.is_closing():
                async with asyncio.timeout(_LINGER_SECONDS):
                    await self.writer.drain()
                    self.writer.write_eof()
                    for _ in range(_LINGER_CHUNKS):
                        if not await self.reader.read(_CHUNK):
                            break
        except (OSError, TimeoutError):
            pass
        finally:
            self.writer.transport.abort()

    async def _serve(self, raw: RawTarget) -> str:
        """Carry out one request. Returns why it failed, or nothing."""
        try:
            async with asyncio.timeout(self.access.head_seconds):
                head = await self._read_head()
            if head is None:
                return ""
            target = read_target(head, raw)
            self.access.check_target(target.host, target.port, target.kind)
            if target.kind == "http":
                self.access.check_method(target.method)
                proxy_target.refuse_other_host(list(head.headers), target)
            upstream = await self._dial(await self._addresses(target), target)
        except h11.RemoteProtocolError:
            return self._refuse(raw, 400, "bad request")
        except RequestRefused as refusal:
            return self._refuse(raw, 403, str(refusal))
        except TimeoutError:
            return self._refuse(raw, 408, "limit on time")
        except OSError:
            return self._refuse(raw, 502, "connection failed", allowed=True)
        try:
            if target.kind == "connect":
                greeting = await self._checked_greeting(target)
                self._request = self.record.add(**vars(raw), allowed=True, reason="")
                await self._tunnel(greeting, *upstream)
            else:
                self._request = self.record.add(**vars(raw), allowed=True, reason="")
                await self._forward(head, target, *upstream)
        finally:
            upstream[1].transport.abort()
        return ""

    async def _read_head(self) -> h11.Request | None:
        """The request; None when the client went away without one."""
        empty = True
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is h11.NEED_DATA:
                data = await self.reader.read(_CHUNK)
                if not data and empty:
                    return None
                empty = False
                self._http.receive_data(data)
            else:
                raise RequestRefused("bad request")

    async def _addresses(self, target: ProxyTarget) -> list[IpAddress]:
        found: list[IpAddress] = []
        if isinstance(target.host, str):
            async with asyncio.timeout(self.access.head_seconds):
                found = await host_names.resolve_host(target.host, target.port)
        return self.access.reachable(target.host, found, target.port, target.kind)

    async def _dial(
        self, addresses: list[IpAddress], target: ProxyTarget
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to one of the addresses that were checked, and to nothing else."""
        port, failure = target.port, OSError("no address")
        for address in addresses:
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            peer = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            try:
                async with asyncio.timeout(self.access.head_seconds):
                    await asyncio.get_running_loop().sock_connect(peer, (str(address), port))
                own = peer.getsockname()[0] == str(address)
                if own and not self.access.names_address(address, port, target.kind):
                    raise RequestRefused("address not public")  # this machine's own
                self._address = str(address)
                return await asyncio.open_connection(sock=peer, limit=_CHUNK)
            except (OSError, TimeoutError) as error:
                peer.close()
                failure = error if isinstance(error, OSError) else OSError("time is up")
            except BaseException:
                peer.close()
                raise
        raise failure

    async def _checked_greeting(self, target: ProxyTarget) -> bytes:
        """Open the tunnel and read the client's TLS greeting, which must ask for the host that was allowed. An address
        has no name to ask for."""
        self._http.next_event()  # the end of a request without a body
        self.writer.write(self._http.send(h11.Response(status_code=200, headers=[], reason=b"OK")) or b"")
        await self.writer.drain()
        stream, _ended = self._http.trailing_data
        async with asyncio.timeout(self.access.head_seconds):
            while True:
                complete, name = server_name(stream)
                if complete:
                    wanted = target.host if isinstance(target.host, str) else None
                    if name != wanted:
                        raise RequestRefused("TLS name differs")
                    return stream
                data = await self.reader.read(_CHUNK)
                if not data:
                    raise RequestRefused("not TLS")
                stream += data

    async def _tunnel(self, greeting: bytes, upstream: asyncio.StreamReader, to_upstream: asyncio.StreamWriter) -> None:
        await self._send(to_upstream, greeting)
        async with self._idle_limit() as active:
            pumps = [self._pump_up(to_upstream, active), self._pump_down(upstream, active)]
            await _all_of(*(asyncio.create_task(pump) for pump in pumps))

    @contextlib.asynccontextmanager
    async def _idle_limit(self) -> AsyncIterator[Callable[[], None]]:
        """A time-out that the function it gives puts off."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.access.idle_seconds) as idle:
            yield lambda: idle.reschedule(loop.time() + self.access.idle_seconds)

    async def _pump_up(self, to_upstream: asyncio.StreamWriter, active: Callable[[], None]) -> None:
        while data := await self.reader.read(_CHUNK):
            active()
            await self._send(to_upstream, data)
        with contextlib.suppress(OSError):
            to_upstream.write_eof()

    async def _pump_down(self, upstream: asyncio.StreamReader, active: Callable[[], None]) -> None:
        while data := await self._receive(upstream):
            active()
            self.writer.write(data)
            await self.writer.drain()
        with contextlib.suppress(OSError):
            self.writer.write_eof()

    async def _send(self, to_upstream: asyncio.StreamWriter, data: bytes) -> None:
        self.traffic.sent(len(data))
        self._sent += len(data)
        to_upstream.write(data)
        await to_upstream.drain()

    async def _receive(self, upstream: asyncio.StreamReader) -> bytes:
        data = await upstream.read(_CHUNK)
        self._received += len(data)
        self.traffic.received(len(data))
        return data

    async def _forward(
        self, head: h11.Request, target: ProxyTarget, upstream: asyncio.StreamReader, to_upstream: asyncio.StreamWriter
    ) -> None:
        """Write the request anew, and its answer. The answer may come before the request has ended."""
        server = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        headers = request_headers(list(head.headers), target)
        request = h11.Request(method=head.method, target=target.path.encode("latin-1"), headers=headers)
        await self._send(to_upstream, server.send(request) or b"")
        async with self._idle_limit() as active:
            body = asyncio.create_task(self._forward_body(server, to_upstream, active))
            answer = asyncio.create_task(self._forward_answer(server, upstream, active))
            try:
                await asyncio.wait((body, answer), return_when=asyncio.FIRST_COMPLETED)
                if body.done() and (error := body.exception()) and not isinstance(error, OSError):
                    raise error
                await answer
            finally:
                await _cancel(body, answer)

    async def _forward_body(
        self, server: h11.Connection, to_upstream: asyncio.StreamWriter, active: Callable[[], None]
    ) -> None:
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self.writer.write(self._http.send(go_on) or b"")
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                raise RequestRefused("bad request") from None
            if event is h11.NEED_DATA:
                self._http.receive_data(await self.reader.read(_CHUNK))
                active()
            elif isinstance(event, h11.Data):
                await self._send(to_upstream, server.send(h11.Data(data=bytes(event.data))) or b"")
            elif isinstance(event, h11.EndOfMessage):
                await self._send(to_upstream, server.send(h11.EndOfMessage()) or b"")
                return
            else:
                raise EOFError

    async def _forward_answer(
        self, server: h11.Connection, upstream: asyncio.StreamReader, active: Callable[[], None]
    ) -> None:
        while True:
            event = server.next_event()
            if event is h11.NEED_DATA:
                server.receive_data(await self._receive(upstream))
                active()
            elif isinstance(event, h11.Response):
                answer = h11.Response(
                    status_code=event.status_code,
                    headers=response_headers(list(event.headers)),
                    reason=bytes(event.reason),
                )
                self.writer.write(self._http.send(answer) or b"")
            elif isinstance(event, h11.Data):
                self.writer.write(self._http.send(h11.Data(data=bytes(event.data))) or b"")
                await self.writer.drain()
            elif isinstance(event, h11.EndOfMessage):
                self.writer.write(self._http.send(h11.EndOfMessage()) or b"")
                await self.writer.drain()
                return
            elif not isinstance(event, h11.InformationalResponse):
                raise EOFError

    def _refuse(self, raw: RawTarget, status: int, reason: str, allowed: bool = False) -> str:
        """Record the refusal, then say in the status line why: that is what most clients show. Returns the reason."""
        self._request = self.record.add(**vars(raw), allowed=allowed, reason=reason)
        text = f"gametape: {reason}\n".encode()
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(text))), ("Connection", "close")]
        parts = [
            h11.Response(status_code=status, headers=headers, reason=reason.encode()),
            h11.Data(data=text),
            h11.EndOfMessage(),
        ]
        with contextlib.suppress(OSError, h11.LocalProtocolError):
            self.writer.write(b"".join(self._http.send(part) or b"" for part in parts))
        return reason


async def _all_of(*tasks: asyncio.Task[None]) -> None:
    """Wait for all, or for the first that fails; none is left running."""
    try:
        await asyncio.gather(*tasks)
    finally:
        await _cancel(*tasks)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
