"""Limits that are polled: the counters of a control group or, where there is none, the processes; and disk space."""

import contextlib
import os
import stat
import time
from collections.abc import Iterable
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


_PER_FILE = 1024  # a file without content still takes an inode
_REGULAR_WALK = 0.05
_CLOCK_GRAIN = 0.05  # file times lag behind the clock by up to a tick


class DiskWatch:
    """Polls how much a command has written: the file system's free space first, which costs a call, and a walk over the
    writable directories only when that has shrunk by the limit or may be hidden by space that others freed."""

    def __init__(self, directories: Iterable[str], limit_bytes: int) -> None:
        self._directories = tuple(directories)
        self._limit = limit_bytes
        self._began = time.time() - _CLOCK_GRAIN
        self._most_free = {directory: _free(directory) for directory in self._directories}
        self._last_free = dict(self._most_free)
        self._masked = False
        self._held = self._allowed = 0
        self._temporary: list[int] = []
        self._outer: int | None = None
        self._walked_at = self._walk_took = 0.0

    def attach(self, outer: int, inner: int, mount_points: Iterable[str]) -> None:
        """The command is about to start: open its temporary file systems, which keeps them until `close`."""
        self._outer = outer
        for point in mount_points:
            with contextlib.suppress(OSError):
                self._temporary.append(os.open(f"/proc/{inner}/root{point}", os.O_PATH | os.O_DIRECTORY))

    def exceeded(self, last_look: bool = False) -> bool:
        """Whether the command uses more than its limit. Costs a few calls unless the file system really filled up."""
        temporary = self._in_memory()
        if temporary >= self._limit:
            return self._is_too_much(temporary)
        taken = temporary + sum(self._taken(directory) for directory in self._directories)
        if taken < self._limit and not self._masked:
            return False
        began = time.monotonic()
        pause = 0.0 if taken >= self._limit else _REGULAR_WALK
        if not last_look and began < self._walked_at + max(pause, 5 * self._walk_took):
            return False
        walked = [_changed_since(directory, self._began) for directory in self._directories]
        self._walked_at = time.monotonic()
        self._walk_took = self._walked_at - began
        if taken >= self._limit and any(blind for _, blind in walked):
            return self._is_too_much(taken)
        nameless = unlinked_file_bytes(descendants(self._outer)) if self._outer else 0
        return self._is_too_much(temporary + sum(size for size, _ in walked) + nameless)

    def reset_baseline(self) -> None:
        """From now on only growth exceeds the limit: a command must be able to remove what is above it."""
        self._allowed = max(self._held, self._in_memory())

    def _is_too_much(self, held: int) -> bool:
        self._held = held
        return held >= self._limit and held > self._allowed

    def _in_memory(self) -> int:
        return sum(_used(descriptor) for descriptor in self._temporary)

    def close(self) -> None:
        for descriptor in self._temporary:
            os.close(descriptor)
        self._temporary.clear()

    def _taken(self, directory: str) -> int:
        """An upper bound on our share of the file system's lost space since the start."""
        free = _free(directory)
        self._masked |= free > self._last_free[directory]  # others free space, which hides what the command takes
        self._last_free[directory] = free
        self._most_free[directory] = max(self._most_free[directory], free)
        return self._most_free[directory] - free


def _free(directory: str) -> int:
    """Free space, with free inodes as part of it: files without content fill a file system too."""
    status = os.statvfs(directory)
    return status.f_bfree * status.f_frsize + status.f_ffree * _PER_FILE


def _used(descriptor: int) -> int:
    status = os.fstatvfs(descriptor)
    return (status.f_blocks - status.f_bfree) * status.f_frsize + (status.f_files - status.f_ffree) * _PER_FILE


def _changed_since(top: str, moment: float) -> tuple[int, bool]:
    """Space in files below `top` that changed since a moment; and whether part of the tree could not be seen."""
    total, blind, todo = 0, False, [top]
    linked: set[tuple[int, int]] = set()
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISDIR(status.st_mode):
                            todo.append(entry.path)
                        if status.st_ctime >= moment and (status.st_dev, status.st_ino) not in linked:
                            linked.add((status.st_dev, status.st_ino))
                            total += status.st_blocks * 512 + _PER_FILE
        except FileNotFoundError:
            continue
        except OSError:
            blind = True
    return total, blind
