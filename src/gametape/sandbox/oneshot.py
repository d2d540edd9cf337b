"""What every backend that runs on this kernel shares: one command, one sandbox, one result.

A backend says how its builder is called (`_builder`); the rest is the same wall: the keeper, the user that owns
nothing, the filter with its events, the control group, the supervisor.
"""

import contextlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from gametape.core.errors import BadInput
from gametape.sandbox import cgroups, mounts, python_rules, seccomp, syscalls, workspace_files
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.child_setup import STAGING_DIRECTORY
from gametape.sandbox.keeper_client import (
    CommandWord,
    LaunchPlan,
    RunningSandbox,
    SandboxError,
    StagedEntry,
    keeper,
)
from gametape.sandbox.mounts import Mount
from gametape.sandbox.output import sanitize, secret_values
from gametape.sandbox.policy import HOME, WORKSPACE
from gametape.sandbox.resource_watch import OVERHEAD_PROCESSES
from gametape.sandbox.result import BackendCapabilities, BackendProbe, ExecResult, PolicyViolation, ResourceUsage
from gametape.sandbox.supervisor import RawOutcome, SupervisionContext, Supervisor

TEMPORARY_DIRECTORIES = ("/tmp", "/dev/shm")

ACCOUNT_FILES = {
    "/etc/passwd": f"root:x:0:0::/nonexistent:/usr/sbin/nologin\nagent:x:1000:1000::{HOME}:/bin/sh\n",
    "/etc/group": "root:x:0:\nagent:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""The user list inside has two lines and nothing of the host's."""


class OneShotSandbox(ABC):
    """Runs each command in a new sandbox over the same workspace."""

    name: str
    holds_session = False
    """Whether the command is only there to hold the sandbox open: then it is the first process inside, which nothing
    inside can end."""

    def __init__(self, spec: SandboxSpec, measures: frozenset[str]) -> None:
        self.spec = spec
        self.limits = spec.policy.limits
        self.measures = measures
        self.shown = mounts.granted_mounts(spec.policy, spec.workspace, spec.view)  # once: links may be planted later
        self.hidden = mounts.masked_paths(spec.policy, self.shown)
        tree = next((mount for mount in self.shown if mount.target == WORKSPACE), None)
        self.own_workspace = tree is None
        self.workspace = tree.source if tree and not tree.view else None
        self.layout = cgroups.find_layout() if "control-group" in measures else None
        self.drop = "drop-user" in measures and os.geteuid() == 0
        uncounted = () if self.layout else seccomp.WITHOUT_CONTROL_GROUP
        filtered = "call-filter" in measures
        self._filter = seccomp.compile_rules([*spec.policy.rules(), *uncounted]) if filtered else b""

    @abstractmethod
    def _builder(self, argv: list[str], places: dict[Mount, str]) -> tuple[list[CommandWord], list[StagedEntry]]:
        """The command line that builds the sandbox and runs `argv` in it, and what it needs on the stage.

        `places` says where the mounts that had to be staged are found.
        """

    @abstractmethod
    def _no_such_command(self, outcome: RawOutcome) -> bool:
        """Whether the builder failed because the command does not exist."""

    def exec(self, argv: Sequence[str], stdin: bytes = b"") -> ExecResult:
        """Run one command to its end and say everything that is known about it."""
        if not argv or not argv[0] or any("\0" in word for word in argv):
            raise BadInput("a command needs at least one word, and none with a NUL byte")
        policy = self.spec.policy
        said = python_rules.lint_command(list(argv), self.workspace, policy.language) if policy.language else []
        with contextlib.ExitStack() as stack:
            running, pipes = self.launch(list(argv), stack, stdin)
            outcome = Supervisor(running, pipes, policy, self.supervision_context()).watch()
        if not outcome.started and "call-filter" in self.measures and outcome.killed_by is None:
            text = outcome.streams["stderr"].decode(errors="replace").strip().splitlines()
            raise SandboxError(f"the sandbox could not be built: {text[-1] if text else 'no reason was given'}")
        heard = python_rules.parse_audit_events(outcome.streams["audit"], " ".join(argv))
        return self.result(outcome, [*said, *outcome.violations, *heard])

    def put(self, path: str, content: bytes) -> None:
        """Write a file of the workspace from outside, following no link that the command may have planted."""
        workspace_files.write_file(self._directory(), path, content)

    def get(self, path: str) -> bytes:
        return workspace_files.read_file(self._directory(), path)

    def close(self) -> None:  # noqa: B027 - a sandbox that stays up has something to do here
        """Nothing stays up between commands."""

    def _directory(self) -> str:
        if self.workspace is None:
            raise BadInput("this sandbox has no workspace directory; start it with one")
        return self.workspace

    def launch(
        self, argv: list[str], stack: contextlib.ExitStack, stdin: bytes | int = b""
    ) -> tuple[RunningSandbox, dict[int, str]]:
        """Start a sandbox around `argv`; also the pipes that carry its output, by descriptor.

        A number as `stdin` is a descriptor that the command gets; it is closed here.
        """
        given, reads = [stdin if isinstance(stdin, int) else _readable(stdin)], {}
        for stream in ("stdout", "stderr", *(("audit",) if self.spec.policy.language else ())):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read_end, False)  # whoever is inside may read from it too, and leave us nothing
            stack.callback(os.close, read_end)
            reads[read_end] = stream
            given.append(write_end)
        try:
            running = keeper().launch(self.plan(argv), self._for_builder(given))
        finally:
            for descriptor in given:
                os.close(descriptor)
        stack.callback(running.close)
        return running, reads

    def _for_builder(self, given: list[int]) -> list[int]:
        """The builder's descriptors 0, 1, ..., from the command's: stdin, stdout, stderr and perhaps the audit pipe."""
        return given

    def _must_be_staged(self, mount: Mount) -> bool:
        """A view is mounted there; and what lay below the stage would be hidden by it."""
        if mount.view or (self.spec.view and mount.source.startswith(STAGING_DIRECTORY + "/")):
            return True
        return self.drop and mounts.must_be_staged(mount)

    def plan(self, argv: list[str]) -> LaunchPlan:
        limits = self.limits
        staged = [mount for mount in self.shown if self._must_be_staged(mount)]
        places = {mount: f"{STAGING_DIRECTORY}/{index}" for index, mount in enumerate(staged)}
        command, extra = self._builder(argv, places)
        return LaunchPlan(
            command=command,
            drop=self.drop,
            stage=[*(StagedEntry.of(mount.source, mount.view) for mount in staged), *extra],
            filter=self._filter,
            rlimits=self.rlimits(),
            layout=self.layout,
            memory_bytes=limits.memory_mb << 20,
            processes=limits.processes + OVERHEAD_PROCESSES,
            environment={} if "empty-environment" in self.measures else dict(os.environ),
        )

    def rlimits(self) -> dict[str, int]:
        """What every process of the sandbox is held to, by the kernel's names."""
        limits = self.limits
        found = {"CORE": 1} if "no-core-dumps" in self.measures else {}
        if "resource-limits" in self.measures:
            found["NOFILE"] = limits.open_files
            found["FSIZE"] = min(limits.file_size_mb, _backstop(limits.disk_mb)) << 20
            found["CPU"] = (limits.cpu_seconds or int(limits.wall_seconds) * 1000) + 1
            if self.drop and self.layout is None:
                found["NPROC"] = _backstop(limits.processes)
        return found

    def environment(self) -> dict[str, str]:
        """The command's variables: a few basic ones, then the policy's."""
        policy = self.spec.policy
        basic = {"PATH": mounts.search_path(policy), "HOME": HOME, "USER": "agent", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}
        guard = {"PYTHONPATH": python_rules.AUDIT_HOOK_DIRECTORY} if policy.language else {}
        return {**basic, **guard, **dict(policy.environment)}

    def files(self) -> dict[str, str]:
        """Small files that are made inside, by path."""
        rules = self.spec.policy.language
        accounts = ACCOUNT_FILES if "own-accounts" in self.measures else {}
        return {**accounts, **(python_rules.audit_hook_files(rules) if rules else {})}

    def temporary_megabytes(self) -> int:
        """How large a file system in memory may get: past the limit, so that the watch can name it."""
        most = 2 * self.limits.disk_mb
        return most if self.layout else min(most, self.limits.memory_mb)

    def supervision_context(self) -> SupervisionContext:
        set_inside = not self.drop and self.layout is None and "resource-limits" in self.measures
        return SupervisionContext(
            shown=tuple(mount.target for mount in self.shown),
            writable=tuple(mount.source for mount in self.shown if mount.writable),
            temporary=(*TEMPORARY_DIRECTORIES, WORKSPACE) if self.own_workspace else TEMPORARY_DIRECTORIES,
            process_backstop=_backstop(self.limits.processes) if set_inside else None,
        )

    def result(self, outcome: RawOutcome, violations: list[PolicyViolation]) -> ExecResult:
        hidden = secret_values(os.environ)
        group = f"control group v{self.layout.version}" if self.layout else "watching"
        counters = outcome.counters
        return ExecResult(
            exit_code=127 if self._no_such_command(outcome) else outcome.exit_code,
            signal=outcome.signal,
            stdout=sanitize(outcome.streams["stdout"], hidden),
            stderr=sanitize(outcome.streams["stderr"], hidden),
            usage=ResourceUsage(
                wall_seconds=outcome.wall_seconds,
                cpu_seconds=counters.cpu_seconds,
                peak_memory_bytes=counters.peak_memory_bytes,
                peak_processes=counters.processes and max(1, counters.processes - OVERHEAD_PROCESSES),
            ),
            killed_by=outcome.killed_by,
            violations=tuple(_presentable(violation, hidden) for violation in violations),
            violations_dropped=outcome.violations_dropped,
            backend=self.name,
            assurance="full" if self.layout else "reduced",
            held_by={
                **{"memory": group, "cpu": group, "processes": group},
                **{"open_files": "rlimit", "file_size": "rlimit", "disk": "watching"},
                **{"wall": "supervisor", "output": "supervisor"},
            },
            policy_hash=self.spec.policy.hash,
        )


