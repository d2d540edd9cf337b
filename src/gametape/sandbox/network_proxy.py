"""The network proxy of one sandbox: the only way from its loopback to the hosts that its policy allows.

It runs in the host program, in a thread with an event loop of its own. The socket it listens on lies in the sandbox's
network (the keeper makes it there, before the command's first instruction), so that nothing of the proxy is inside:
there is no process to stop, to trace or to replace. Names are looked up here, and only those that are allowed.
"""

import asyncio
import contextlib
import socket
import threading
from pathlib import Path

from gametape.sandbox.keeper_client import keeper
from gametape.sandbox.network_policy import NetworkAccess
from gametape.sandbox.network_record import NetworkRecord
from gametape.sandbox.proxy_connection import ProxyConnection, TrafficCounter
from gametape.sandbox.result import NetworkRequest

PROXY_PORT = 3128
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def proxy_variables(access: NetworkAccess) -> dict[str, str]:
    """The variables by which programs inside find the proxy. The sandbox's own loopback is reached without it, unless
    the host's was allowed under that name."""
    url = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    allowed = {str(rule.host) for rule in access.rules}
    direct = ",".join(name for name in _LOOPBACK if name not in allowed)
    return {
        **{spelling: url for name in names for spelling in (name, name.upper())},
        **({"no_proxy": direct, "NO_PROXY": direct} if direct else {}),
    }


class NetworkProxy:
    """Serves one sandbox from `open` to `close`; both are called by the sandbox's supervisor."""

    def __init__(self, access: NetworkAccess, log: Path | None = None) -> None:
        self._access = access
        self._record = NetworkRecord(log)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def open(self, pid: int) -> None:
        """Listen in the network of the sandbox to which a process belongs."""
        self.serve(keeper().listen_inside(pid, PROXY_PORT))

    def serve(self, listener: socket.socket) -> None:
        """Serve the connections of a listening socket, in a thread."""
        listener.setblocking(False)
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        work = self._loop, self._stop, listener
        self._thread = threading.Thread(target=self._run, args=work, name="gametape-network", daemon=True)
        self._thread.start()

    def take_requests(self) -> tuple[NetworkRequest, ...]:
        """The requests since the last call."""
        return self._record.take()

    def close(self) -> None:
        """End every connection; what was asked stays in the record."""
        if self._thread and self._loop and self._stop:
            with contextlib.suppress(RuntimeError):  # the loop is over already
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._thread = None

    def _run(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event, listener: socket.socket) -> None:
        try:
            with listener:
                loop.run_until_complete(self._serve(stop, listener))
        finally:
            loop.close()

    async def _serve(self, stop: asyncio.Event, listener: socket.socket) -> None:
        accept = asyncio.create_task(self._accept(listener))
        await stop.wait()
        accept.cancel()
        await asyncio.gather(accept, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        """Take connections while there is room: further ones wait in the kernel, at no cost to the host. After the
        last request that the policy allows, nothing listens any more."""
        access = self._access
        traffic = TrafficCounter(access.sent_mb << 20, access.received_mb << 20)
        room = asyncio.Semaphore(access.connections)
        async with asyncio.TaskGroup() as connections:
            for _number in range(access.requests):
                await room.acquire()
                accepted, _address = await asyncio.get_running_loop().sock_accept(listener)
                connections.create_task(self._connection(accepted, traffic, room))
            listener.close()

    async def _connection(self, accepted: socket.socket, traffic: TrafficCounter, room: asyncio.Semaphore) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=accepted)
            await ProxyConnection(self._access, self._record, traffic, reader, writer).run()
        finally:
            room.release()
