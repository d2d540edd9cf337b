"""Third-party Python code below /usr: packages of the distribution, and copies that applications bring along.

A task may ask for code that some package has already; an agent that finds a copy of it has found the answer. So the
sandbox hides these directories. Finding them is a walk over all of /usr: the result is cached for the process, and in
the user's cache directory for the next process.
"""

import contextlib
import functools
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_APPLICATION_ROOTS = (
    *(f"/usr/{name}" for name in ("lib", "lib32", "lib64", "libx32", "libexec", "share", "src")),
    *("/usr/local", *(f"/usr/local/{name}" for name in ("lib", "lib64", "libexec", "share", "src"))),
)
"""Directories whose children belong to one application each; never hidden themselves."""

_ALWAYS = frozenset({"site-packages", "dist-packages"})
"""Where packages are installed. They are hidden even when empty: packages may be installed later."""
_CONVENTIONAL = frozenset(
    {
        *("third_party", "third-party", "thirdparty", "3rdparty", "_third_party", "extern", "_extern", "externals"),
        *("vendor", "_vendor", "vendored", "_vendored", "vendored_packages", "vendored-packages", "vendor_packages"),
        *("_bundled", "bundled", "bundled_packages", "python-wheels", "wheels", "wheelhouse", "site-python"),
    }
)
"""Names of directories with bundled copies, in other languages too: they count if there is Python below them."""
_METADATA = (".dist-info", ".egg-info")
_ARCHIVES = (".whl", ".egg")
_PROJECT = frozenset({"setup.py", "pyproject.toml"})
_PYTHON = (".py", ".pyc", ".pyz", *_ARCHIVES)
_MAX_DEPTH = 12
_MANY = 3
"""An application with at least so many such directories is hidden whole: no list of them is likely to be complete, and
each costs a mount at every start."""
_KNOWN_LIBRARIES = "/etc/ld.so.cache"
"""The linker's cache: a directory with shared libraries below it is hidden only if its name alone says Python."""
_CACHE_SECONDS = 24 * 3600


@functools.cache
def third_party_directories() -> tuple[str, ...]:
    """Directories of this machine that hold third-party Python, none inside another. Never fails: what cannot be read
    here cannot be read inside either."""
    state = _state(_APPLICATION_ROOTS)
    cache = _cache_file()
    directories = _load_cache(cache, state) if cache else None
    if directories is None:
        directories = find_third_party(_APPLICATION_ROOTS)
        if cache:
            _save_cache(cache, state, directories)
    return directories


def inside_third_party(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of an interpreter's own directories that would be hidden too."""
    return tuple(
        path
        for path in dict.fromkeys(paths)
        if path.startswith("/usr/") and any(f"{path}/".startswith(f"{hidden}/") for hidden in third_party_directories())
    )


def find_third_party(roots: Iterable[str]) -> tuple[str, ...]:
    """Walk the roots. Links are not followed: their targets are below another root, or not mounted."""
    roots = tuple(roots)
    libraries = _read(_KNOWN_LIBRARIES)
    directories: list[str] = []
    for root in roots:
        for entry in _entries(root) if not os.path.islink(root) else ():
            if entry.path in roots or not _is_directory(entry):
                continue
            below = [entry.path] if _by_name(entry) else list(_below(entry.path, _MAX_DEPTH, libraries))
            whole = (
                len(below) >= _MANY and not _has_shared_libraries(entry.path, libraries) and not _is_stdlib(entry.path)
            )
            directories += [entry.path] if whole else below
    return tuple(sorted(directory for directory in directories if _open_to_all(directory)))


def _below(directory: str, depth: int, libraries: bytes) -> Iterator[str]:
    """The outermost third-party directories at or below a directory."""
    entries = _entries(directory)
    if _is_collection({entry.name for entry in entries}) and not _has_shared_libraries(directory, libraries):
        yield directory
        return
    for entry in entries if depth else ():
        if _is_directory(entry):
            if _by_name(entry):
                yield entry.path
            else:
                yield from _below(entry.path, depth - 1, libraries)


def _by_name(entry: "os.DirEntry[str]") -> bool:
    return entry.name in _ALWAYS or (entry.name in _CONVENTIONAL and _holds_python(entry.path, _MAX_DEPTH))


def _is_collection(names: set[str]) -> bool:
    """Whether a directory of any name holds installed packages, wheels or a project's source."""
    if {"os.py", "site.py"} <= names or "__init__.py" in names:
        return False
    described = sum(name.endswith(_METADATA) for name in names)
    return (
        0 < described < len(names) or any(name.endswith(_ARCHIVES) for name in names) or not names.isdisjoint(_PROJECT)
    )


def _holds_python(directory: str, depth: int) -> bool:
    entries = _entries(directory)
    if any(entry.name.endswith(_PYTHON) for entry in entries):
        return True
    return depth > 0 and any(_holds_python(entry.path, depth - 1) for entry in entries if _is_directory(entry))


def _has_shared_libraries(directory: str, libraries: bytes) -> bool:
    return os.fsencode(f"{directory}/") in libraries


def _is_stdlib(directory: str) -> bool:
    return os.path.exists(f"{directory}/os.py")


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _open_to_all(directory: str) -> bool:
    """What is closed to others is closed to the sandbox's user, who could not mount over it either."""
    try:
        path_and_parents = (directory, *map(str, Path(directory).parents))
        return all(os.stat(path).st_mode & stat.S_IXOTH for path in path_and_parents)
    except OSError:
        return False


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _state(roots: Iterable[str]) -> str:
    """A digest that changes when an application is added, removed or replaced. Deeper changes show a day later."""
    digest = hashlib.sha256(_read(__file__))
    for root in roots:
        entries = sorted(_entries(root), key=lambda entry: entry.name)
        for path in (root, *(entry.path for entry in entries if _is_directory(entry))):
            with contextlib.suppress(OSError):
                digest.update(os.fsencode(f"{path}\0{os.stat(path).st_mtime_ns}\0"))
    return digest.hexdigest()


def _cache_file() -> Path | None:
    """None if this user has no home directory."""
    cache_home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        top = Path(cache_home) if cache_home.startswith("/") else Path.home() / ".cache"
    except RuntimeError:
        return None
    return top / "gametape" / "strangers.json"


def _load_cache(cache: Path, state: str) -> tuple[str, ...] | None:
    try:
        cached = json.loads(cache.read_text(encoding="utf-8"))
        fresh = cached["state"] == state and 0 <= time.time() - cached["time"] < _CACHE_SECONDS
        paths = tuple(map(str, cached["paths"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return paths if fresh and all(path.startswith("/usr/") for path in paths) else None


def _save_cache(cache: Path, state: str, paths: tuple[str, ...]) -> None:
    """Replace the cache atomically. If it cannot be written, the next process walks again."""
    with contextlib.suppress(OSError, ValueError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache.parent, delete=False, encoding="utf-8") as file:
            json.dump({"state": state, "time": time.time(), "paths": paths}, file)
        os.replace(file.name, cache)
