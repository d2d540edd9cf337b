"""How long tests wait, and how they measure work: never by what a clock on the wall says of this machine.

A test passes or fails by what happens, not by when. Where it waits for something, it waits for `HANG` seconds, which is
how long nothing takes that still works. What must not take long is measured in `effort`.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

HANG = 900.0
"""Seconds after which something hangs, on however slow a machine."""


def wait_until(condition: Callable[[], object], what: str = "it") -> None:
    """Wait for a condition; AssertionError if it hangs."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen in {HANG:.0f} seconds"
        time.sleep(0.01)


def effort(work: Callable[[], object]) -> float:
    """The processor time that this process spends on some work, as a multiple of what a fixed loop takes it, which is
    about 20 ms on a machine of 2024: a slow or busy machine measures the same."""
    spent = _processor_seconds(work)
    return spent / min(_processor_seconds(_loop) for _ in range(3))


def _processor_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _loop() -> None:
    total = 0
    for number in range(500_000):
        total += number


def processes_with(nonce: str) -> list[int]:
    """The processes of this machine with a text on their command line."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                line = (path / "cmdline").read_bytes()
            except OSError:
                continue
            if nonce.encode() in line:
                found.append(int(path.name))
    return found


def family_of(pid: int) -> set[tuple[int, str]]:
    """All processes that descend from one, each by its number and its start, which no later process shares."""
    children: dict[int, list[tuple[int, str]]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        if (known := _parent_and_start(int(path.name))) is not None:
            children.setdefault(known[0], []).append((int(path.name), known[1]))
    found: set[tuple[int, str]] = set()
    waiting = [pid]
    while waiting:
        more = children.get(waiting.pop(), [])
        found.update(more)
        waiting += [child for child, _ in more]
    return found


def living(processes: Iterable[tuple[int, str]]) -> list[int]:
    """Those that have not ended."""
    return [pid for pid, start in processes if (known := _parent_and_start(pid)) is not None and known[1] == start]


def _parent_and_start(pid: int) -> tuple[int, str] | None:
    """None for a process that has ended, whether or not anybody has asked how."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (int(fields[1]), fields[19])
