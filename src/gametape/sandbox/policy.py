"""What a sandbox may do, as plain data with a hash: two runs under the same hash had the same isolation.

A policy names what is *granted*. Everything it does not name is refused.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator

from gametape.sandbox import seccomp, syscalls
from gametape.sandbox.network_policy import NetworkAccess
from gametape.sandbox.result import FrozenModel

WORKSPACE = "/workspace"
"""Where the workspace lies inside every sandbox, whatever it is called outside."""

HOME = "/tmp/home"

SECRET_PATHS = (
    *("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/root", "/home"),
    *("/proc/1/mem", "/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port"),
)
"""Host paths that hold secrets, for `SandboxPolicy.watched`. None of them is visible inside unless it is granted."""

Megabytes = Annotated[int, Field(gt=0, le=1 << 24)]


class SandboxLimits(FrozenModel):
    """How much a command may use. Reaching a limit ends the command, and the result names the limit."""

    wall_seconds: Annotated[float, Field(gt=0, le=7 * 24 * 3600)] = 60.0
    cpu_seconds: Annotated[int, Field(gt=0)] | None = None
    memory_mb: Annotated[int, Field(ge=8, le=1 << 24)] = 2048
    processes: Annotated[int, Field(gt=0, le=1 << 20)] = 256
    open_files: Annotated[int, Field(ge=16, le=1 << 20)] = 1024
    file_size_mb: Megabytes = 1024
    disk_mb: Megabytes = 1024
    output_bytes: Annotated[int, Field(ge=0, le=1 << 32)] = 1_000_000


class PythonRules(FrozenModel):
    """Restrictions on Python code, for reporting. Code can evade them: the isolation does not depend on them."""

    forbidden_calls: tuple[str, ...] = ("eval", "exec", "compile")
    forbidden_modules: tuple[str, ...] = ("ctypes", "os", "socket", "subprocess")
    writable_directories: tuple[str, ...] = (WORKSPACE, "/tmp")


class SandboxPolicy(FrozenModel):
    """The isolation of one command."""

    version: Literal[1] = 1
    read_only: tuple[str, ...] = ()
    """Host paths mounted at the same path inside, read-only."""
    writable: tuple[str, ...] = ()
    """Host paths mounted at the same path inside, writable."""
    hidden: tuple[str, ...] = ()
    """Host paths that are empty inside, although they lie below a mounted path; a path granted at or below
    one is visible. Those that do not exist are ignored. `third_party_python.py` finds what is always hidden."""
    python: bool = True
    """Mount the interpreter that runs gametape, read-only, and put it first on PATH."""
    environment: tuple[tuple[str, str], ...] = ()
    network: Literal["none", "loopback"] = "none"
    """`loopback` gives a network of its own with nothing but 127.0.0.1 and ::1; the host's is never reachable."""
    network_access: NetworkAccess | None = None
    """Hosts outside that can be reached through the network proxy, which checks and records every request. It implies
    `loopback`, because the proxy is reached there; nothing else of the network becomes reachable."""
    socket_families: tuple[str, ...] = ("AF_UNIX",)
    denied_syscalls: tuple[str, ...] = ()
    """Denied in addition to `seccomp.ALWAYS_DENIED`."""
    watched: tuple[str, ...] = ()
    """Opening a path at or under one of these, unless it was granted, is denied and a violation, whether or not it
    exists inside. `SECRET_PATHS` is a good choice. Watching or auditing costs a round trip for every open."""
    audited: tuple[str, ...] = ()
    """Opening one of these is allowed and recorded once (`logged`): a path and all below it, a name that occurs
    anywhere in a path (`.git`), or an ending (`*.pyc`)."""
    trace_files: Literal["none", "opened", "all"] = "none"
    """Note every path of the workspace that is opened or executed, or all that are looked up as well; see
    `file_trace.py`. Each such call, of any path, costs a round trip."""
    on_violation: Literal["deny", "kill"] = "deny"
    max_violations: Annotated[int, Field(gt=0)] = 1000
    """A command with more violations is killed."""
    language: PythonRules | None = None
    limits: SandboxLimits = SandboxLimits()

    @field_validator("environment", mode="before")
    @classmethod
    def _pairs(cls, value: object) -> object:
        return tuple(sorted(value.items())) if isinstance(value, Mapping) else value

    @field_validator("environment")
    @classmethod
    def _proper_names(cls, value: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        for name, content in value:
            if not name or "=" in name or "\0" in name + content:
                raise ValueError(f"{name!r} cannot be an environment variable")
        return value

    @field_validator("read_only", "writable", "hidden", "watched")
    @classmethod
    def _absolute(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not path.startswith("/") or "\0" in path or path.rstrip("/") == "":
                raise ValueError(f"{path!r} must be an absolute path below /")
        return value

    @field_validator("audited")
    @classmethod
    def _can_be_matched(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            plain = pattern.removeprefix("*")
            if not plain or "*" in plain or ("/" in pattern and not pattern.startswith("/")):
                raise ValueError(f"{pattern!r} must be an absolute path, a name, or an ending such as '*.pyc'")
        return value

    @field_validator("socket_families")
    @classmethod
    def _known_families(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := set(value) - {"AF_UNIX", "AF_INET", "AF_INET6"}:
            raise ValueError(f"{sorted(unknown)} cannot be allowed; the choice is AF_UNIX, AF_INET, AF_INET6")
        return value

    @field_validator("denied_syscalls")
    @classmethod
    def _known_calls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := set(value) - (
            syscalls.names() - {"execve", "execveat", *seccomp.LOOK_UPS, *seccomp.NAME_CHANGES}
        ):
            raise ValueError(f"{sorted(unknown)} are not system calls that can be denied")
        return value

    def with_limits(self, **changes: float | int | None) -> Self:
        """The same policy with some limits replaced; None keeps the old value."""
        given = {name: value for name, value in changes.items() if value is not None}
        return self.model_copy(update={"limits": SandboxLimits(**{**self.limits.model_dump(), **given})})

    def with_hosts(self, hosts: Sequence[str]) -> Self:
        """The same policy with these hosts allowed besides those that already are."""
        if not hosts:
            return self
        access = self.network_access.model_dump() if self.network_access else {"hosts": ()}
        together = tuple(dict.fromkeys((*access["hosts"], *hosts)))
        return self.model_copy(update={"network_access": NetworkAccess(**{**access, "hosts": together})})

    @property
    def has_loopback(self) -> bool:
        return self.network == "loopback" or self.network_access is not None

    def families(self) -> tuple[str, ...]:
        loopback = ("AF_INET", "AF_INET6") if self.has_loopback else ()
        return tuple(dict.fromkeys((*self.socket_families, *loopback)))

    def rules(self) -> list[seccomp.SyscallRule]:
        return seccomp.default_rules(
            self.families(),
            self.denied_syscalls,
            watch_opens=bool(self.watched or self.audited),
            loopback=self.has_loopback,
            trace_opens=self.trace_files != "none",
            trace_look_ups=self.trace_files == "all",
        )

    @property
    def hash(self) -> str:
        """Names this policy and the rules that it means: plain data, so that no class name is part of it."""
        return _policy_hash(self)


@functools.lru_cache(maxsize=256)  # not kept in the policy itself: a changed copy would take it along
def _policy_hash(policy: SandboxPolicy) -> str:
    rules = json.dumps([dataclasses.asdict(rule) for rule in policy.rules()])
    newer = {"network_access"} if policy.network_access is None else set()  # without it, the isolation is what it was
    newer |= {"trace_files"} if policy.trace_files == "none" else set()
    return hashlib.sha256(f"{policy.model_dump_json(exclude=newer)}\n{rules}".encode()).hexdigest()[:32]
