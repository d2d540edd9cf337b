"""Resource limits by control group: version 2 where it has the controllers, else version 1, else none.

The host finds a layout and watches the counters; the keeper makes the groups, joins them and removes them.
Standard library only.
"""

import contextlib
import errno
import os
import signal
import time
from dataclasses import dataclass, field

_MOUNTS = "/proc/self/mountinfo"
_OWN = "/proc/self/cgroup"
_CONTROLLERS = ("memory", "pids", "cpu")
PREFIX = "gametape-"


@dataclass(frozen=True)
class CgroupLayout:
    """Where groups may be made: one directory per controller (all the same in version 2)."""

    version: int
    parents: dict[str, str]

    def directories(self, name: str) -> dict[str, str]:
        return {controller: f"{parent}/{PREFIX}{name}" for controller, parent in self.parents.items()}


@dataclass
class ResourceCounters:
    """What the kernel counted for a group."""

    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    processes: int | None = None
    memory_kills: int = 0
    """How often the kernel ended a process because memory ran out."""
    process_refusals: int = 0
    """How often a process or thread was refused."""


@dataclass(frozen=True)
class ControlGroup:
    """A group by its directories. Plain data that can be sent to other processes."""

    version: int
    directories: dict[str, str] = field(default_factory=dict)

    def create(self) -> None:
        for directory in set(self.directories.values()):
            os.mkdir(directory)

    def limit(self, memory_bytes: int, processes: int) -> None:
        if self.version == 2:
            directory = self.directories["memory"]
            _write(f"{directory}/memory.max", memory_bytes)
            _write_if_there(f"{directory}/memory.swap.max", 0)
            _write_if_there(f"{directory}/memory.oom.group", 1)
            _write(f"{directory}/pids.max", processes)
        else:
            _write(f"{self.directories['memory']}/memory.limit_in_bytes", memory_bytes)
            _write_if_there(f"{self.directories['memory']}/memory.memsw.limit_in_bytes", memory_bytes)
            _write(f"{self.directories['pids']}/pids.max", processes)

    def join(self, pid: int) -> None:
        for directory in set(self.directories.values()):
            _write(f"{directory}/cgroup.procs", pid)

    def members(self) -> list[int]:
        pids: set[int] = set()
        for directory in self.directories.values():
            with contextlib.suppress(OSError):
                pids.update(int(line) for line in _read(f"{directory}/cgroup.procs").split())
        return sorted(pids)

    def counters(self) -> ResourceCounters:
        """The counters now. A group that is gone, or goes while we read, has counted nothing."""
        try:
            return self._counters_v2() if self.version == 2 else self._counters_v1()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
            return ResourceCounters()

    def _counters_v2(self) -> ResourceCounters:
        directory = self.directories["memory"]
        return ResourceCounters(
            cpu_seconds=_field(f"{directory}/cpu.stat", "usage_usec") / 1e6,
            peak_memory_bytes=_number_if_there(f"{directory}/memory.peak"),
            processes=_number_if_there(f"{directory}/pids.peak"),
            memory_kills=_field(f"{directory}/memory.events", "oom_kill"),
            process_refusals=_field(f"{directory}/pids.events", "max"),
        )

    def _counters_v1(self) -> ResourceCounters:
        memory, pids, cpu = (self.directories[name] for name in ("memory", "pids", "cpuacct"))
        return ResourceCounters(
            cpu_seconds=int(_read(f"{cpu}/cpuacct.usage")) / 1e9,
            peak_memory_bytes=int(_read(f"{memory}/memory.max_usage_in_bytes")),
            processes=_number_if_there(f"{pids}/pids.peak"),
            memory_kills=_field(f"{memory}/memory.oom_control", "oom_kill"),
            process_refusals=_field(f"{pids}/pids.events", "max"),
        )

    def remove(self, patience: float = 5.0) -> None:
        """Remove the directories; processes that were killed may take a moment to leave."""
        deadline = time.monotonic() + patience
        for directory in set(self.directories.values()):
            while True:
                try:
                    os.rmdir(directory)
                except FileNotFoundError:
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(0.001)
                else:
                    break


