"""Read a project from a directory or a source distribution into a tree. Nothing is run or unpacked on disk.

Files that are not part of the project (history, caches, environments, build results) are left out, because they may
contain the answer.
"""

import bz2
import fnmatch
import functools
import gzip
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn, cast

from gametape.core.errors import BadInput
from gametape.record.directory_walk import walk
from gametape.record.errors import printable_path, read_error
from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.layout import CACHE_DIRECTORIES, VCS_DIRECTORIES

_DIRECTORIES = (
    *VCS_DIRECTORIES,
    *CACHE_DIRECTORIES,
    *(".bzr", "CVS", "_darcs", ".jj", ".sl", ".pijul", ".history"),
    *(".tox", ".nox", ".venv", "__pypackages__", ".eggs", "node_modules", ".pixi", ".conda", ".direnv"),
    *(".cache", ".pytype", ".pyre", ".dmypy", ".ropeproject", ".ipynb_checkpoints", ".benchmarks", ".testmondata"),
    *(".import_linter_cache", ".grimp_cache", ".scrapy", ".sass-cache", ".parcel-cache", ".turbo", ".pdm-build"),
    *("htmlcov", ".coverage_html", "cython_debug", ".idea", ".vscode", ".vs", ".fleet", ".settings"),
    *("*.egg-info", "*.dist-info", "*.egg", "*.dSYM"),
)
"""Excluded by name, at any depth."""

_FILES = (
    *VCS_DIRECTORIES,  # in a submodule this is a file with the path of the history
    *("*.pyc", "*.pyo", "*$py.class", "*.so", "*.pyd", "*.dylib", "*.o", "*.obj", "*.egg", "*.whl"),
    *(".coverage", ".coverage.*", "coverage.xml", "*,cover", "*.gcda", "*.gcno", ".dmypy.json", ".testmondata*"),
    *("*.orig", "*.rej", "*~", "*.swp", "*.swo", ".DS_Store", "Thumbs.db", "__editable__.*"),
)
_RESULTS = ("build", "dist", "wheelhouse", "_skbuild", "sdist")
"""Build results, if they are at the top and are not packages."""

_LABELS = ("PKG-INFO", "top_level.txt", "requires.txt")


def is_excluded(path: str, directory: bool = False) -> bool:
    """Whether a path, or a directory above it, is not part of the project. Metadata files are not excluded."""
    parts = PurePosixPath(path).parts
    above = parts if directory else parts[:-1]
    if any(_named(part, _DIRECTORIES) for part in above):
        return not (is_metadata_file(path) or (directory and parts[-1].endswith(".egg-info")))
    return not directory and _named(parts[-1], _FILES) and parts[-1] != ".coveragerc"


def is_metadata_file(path: str) -> bool:
    """Whether a file is metadata of a source distribution: `PKG-INFO`, or a text of its `.egg-info`."""
    parts = PurePosixPath(path).parts
    if parts[-1] not in _LABELS:
        return False
    inner = [part for part in parts[:-1] if _named(part, _DIRECTORIES)]
    return (len(parts) == 1 and path == "PKG-INFO") or (
        len(parts) in (2, 3) and inner == [parts[-2]] and parts[-2].endswith(".egg-info")
    )


def without_virtualenvs(tree: SourceTree) -> SourceTree:
    """The tree without virtual environments and top-level build results."""
    environments = [path.rpartition("/")[0] for path in tree if path.endswith("/pyvenv.cfg")]
    results = [name for name in _RESULTS if f"{name}/__init__.py" not in tree]
    excluded = [*environments, *results]
    return tree.without({path for path in tree if "/" in path and is_under(path, excluded)})


@functools.lru_cache(maxsize=4096)
def _named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


MAX_SOURCE_BYTES = 64 << 20
MAX_SOURCE_FILES = 20_000