def _backstop(limit: int) -> int:
    """Where the kernel stops what watching was too slow for. Further out, so that the watch can name the limit."""
    return limit + 1024


def _readable(content: bytes) -> int:
    """A descriptor the command can read its input from, and nothing else."""
    if not content:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = os.memfd_create("gametape-stdin")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(descriptor)


def _presentable(violation: PolicyViolation, hidden: list[str]) -> PolicyViolation:
    """The caller chose the words of its own record: clean them like its output."""
    texts = {"syscall": sanitize(violation.syscall, hidden), "command": sanitize(violation.command, hidden)}
    args = tuple(sanitize(arg, hidden) if isinstance(arg, str) else arg for arg in violation.args)
    return violation.model_copy(update={**texts, "args": args})


def probe_by_running(
    builder: str, missing_program: str | None, start: Callable[[], OneShotSandbox], capabilities: BackendCapabilities
) -> BackendProbe:
    """`absent` says what of the builder is not installed and how to get it; `given` is what it gives where it works."""
    if missing := missing_host_support() or missing_program or _trial_failure(builder, start):
        return BackendProbe(available=False, capabilities=BackendCapabilities(), missing=(missing,))
    layout = cgroups.find_layout()
    found = {"cgroup": f"v{layout.version}" if layout else None, "rootless": os.geteuid() != 0}
    notes = () if layout else ("a writable control group (memory, processes and cpu are watched instead)",)
    return BackendProbe(available=True, capabilities=capabilities.model_copy(update=found), missing=notes)


def missing_host_support() -> str | None:
    """What every sandbox on this kernel needs of the machine."""
    if not sys.platform.startswith("linux"):
        return "Linux (on other systems gametape is for development only)"
    if not syscalls.supported():
        return f"a known machine type ({syscalls.machine()} is neither x86_64 nor aarch64)"
    return None


def _trial_failure(builder: str, start: Callable[[], OneShotSandbox]) -> str | None:
    try:
        result = start().exec(["/usr/bin/true"])
    except SandboxError as error:
        return str(error)
    said = result.stderr.strip() or f"exit code {result.exit_code}"
    return None if result.ok else f"a working {builder} ({said})"
