"""Whether a backend works here, found out by doing: a sandbox that does nothing is started."""

import os
import sys
from collections.abc import Callable

from gametape.sandbox import cgroups, syscalls
from gametape.sandbox.launcher import SandboxError
from gametape.sandbox.oneshot import OneShotSandbox
from gametape.sandbox.result import Capabilities, Probe


def probe_by_doing(builder: str, absent: str | None, start: Callable[[], OneShotSandbox], given: Capabilities) -> Probe:
    """`absent` says what of the builder is not installed and how to get it; `given` is what it gives where it works."""
    if missing := absent_here() or absent or _failure(builder, start):
        return Probe(available=False, capabilities=Capabilities(), missing=(missing,))
    layout = cgroups.find_layout()
    found = {"cgroup": f"v{layout.version}" if layout else None, "rootless": os.geteuid() != 0}
    notes = () if layout else ("a writable control group (memory, processes and cpu are watched instead)",)
    return Probe(available=True, capabilities=given.model_copy(update=found), missing=notes)


def absent_here() -> str | None:
    """What every sandbox on this kernel needs of the machine."""
    if not sys.platform.startswith("linux"):
        return "Linux (on other systems gametape is for development only)"
    if not syscalls.supported():
        return f"a known machine type ({syscalls.machine()} is neither x86_64 nor aarch64)"
    return None


def _failure(builder: str, start: Callable[[], OneShotSandbox]) -> str | None:
    try:
        result = start().exec(["/usr/bin/true"])
    except SandboxError as error:
        return str(error)
    said = result.stderr.strip() or f"exit code {result.exit_code}"
    return None if result.ok else f"a working {builder} ({said})"
