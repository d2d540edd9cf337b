"""A small poll loop with handlers, which other threads can wake."""

import contextlib
import os
import select
import threading
from collections.abc import Callable

Handler = Callable[[int], None]


class Reactor:
    """Calls the handler of every descriptor that is ready. Only `wake` may be called from other threads."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Handler] = {}
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()

    def on_wake(self, handler: Callable[[], None]) -> None:
        def handle(_event: int) -> None:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wake_fd)
            handler()

        self.register(self._wake_fd, handle)

    def wake(self) -> None:
        """Have the wake handler called soon. From any thread, even when the loop is over."""
        with self._lock:
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    def register(self, descriptor: int, handler: Handler, events: int = select.POLLIN) -> None:
        self._handlers[descriptor] = handler
        self._poll.register(descriptor, events)

    def unregister(self, descriptor: int) -> None:
        if self._handlers.pop(descriptor, None):
            self._poll.unregister(descriptor)

    def run_once(self, wait_ms: int) -> None:
        """Wait for a descriptor to be ready and call its handler, which may unregister others."""
        for descriptor, event in self._poll.poll(wait_ms):
            if descriptor in self._handlers:
                self._handlers[descriptor](event)

    def close(self) -> None:
        with self._lock:
            os.close(self._wake_fd)
            self._wake_fd = -1
