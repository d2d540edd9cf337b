"""The host's end of a connection to hostile code: frames in both directions, bounded in size and time."""

import select
import socket
import time

from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_channel import take_frame

_AT_ONCE = 1 << 16
MOST_RECEIVED = 256 << 20
"""Bytes that one process may send in all."""


class ConnectionOver(Exception):
    """The other side has closed the connection, or sent more than it may."""


class FrameConnection:
    """Sends without waiting for the other side to read: what it does not read yet waits here. A side that sends
    and never reads can therefore not block the host."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._poll = select.poll()
        self._awaited = 0
        self._unsent = memoryview(b"")
        self._unread = bytearray()
        self._received = 0

    @property
    def unread(self) -> bool:
        """Whether something has come that was not received yet."""
        return bool(self._unread)

    def send(self, data: bytes) -> None:
        """Send packed frames."""
        self._unsent = memoryview(bytes(self._unsent) + data) if self._unsent else memoryview(data)
        self._write()

    def receive(self, deadline: float) -> bytes:
        """The next frame. Raises TimeoutError at the deadline (of the monotonic clock) and ConnectionOver."""
        if time.monotonic() > deadline:
            raise TimeoutError("no answer in time")
        while (frame := self._frame()) is None:
            self._wait(deadline)
            if self._unsent:
                self._write()
            self._read()
        return frame

    def close(self) -> None:
        self._sock.close()

    def _frame(self) -> bytes | None:
        try:
            return take_frame(self._unread)
        except WireError as error:
            raise ConnectionOver(str(error)) from None

    def _write(self) -> None:
        try:
            sent = self._sock.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            raise ConnectionOver(f"the process is gone ({error.strerror})") from None
        self._unsent = self._unsent[sent:]

    def _read(self) -> None:
        try:
            data = self._sock.recv(_AT_ONCE)
        except BlockingIOError:
            return
        except OSError as error:
            raise ConnectionOver(f"the process is gone ({error.strerror})") from None
        if not data:
            raise ConnectionOver("the process is gone")
        self._received += len(data)
        if self._received > MOST_RECEIVED:
            raise ConnectionOver(f"more than {MOST_RECEIVED} bytes")
        self._unread += data

    def _wait(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        wanted = select.POLLIN | select.POLLOUT if self._unsent else select.POLLIN
        if wanted != self._awaited:
            self._awaited = wanted
            self._poll.register(self._sock, wanted)
        self._poll.poll(left * 1000 + 1)