_COMPRESSED: tuple[tuple[bytes, Callable[..., object]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, RuntimeError)
"""What archive readers raise for invalid bytes. A `NotImplementedError` is a `RuntimeError`."""

_Entry = tuple[str, bytes, bool]
"""A path, its content, and whether it is executable."""


def check_project_source(path: Path) -> None:
    """Raise `BadInput` where there is neither a directory nor a file."""
    if path.is_dir() or path.is_file():
        return
    if path.exists():
        raise BadInput(f"{printable_path(path)}: neither a directory nor an archive")
    if re.match(r"\w+:/", str(path)):
        raise BadInput(
            "an address is given, and nothing is fetched here: clone or download it, and give that directory"
        )
    raise BadInput(
        f"{printable_path(path)}: there is nothing; give a directory or a source distribution (.tar.gz, .zip)"
    )


def read_project_source(path: Path) -> SourceTree:
    """Read a directory, or a `.tar.gz`, `.tar.bz2`, `.tar.xz` or `.zip`. Raises `BadInput` if it cannot be used.

    Links are left out, as are history, caches, environments and build results. Metadata files (`PKG-INFO`, the texts of
    an `.egg-info`) are included; `find_project` removes them. A single top-level directory of an archive is stripped.
    """
    try:
        check_project_source(path)
        return _tree(path, _of_directory(path) if path.is_dir() else _of_archive(path))
    except OSError as error:
        raise read_error(Path(error.filename or path), error) from error


def _tree(path: Path, entries: Iterator[_Entry]) -> SourceTree:
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    size = 0
    for name, content, runs in entries:
        size += len(content)
        if size > MAX_SOURCE_BYTES or len(files) >= MAX_SOURCE_FILES:
            _too_large(path)
        files[name] = content
        executable.update({name} if runs else ())
    directories = {parent for name in files for parent in _parents(name)}
    if clash := next((name for name in files if name in directories), None):
        raise BadInput(
            f"{printable_path(path)}: damaged, for {printable_path(Path(clash))} is a file and a directory in it"
        )
    return without_virtualenvs(SourceTree(files, frozenset(executable)))


def _too_large(path: Path) -> NoReturn:
    raise BadInput(
        f"{printable_path(path)}: too large, for more than {MAX_SOURCE_BYTES >> 20} MiB or {MAX_SOURCE_FILES} files "
        "are in it"
    )


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _of_directory(path: Path) -> Iterator[_Entry]:
    for directory, inner, names in walk(path, _raise):
        below = Path(directory).relative_to(path)
        if "pyvenv.cfg" in names and below.parts:
            inner.clear()
            continue
        inner[:] = sorted(name for name in inner if not is_excluded((below / name).as_posix(), directory=True))
        for name in sorted(names):
            file, inside = Path(directory, name), (below / name).as_posix()
            kind = file.lstat()
            if stat.S_ISREG(kind.st_mode) and not is_excluded(inside) and _is_text(inside):
                if kind.st_size > MAX_SOURCE_BYTES:
                    _too_large(path)
                yield inside, file.read_bytes(), bool(kind.st_mode & 0o111)


def _raise(error: OSError) -> NoReturn:
    raise error


def _is_text(name: str) -> bool:
    """Whether a name is valid UTF-8, as names in a task must be."""
    return not any("\udc80" <= char <= "\udcff" for char in name)


def _of_archive(path: Path) -> Iterator[_Entry]:
    """The regular files of an archive, without a common top-level directory."""
    if path.stat().st_size > MAX_SOURCE_BYTES:
        _too_large(path)
    try:
        unpacked = [*(_of_zip(path) if zipfile.is_zipfile(path) else _of_tar(path))]
    except _DAMAGED as error:
        raise BadInput(
            f"{printable_path(path)}: not an archive that can be read ({error or type(error).__name__})"
        ) from error
    except OSError as error:
        if error.errno is None:  # how gzip and bz2 say that the bytes are wrong
            raise BadInput(f"{printable_path(path)}: not an archive that can be read ({error})") from error
        raise
    tops = {name.partition("/")[0] for name, _, _ in unpacked}
    strip = len(tops) == 1 and all("/" in name for name, _, _ in unpacked)
    for name, content, runs in unpacked:
        inside = name.partition("/")[2] if strip else name
        if not is_excluded(inside) and _is_text(inside):
            yield inside, content, runs


def _of_tar(path: Path) -> Iterator[_Entry]:
    with path.open("rb") as raw:
        magic = raw.read(6)
    opener = next((opener for start, opener in _COMPRESSED if magic.startswith(start)), open)
    with cast(IO[bytes], opener(path, "rb")) as plain:
        bounded = cast(IO[bytes], _Bounded(plain, path))
        with tarfile.open(fileobj=bounded, mode="r|") as archive:
            for count, member in enumerate(archive):
                if count >= MAX_SOURCE_FILES:
                    _too_large(path)
                name = _safe(path, member.name)
                if member.isreg() and name and (content := archive.extractfile(member)):
                    yield name, content.read(), bool(member.mode & 0o111)
        while bounded.read(1 << 16):  # an archive is whole only if its checksum, which comes last, is right
            pass


class _Bounded:
    """A reader with a limit on the unpacked size, because a small archive can unpack to any size."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path, self._left = stream, path, 2 * MAX_SOURCE_BYTES

    def read(self, size: int) -> bytes:
        data = self._stream.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            _too_large(self._path)
        return data


def _of_zip(path: Path) -> Iterator[_Entry]:
    with zipfile.ZipFile(path) as archive:
        left = MAX_SOURCE_BYTES
        for count, member in enumerate(archive.infolist()):
            if count >= MAX_SOURCE_FILES:
                _too_large(path)
            name, mode = _safe(path, member.filename), member.external_attr >> 16
            if member.is_dir() or not name or stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                continue
            with archive.open(member) as stream:
                content = stream.read(left + 1)
            left -= len(content)
            if left < 0:
                _too_large(path)
            yield name, content, bool(mode & 0o111)


def _safe(path: Path, name: str) -> str:
    """A member's name as a relative path. Refuses a name that leads out of the archive."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise BadInput(
            f"{printable_path(path)}: refused, for a name in it leads outside ({printable_path(Path(name))})"
        )
    return "/".join(parts)