def find_layout(mountinfo: str | None = None, own: str | None = None) -> CgroupLayout | None:
    """The best place for groups that this process may really write to, or None."""
    mounts = _parse_mounts(_read(_MOUNTS) if mountinfo is None else mountinfo)
    paths = _parse_own(_read(_OWN) if own is None else own)
    for layout in (_version_2(mounts, paths), _version_1(mounts, paths)):
        if layout and all(os.access(parent, os.W_OK) for parent in layout.parents.values()):
            return layout
    return None


def remove_orphaned_groups(layout: CgroupLayout) -> None:
    """End and remove the groups of keepers that are gone: they were killed before they could do it."""
    for name in {name for parent in layout.parents.values() for name in _listed(parent) if _orphaned(name)}:
        group = ControlGroup(layout.version, layout.directories(name.removeprefix(PREFIX)))
        for pid in group.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            group.remove(patience=1.0)


def _listed(parent: str) -> list[str]:
    try:
        return [name for name in os.listdir(parent) if name.startswith(PREFIX)]
    except FileNotFoundError:
        return []


def _orphaned(name: str) -> bool:
    keeper = name.removeprefix(PREFIX).split("-")[0]
    return keeper.isdigit() and not os.path.exists(f"/proc/{keeper}")


def _version_2(mounts: dict[str, str], paths: dict[str, str]) -> CgroupLayout | None:
    """Version 2 forbids groups with both processes and limited children, so the best place is rarely our own
    group: the root of the hierarchy when we may write there, else our group's parent (a delegated subtree)."""
    mount = mounts.get("cgroup2")
    if mount is None:
        return None
    own = (mount + paths.get("", "/")).rstrip("/")
    for parent in (mount, os.path.dirname(own), own):
        if not parent.startswith(mount) or not os.access(parent, os.W_OK):
            continue
        with contextlib.suppress(OSError):
            if not set(_CONTROLLERS) <= set(_read(f"{parent}/cgroup.controllers").split()):
                continue
            missing = set(_CONTROLLERS) - set(_read(f"{parent}/cgroup.subtree_control").split())
            if missing:
                _write(f"{parent}/cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(missing)))
            return CgroupLayout(2, dict.fromkeys(("memory", "pids", "cpuacct"), parent))
    return None


def _version_1(mounts: dict[str, str], paths: dict[str, str]) -> CgroupLayout | None:
    parents: dict[str, str] = {}
    for name in ("memory", "pids", "cpuacct"):
        if name not in mounts:
            return None
        own = (mounts[name] + paths.get(name, "/")).rstrip("/")
        parents[name] = own if os.path.isdir(own) else mounts[name]  # in a container the mount is our own group
    return CgroupLayout(1, parents)


def _parse_mounts(text: str) -> dict[str, str]:
    """Mount point by controller name, and of the unified hierarchy as `cgroup2`."""
    mount_points: dict[str, str] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _source, options = after.split(" ", 2)
        point = before.split(" ")[4]
        if kind == "cgroup2":
            mount_points.setdefault("cgroup2", point)
        elif kind == "cgroup":
            for option in options.split(","):
                mount_points.setdefault(option, point)
    return mount_points


def _parse_own(text: str) -> dict[str, str]:
    """This process's path by controller; the unified hierarchy's under the empty name."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            paths[name] = path
    return paths


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _write(path: str, value: object) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def _write_if_there(path: str, value: object) -> None:
    with contextlib.suppress(OSError):
        _write(path, value)


def _number_if_there(path: str) -> int | None:
    try:
        return int(_read(path))
    except FileNotFoundError:
        return None


def _field(path: str, name: str) -> int:
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0
