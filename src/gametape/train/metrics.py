"""`metrics.jsonl`: a line for every update, evaluation and alarm."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gametape.record.atomic import write_all
from gametape.record.errors import write_error
from gametape.record.json_lines import read_lines


class MetricsLog:
    """Appends. On resume it first forgets what was written after the checkpoint, for that will come again."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path
        truncate_file(path, size)
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def write(self, kind: str, step: int, **values: Any) -> None:
        try:
            write_all(self._fd, _line({"kind": kind, "step": step, **values}))
        except OSError as error:
            raise write_error(self._path, error) from error

    def sync(self) -> int:
        """Its size, all of which is on disk."""
        os.fsync(self._fd)
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    return (entry for entry in read_lines(path) if "step" in entry)


def truncate_file(path: Path, size: int) -> None:
    """Leave the first bytes of a file, if there is one."""
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)


def _line(entry: dict[str, Any]) -> bytes:
    """Numbers that are none are written as null: the file stays JSON whatever happens to a loss."""
    return json.dumps(_finite(entry), allow_nan=False).encode() + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value
