"""Other people's Python code below /usr: packages of the distribution, and copies that applications bring along.

A task may ask for code that some package has already; an agent that finds a copy of it has found the answer. So the
sandbox shows these places empty. Finding them is a walk over all of /usr: the result is kept for the process, and in
the user's cache directory for the next one.
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
"""Where packages are installed: what is empty today may be full tomorrow."""
_CONVENTIONAL = frozenset(
    {
        *("third_party", "third-party", "thirdparty", "3rdparty", "_third_party", "extern", "_extern", "externals"),
        *("vendor", "_vendor", "vendored", "_vendored", "vendored_packages", "vendored-packages", "vendor_packages"),
        *("_bundled", "bundled", "bundled_packages", "python-wheels", "wheels", "wheelhouse", "site-python"),
    }
)
"""Names under which copies lie, in other languages too: these count with Python below them."""
_METADATA = (".dist-info", ".egg-info")
_ARCHIVES = (".whl", ".egg")
_PROJECT = frozenset({"setup.py", "pyproject.toml"})
_PYTHON = (".py", ".pyc", ".pyz", *_ARCHIVES)
_DEEPEST = 12
_A_FEW = 3
"""An application with so many such places, or more, is hidden whole: no list of them is likely to be complete, and
every place costs a mount at every start."""
_KNOWN_LIBRARIES = "/etc/ld.so.cache"
"""Where programs find their libraries: only a place whose very name says Python is hidden with one below it."""
_A_DAY = 24 * 3600


@functools.cache
def third_party_directories() -> tuple[str, ...]:
    """Directories of this machine that hold them, none inside another. Never fails: what cannot be read is no help
    to anybody inside either."""
    state = _state(_APPLICATION_ROOTS)
    cache = _cache_file()
    found = _recall(cache, state) if cache else None
    if found is None:
        found = find_third_party(_APPLICATION_ROOTS)
        if cache:
            _keep(cache, state, found)
    return found


def inside_third_party(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of an interpreter's own directories that would be hidden with the strangers'."""
    return tuple(
        place
        for place in dict.fromkeys(paths)
        if place.startswith("/usr/") and any(f"{place}/".startswith(f"{other}/") for other in third_party_directories())
    )


def find_third_party(roots: Iterable[str]) -> tuple[str, ...]:
    """Walk them all. Links are not followed: what they lead to lies elsewhere on the shelves, or is not shown."""
    roots = tuple(roots)
    libraries = _read(_KNOWN_LIBRARIES)
    found: list[str] = []
    for shelf in roots:
        for entry in _entries(shelf) if not os.path.islink(shelf) else ():
            if entry.path in roots or not _is_directory(entry):
                continue
            places = [entry.path] if _by_name(entry) else list(_below(entry.path, _DEEPEST, libraries))
            whole = len(places) >= _A_FEW and not _used(entry.path, libraries) and not _is_stdlib(entry.path)
            found += [entry.path] if whole else places
    return tuple(sorted(place for place in found if _open_to_all(place)))


def _below(directory: str, depth: int, libraries: bytes) -> Iterator[str]:
    """The outermost places at or below a directory."""
    entries = _entries(directory)
    if _is_collection({entry.name for entry in entries}) and not _used(directory, libraries):
        yield directory
        return
    for entry in entries if depth else ():
        if _is_directory(entry):
            if _by_name(entry):
                yield entry.path
            else:
                yield from _below(entry.path, depth - 1, libraries)


def _by_name(entry: "os.DirEntry[str]") -> bool:
    return entry.name in _ALWAYS or (entry.name in _CONVENTIONAL and _holds_python(entry.path, _DEEPEST))


def _is_collection(names: set[str]) -> bool:
    """Whether installed packages, wheels or a project's source lie here, whatever the directory is called."""
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


def _used(directory: str, libraries: bytes) -> bool:
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
    """What is closed to others is closed to the sandbox's user, who could not cover it either."""
    try:
        places = (directory, *map(str, Path(directory).parents))
        return all(os.stat(place).st_mode & stat.S_IXOTH for place in places)
    except OSError:
        return False


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _state(shelves: Iterable[str]) -> str:
    """Changes when an application comes, goes, or is replaced. Deeper changes show a day later at most."""
    seen = hashlib.sha256(_read(__file__))
    for shelf in shelves:
        entries = sorted(_entries(shelf), key=lambda entry: entry.name)
        for path in (shelf, *(entry.path for entry in entries if _is_directory(entry))):
            with contextlib.suppress(OSError):
                seen.update(os.fsencode(f"{path}\0{os.stat(path).st_mtime_ns}\0"))
    return seen.hexdigest()


def _cache_file() -> Path | None:
    """None: this user has no home to keep it in."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        top = Path(given) if given.startswith("/") else Path.home() / ".cache"
    except RuntimeError:
        return None
    return top / "gametape" / "strangers.json"


def _recall(cache: Path, state: str) -> tuple[str, ...] | None:
    try:
        kept = json.loads(cache.read_text(encoding="utf-8"))
        fresh = kept["state"] == state and 0 <= time.time() - kept["time"] < _A_DAY
        paths = tuple(map(str, kept["paths"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return paths if fresh and all(path.startswith("/usr/") for path in paths) else None


def _keep(cache: Path, state: str, paths: tuple[str, ...]) -> None:
    """As a whole or not at all; who cannot keep it walks again."""
    with contextlib.suppress(OSError, ValueError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache.parent, delete=False, encoding="utf-8") as file:
            json.dump({"state": state, "time": time.time(), "paths": paths}, file)
        os.replace(file.name, cache)
