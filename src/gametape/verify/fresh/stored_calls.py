"""Sets of fresh calls on disk: the process that draws calls for a task draws some for others, which then need no
reference process of their own. Each set is taken by one process only and is gone then, as if that one had drawn it.

A set is a pickle in which only data classes and plain values are read: anything else makes it no set, and calls are
drawn.
"""

import contextlib
import dataclasses
import functools
import hashlib
import io
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.record.atomic import write_atomically
from gametape.record.loaded_task import LoadedTask
from gametape.verify.fresh.bundles import FreshCall
from gametape.verify.runner import IN_SANDBOX

_SETS = 8
_MOST_SECONDS = 1.0
"""After so long no further set is drawn for others."""
_DATA_CLASSES = ("gametape.verify.fresh.", "gametape.verify.replay.", "gametape.verify.in_sandbox.")
_PLAIN_TYPES = {
    "builtins": ("set", "frozenset", "complex", "bytearray", "range", "slice"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "uuid": ("UUID",),
}


@dataclass(frozen=True)
class CallSet:
    """What a stock begins with."""

    wanted: int
    """Calls of a verdict."""
    calls: tuple[FreshCall, ...]


class StoredCalls:
    """The sets of one task."""

    def __init__(self, home: Path, loaded_task: LoadedTask) -> None:
        key = hashlib.sha256(f"{_code()} {loaded_task.digest}".encode()).hexdigest()
        self._directory = home / "fresh" / key

    def take(self) -> CallSet | None:
        """A set that nobody else gets; None where none is left."""
        for path in sorted(self._directory.glob("[0-9]*")) if self._directory.is_dir() else ():
            taken = path.with_name(f".{path.name}.{os.getpid()}")
            with contextlib.suppress(OSError):
                path.rename(taken)
                data = taken.read_bytes()
                taken.unlink()
                if (found := _read(data)) is not None:
                    return found
        return None

    def fill(self, draw: Callable[[], CallSet]) -> None:
        """Leave some sets for others."""
        until = time.monotonic() + _MOST_SECONDS
        self._directory.mkdir(parents=True, exist_ok=True)
        for number in range(_SETS):
            path = self._directory / str(number)
            if time.monotonic() > until:
                return
            if not path.exists():
                data = _written(draw())
                if data is None:
                    return
                write_atomically(path, data)


class _DataReader(pickle.Unpickler):
    """Reads data classes of the verifier and plain values, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _PLAIN_TYPES.get(module, ()):
            return super().find_class(module, name)
        if module.startswith(_DATA_CLASSES):
            found = super().find_class(module, name)
            if isinstance(found, type) and dataclasses.is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


def _written(drawn: CallSet) -> bytes | None:
    """None for calls that could not be read again."""
    try:
        packed = pickle.dumps(CallSet(drawn.wanted, tuple(map(_plain, drawn.calls))))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    data = hashlib.sha256(packed).digest() + packed
    return data if drawn.calls and _read(data) is not None else None


def _plain(call: FreshCall) -> FreshCall:
    """Without iterators of a conversation, which is over."""
    programs = (
        dataclasses.replace(one, expected=dataclasses.replace(one.expected, iterators={})) for one in call.programs
    )
    return FreshCall(tuple(programs))


def _read(data: bytes) -> CallSet | None:
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        return None
    try:
        found = _DataReader(io.BytesIO(data[32:])).load()
    except (pickle.UnpicklingError, ValueError, TypeError, EOFError, AttributeError, ImportError, RecursionError):
        return None
    return found if isinstance(found, CallSet) else None


@functools.cache
def _code() -> str:
    """The programs that draw and answer: another version may do so in another way."""
    whole = hashlib.sha256()
    for directory in (Path(__file__).parent, IN_SANDBOX):
        for path in sorted(directory.glob("*.py")):
            whole.update(path.read_bytes())
    return whole.hexdigest()
