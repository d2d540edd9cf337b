"""The default backend on Linux: bubblewrap, in namespaces, behind a seccomp filter, in a control group."""

import contextlib
import functools
import os
import shutil
import sys
from collections.abc import Sequence

from gametape.core.errors import BadInput
from gametape.sandbox import cgroups, language, mounts, seccomp, syscalls, workspace
from gametape.sandbox.backend import Spec, insist
from gametape.sandbox.hardening import ALL
from gametape.sandbox.keeper import STAGE
from gametape.sandbox.launcher import Plan, Running, SandboxError, keeper
from gametape.sandbox.mounts import Mount
from gametape.sandbox.output import clean, secrets
from gametape.sandbox.policy import HOME, WORKSPACE
from gametape.sandbox.result import Capabilities, ExecResult, Probe, Usage, Violation
from gametape.sandbox.supervisor import Outcome, Scene, Supervisor
from gametape.sandbox.watching import OVERHEAD_PROCESSES

_ACCOUNTS = {
    "/etc/passwd": f"root:x:0:0::/nonexistent:/usr/sbin/nologin\nagent:x:1000:1000::{HOME}:/bin/sh\n",
    "/etc/group": "root:x:0:\nagent:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_USER = "1000"
_TEMPORARY = ("/tmp", "/dev/shm")
_FIRST_PROCESS = ("/proc/1/mem", "/proc/1/task/1/mem")
_NO_COMMAND = b"bwrap: execvp "


class Bubblewrap:
    name = "bubblewrap"

    def probe(self) -> Probe:
        """Find out by doing: start a sandbox that does nothing."""
        return _probe()

    def start(self, spec: Spec, without: frozenset[str] = frozenset()) -> "BubblewrapSandbox":
        """`without` takes hardening measures away, to show what each is for. Never use it for hostile code."""
        insist(self.name, self.probe(), spec.requires)
        return BubblewrapSandbox(spec, ALL - without)


@functools.cache
def _probe() -> Probe:
    missing = []
    if not sys.platform.startswith("linux"):
        missing.append("Linux (on other systems gametape is for development only)")
    elif not syscalls.supported():
        missing.append(f"a known machine type ({syscalls.machine()} is neither x86_64 nor aarch64)")
    elif shutil.which("bwrap") is None:
        missing.append("bubblewrap (apt-get install bubblewrap)")
    else:
        try:
            result = BubblewrapSandbox(Spec(), ALL).exec(["/usr/bin/true"])
            if not result.ok:
                missing.append(f"a working bubblewrap ({result.stderr.strip() or f'exit code {result.exit_code}'})")
        except SandboxError as error:
            missing.append(str(error))
    if missing:
        return Probe(available=False, capabilities=Capabilities(), missing=tuple(missing))
    layout = cgroups.find_layout()
    notes = () if layout else ("a writable control group (memory, processes and cpu are watched instead)",)
    capabilities = Capabilities(
        network_isolation=True,
        cgroup=("v2" if layout.version == 2 else "v1") if layout else None,
        syscall_events=True,
        rootless=os.geteuid() != 0,
    )
    return Probe(available=True, capabilities=capabilities, missing=notes)


class BubblewrapSandbox:
    """Runs each command in a new bubblewrap over the same workspace."""

    def __init__(self, spec: Spec, measures: frozenset[str]) -> None:
        self.spec = spec
        self._measures = measures
        self._layout = cgroups.find_layout() if "control-group" in measures else None
        self._shown = mounts.granted(spec.policy, spec.workspace)  # once: later, links may have been planted
        self._workspace = next((mount.source for mount in self._shown if mount.target == WORKSPACE), None)
        self._drop = "drop-user" in measures and os.geteuid() == 0
        self._limits = spec.policy.limits
        uncounted = () if self._layout else seccomp.WITHOUT_CONTROL_GROUP
        filtered = "call-filter" in measures
        self._filter = seccomp.compile_rules([*spec.policy.rules(), *uncounted]) if filtered else b""

    def exec(self, argv: Sequence[str], stdin: bytes = b"") -> ExecResult:
        """Run one command to its end and say everything that is known about it."""
        if not argv or not argv[0] or any("\0" in word for word in argv):
            raise BadInput("a command needs at least one word, and none with a NUL byte")
        policy = self.spec.policy
        said = language.lint_command(list(argv), self._workspace, policy.language) if policy.language else []
        with contextlib.ExitStack() as stack:
            running, pipes = self._launch(self._plan(list(argv)), stdin, stack)
            outcome = Supervisor(running, pipes, policy, self._scene()).watch()
        if not outcome.started and "call-filter" in self._measures and outcome.killed_by is None:
            text = outcome.streams["stderr"].decode(errors="replace").strip().splitlines()
            raise SandboxError(f"the sandbox could not be built: {text[-1] if text else 'bubblewrap failed'}")
        heard = language.parse_hits(outcome.streams["audit"], " ".join(argv))
        return self._result(outcome, [*said, *outcome.violations, *heard])

    def put(self, path: str, content: bytes) -> None:
        """Write a file of the workspace from outside, following no link that the command may have planted."""
        workspace.write(self._directory(), path, content)

    def get(self, path: str) -> bytes:
        return workspace.read(self._directory(), path)

    def close(self) -> None:
        """Nothing stays up between commands."""

    def _directory(self) -> str:
        if self._workspace is None:
            raise BadInput("this sandbox has no workspace directory; start it with one")
        return self._workspace

    def _launch(self, plan: Plan, stdin: bytes, stack: contextlib.ExitStack) -> tuple[Running, dict[int, str]]:
        given, reads = [_readable(stdin)], {}
        for stream in ("stdout", "stderr", *(("audit",) if self.spec.policy.language else ())):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            stack.callback(os.close, read_end)
            reads[read_end] = stream
            given.append(write_end)
        try:
            running = keeper().launch(plan, given)
        finally:
            for descriptor in given:
                os.close(descriptor)
        stack.callback(running.close)
        return running, reads

    def _plan(self, argv: list[str]) -> Plan:
        limits, shown = self._limits, self._shown
        staged = [mount for mount in shown if mounts.must_be_staged(mount)] if self._drop else []
        places = {mount: f"{STAGE}/{index}" for index, mount in enumerate(staged)}
        rlimits = {
            "NOFILE": limits.open_files,
            "FSIZE": min(limits.file_size_mb, _backstop(limits.disk_mb)) << 20,
            "CPU": (limits.cpu_seconds or int(limits.wall_seconds) * 1000) + 1,
        }
        if self._drop and self._layout is None:
            rlimits["NPROC"] = _backstop(limits.processes)
        return Plan(
            program=shutil.which("bwrap") or "/usr/bin/bwrap",
            arguments=self._options(shown, places),
            argv=argv,
            drop=self._drop,
            stage=[mount.source for mount in staged],
            filter=self._filter,
            rlimits=(rlimits if "resource-limits" in self._measures else {})
            | ({"CORE": 1} if "no-core-dumps" in self._measures else {}),
            layout=self._layout,
            memory_bytes=limits.memory_mb << 20,
            processes=limits.processes + OVERHEAD_PROCESSES,
            environment={} if "empty-environment" in self._measures else dict(os.environ),
            hide_options="hidden-options" in self._measures,
        )

    def _options(self, shown: list[Mount], places: dict[Mount, str]) -> list[str | dict[str, str]]:
        """bubblewrap's options, in the order in which it carries them out."""
        on = self._measures.__contains__

        def disk(path: str, mode: str) -> list[str]:
            most = 2 * self._limits.disk_mb if self._layout else min(2 * self._limits.disk_mb, self._limits.memory_mb)
            size = ["--size", str(most << 20)] if on("sized-memory-disks") else []
            return [*size, "--perms", mode, "--tmpfs", path]

        options: list[str | dict[str, str]] = ["--unshare-cgroup"] if on("own-cgroup-view") else []
        options += ["--unshare-user", "--uid", _USER, "--gid", _USER] if on("own-users") else []
        options += ["--disable-userns"] if on("no-nested-users") else []
        options += ["--unshare-pid"] if on("own-processes") else []
        options += ["--unshare-net"] if on("own-network") else []
        options += ["--unshare-ipc"] if on("own-ipc") else []
        options += ["--unshare-uts", "--hostname", "sandbox"] if on("own-host-name") else []
        options += ["--cap-drop", "ALL"] if on("no-capabilities") else []
        options += ["--new-session"] if on("new-session") else []
        options += ["--die-with-parent"] if on("die-with-parent") else []
        options += ["--perms", "0755", "--dir", "/etc"]
        for target, link in mounts.links():
            options += ["--symlink", target, link]
        options += ["--proc", "/proc", "--dev", "/dev"]
        for path in _FIRST_PROCESS if on("sealed-first-process") else ():
            options += ["--ro-bind", "/dev/null", path]
        options += [*disk("/dev/shm", "1777"), *disk("/tmp", "1777")]
        options += ["--dir", HOME, "--symlink", "../tmp", "/var/tmp"]
        if self._workspace is None:
            options += disk(WORKSPACE, "0755")
        for mount in shown:
            source = places.get(mount, mount.source)
            options += ["--bind" if mount.writable else "--ro-bind", source, mount.target]
        if on("masked-sockets"):
            for path in mounts.host_sockets(shown):
                options += ["--ro-bind", "/dev/null", path]
        files = _ACCOUNTS if on("own-accounts") else {}
        rules = self.spec.policy.language
        for path, content in {**files, **(language.guard_files(rules) if rules else {})}.items():
            options += ["--perms", "0444", "--file", {"content": content}, path]
        if not on("own-accounts"):
            options += ["--ro-bind", "/etc/passwd", "/etc/passwd"]
        options += ["--remount-ro", "/dev", "--remount-ro", "/"] if on("sealed-root") else []
        for name, value in self._environment().items():
            options += ["--setenv", name, value]
        return [*options, "--chdir", WORKSPACE]

    def _environment(self) -> dict[str, str]:
        policy = self.spec.policy
        basic = {
            "PATH": mounts.search_path(policy),
            "HOME": HOME,
            "USER": "agent",
            "LANG": "C.UTF-8",
            "TMPDIR": "/tmp",
        }
        guard = {"PYTHONPATH": language.GUARD_DIRECTORY} if policy.language else {}
        return {**basic, **guard, **dict(policy.environment)}

    def _scene(self) -> Scene:
        set_inside = not self._drop and self._layout is None and "resource-limits" in self._measures
        return Scene(
            shown=tuple(mount.target for mount in self._shown),
            writable=tuple(mount.source for mount in self._shown if mount.writable),
            temporary=_TEMPORARY if self._workspace else (*_TEMPORARY, WORKSPACE),
            process_backstop=_backstop(self._limits.processes) if set_inside else None,
        )

    def _result(self, outcome: Outcome, violations: list[Violation]) -> ExecResult:
        exit_code = outcome.exit_code
        if exit_code == 1 and outcome.streams["stderr"].startswith(_NO_COMMAND):
            exit_code = 127
        hidden = secrets(os.environ)
        group = f"control group v{self._layout.version}" if self._layout else "watching"
        counters = outcome.counters
        return ExecResult(
            exit_code=exit_code,
            signal=outcome.signal,
            stdout=clean(outcome.streams["stdout"], hidden),
            stderr=clean(outcome.streams["stderr"], hidden),
            usage=Usage(
                wall_seconds=outcome.wall_seconds,
                cpu_seconds=counters.cpu_seconds,
                peak_memory_bytes=counters.peak_memory_bytes,
                peak_processes=counters.processes and max(1, counters.processes - OVERHEAD_PROCESSES),
            ),
            killed_by=outcome.killed_by,
            violations=tuple(_presentable(violation, hidden) for violation in violations),
            violations_dropped=outcome.violations_dropped,
            backend=Bubblewrap.name,
            assurance="full" if self._layout else "reduced",
            held_by={
                **{"memory": group, "cpu": group, "processes": group if self._layout else "rlimit"},
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


def _presentable(violation: Violation, hidden: list[str]) -> Violation:
    """The caller chose the words of its own record: clean them like its output."""
    texts = {"syscall": clean(violation.syscall, hidden), "command": clean(violation.command, hidden)}
    args = tuple(clean(arg, hidden) if isinstance(arg, str) else arg for arg in violation.args)
    return violation.model_copy(update={**texts, "args": args})
