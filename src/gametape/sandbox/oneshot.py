"""The part that every backend on this kernel shares: one command, one sandbox, one result.

A backend says how its builder is called (`_builder`); the rest is the same: the keeper, the user that owns nothing,
the call filter with its events, the control group, the supervisor. `probe_by_running` tells whether a backend works.
"""

import contextlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from gametape.sandbox import cgroups, mounts, python_rules, seccomp, syscalls
from gametape.sandbox.backend import SandboxSpec, WorkspaceSandbox
from gametape.sandbox.child_setup import STAGING_DIRECTORY
from gametape.sandbox.disk_watch import most_bytes_in_a_file
from gametape.sandbox.keeper_client import (
    CommandWord,
    LaunchPlan,
    RunningSandbox,
    SandboxError,
    StagedEntry,
    keeper,
)
from gametape.sandbox.mounts import Mount
from gametape.sandbox.network_proxy import NetworkProxy, proxy_variables
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
"""The files in /etc that the sandbox has instead of the host's."""


class OneShotSandbox(WorkspaceSandbox, ABC):
    """Runs each command in a new sandbox over the same workspace."""

    name: str
    holds_session = False
    """Whether the command only holds the sandbox open: then it is the first process inside, which nothing inside can
    kill."""

    def __init__(self, spec: SandboxSpec, measures: frozenset[str]) -> None:
        self.spec = spec
        self.limits = spec.policy.limits
        self.measures = measures
        self.granted = mounts.granted_mounts(spec.policy, spec.workspace, spec.view)  # once: links may be planted later
        self.hidden = mounts.masked_paths(spec.policy, self.granted)
        tree = next((mount for mount in self.granted if mount.target == WORKSPACE), None)
        self.own_workspace = tree is None
        self.workspace = tree.source if tree and not tree.view else None
        self.layout = cgroups.find_layout() if "control-group" in measures else None
        self.drop = "drop-user" in measures and os.geteuid() == 0
        uncounted = () if self.layout else seccomp.WITHOUT_CONTROL_GROUP
        filtered = "call-filter" in measures
        self._filter = seccomp.compile_rules([*spec.policy.rules(), *uncounted]) if filtered else b""

    @abstractmethod
    def _builder(self, argv: list[str], staged_paths: dict[Mount, str]) -> tuple[list[CommandWord], list[StagedEntry]]:
        """The command line that builds the sandbox and runs `argv` in it, and what it needs staged besides.

        `staged_paths` says where the staged mounts are.
        """

    @abstractmethod
    def _no_such_command(self, outcome: RawOutcome) -> bool:
        """Whether the builder failed because the command does not exist."""

    def exec(self, argv: Sequence[str], stdin: bytes = b"") -> ExecResult:
        """Run one command to its end and return everything that is known about it."""
        self.check_command(argv)
        policy = self.spec.policy
        lint_violations = (
            python_rules.lint_command(list(argv), self.workspace, policy.language) if policy.language else []
        )
        with contextlib.ExitStack() as stack:
            network = self.network(stack)
            running, pipes = self.launch(list(argv), stack, stdin)
            outcome = Supervisor(running, pipes, policy, self.supervision_context(network)).watch()
        if not outcome.started and "call-filter" in self.measures and outcome.killed_by is None:
            text = outcome.streams["stderr"].decode(errors="replace").strip().splitlines()
            raise SandboxError(f"the sandbox could not be built: {text[-1] if text else 'no reason was given'}")
        audit_violations = python_rules.parse_audit_events(outcome.streams["audit"], " ".join(argv))
        result = self.result(outcome, [*lint_violations, *outcome.violations, *audit_violations])
        return with_requests(result, network)

    def network(self, stack: contextlib.ExitStack) -> NetworkProxy | None:
        """The proxy of a sandbox that may reach hosts outside; it is closed with the stack."""
        access = self.spec.policy.network_access
        if access is None:
            return None
        proxy = NetworkProxy(access, self.spec.network_log)
        stack.callback(proxy.close)
        return proxy

    def launch(
        self, argv: list[str], stack: contextlib.ExitStack, stdin: bytes | int = b""
    ) -> tuple[RunningSandbox, dict[int, str]]:
        """Start a sandbox around `argv`; returns it and the pipes with its output, by descriptor.

        A number as `stdin` is a descriptor that the command gets; it is closed here.
        """
        descriptors, pipes = [stdin if isinstance(stdin, int) else _readable(stdin)], {}
        for stream in ("stdout", "stderr", *(("audit",) if self.spec.policy.language else ())):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read_end, False)  # a process inside may read from it too, and leave nothing for us
            stack.callback(os.close, read_end)
            pipes[read_end] = stream
            descriptors.append(write_end)
        try:
            running = keeper().launch(self.plan(argv), self._for_builder(descriptors))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        stack.callback(running.close)
        return running, pipes

    def _for_builder(self, descriptors: list[int]) -> list[int]:
        """The builder's descriptors 0, 1, ..., from the command's: stdin, stdout, stderr and perhaps the audit pipe."""
        return descriptors

    def _must_be_staged(self, mount: Mount) -> bool:
        """A view is mounted in the staging directory, which hides the host's files below its path."""
        if mount.view or mount.source.startswith(STAGING_DIRECTORY + "/"):
            return True
        return self.drop and mounts.must_be_staged(mount)

    def plan(self, argv: list[str]) -> LaunchPlan:
        limits = self.limits
        staged = [mount for mount in self.granted if self._must_be_staged(mount)]
        staged_paths = {mount: f"{STAGING_DIRECTORY}/{index}" for index, mount in enumerate(staged)}
        command, extra = self._builder(argv, staged_paths)
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
        """The limits of every process in the sandbox, by the kernel's names."""
        limits = self.limits
        rlimits = {"CORE": 1} if "no-core-dumps" in self.measures else {}
        if "resource-limits" in self.measures:
            rlimits["NOFILE"] = limits.open_files
            rlimits["FSIZE"] = most_bytes_in_a_file(limits, self._written_trees())
            rlimits["CPU"] = (limits.cpu_seconds or int(limits.wall_seconds) * 1000) + 1
            if self.drop and self.layout is None:
                rlimits["NPROC"] = _backstop(limits.processes)
        return rlimits

    def environment(self) -> dict[str, str]:
        """The command's variables: a few basic ones, then the policy's."""
        policy = self.spec.policy
        basic = {"PATH": mounts.search_path(policy), "HOME": HOME, "USER": "agent", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}
        guard = {"PYTHONPATH": python_rules.AUDIT_HOOK_DIRECTORY} if policy.language else {}
        proxy = proxy_variables(policy.network_access) if policy.network_access else {}
        return {**basic, **guard, **proxy, **dict(policy.environment)}

    def files(self) -> dict[str, str]:
        """Small files that are made inside, by path."""
        rules = self.spec.policy.language
        accounts = ACCOUNT_FILES if "own-accounts" in self.measures else {}
        return {**accounts, **(python_rules.audit_hook_files(rules) if rules else {})}

    def temporary_megabytes(self) -> int:
        """The size of a file system in memory: the limit of disk space, or of memory where nothing else bounds that."""
        return self.limits.disk_mb if self.layout else min(self.limits.disk_mb, self.limits.memory_mb)

    def _written_trees(self) -> Iterator[str]:
        """The directories of the host whose files a command may change, with the layers below a view."""
        for mount in self.granted:
            if mount.writable:
                yield mount.source
            if mount.view:
                yield from (f"{mount.view.root}/{layer}" for layer in mount.view.lower)

    def supervision_context(self, network: NetworkProxy | None = None) -> SupervisionContext:
        set_inside = not self.drop and self.layout is None and "resource-limits" in self.measures
        return SupervisionContext(
            granted=tuple(mount.target for mount in self.granted),
            writable=tuple(mount.source for mount in self.granted if mount.writable),
            temporary=(*TEMPORARY_DIRECTORIES, WORKSPACE) if self.own_workspace else TEMPORARY_DIRECTORIES,
            process_backstop=_backstop(self.limits.processes) if set_inside else None,
            open_network=network.open if network else None,
        )

    def result(self, outcome: RawOutcome, violations: list[PolicyViolation]) -> ExecResult:
        hidden = secret_values(os.environ)
        group = f"control group v{self.layout.version}" if self.layout else "watching"
        counters = outcome.counters
        disk = "watching" if any(mount.writable for mount in self.granted) else "file system"
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
            violations=sanitized_violations(violations),
            violations_dropped=outcome.violations_dropped,
            trace=outcome.trace,
            backend=self.name,
            assurance="full" if self.layout else "reduced",
            held_by={
                **{"memory": group, "cpu": group, "processes": group},
                **{"open_files": "rlimit", "file_size": "rlimit", "disk": disk},
                **{"wall": "supervisor", "output": "supervisor"},
            },
            policy_hash=self.spec.policy.hash,
        )


