"""The `config.json` of an OCI bundle: a sandbox's mounts, namespaces and first process.

Plain data in, plain data out. The runtime is root of a user namespace that the keeper made for it, with one user in
it; so the document asks for no user namespace, and for no control group: the process is in its group already.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.sandbox.mounts import MaskedPath, Mount, in_mount_order
from gametape.sandbox.policy import HOME, WORKSPACE

USER = 1000

UNSHARE, SETPRIV, SHELL, ENV = "/usr/bin/unshare", "/usr/bin/setpriv", "/bin/sh", "/usr/bin/env"
FIRST_PROCESS = (UNSHARE, SETPRIV, SHELL, ENV)
"""Programs of the host, shown read-only inside, that prepare the command."""

_WAIT = 'exec 0<&3 1>&4 9>&5 2>/dev/null 4>&- 5>&- {audit}; ({limits}exec "$@" 2>&9 9>&-); exit $?'
"""The command's descriptors come as 3, 4, 5 and, for the audit pipe, 6: runc would copy every byte of 0, 1 and 2."""
_BECOME_AGENT = (UNSHARE, "--user", f"--map-user={USER}", f"--map-group={USER}", "--keep-caps", "--")
_ULIMITS = {"NOFILE": ("n", 1), "FSIZE": ("f", 512), "CPU": ("t", 1)}
"""The limits that can be set for the command alone: the shell's letter and unit for each."""
_KEPT = "setpcap"
_NAMESPACES = {"own-network": "network", "own-ipc": "ipc", "own-host-name": "uts", "own-cgroup-view": "cgroup"}
_MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats"),
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@dataclass(frozen=True)
class BundleSpec:
    """What a sandbox looks like from inside."""

    measures: frozenset[str]
    granted: Sequence[Mount]
    staged_paths: Mapping[Mount, str]
    """Where the staged mounts are."""
    hidden: Sequence[MaskedPath]
    empty: str
    """The path of an empty file."""
    masked: Sequence[str]
    """Paths inside that are replaced by /dev/null: sockets of the host's servers."""
    files: Mapping[str, str]
    links: Sequence[tuple[str, str]]
    environment: Mapping[str, str]
    temporary_megabytes: int
    limits: Mapping[str, tuple[int, int]]
    """Soft and hard limits by name, for the command alone (`NOFILE`, `FSIZE`, `CPU`): the runtime may need more."""
    own_workspace: bool
    """No directory of the host is the workspace: an empty one in memory is."""
    audited: bool
    """An audit pipe is passed on."""
    own_kernel: bool
    """The runtime has a kernel of its own, in which a user is only a number."""


def bundle_config(argv: list[str], inside: BundleSpec) -> dict[str, Any]:
    """The whole configuration."""
    on = inside.measures.__contains__
    namespaces = ["pid", "mount", *(kind for measure, kind in _NAMESPACES.items() if on(measure))]
    hostname = {"hostname": "sandbox"} if on("own-host-name") else {}
    return {
        "ociVersion": "1.0.2",
        **hostname,
        "root": {"path": "rootfs", "readonly": on("sealed-root")},
        "process": _process(argv, inside),
        "mounts": _mounts(inside),
        "linux": {
            "namespaces": [{"type": kind} for kind in namespaces],
            "maskedPaths": [*_MASKED, *inside.masked],
            "readonlyPaths": list(_READ_ONLY),
        },
    }


def root_files(inside: BundleSpec) -> dict[str, str]:
    """What lies in the root directory itself, as the keeper lays it out: directories, links and small files."""
    entries: dict[str, str] = {}

    def parents(path: str) -> None:
        parts = path.strip("/").split("/")[:-1]
        for depth in range(len(parts)):
            entries.setdefault("rootfs/" + "/".join(parts[: depth + 1]) + "/", "")

    for target, link in (*inside.links, ("../tmp", "/var/tmp")):
        parents(link)
        entries[f"rootfs{link}@"] = target
    for path, content in inside.files.items():
        parents(path)
        entries[f"rootfs{path}"] = content
    return {"rootfs/": "", **entries}


