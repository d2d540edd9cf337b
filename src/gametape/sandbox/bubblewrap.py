"""The default backend on Linux: bubblewrap, in namespaces, behind a seccomp filter, in a control group."""

import functools
import os
import shutil

from gametape.sandbox import mounts
from gametape.sandbox.backend import SandboxSpec, require_capabilities
from gametape.sandbox.child_setup import STAGING_DIRECTORY
from gametape.sandbox.hardening_measures import ALL_MEASURES
from gametape.sandbox.keeper_client import CommandWord, ScratchDisk, StagedEntry
from gametape.sandbox.mounts import MaskedPath, Mount
from gametape.sandbox.oneshot import OneShotSandbox, probe_by_running
from gametape.sandbox.policy import HOME, WORKSPACE
from gametape.sandbox.result import BackendCapabilities, BackendProbe
from gametape.sandbox.shell import BASH
from gametape.sandbox.supervisor import RawOutcome

_USER = "1000"
_SCRATCH = {"tmp": 0o1777, "shm": 0o1777, "workspace": 0o755}
_FIRST_PROCESS = ("/proc/1/mem", "/proc/1/task/1/mem")
_NO_COMMAND = b"bwrap: execvp "


class BubblewrapBackend:
    name = "bubblewrap"

    def probe(self) -> BackendProbe:
        """Start a sandbox that does nothing, and see whether that works."""
        return _probe()

    def start(self, spec: SandboxSpec, without: frozenset[str] = frozenset()) -> "BubblewrapSandbox":
        """`without` takes hardening measures away, to show what each is for. Never use it for hostile code."""
        require_capabilities(self.name, self.probe(), spec.needs())
        return BubblewrapSandbox(spec, ALL_MEASURES - without)


@functools.cache
def _probe() -> BackendProbe:
    missing_program = None if shutil.which("bwrap") else "bubblewrap (apt-get install bubblewrap)"
    has_bash = os.path.exists(BASH)
    capabilities = BackendCapabilities(
        network_isolation=True, network_access=True, syscall_events=True, sessions=has_bash, snapshot=has_bash
    )
    return probe_by_running(
        "bubblewrap", missing_program, lambda: BubblewrapSandbox(SandboxSpec(), ALL_MEASURES), capabilities
    )


class BubblewrapSandbox(OneShotSandbox):
    name = "bubblewrap"

    def _builder(self, argv: list[str], staged_paths: dict[Mount, str]) -> tuple[list[CommandWord], list[StagedEntry]]:
        options = self._options(staged_paths, f"{STAGING_DIRECTORY}/{len(staged_paths)}")
        hidden: list[CommandWord] = ["--args", {"list": options}] if "hidden-options" in self.measures else options
        bounded = "sized-memory-disks" in self.measures
        size = self.temporary_megabytes() << 20 if bounded else None
        scratch = ScratchDisk(_SCRATCH, size, self.temporary_megabytes() << 10 if bounded else None)
        return [shutil.which("bwrap") or "/usr/bin/bwrap", *hidden, "--", *argv], [StagedEntry(scratch=scratch)]

    def _no_such_command(self, outcome: RawOutcome) -> bool:
        return outcome.exit_code == 1 and outcome.streams["stderr"].startswith(_NO_COMMAND)

    def _options(self, staged_paths: dict[Mount, str], scratch: str) -> list[CommandWord]:
        """bubblewrap's options, in the order in which it carries them out."""
        on = self.measures.__contains__
        options: list[CommandWord] = ["--unshare-cgroup"] if on("own-cgroup-view") else []
        options += ["--unshare-user", "--uid", _USER, "--gid", _USER] if on("own-users") else []
        options += ["--disable-userns"] if on("no-nested-users") else []
        options += ["--unshare-pid"] if on("own-processes") else []
        options += ["--unshare-net"] if on("own-network") else []
        options += ["--unshare-ipc"] if on("own-ipc") else []
        options += ["--unshare-uts", "--hostname", "sandbox"] if on("own-host-name") else []
        options += ["--cap-drop", "ALL"] if on("no-capabilities") else []
        options += ["--new-session"] if on("new-session") else []
        options += ["--die-with-parent"] if on("die-with-parent") else []
        options += ["--as-pid-1"] if self.holds_session else []
        options += ["--perms", "0755", "--dir", "/etc"]
        for target, link in mounts.usr_links():
            options += ["--symlink", target, link]
        options += ["--proc", "/proc", "--dev", "/dev"]
        for path in _FIRST_PROCESS if on("sealed-first-process") else ():
            options += ["--ro-bind", "/dev/null", path]
        options += ["--bind", f"{scratch}/shm", "/dev/shm", "--bind", f"{scratch}/tmp", "/tmp"]
        options += ["--dir", HOME, "--symlink", "../tmp", "/var/tmp"]
        if self.own_workspace:
            options += ["--bind", f"{scratch}/workspace", WORKSPACE]
        for layer in mounts.in_mount_order(self.granted, self.hidden):
            if isinstance(layer, MaskedPath):
                options += _empty(layer)
            else:
                source = staged_paths.get(layer, layer.source)
                options += ["--bind" if layer.writable else "--ro-bind", source, layer.target]
        for cover in self.hidden:
            options += ["--remount-ro", cover.target] if cover.directory else []
        if on("masked-sockets"):
            for path in mounts.host_sockets(self.granted, self.hidden):
                options += ["--ro-bind", "/dev/null", path]
        for path, content in self.files().items():
            options += ["--perms", "0444", "--file", {"text": content}, path]
        if not on("own-accounts"):
            options += ["--ro-bind", "/etc/passwd", "/etc/passwd"]
        options += ["--remount-ro", "/dev", "--remount-ro", "/"] if on("sealed-root") else []
        for name, value in self.environment().items():
            options += ["--setenv", name, value]
        return [*options, "--chdir", WORKSPACE]


def _empty(cover: MaskedPath) -> list[CommandWord]:
    """Options for an empty file or directory. A directory is writable until the grants below it are mounted."""
    if cover.directory:
        return ["--size", "4096", "--perms", "0755", "--tmpfs", cover.target]
    return ["--perms", "0444", "--ro-bind-data", {"text": ""}, cover.target]
