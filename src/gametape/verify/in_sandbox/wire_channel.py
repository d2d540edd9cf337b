"""Frames over one stream socket: four bytes of length, then the frame."""

from __future__ import annotations

import socket
import struct
from time import monotonic

from .wire import MOST_BYTES, WireError

_LENGTH = struct.Struct(">I")
_AT_ONCE = 1 << 16


def pack_frame(body: bytes) -> bytes:
    """A frame as it travels."""
    return _LENGTH.pack(len(body)) + body


def take_frame(unread: bytearray) -> bytes | None:
    """Take the first frame off what has come; None if it is not there as a whole. Raises WireError for one that is too
    long."""
    if len(unread) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(unread)
    if length > MOST_BYTES:
        raise WireError(f"a frame of {length} bytes")
    end = _LENGTH.size + length
    if len(unread) < end:
        return None
    body = bytes(unread[_LENGTH.size : end])
    del unread[:end]
    return body


class WireChannel:
    """One end of a connection. With `seconds`, sending or receiving a frame raises TimeoutError after about that."""

    def __init__(self, sock: socket.socket, seconds: float | None = None) -> None:
        self._sock = sock
        self._seconds = seconds
        self._unread = bytearray()
        self._held = b""
        sock.settimeout(seconds)

    def hold(self, body: bytes) -> None:
        """Send a frame with the next one, or when nothing is left to receive."""
        self._held += pack_frame(body)

    def send(self, body: bytes) -> None:
        self._send(self._held + pack_frame(body))

    def _send(self, frames: bytes) -> None:
        self._held = b""
        try:
            self._sock.sendall(frames)
        except TimeoutError:
            raise
        except OSError as error:
            raise WireError(f"the other side is gone ({error.strerror})") from None

    def receive(self) -> bytes:
        started = monotonic()
        while (body := take_frame(self._unread)) is None:
            if self._held:
                self._send(self._held)
            self._read_more(started)
        return body

    def _read_more(self, started: float) -> None:
        if self._seconds is not None and monotonic() - started > self._seconds:
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
