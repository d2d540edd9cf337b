"""Warm zygotes, by what they are for. One crew serves every verdict of a process."""

import threading
from pathlib import Path

from gametape.sandbox.pool import WarmPool
from gametape.verify.runner import Zygote, policy


class Crew:
    """With `size` 0 nothing is prepared ahead: every zygote is started when it is asked for."""

    def __init__(self, size: int = 0) -> None:
        self._size = size
        self._pools: dict[tuple[Path | None, int, str], WarmPool[Zygote]] = {}
        self._lock = threading.Lock()

    def take(self, interpreter: Path | None, memory_mb: int, module: str = "zygote") -> Zygote:
        """A zygote that nobody has used; the caller gives it its job, or closes it."""

        def make() -> Zygote:
            return Zygote(policy(interpreter, memory_mb), interpreter, module)

        if not self._size:
            return make()
        key = (interpreter, memory_mb, module)
        with self._lock:
            if key not in self._pools:
                self._pools[key] = WarmPool(make, self._size)
        return self._pools[key].take()

    def close(self) -> None:
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
