"""Read a workspace into a `Submission`, the value that every rule and layer reads instead of the workspace itself.

The workspace is hostile: no link is followed, every file is read once, and size, number and depth are bounded.
"""

import functools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under


@dataclass(frozen=True)
class ExcludedFile:
    """A file below the declared sources that is not exported."""

    path: str
    reason: str
    """One of: link, byte code, binary, path file, configuration, special file, too large, odd name."""


@dataclass(frozen=True)
class Submission:
    """A workspace as the agent left it, and its task."""

    loaded_task: LoadedTask
    sources: SourceTree
    """The exported sources: the only files of the workspace that will be run."""
    workspace: SourceTree
    """Every regular file of the workspace that is not too large, for rules to read; never run."""
    links: dict[str, str]
    """Symbolic links of the workspace and where they point."""
    excluded: tuple[ExcludedFile, ...] = ()

    @functools.cached_property
    def changed_files(self) -> list[str]:
        """Files of the workspace that the agent added or changed, sources included."""
        start = self.loaded_task.start.files
        return sorted(path for path, content in self.workspace.files.items() if start.get(path) != content)

    @functools.cached_property
    def changed_sources(self) -> list[str]:
        """Exported files that the agent added or changed."""
        start = self.loaded_task.start.files
        return sorted(path for path, content in self.sources.files.items() if start.get(path) != content)

    @functools.cached_property
    def removed_files(self) -> list[str]:
        """Files of the starting tree that are not in the workspace."""
        return sorted(path for path in self.loaded_task.start.files if path not in self.workspace.files)


MOST_BYTES_PER_FILE = 4 << 20
MOST_BYTES = 256 << 20
MOST_FILES = 50_000
DEEPEST = 64

_BYTE_CODE = (".pyc", ".pyo", ".pyd")
_BINARY = (".so", ".dll", ".dylib", ".exe", ".a", ".o", ".class", ".jar", ".whl", ".egg", ".zip", ".pyz", ".wasm")
_CONFIGURATION = frozenset(
    (
        *("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg"),
        *("pyproject.toml", ".coveragerc", "pyvenv.cfg", "pytest.toml", ".pytest.toml"),
    )
)
_NOT_SOURCE = frozenset(("__pycache__", ".git", ".hg", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox"))
_MAGIC = (b"\x7fELF", b"MZ", b"PK\x03\x04", b"\xca\xfe\xba\xbe", b"\x00asm")


@dataclass
class _WorkspaceScan:
    """What was read so far. Files of the task and of its sources have a budget of their own: whatever else lies in a
    workspace does not crowd them out."""

    loaded_task: LoadedTask
    files: dict[str, bytes] = field(default_factory=dict)
    executable: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    excluded: list[ExcludedFile] = field(default_factory=list)
    size: int = 0
    counts: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})

    def belongs(self, path: str) -> bool:
        return path in self.loaded_task.start.files or is_under(path, self.loaded_task.task.source_paths)


def read_submission(loaded_task: LoadedTask, workspace: Path) -> Submission:
    """Read a workspace whose processes have ended."""
    if not workspace.is_dir():
        raise BadInput(f"no such workspace directory: {workspace}")
    scan = _WorkspaceScan(loaded_task)
    try:
        top = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"cannot read the workspace {workspace}: {error.strerror}") from error
    try:
        _walk(scan, top, "", 0)
    finally:
        os.close(top)
    task = loaded_task.task
    excluded = [entry for entry in scan.excluded if is_under(entry.path, task.source_paths)]
    excluded += [ExcludedFile(path, "link") for path in scan.links if is_under(path, task.source_paths)]
    sources: dict[str, bytes] = {}
    for path, content in scan.files.items():
        if not is_under(path, task.source_paths) or is_under(path, task.test_paths):
            continue
        if loaded_task.start.files.get(path) == content:
            sources[path] = content
        elif reason := _exclusion_reason(path, content):
            excluded.append(ExcludedFile(path, reason))
        else:
            sources[path] = content
    _keep_pristine(loaded_task, sources)
    return Submission(
        loaded_task=loaded_task,
        sources=SourceTree(sources, frozenset(scan.executable & set(sources))),
        workspace=SourceTree(scan.files, frozenset(scan.executable)),
        links=scan.links,
        excluded=tuple(sorted(excluded, key=lambda entry: entry.path)),
    )


