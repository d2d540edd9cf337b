"""The record of what a sandbox asked of the network proxy: in memory for its results, and in a file for its reader."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from gametape.record.append_log import AppendLog
from gametape.sandbox.output import sanitize, secret_values
from gametape.sandbox.result import NetworkRequest

_LONGEST_TEXT = 256
_file_lock = threading.Lock()  # a sandbox that is restored starts before the one it replaces has ended


class NetworkRecord:
    """The requests of one sandbox. A request that is allowed is written down before a byte of it leaves, and once more
    when it has ended; a refused one once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._requests: dict[int, NetworkRequest] = {}
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def add(self, *, method: str, host: str, port: int, path: str, allowed: bool, reason: str) -> NetworkRequest:
        """Write down a decision. Raises where that cannot be written: the request must not go on then."""
        with self._lock:
            self._count += 1
            number = self._count
        request = NetworkRequest(
            number=number,
            time=time.time(),
            method=_shown(method),
            host=_shown(host),
            port=port,
            path=_shown(path.partition("?")[0]),
            allowed=allowed,
            reason=reason,
            seconds=None if allowed else 0.0,
        )
        self._keep(request)
        return request

    def end(self, request: NetworkRequest, **result: Any) -> None:
        """Write down what came of an allowed request: reason, address, bytes, seconds."""
        self._keep(request.model_copy(update=result))

    def take(self) -> tuple[NetworkRequest, ...]:
        """What was recorded since the last call; requests that still last come back when they have ended."""
        with self._lock:
            taken = tuple(self._requests.values())
            self._requests.clear()
        return taken

    def _keep(self, request: NetworkRequest) -> None:
        with self._lock:
            self._requests[request.number] = request
        if self._path:
            with _file_lock, AppendLog.open(self._path, durable=False) as log:
                log.append(request.model_dump(mode="json"))


def count_requests(path: Path) -> tuple[int, int]:
    """How many requests a log has, and how many of them were refused."""
    if not path.exists():
        return 0, 0
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return sum(line["seconds"] is None or not line["allowed"] for line in lines), sum(
        not line["allowed"] for line in lines
    )


def _shown(text: str) -> str:
    """A text of the sandbox, safe to store and to print, and short."""
    return sanitize(text, secret_values(os.environ))[:_LONGEST_TEXT]
