"""What a sandboxed command did, and what a backend can do."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

KilledBy = Literal["time", "cpu", "memory", "processes", "disk", "output", "policy"]
ViolationAction = Literal["denied", "killed", "logged"]
AccessKind = Literal["look", "read", "list", "write", "run", "inherit"]
"""What a process did with a path. It inherits a file that is open when the program begins, its input among them."""


class FrozenModel(BaseModel):
    """Immutable plain data without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PolicyViolation(FrozenModel):
    """An attempt to do what the policy does not grant, and the process that made it."""

    syscall: str
    args: tuple[str | int, ...]
    pid: int
    command: str
    time: float
    action: ViolationAction


class NetworkRequest(FrozenModel):
    """One request to the network proxy: what was asked, what was decided, and what came of it. Bodies, headers and the
    query of a URL are not kept."""

    number: int
    """Counts the requests of one sandbox."""
    time: float
    method: str
    """CONNECT for TLS; empty when the request could not be read."""
    host: str
    port: int
    path: str
    """Of plain http only; what is inside TLS is not seen."""
    allowed: bool
    reason: str
    """Why it was refused, or cut off, or failed; empty for one that was served."""
    address: str = ""
    """The address to which the connection went."""
    sent_bytes: int = 0
    received_bytes: int = 0
    seconds: float | None = None
    """None while it lasts."""

    def summary(self) -> str:
        """One line for a person."""
        where = f"{self.method or 'unreadable request'} {self.host}:{self.port}{self.path}"
        if not self.allowed:
            return f"refused {where} ({self.reason})"
        end = f", {self.reason}" if self.reason else ""
        return f"allowed {where} ({self.sent_bytes} bytes sent, {self.received_bytes} received{end})"


class TracedProcess(FrozenModel):
    """A program that ran: its words, the directory it began in, and the process that started it."""

    words: tuple[str, ...]
    directory: str
    parent: int | None
    """Its number among the trace's processes."""


class PathAccess(FrozenModel):
    """One path, as it is inside, that a process asked for."""

    path: str
    kind: AccessKind
    process: int


class FileTrace(FrozenModel):
    """What a command did with the paths below one directory."""

    accesses: tuple[PathAccess, ...] = ()
    processes: tuple[TracedProcess, ...] = ()
    complete: bool = True
    """False where there were more accesses than are kept."""


class ResourceUsage(FrozenModel):
    wall_seconds: float
    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    peak_processes: int | None = None


class ExecResult(FrozenModel):
    """The outcome of one command. `killed_by` names the limit that ended it; None: it ended by itself."""

    exit_code: int
    """The command's own; 128 + N when signal N ended it, 127 when there was no such command."""
    signal: int | None
    stdout: str
    stderr: str
    usage: ResourceUsage
    killed_by: KilledBy | None
    violations: tuple[PolicyViolation, ...]
    violations_dropped: int = 0
    """Violations beyond those kept; a command is ended before this grows large."""
    network: tuple[NetworkRequest, ...] = ()
    """What was asked of the network proxy, refused requests included; see `SandboxPolicy.network_access`."""
    trace: FileTrace | None = None
    """The paths that it asked for; see `SandboxPolicy.trace_files`."""
    backend: str
    assurance: str
    """`full`: the kernel held the limits for the whole sandbox; `reduced`: some were held by polling."""
    held_by: dict[str, str]
    """Which mechanism held each limit."""
    policy_hash: str

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and self.killed_by is None


class SessionResult(ExecResult):
    """What one command of a session did."""

    directory: str
    """Where the shell is now."""
    shell_restarted: bool = False
    """The shell ended with the command: its variables, functions and directory stack are gone."""

    @property
    def cpu_seconds(self) -> float:
        return self.usage.cpu_seconds or 0.0


class BackendCapabilities(FrozenModel):
    """What a backend gives on this machine."""

    network_isolation: bool = False
    network_access: bool = False
    """Some hosts can be reached, through a proxy that checks and records every request."""
    kernel_isolation: bool = False
    cgroup: Literal["v1", "v2"] | None = None
    syscall_events: bool = False
    sessions: bool = False
    snapshot: bool = False
    rootless: bool = False

    def missing(self, required: frozenset[str]) -> list[str]:
        values: dict[str, Any] = self.model_dump()
        return sorted(name for name in required if not values[name])


class BackendProbe(FrozenModel):
    """Whether a backend works here; if not, what is missing and how to get it."""

    available: bool
    capabilities: BackendCapabilities
    missing: tuple[str, ...] = ()
