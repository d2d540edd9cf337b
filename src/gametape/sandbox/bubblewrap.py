"""The default backend on Linux: bubblewrap, in namespaces, behind a seccomp filter, in a control group."""

import functools
import os
import shutil

from gametape.sandbox import mounts
from gametape.sandbox.backend import Spec, insist
from gametape.sandbox.hardening import ALL
from gametape.sandbox.launcher import Staged, Word
from gametape.sandbox.mounts import Cover, Mount
from gametape.sandbox.oneshot import OneShotSandbox
from gametape.sandbox.policy import HOME, WORKSPACE
from gametape.sandbox.probing import probe_by_doing
from gametape.sandbox.result import Capabilities, Probe
from gametape.sandbox.shell import BASH
from gametape.sandbox.supervisor import Outcome

_USER = "1000"
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
    absent = None if shutil.which("bwrap") else "bubblewrap (apt-get install bubblewrap)"
    live = os.path.exists(BASH)
    given = Capabilities(network_isolation=True, syscall_events=True, sessions=live, snapshot=live)
    return probe_by_doing("bubblewrap", absent, lambda: BubblewrapSandbox(Spec(), ALL), given)


class BubblewrapSandbox(OneShotSandbox):
    name = "bubblewrap"

    def _builder(self, argv: list[str], places: dict[Mount, str]) -> tuple[list[Word], list[Staged]]:
        options = self._options(places)
        hidden: list[Word] = ["--args", {"list": options}] if "hidden-options" in self.measures else options
        return [shutil.which("bwrap") or "/usr/bin/bwrap", *hidden, "--", *argv], []

    def _no_such_command(self, outcome: Outcome) -> bool:
        return outcome.exit_code == 1 and outcome.streams["stderr"].startswith(_NO_COMMAND)

    def _options(self, places: dict[Mount, str]) -> list[Word]:
        """bubblewrap's options, in the order in which it carries them out."""
        on = self.measures.__contains__

        def disk(path: str, mode: str) -> list[str]:
            size = ["--size", str(self.temporary_megabytes() << 20)] if on("sized-memory-disks") else []
            return [*size, "--perms", mode, "--tmpfs", path]

        options: list[Word] = ["--unshare-cgroup"] if on("own-cgroup-view") else []
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
        for target, link in mounts.links():
            options += ["--symlink", target, link]
        options += ["--proc", "/proc", "--dev", "/dev"]
        for path in _FIRST_PROCESS if on("sealed-first-process") else ():
            options += ["--ro-bind", "/dev/null", path]
        options += [*disk("/dev/shm", "1777"), *disk("/tmp", "1777")]
        options += ["--dir", HOME, "--symlink", "../tmp", "/var/tmp"]
        if self.own_workspace:
            options += disk(WORKSPACE, "0755")
        for layer in mounts.layered(self.shown, self.hidden):
            if isinstance(layer, Cover):
                options += _empty(layer)
            else:
                source = places.get(layer, layer.source)
                options += ["--bind" if layer.writable else "--ro-bind", source, layer.target]
        for cover in self.hidden:
            options += ["--remount-ro", cover.target] if cover.directory else []
        if on("masked-sockets"):
            for path in mounts.host_sockets(self.shown, self.hidden):
                options += ["--ro-bind", "/dev/null", path]
        for path, content in self.files().items():
            options += ["--perms", "0444", "--file", {"text": content}, path]
        if not on("own-accounts"):
            options += ["--ro-bind", "/etc/passwd", "/etc/passwd"]
        options += ["--remount-ro", "/dev", "--remount-ro", "/"] if on("sealed-root") else []
        for name, value in self.environment().items():
            options += ["--setenv", name, value]
        return [*options, "--chdir", WORKSPACE]


def _empty(cover: Cover) -> list[Word]:
    """Options for nothing at a place. A directory stays open until what is granted below it has been laid in."""
    if cover.directory:
        return ["--size", "4096", "--perms", "0755", "--tmpfs", cover.target]
    return ["--perms", "0444", "--ro-bind-data", {"text": ""}, cover.target]
