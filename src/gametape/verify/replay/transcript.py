"""A transcript: everything that crossed the border when one test ran alone against the reference.

The frames are kept as the bytes that crossed. Those that the test sent are sent to an attempt as they are; those that
the reference's worker sent are what an attempt's worker has to send. A transcript never enters a sandbox as a whole: an
attempt is sent one side of it and never sees the other.
"""

from dataclasses import dataclass
from typing import Any

from gametape.verify.in_sandbox import wire


@dataclass(frozen=True)
class Frame:
    """One message, in the encoding of `in_sandbox.wire`."""

    by_test: bool
    """Sent by the test process: a request, or the answer to a callback. Else by the worker."""
    body: bytes


@dataclass(frozen=True)
class Transcript:
    """What crossed while one test ran alone, imports of its file included."""

    test: str
    """The test's id. It stays on the host."""
    frames: tuple[Frame, ...]
    seconds: float
    """How long the reference took."""


@dataclass(frozen=True)
class StandIn:
    """A value of a frame that is not plain data: its kind and fields, see `in_sandbox.wire_protocol`."""

    kind: int
    payload: Any

    def __hash__(self) -> int:
        first = self.payload[0] if type(self.payload) is tuple and self.payload else self.payload
        return hash((self.kind, first if type(first) in (int, str) else None))


def read_frame(body: bytes) -> Any:
    """The message of a frame, with stand-ins as data. Raises WireError for bytes that no honest worker sends."""
    return wire.decode(body, StandIn, lax=True)


def write_frame(message: Any) -> bytes:
    """The frame of a message."""
    return wire.encode(message, _extend)


def _extend(value: Any) -> tuple[int, Any] | None:
    return (value.kind, value.payload) if isinstance(value, StandIn) else None
