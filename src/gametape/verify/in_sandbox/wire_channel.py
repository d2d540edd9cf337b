"""Frames over one stream socket: four bytes of length, then the frame."""

from __future__ import annotations

import socket
import struct
import time

from .wire import MOST_BYTES, WireError

_LENGTH = struct.Struct(">I")
_AT_ONCE = 1 << 16


class WireChannel:
    """One end of a connection. With `seconds`, sending or receiving a frame raises TimeoutError after about that."""

    def __init__(self, sock: socket.socket, seconds: float | None = None) -> None:
        self._sock = sock
        self._seconds = seconds
        self._unread = bytearray()
        sock.settimeout(seconds)

    def send(self, body: bytes) -> None:
        try:
            self._sock.sendall(_LENGTH.pack(len(body)) + body)
        except TimeoutError:
            raise
        except OSError as error:
            raise WireError(f"the other side is gone ({error.strerror})") from None

    def receive(self) -> bytes:
        unread = self._unread
        started = time.monotonic()
        needed = _LENGTH.size
        while len(unread) < needed or needed == _LENGTH.size:
            if len(unread) >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(unread)
                if length > MOST_BYTES:
                    raise WireError(f"a frame of {length} bytes")
                needed = _LENGTH.size + length
                if len(unread) >= needed:
                    break
            self._read_more(started)
        body = bytes(unread[_LENGTH.size : needed])
        del unread[:needed]
        return body

    def _read_more(self, started: float) -> None:
        if self._seconds is not None and time.monotonic() - started > self._seconds:
            raise TimeoutError("a frame did not arrive in time")
        try:
            data = self._sock.recv(_AT_ONCE)
        except TimeoutError:
            raise
        except OSError as error:
            raise WireError(f"the other side is gone ({error.strerror})") from None
        if not data:
            raise WireError("the other side is gone")
        self._unread += data