def _keep_pristine(loaded_task: LoadedTask, sources: dict[str, bytes]) -> None:
    """Put configuration files below the sources back as the task gave them, changed or removed."""
    for path, content in loaded_task.start.files.items():
        is_source = is_under(path, loaded_task.task.source_paths) and not is_under(path, loaded_task.task.test_paths)
        if is_source and _exclusion_reason(path, content) == "configuration":
            sources[path] = content


def _exclusion_reason(path: str, content: bytes) -> str | None:
    """Why a changed or new file below the sources is not exported; None if it is."""
    *parents, name = path.split("/")
    if name.endswith(_BYTE_CODE) or "__pycache__" in parents:
        return "byte code"
    if name.endswith(".pth"):
        return "path file"
    if name in _CONFIGURATION or _NOT_SOURCE & set(parents) or name.endswith((".dist-info", ".egg-info")):
        return "configuration"
    if any(parent.endswith((".dist-info", ".egg-info", ".egg")) for parent in parents):
        return "configuration"
    if name.endswith(_BINARY) or ".so." in name or content.startswith(_MAGIC) or b"\0" in content[:8192]:
        return "binary"
    return None


def _walk(scan: _WorkspaceScan, directory: int, prefix: str, depth: int) -> None:
    for entry in _entries(directory):
        path = f"{prefix}{entry}"
        if _is_odd_name(entry):
            scan.excluded.append(ExcludedFile(repr(path)[1:-1], "odd name"))
            continue
        try:
            status = os.stat(entry, dir_fd=directory, follow_symlinks=False)
        except OSError:
            continue  # removed in the meantime
        if stat.S_ISLNK(status.st_mode):
            scan.links[path] = _target(entry, directory)
        elif stat.S_ISDIR(status.st_mode):
            _descend(scan, directory, entry, path, depth)
        elif stat.S_ISREG(status.st_mode):
            _read_file(scan, directory, entry, path)
        else:
            scan.excluded.append(ExcludedFile(path, "special file"))


def _entries(directory: int) -> Iterator[str]:
    with os.scandir(directory) as entries:
        yield from sorted(entry.name for entry in entries)


def _is_odd_name(name: str) -> bool:
    """Whether a name holds control characters or bytes that are not text."""
    return any(ord(character) < 32 or 0xDC80 <= ord(character) <= 0xDCFF or ord(character) == 127 for character in name)


def _target(entry: str, directory: int) -> str:
    try:
        return os.readlink(entry, dir_fd=directory)
    except OSError:
        return ""


def _descend(scan: _WorkspaceScan, directory: int, entry: str, path: str, depth: int) -> None:
    if depth >= DEEPEST:
        scan.excluded.append(ExcludedFile(path, "too large"))
        return
    try:
        inner = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        scan.excluded.append(ExcludedFile(path, "special file"))
        return
    try:
        _walk(scan, inner, f"{path}/", depth + 1)
    finally:
        os.close(inner)


def _read_file(scan: _WorkspaceScan, directory: int, entry: str, path: str) -> None:
    """Read one regular file once; its kind and size are checked on the open descriptor."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(entry, flags, dir_fd=directory)
    except OSError:
        scan.excluded.append(ExcludedFile(path, "special file"))
        return
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        belongs = scan.belongs(path)
        known = path in scan.loaded_task.start.files
        room = MOST_BYTES_PER_FILE if known else min(MOST_BYTES_PER_FILE, MOST_BYTES - scan.size)
        if not stat.S_ISREG(status.st_mode):
            scan.excluded.append(ExcludedFile(path, "special file"))
        elif status.st_size > room or scan.counts[belongs] >= MOST_FILES:
            scan.excluded.append(ExcludedFile(path, "too large"))
        else:
            content = file.read(room)
            scan.size += len(content)
            scan.counts[belongs] += 1
            scan.files[path] = content
            if status.st_mode & 0o111:
                scan.executable.add(path)
