"""Sandboxes that are started ahead of their use, each of which is used once."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from gametape.sandbox.keeper_client import SandboxError


class Closable(Protocol):
    def close(self) -> None: ...


Ready = TypeVar("Ready", bound=Closable)


class WarmPool(Generic[Ready]):
    """Keeps `size` objects ready: sessions, interactive processes, whatever `make` returns. `take` returns one at once
    and a thread makes its successor."""

    def __init__(self, make: Callable[[], Ready], size: int) -> None:
        self._make = make
        self._size = size
        self._ready: deque[Ready] = deque()
        self._changed = threading.Condition()
        self._failure: SandboxError | None = None
        self._closed = False
        self._filler = threading.Thread(target=self._fill, name="gametape-pool", daemon=True)
        self._filler.start()

    def take(self) -> Ready:
        """An unused one, which the caller closes. Waits only when the pool is empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._failure or self._closed)
            if self._ready:
                taken = self._ready.popleft()
                self._changed.notify_all()
                return taken
            raise self._failure or SandboxError("the pool is closed")

    def close(self) -> None:
        """Close those that were not taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._filler.join()
        while self._ready:
            self._ready.popleft().close()

    def __enter__(self) -> "WarmPool[Ready]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self) -> None:
        while self._wait_for_room():
            try:
                ready = self._make()
            except SandboxError as error:
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._ready.append(ready)
                self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._ready) < self._size)
            return not self._closed
