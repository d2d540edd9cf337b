"""Limits that must be watched: what a control group counted, and, where there is none, the processes themselves."""

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from gametape.sandbox.cgroups import Counters, Group
from gametape.sandbox.policy import Limits
from gametape.sandbox.result import KilledBy

OVERHEAD_PROCESSES = 2
"""bubblewrap outside and its first process inside."""

_TICKS = os.sysconf("SC_CLK_TCK")


class ResourceWatch(Protocol):
    """Counts for one sandbox, from its start or from the last `begin`."""

    def begin(self) -> None: ...

    def exceeded(self) -> KilledBy | None: ...

    def may_fork(self) -> bool: ...

    def final(self, counters: Counters) -> Counters: ...


class GroupWatch:
    """The kernel holds memory and processes; its counters say when it had to."""

    def __init__(self, group: Group, limits: Limits) -> None:
        self._group = group
        self._limits = limits
        self._before = Counters()

    def begin(self) -> None:
        self._before = self._group.counters()

    def exceeded(self) -> KilledBy | None:
        return over(self.since(self._group.counters()), self._limits)

    def may_fork(self) -> bool:
        return True  # the kernel counts

    def final(self, counters: Counters) -> Counters:
        return self.since(counters)

    def since(self, now: Counters) -> Counters:
        """What was counted since `begin`; a group that is gone counts nothing, which is not less than before."""
        before = self._before
        return Counters(
            cpu_seconds=max(0.0, (now.cpu_seconds or 0.0) - (before.cpu_seconds or 0.0)),
            peak_memory_bytes=now.peak_memory_bytes,
            processes=now.processes,
            memory_kills=now.memory_kills - before.memory_kills,
            process_refusals=now.process_refusals - before.process_refusals,
        )


def over(counters: Counters, limits: Limits) -> KilledBy | None:
    if counters.memory_kills > 0:
        return "memory"
    if counters.process_refusals > 0:
        return "processes"
    if limits.cpu_seconds is not None and (counters.cpu_seconds or 0.0) > limits.cpu_seconds:
        return "cpu"
    return None


class TreeWatch:
    """Without control groups: sample the processes below the sandbox's outer one and add them up.

    Processes are counted when one wants another, so their limit is exact; memory may overshoot by what can be touched
    between two samples. What no process has mapped (socket buffers) is not seen: should it bring the host close to
    the end of its memory, the sandbox is ended. The builder counts as one process, whatever it needs for itself.
    """

    def __init__(self, outer: Iterable[int], limits: Limits, builder: int | None = None) -> None:
        self._outer = outer
        self._builder = builder
        self._limits = limits
        self._most_bytes = limits.memory_mb << 20
        self._shared_before = _host_memory()["Shmem"]
        self._at_most = 1  # processes there can be by now
        self._cpu_before = 0.0
        self._seen = Counters(cpu_seconds=0.0, peak_memory_bytes=0, processes=0)

    def begin(self) -> None:
        self._cpu_before = sum(sample.cpu for sample in self._samples(self._pids()))
        self._seen = Counters(cpu_seconds=0.0, peak_memory_bytes=0, processes=0)

    def exceeded(self) -> KilledBy | None:
        pids = self._pids()
        samples = self._samples(pids)
        threads = max(0, sum(sample.threads for sample in samples) - OVERHEAD_PROCESSES)
        memory = sum(sample.memory for sample in samples)
        host = _host_memory()
        if host["Shmem"] - self._shared_before > self._most_bytes // 2:
            memory += unnamed_files(pids)  # memory files that are written to and not mapped
        if memory > self._most_bytes:
            # forks share pages: count them once
            memory = sum(_proportional(pid) for pid in pids if pid != self._builder) + unnamed_files(pids)
        cpu = sum(sample.cpu for sample in samples) - self._cpu_before
        seen = self._seen
        seen.cpu_seconds = max(seen.cpu_seconds or 0.0, cpu)
        seen.peak_memory_bytes = max(seen.peak_memory_bytes or 0, memory)
        seen.processes = max(seen.processes or 0, threads)
        seen.memory_kills += memory > self._most_bytes or host["MemAvailable"] < host["MemTotal"] // 20
        seen.process_refusals += threads > self._limits.processes
        return over(seen, self._limits)

    def may_fork(self) -> bool:
        """Whether one more is within the limit. Looks only when there could be too many."""
        if self._at_most >= self._limits.processes:
            self._at_most = sum(sample.threads for sample in self._samples(self._pids())) - OVERHEAD_PROCESSES
        allowed = self._at_most < self._limits.processes
        self._at_most += 1
        self._seen.process_refusals += not allowed
        return allowed

    def final(self, counters: Counters) -> Counters:  # noqa: ARG002 - the keeper counted nothing
        return self._seen

    def _pids(self) -> list[int]:
        return [pid for outer in self._outer for pid in descendants(outer)]

    def _samples(self, pids: list[int]) -> list["_Sample"]:
        found = {pid: sample for pid in pids if (sample := _sample(pid))}
        if self._builder in found:
            found[self._builder] = _Sample(memory=0, cpu=found[self._builder].cpu, threads=1)
        return list(found.values())


@dataclass(frozen=True)
class _Sample:
    memory: int
    cpu: float
    threads: int


def descendants(pid: int) -> list[int]:
    """A process and everything below it that is still there."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children(found[-1])
    return found


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def unnamed_files(pids: list[int]) -> int:
    """Space in files without a name that processes hold open: deleted files, and files in memory."""
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def _host_memory() -> dict[str, int]:
    """Bytes by name, of the host's own account."""
    lines = (line.split() for line in _read("/proc/meminfo").splitlines())
    return {words[0].rstrip(":"): int(words[1]) << 10 for words in lines}


def _sample(pid: int) -> _Sample | None:
    try:
        status = dict(line.split(":", 1) for line in _read(f"/proc/{pid}/status").splitlines() if ":" in line)
        times = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:15]
    except (OSError, ValueError):
        return None
    kilobytes = sum(int(status.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem"))
    return _Sample(kilobytes << 10, sum(map(int, times)) / _TICKS, int(status.get("Threads", "1")))


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
