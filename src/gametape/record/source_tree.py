"""A file tree as a value, which is exported, compared, hashed and written into sandboxes."""

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gametape.record.directory_walk import make_directories, walk


@dataclass(frozen=True, eq=False)
class SourceTree:
    """Regular files by their path, relative and with `/`. Links and other entries are never part of it."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    executable: frozenset[str] = frozenset()

    @functools.cached_property
    def digest(self) -> str:
        """Identifies this tree: two trees with the same digest have the same bytes under the same names."""
        whole = hashlib.sha256()
        for path in sorted(self.files):
            content = hashlib.sha256(self.files[path]).digest()
            whole.update(b"%d %s %d " % (len(path.encode()), path.encode(), path in self.executable) + content)
        return whole.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceTree) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __contains__(self, path: object) -> bool:
        return path in self.files

    def text(self, path: str) -> str:
        return self.files[path].decode("utf-8", errors="replace")

    def under(self, paths: Sequence[str]) -> "SourceTree":
        """What lies at or below any of these paths."""
        return self.only({path for path in self.files if is_under(path, paths)})

    def only(self, paths: set[str]) -> "SourceTree":
        return SourceTree({path: self.files[path] for path in self.files if path in paths}, self.executable & paths)

    def without(self, paths: set[str]) -> "SourceTree":
        return self.only(set(self.files) - paths)

    def overlaid_on(self, below: "SourceTree") -> "SourceTree":
        """Both trees in one: where both have a file, or one has a file and the other a directory, it is this one's."""
        directories = {above for path in self.files for above in parent_directories(path)}
        kept = {
            path: content
            for path, content in below.files.items()
            if path not in directories and not (self.files.keys() & parent_directories(path))
        }
        executable = {path for path in below.executable if path in kept and path not in self.files}
        return SourceTree({**kept, **self.files}, self.executable | executable)

    def write_to(self, directory: Path) -> None:
        """Write into a directory that no other user can write to."""
        for path, content in self.files.items():
            target = directory / path
            make_directories(target.parent)
            target.write_bytes(content)
            target.chmod(0o755 if path in self.executable else 0o644)


def parent_directories(path: str) -> set[str]:
    """The directories above a file, the root of its tree excepted."""
    parts = path.split("/")
    return {"/".join(parts[:depth]) for depth in range(1, len(parts))}


def is_under(path: str, parents: Sequence[str]) -> bool:
    """Whether a path is one of these parents or lies below one; `.` contains everything."""
    cleaned = (parent.strip("/").removeprefix("./") for parent in parents)
    return any(parent in ("", ".") or path == parent or path.startswith(parent + "/") for parent in cleaned)


def read_tree(directory: Path) -> SourceTree:
    """Read a trusted directory. Links are left out."""
    files: dict[str, bytes] = {}
    executable = set()
    paths = [Path(top, name) for top, _inner, names in walk(directory, _raise_unless_missing) for name in names]
    for path in sorted(paths):
        if path.is_symlink() or not path.is_file():
            continue
        name = path.relative_to(directory).as_posix()
        files[name] = path.read_bytes()
        if path.stat().st_mode & 0o111:
            executable.add(name)
    return SourceTree(files, frozenset(executable))


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