def with_requests(result: ExecResult, network: NetworkProxy | None) -> ExecResult:
    """The result with what was asked of the proxy. In a one-shot sandbox the proxy is closed by then."""
    return result.model_copy(update={"network": network.take_requests()}) if network else result


def _backstop(limit: int) -> int:
    """The kernel's limit behind a polled one. It is higher, so that polling names the limit first."""
    return limit + 1024


def _readable(content: bytes) -> int:
    """A descriptor from which the command reads its input."""
    if not content:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = os.memfd_create("gametape-stdin")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(descriptor)


def sanitized_violations(violations: Iterable[PolicyViolation]) -> tuple[PolicyViolation, ...]:
    hidden = secret_values(os.environ)
    return tuple(_presentable(violation, hidden) for violation in violations)


def _presentable(violation: PolicyViolation, hidden: list[str]) -> PolicyViolation:
    """A process inside chose the texts of its violation: they are sanitized like its output."""
    texts = {"syscall": sanitize(violation.syscall, hidden), "command": sanitize(violation.command, hidden)}
    args = tuple(sanitize(arg, hidden) if isinstance(arg, str) else arg for arg in violation.args)
    return violation.model_copy(update={**texts, "args": args})


def probe_by_running(
    builder: str, missing_program: str | None, start: Callable[[], OneShotSandbox], capabilities: BackendCapabilities
) -> BackendProbe:
    """Probe a backend by running a command. `missing_program` says what is not installed and how to get it;
    `capabilities` are those of the backend where it works."""
    if missing := missing_host_support() or missing_program or _trial_failure(builder, start):
        return BackendProbe(available=False, capabilities=BackendCapabilities(), missing=(missing,))
    layout = cgroups.find_layout()
    details = {"cgroup": f"v{layout.version}" if layout else None, "rootless": os.geteuid() != 0}
    notes = () if layout else ("a writable control group (memory, processes and cpu are watched instead)",)
    return BackendProbe(available=True, capabilities=capabilities.model_copy(update=details), missing=notes)


def missing_host_support() -> str | None:
    """What this machine lacks for any sandbox, or None."""
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
    message = result.stderr.strip() or f"exit code {result.exit_code}"
    return None if result.ok else f"a working {builder} ({message})"
