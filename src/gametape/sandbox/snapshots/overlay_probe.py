"""Tests whether views can be mounted here, by mounting one."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gametape.sandbox.snapshots.overlay import SAFE_OPTIONS, MountPlan, enter_private_namespace, mount, unmount

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from gametape.sandbox.snapshots import overlay_probe; overlay_probe.run_probe()"
)
_answers: dict[tuple[int, bool], tuple[str, ...] | None] = {}


def probe_mount_options(directory: Path, userxattr: bool) -> tuple[str, ...] | None:
    """The options with which this user can mount views on that directory's filesystem; None when it cannot be done.

    It is tried, in a process of its own, once per filesystem. `volatile` is among them where the kernel has it: syncing
    in a view does nothing then, and taking the mount away does not flush the whole disk. A view lives no longer than
    its owner anyway; what must last is sealed.
    """
    key = (os.stat(directory).st_dev, userxattr)
    if key not in _answers:
        _answers[key] = _probe(directory, userxattr)
    return _answers[key]


def _probe(directory: Path, userxattr: bool) -> tuple[str, ...] | None:
    options = (*SAFE_OPTIONS, "userxattr") if userxattr else SAFE_OPTIONS
    package = os.fspath(Path(__file__).resolve().parents[3])
    for attempt in ((*options, "volatile"), options):
        with tempfile.TemporaryDirectory(prefix="probe-", dir=directory) as scratch:
            command = [sys.executable, "-I", "-S", "-c", _PROGRAM, package, scratch, *attempt]
            done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode == 0:
                return attempt
    return None


def run_probe() -> None:
    """In the probe's own process: mount a view, replace a directory and a file in it, and check the result."""
    scratch, *options = sys.argv[2:]
    os.chdir(scratch)
    for name in ("below/directory", "upper", "work", "view"):
        os.makedirs(name)
    for name in ("below/file", "below/directory/old"):
        Path(name).touch()
    enter_private_namespace(inside=0)
    mount(MountPlan(scratch, ("below",), "upper", "work", options), "view")
    os.unlink("view/file")
    os.unlink("view/directory/old")
    os.rmdir("view/directory")
    os.mkdir("view/directory")
    if os.listdir("view") != ["directory"] or os.listdir("view/directory"):
        raise SystemExit("overlayfs does not hide what was removed")
    unmount("view")
    for directory, names, _files in os.walk(scratch):
        for name in names:
            os.chmod(os.path.join(directory, name), 0o700)
