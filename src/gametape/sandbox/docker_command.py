"""The command line of `docker run`, and the call filter as a docker profile. Plain data in, plain data out."""

import csv
import io
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.sandbox import seccomp
from gametape.sandbox.mounts import MaskedPath, Mount
from gametape.sandbox.policy import HOME, WORKSPACE, SandboxLimits

LABEL = "gametape"
"""Marks containers, with the host program that they belong to."""

_OVERHEAD_PROCESSES = 1  # docker's init
_SEEN_NOT_DENIED = frozenset(("execve", "execveat", "connect", "sendto"))
_OPENS = frozenset(("open", "openat", "creat"))
_LARGEST_FAMILY = 63
_EPERM = 1


@dataclass(frozen=True)
class ContainerSpec:
    """One container to be run."""

    name: str
    owner: str
    image: str
    profile: str
    """The path of a seccomp profile, as docker's client will read it."""
    user: tuple[int, int]
    mounts: Sequence[Mount]
    hidden: Sequence[MaskedPath]
    masked: Sequence[str]
    own_workspace: bool
    environment: Mapping[str, str]
    limits: SandboxLimits
    file_bytes: int
    """How large one file may become."""


def docker_run_argv(client: str, container: ContainerSpec, argv: Sequence[str]) -> list[str]:
    """The whole command line. The container is kept when it ends, so that it can be inspected."""
    limits = container.limits
    uid, gid = container.user
    words = [client, "run", "--name", container.name, "--label", f"{LABEL}={container.owner}"]
    words += ["--pull", "never", "--interactive", "--init", "--log-driver", "none"]
    words += ["--network", "none", "--ipc", "private", "--hostname", "sandbox", "--cgroupns", "private"]
    words += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    words += ["--security-opt", f"seccomp={container.profile}"]
    words += ["--read-only", "--user", f"{uid}:{gid}", "--workdir", WORKSPACE]
    words += ["--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m"]
    words += ["--pids-limit", str(limits.processes + _OVERHEAD_PROCESSES)]
    for name, soft, hard in _ulimits(limits, container.file_bytes):
        words += ["--ulimit", f"{name}={soft}:{hard}"]
    words += ["--shm-size", f"{limits.disk_mb}m"]
    for path in ("/tmp", HOME, *((WORKSPACE,) if container.own_workspace else ())):
        sizes = f"size={limits.disk_mb}m,nr_inodes={limits.disk_mb << 10}"
        words += ["--tmpfs", f"{path}:rw,exec,nosuid,nodev,mode=1777,{sizes}"]
    for mount in container.mounts:
        words += ["--mount", _bind(mount.source, mount.target, mount.writable)]
    for cover in container.hidden:
        nothing = _nothing(cover.target) if cover.directory else _bind("/dev/null", cover.target, writable=False)
        words += ["--mount", nothing]
    for path in container.masked:
        words += ["--mount", _bind("/dev/null", path, writable=False)]
    variables = [f"{name}={value}" for name, value in {"PWD": WORKSPACE, **container.environment}.items()]
    plain = list(argv) if "=" not in argv[0] else ["/bin/sh", "-c", 'exec "$0" "$@"', *argv]
    return [*words, "--entrypoint", "/usr/bin/env", container.image, "-i", "--", *variables, *plain]


def _ulimits(limits: SandboxLimits, file_bytes: int) -> list[tuple[str, int, int]]:
    seconds = (limits.cpu_seconds or int(limits.wall_seconds) * 1000) + 1
    return [
        ("nofile", limits.open_files, limits.open_files),
        ("fsize", file_bytes, file_bytes),
        ("cpu", seconds, seconds + 1),
        ("core", 0, 0),
    ]


def _bind(source: str, target: str, writable: bool) -> str:
    return _fields("type=bind", f"source={source}", f"target={target}", *(() if writable else ("readonly",)))


def _nothing(target: str) -> str:
    return _fields("type=tmpfs", f"target={target}", "tmpfs-size=4096", "tmpfs-mode=0755", "readonly")


def _fields(*fields: str) -> str:
    """One line of comma-separated values, which can hold any path."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


def seccomp_profile(rules: Iterable[seccomp.SyscallRule]) -> dict[str, Any]:
    """The call filter as a profile: what would be an event is refused without a record.

    Calls that the supervisor would allow are left out: executing, connecting, opening a watched path. A profile cannot
    express two things: that a call is newer than any we know, and two tests of one argument; of those the stricter
    is used, so asking for one's `personality` is refused together with loosening it.
    """
    entries = []
    for rule in rules:
        if rule.syscall in _SEEN_NOT_DENIED or (rule.syscall in _OPENS and not rule.tests):
            continue
        error = _EPERM if rule.action == seccomp.NOTIFY else rule.action & 0xFFFF
        for conditions in _alternatives(rule.tests):
            entry = {"names": [rule.syscall], "action": "SCMP_ACT_ERRNO", "errnoRet": error}
            entries.append({**entry, "args": conditions} if conditions else entry)
    native = [{"architecture": f"SCMP_ARCH_{name}", "subArchitectures": []} for name in ("X86_64", "AARCH64")]
    return {"defaultAction": "SCMP_ACT_ALLOW", "archMap": native, "syscalls": entries}


def _alternatives(tests: Sequence[seccomp.ArgumentTest]) -> list[list[dict[str, Any]]]:
    """Every way in which all the tests can hold: a profile's entry knows `and`, several entries are an `or`."""
    by_argument: dict[int, seccomp.ArgumentTest] = {}
    for test in sorted(tests, key=lambda test: not test.negated):
        by_argument[test.arg] = test  # of two tests of one argument the one that is not negated is used
    return [list(way) for way in itertools.product(*map(_ways, by_argument.values()))]


def _ways(test: seccomp.ArgumentTest) -> list[dict[str, Any]]:
    if test.negated:
        others = (value for value in range(_LARGEST_FAMILY + 1) if value not in test.values)
        beyond = {"index": test.arg, "value": _LARGEST_FAMILY, "op": "SCMP_CMP_GT"}
        return [*({"index": test.arg, "value": value, "op": "SCMP_CMP_EQ"} for value in others), beyond]
    if test.values:
        return [_masked(test.arg, test.mask, value) for value in test.values]
    bits = (1 << position for position in range(32))
    return [_masked(test.arg, bit, bit) for bit in bits if test.mask & bit]


def _masked(arg: int, mask: int, value: int) -> dict[str, Any]:
    return {"index": arg, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
