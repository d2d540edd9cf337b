"""A relay between test processes and workers that keeps what crosses."""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_channel import take_frame
from gametape.verify.replay.transcript import Frame

_AT_ONCE = 1 << 16
_TICK_MS = 100
_MOST_KEPT = 16 << 20
_SEND_SECONDS = 30.0


@dataclass
class Crossing:
    """What crossed on one connection."""

    frames: list[Frame] = field(default_factory=list)
    kept: int = 0
    whole: bool = True
    """Whether every frame was kept."""
    began: float | None = None
    ended: float = 0.0

    @property
    def seconds(self) -> float:
        return self.ended - self.began if self.began is not None else 0.0

    def add(self, by_test: bool, body: bytes) -> None:
        self.ended = time.monotonic()
        if self.began is None:
            self.began = self.ended
        self.kept += len(body)
        self.whole = self.whole and self.kept <= _MOST_KEPT
        if self.whole:
            self.frames.append(Frame(by_test, body))


class _End:
    """One of the relay's two sockets of a connection."""

    def __init__(self, sock: socket.socket, crossing: Crossing, by_test: bool) -> None:
        self.sock = sock
        self.other: _End
        self._crossing = crossing
        self._by_test = by_test
        self._unread = bytearray()

    def forward(self) -> bool:
        """Send on what came; False at the end."""
        try:
            data = self.sock.recv(_AT_ONCE)
            if not data:
                return False
            self._unread += data
            while (body := take_frame(self._unread)) is not None:
                self._crossing.add(self._by_test, body)
            self.other.sock.sendall(data)
        except (OSError, WireError):
            return False
        return True


class FrameRelay:
    """Runs in a thread of its own, as a context."""

    def __init__(self, on_end: Callable[[], None] = lambda: None) -> None:
        """`on_end` is called when a connection ends by itself."""
        self._on_end = on_end
        self._ends: dict[int, _End] = {}
        self._poll = select.poll()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="gametape-relay", daemon=True)

    def connect(self) -> tuple[socket.socket, socket.socket, Crossing]:
        """A connection: the worker's end, the test process's end, and what crosses on it."""
        crossing = Crossing()
        worker, near_worker = socket.socketpair()
        tester, near_tester = socket.socketpair()
        ends = _End(near_worker, crossing, by_test=False), _End(near_tester, crossing, by_test=True)
        ends[0].other, ends[1].other = ends[1], ends[0]
        with self._lock:
            for end in ends:
                end.sock.settimeout(_SEND_SECONDS)
                self._ends[end.sock.fileno()] = end
                self._poll.register(end.sock, select.POLLIN)
        return worker, tester, crossing

    def __enter__(self) -> "FrameRelay":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        for end in self._ends.values():
            end.sock.close()

    def _work(self) -> None:
        while not self._stopped.is_set():
            for descriptor, _ in self._poll.poll(_TICK_MS):
                end = self._ends.get(descriptor)
                if end is not None and not end.forward():
                    self._hang_up(end)

    def _hang_up(self, end: _End) -> None:
        """One side has ended: so does the other."""
        with self._lock:
            for each in (end, end.other):
                self._ends.pop(each.sock.fileno(), None)
                with contextlib.suppress(KeyError, ValueError):
                    self._poll.unregister(each.sock)
                each.sock.close()
        self._on_end()