def init_process_argv(argv: list[str], inside: BundleSpec) -> list[str]:
    """Process number 1: becomes the user called agent, drops its capabilities, and waits for the command.

    It cannot be the command itself: the kernel ignores most signals for number 1, and orphans must be reaped. It runs
    with no variables, so that none of the command's can make it load foreign code; the command gets its own from `env`.
    It keeps one capability, over a user namespace that owns nothing. The command gets none, and a process with fewer
    capabilities cannot read the memory or descriptors of one with more.
    """
    on = inside.measures.__contains__
    sealed = on("no-capabilities") and on("sealed-first-process")
    less = _capabilities(_KEPT if sealed else "") if on("no-capabilities") else []
    less += ["--pdeathsig=KILL"] if on("die-with-parent") else []
    become = [*_BECOME_AGENT, *([SETPRIV, *less, "--"] if less else [])]
    none = [SETPRIV, *_capabilities(), "--"] if sealed else []
    if inside.own_kernel:
        become, none = [], []
    limits = "".join(_ulimit(name, soft, hard) for name, (soft, hard) in inside.limits.items())
    audit = "3>&6 6>&-" if inside.audited else "3>&-"
    variables = [f"{name}={value}" for name, value in {"PWD": WORKSPACE, **inside.environment}.items()]
    plain = argv if "=" not in argv[0] else [SHELL, "-c", 'exec "$0" "$@"', *argv]  # env would take it for a variable
    return [
        *become,
        SHELL,
        "-c",
        _WAIT.format(audit=audit, limits=limits),
        "sh",
        *none,
        ENV,
        "-i",
        "--",
        *variables,
        *plain,
    ]


def _ulimit(name: str, soft: int, hard: int) -> str:
    """A limit as a shell command. The runtime would set it too early, on itself."""
    letter, unit = _ULIMITS[name]
    return f"ulimit -S -{letter} {soft // unit}; ulimit -H -{letter} {hard // unit}; "


def _capabilities(kept: str = "") -> list[str]:
    """setpriv's options for giving up all but one."""
    capabilities = f"-all,+{kept}" if kept else "-all"
    return [f"--bounding-set={capabilities}", f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"]


def _process(argv: list[str], inside: BundleSpec) -> dict[str, Any]:
    # Mapping the only user to another number takes CAP_SETFCAP; with the new number it is gone.
    capabilities = [] if inside.own_kernel else ["CAP_SETFCAP"]
    user = USER if inside.own_kernel else 0
    return {
        "terminal": False,
        "user": {"uid": user, "gid": user},
        "args": init_process_argv(argv, inside),
        "env": [],
        "cwd": WORKSPACE,
        "noNewPrivileges": True,
        "capabilities": dict.fromkeys(("bounding", "effective", "permitted", "inheritable"), capabilities),
    }


def _mounts(inside: BundleSpec) -> list[dict[str, Any]]:
    """In the order in which they are made: a later one hides an earlier one."""
    on = inside.measures.__contains__
    sealed = ["ro"] if on("sealed-root") else []
    megabytes = inside.temporary_megabytes
    size = [f"size={megabytes}m", f"nr_inodes={megabytes << 10}"] if on("sized-memory-disks") else []

    def disk(path: str, mode: str) -> dict[str, Any]:
        return _mount("tmpfs", path, "tmpfs", ["nosuid", "nodev", f"mode={mode}", *size])

    mounts = [
        _mount("proc", "/proc", "proc", ["nosuid", "noexec", "nodev"]),
        _mount("tmpfs", "/dev", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=64k", *sealed]),
        _mount("devpts", "/dev/pts", "devpts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
        disk("/dev/shm", "1777"),
        disk("/tmp", "1777"),
        disk(HOME, "755"),  # nothing inside could make the directory before the command runs
        *([disk(WORKSPACE, "755")] if inside.own_workspace else []),
    ]
    for layer in in_mount_order(inside.granted, inside.hidden):
        mounts.append(
            _nothing(layer, inside.empty) if isinstance(layer, MaskedPath) else _bind(layer, inside.staged_paths)
        )
    return mounts


def _bind(mount: Mount, staged_paths: Mapping[Mount, str]) -> dict[str, Any]:
    below = ["rro"] if os.path.isdir(mount.source) else []  # crun refuses it on a file
    access = ["rw"] if mount.writable else ["ro", *below]
    return _mount(
        staged_paths.get(mount, mount.source), mount.target, "bind", ["rbind", "rprivate", "nosuid", "nodev", *access]
    )


def _nothing(cover: MaskedPath, empty: str) -> dict[str, Any]:
    """An empty directory, which the runtime makes read-only after the grants below it are mounted; or an empty file."""
    if cover.directory:
        return _mount("tmpfs", cover.target, "tmpfs", ["nosuid", "nodev", "noexec", "mode=755", "size=4k", "ro"])
    return _mount(empty, cover.target, "bind", ["bind", "rprivate", "nosuid", "nodev", "noexec", "ro"])


def _mount(source: str, target: str, kind: str, options: list[str]) -> dict[str, Any]:
    return {"source": source, "destination": target, "type": kind, "options": options}
