"""Messages between the host and a zygote: a length, then that many bytes. The length of a message is bounded."""

import json
import mmap
import socket
import struct
from collections.abc import Callable
from typing import Any

LENGTH = struct.Struct("!Q")
MOST = 1 << 30


class FrameError(Exception):
    """The other side ended, or sent something that is no message."""


def pack(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content


def pack_json(document: Any) -> bytes:
    return pack(json.dumps(document).encode())


def read_frame(receive: Callable[[int], bytes], most: int = MOST) -> bytes:
    """One message. `receive(n)` returns at most n bytes, and none at the end."""
    (length,) = LENGTH.unpack(_exactly(receive, LENGTH.size))
    if length > most:
        raise FrameError(f"a message of {length} bytes")
    return _exactly(receive, length)


def read_frame_apart(sock: socket.socket, most: int = MOST) -> memoryview:
    """One message, in memory that no child of this process gets, and of which nothing is left when it is let go."""
    (length,) = LENGTH.unpack(_exactly(sock.recv, LENGTH.size))
    if length > most:
        raise FrameError(f"a message of {length} bytes")
    if not length:
        return memoryview(b"")
    apart = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    apart.madvise(mmap.MADV_DONTFORK)
    content, received = memoryview(apart), 0
    while received < length:
        part = sock.recv_into(content[received : received + (1 << 20)])
        if not part:
            raise FrameError("the other side has ended")
        received += part
    return content


def _exactly(receive: Callable[[int], bytes], wanted: int) -> bytes:
    parts = []
    while wanted:
        part = receive(min(wanted, 1 << 20))
        if not part:
            raise FrameError("the other side has ended")
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)
