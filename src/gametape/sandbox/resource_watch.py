"""Limits that are polled: the counters of a control group or, where there is none, the processes."""

import contextlib
import os
import signal
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gametape.sandbox.cgroups import ControlGroup, ResourceCounters
from gametape.sandbox.policy import SandboxLimits
from gametape.sandbox.result import KilledBy

OVERHEAD_PROCESSES = 2
"""bubblewrap outside and its first process inside."""

_TICKS = os.sysconf("SC_CLK_TCK")


class ResourceWatch(Protocol):
    """Counts the resources of one sandbox, from its start or from the last `reset`."""

    def reset(self) -> None: ...

    def exceeded(self) -> KilledBy | None: ...

    def may_fork(self) -> bool: ...

    def final_counters(self, counters: ResourceCounters) -> ResourceCounters: ...


def watch_resources(
    group: ControlGroup | None, outer: Iterable[int], limits: SandboxLimits, builder: int | None = None
) -> ResourceWatch:
    """The kernel's counters where there is a control group, else the processes below the outer ones."""
    return CgroupWatch(group, limits) if group else ProcessTreeWatch(outer, limits, builder)


class CgroupWatch:
    """The kernel holds the limits of memory and processes; its counters say when it had to."""

    def __init__(self, group: ControlGroup, limits: SandboxLimits) -> None:
        self._group = group
        self._limits = limits
        self._before = ResourceCounters()

    def reset(self) -> None:
        self._before = self._group.counters()

    def exceeded(self) -> KilledBy | None:
        return exceeded_limit(self.since(self._group.counters()), self._limits)

    def may_fork(self) -> bool:
        return True  # the kernel counts

    def final_counters(self, counters: ResourceCounters) -> ResourceCounters:
        return self.since(counters)

    def since(self, now: ResourceCounters) -> ResourceCounters:
        """What was counted since `reset`; a group that is gone counts nothing, which is not less than before."""
        before = self._before
        return ResourceCounters(
            cpu_seconds=max(0.0, (now.cpu_seconds or 0.0) - (before.cpu_seconds or 0.0)),
            peak_memory_bytes=now.peak_memory_bytes,
            processes=now.processes,
            memory_kills=now.memory_kills - before.memory_kills,
            process_refusals=now.process_refusals - before.process_refusals,
        )


def exceeded_limit(counters: ResourceCounters, limits: SandboxLimits) -> KilledBy | None:
    if counters.memory_kills > 0:
        return "memory"
    if counters.process_refusals > 0:
        return "processes"
    if limits.cpu_seconds is not None and (counters.cpu_seconds or 0.0) > limits.cpu_seconds:
        return "cpu"
    return None


class ProcessTreeWatch:
    """Without control groups: sample the processes below the sandbox's outer one and add them up.

    Processes are counted at every fork, so their limit is exact; memory may overshoot by what can be touched
    between two samples. What no process has mapped (socket buffers) is not seen: if the host has
    little memory left, the sandbox is killed. The builder counts as one process, whatever it needs for itself.
    """

    def __init__(self, outer: Iterable[int], limits: SandboxLimits, builder: int | None = None) -> None:
        self._outer = outer
        self._builder = builder
        self._limits = limits
        self._most_bytes = limits.memory_mb << 20
        self._shared_before = _host_memory()["Shmem"]
        self._at_most = 1  # processes there can be by now
        self._cpu_before = 0.0
        self._seen = ResourceCounters(cpu_seconds=0.0, peak_memory_bytes=0, processes=0)

    def reset(self) -> None:
        self._cpu_before = sum(sample.cpu for sample in self._samples(self._pids()))
        self._seen = ResourceCounters(cpu_seconds=0.0, peak_memory_bytes=0, processes=0)

    def exceeded(self) -> KilledBy | None:
        pids = self._pids()
        samples = self._samples(pids)
        threads = max(0, sum(sample.threads for sample in samples) - OVERHEAD_PROCESSES)
        memory = sum(sample.memory for sample in samples)
        host = _host_memory()
        if host["Shmem"] - self._shared_before > self._most_bytes // 2:
            memory += unlinked_file_bytes(pids)  # memory files that are written to and not mapped
        if memory > self._most_bytes:
            # forks share pages: count them once
            memory = sum(_proportional(pid) for pid in pids if pid != self._builder) + unlinked_file_bytes(pids)
        cpu = sum(sample.cpu for sample in samples) - self._cpu_before
        seen = self._seen
        seen.cpu_seconds = max(seen.cpu_seconds or 0.0, cpu)
        seen.peak_memory_bytes = max(seen.peak_memory_bytes or 0, memory)
        seen.processes = max(seen.processes or 0, threads)
        seen.memory_kills += memory > self._most_bytes or host["MemAvailable"] < host["MemTotal"] // 20
        seen.process_refusals += threads > self._limits.processes
        return exceeded_limit(seen, self._limits)

    def may_fork(self) -> bool:
        """Whether one more process is within the limit. Counts only when there could be too many."""
        if self._at_most >= self._limits.processes:
            self._at_most = sum(sample.threads for sample in self._samples(self._pids())) - OVERHEAD_PROCESSES
        allowed = self._at_most < self._limits.processes
        self._at_most += 1
        self._seen.process_refusals += not allowed
        return allowed

    def final_counters(self, counters: ResourceCounters) -> ResourceCounters:  # noqa: ARG002 - the keeper counted nothing
        return self._seen

    def _pids(self) -> list[int]:
        return [pid for outer in self._outer for pid in descendants(outer)]

    def _samples(self, pids: list[int]) -> list["_Sample"]:
        samples = {pid: sample for pid in pids if (sample := _sample(pid))}
        if self._builder in samples:
            samples[self._builder] = _Sample(memory=0, cpu=samples[self._builder].cpu, threads=1)
        return list(samples.values())


@dataclass(frozen=True)
class _Sample:
    memory: int
    cpu: float
    threads: int


def descendants(pid: int) -> list[int]:
    """A process and all its descendants."""
    pids, todo = [], [pid]
    while todo:
        pids.append(todo.pop())
        todo += children(pids[-1])
    return pids


def children(pid: int) -> list[int]:
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            pids += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return pids


def signal_all(number: int, pids: Iterable[int]) -> None:
    """Send a signal to each process that still runs."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def stop_processes(find: Callable[[], Iterable[int]], rounds: int) -> list[int]:
    """Stop the processes that are found, repeatedly while new ones appear. Returns those that were not stopped before,
    in the order in which `continue_processes` needs them."""
    stopped: list[int] = []
    seen: set[int] = set()
    for _ in range(rounds):
        fresh = [pid for pid in find() if pid not in seen]
        if not fresh:
            break
        seen.update(fresh)
        running = [pid for pid in fresh if not _is_stopped(pid)]
        signal_all(signal.SIGSTOP, running)
        stopped += running
    return stopped


def continue_processes(stopped: Sequence[int]) -> None:
    """Children first: a parent that waits for stopped children does not notice."""
    signal_all(signal.SIGCONT, reversed(stopped))


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] == ["T"]
    return False


def unlinked_file_bytes(pids: list[int]) -> int:
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


def bytes_written(pids: Iterable[int]) -> int:
    """What these processes, and the children that they waited for, have written to disks; 0 where nobody counts."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            fields = dict(line.split(": ") for line in _read(f"/proc/{pid}/io").splitlines())
            total += int(fields["write_bytes"])
    return total


def _host_memory() -> dict[str, int]:
    """The host's memory in bytes, by the names of /proc/meminfo."""
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
