"""What an agent left behind, as values: every rule and layer reads this and never the workspace itself."""

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
    """Something below the declared sources that is not taken along."""

    path: str
    reason: str
    """One of: link, byte code, binary, path file, configuration, special file, too large, odd name."""


@dataclass(frozen=True)
class Submission:
    """A workspace against the task it was given for."""

    loaded_task: LoadedTask
    sources: SourceTree
    """The exported sources: all that will be run."""
    workspace: SourceTree
    """Every regular file of the workspace that is not too large, for rules to look at; never run."""
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
        """Files of the starting tree that are gone."""
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
    files: dict[str, bytes] = field(default_factory=dict)
    executable: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    odd: list[ExcludedFile] = field(default_factory=list)
    size: int = 0


def read_submission(loaded_task: LoadedTask, workspace: Path) -> Submission:
    """Read a workspace whose processes have ended."""
    if not workspace.is_dir():
        raise BadInput(f"no such workspace directory: {workspace}")
    survey = _WorkspaceScan()
    try:
        top = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"cannot read the workspace {workspace}: {error.strerror}") from error
    try:
        _walk(survey, top, "", 0)
    finally:
        os.close(top)
    task = loaded_task.task
    refused = [entry for entry in survey.odd if is_under(entry.path, task.source_paths)]
    refused += [ExcludedFile(path, "link") for path in survey.links if is_under(path, task.source_paths)]
    sources: dict[str, bytes] = {}
    for path, content in survey.files.items():
        if not is_under(path, task.source_paths) or is_under(path, task.test_paths):
            continue
        if loaded_task.start.files.get(path) == content:
            sources[path] = content
        elif reason := _exclusion_reason(path, content):
            refused.append(ExcludedFile(path, reason))
        else:
            sources[path] = content
    _keep_pristine(loaded_task, sources)
    return Submission(
        loaded_task=loaded_task,
        sources=SourceTree(sources, frozenset(survey.executable & set(sources))),
        workspace=SourceTree(survey.files, frozenset(survey.executable)),
        links=survey.links,
        excluded=tuple(sorted(refused, key=lambda entry: entry.path)),
    )


def _keep_pristine(loaded_task: LoadedTask, sources: dict[str, bytes]) -> None:
    """Configuration below the sources stays as the task gave it, whatever the agent made of it or took away."""
    for path, content in loaded_task.start.files.items():
        inside = is_under(path, loaded_task.task.source_paths) and not is_under(path, loaded_task.task.test_paths)
        if inside and _exclusion_reason(path, content) == "configuration":
            sources[path] = content


def _exclusion_reason(path: str, content: bytes) -> str | None:
    """Why a changed or new file below the sources is not taken along; None: it is."""
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


def _walk(survey: _WorkspaceScan, directory: int, prefix: str, depth: int) -> None:
    for entry in _entries(directory):
        path = f"{prefix}{entry}"
        if _is_odd(entry):
            survey.odd.append(ExcludedFile(repr(path)[1:-1], "odd name"))
            continue
        try:
            found = os.stat(entry, dir_fd=directory, follow_symlinks=False)
        except OSError:
            continue  # gone meanwhile
        if stat.S_ISLNK(found.st_mode):
            survey.links[path] = _target(entry, directory)
        elif stat.S_ISDIR(found.st_mode):
            _descend(survey, directory, entry, path, depth)
        elif stat.S_ISREG(found.st_mode):
            _take(survey, directory, entry, path)
        else:
            survey.odd.append(ExcludedFile(path, "special file"))


def _entries(directory: int) -> Iterator[str]:
    with os.scandir(directory) as entries:
        yield from sorted(entry.name for entry in entries)


def _is_odd(name: str) -> bool:
    """Names that are not text, or that no honest tool writes."""
    return any(ord(character) < 32 or 0xDC80 <= ord(character) <= 0xDCFF or ord(character) == 127 for character in name)


def _target(entry: str, directory: int) -> str:
    try:
        return os.readlink(entry, dir_fd=directory)
    except OSError:
        return ""


def _descend(survey: _WorkspaceScan, directory: int, entry: str, path: str, depth: int) -> None:
    if depth >= DEEPEST:
        survey.odd.append(ExcludedFile(path, "too large"))
        return
    try:
        inner = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        survey.odd.append(ExcludedFile(path, "special file"))
        return
    try:
        _walk(survey, inner, f"{path}/", depth + 1)
    finally:
        os.close(inner)


def _take(survey: _WorkspaceScan, directory: int, entry: str, path: str) -> None:
    """Read one regular file, once: what is opened is what is looked at."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(entry, flags, dir_fd=directory)
    except OSError:
        survey.odd.append(ExcludedFile(path, "special file"))
        return
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        room = min(MOST_BYTES_PER_FILE, MOST_BYTES - survey.size)
        if not stat.S_ISREG(found.st_mode):
            survey.odd.append(ExcludedFile(path, "special file"))
        elif found.st_size > room or len(survey.files) >= MOST_FILES:
            survey.odd.append(ExcludedFile(path, "too large"))
        else:
            content = file.read(room)
            survey.size += len(content)
            survey.files[path] = content
            if found.st_mode & 0o111:
                survey.executable.add(path)
