"""Copy a tree, or what layers merge to, into an empty directory: importing, sealing, merging and exporting all do this.

A hostile tree does no harm: no link is followed, nothing is opened that could block, depth costs no stack and no
descriptors, and what vanishes or changes during the copy is left out or taken as it is.
"""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from gametape.sandbox.snapshots.errors import OverBudget
from gametape.sandbox.snapshots.file_copy import (
    KEPT_MODE,
    CopyDirection,
    NotRegular,
    copy_attributes,
    copy_file,
    finish_directory,
    is_closed,
)
from gametape.sandbox.snapshots.layers import MergedLayers
from gametape.sandbox.snapshots.tree_cursor import TreeCursor

MOST_LINKED_NAMES = 1000
_MOST_REMEMBERED = 1 << 20
_LONGEST_PATH = 3500
_ENTRY_BYTES = 256
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE)
_CANNOT_LINK = (errno.EMLINK, errno.ENOENT, errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTDIR, errno.ELOOP)


FileStates = dict[int, tuple[int, int]]
"""Of each file of a view, by inode: the ctime it had when it was last copied, and the inode of its copy in a layer."""


@dataclass
class PreviousCopy:
    """An earlier copy of the same tree: a file that is still in the same state is linked from it, not copied."""

    tree: int
    states: FileStates


@dataclass
class CopyReport:
    """What a copy did."""

    entries: int = 0
    bytes: int = 0
    skipped: list[str] = field(default_factory=list)
    """Sockets and devices, which a snapshot cannot hold (the first thousand)."""
    states: FileStates = field(default_factory=dict)
    copies: FileStates = field(default_factory=dict)
    """The same the other way round, where the copies are the view and the originals the layer."""
    groups: list[list[str]] = field(default_factory=list)
    """What a fork must have in its upper directory from the start (see `upper_seed`)."""


class TreeCopy:
    """One walk, into a layer, within layers, or out of them.

    With an `opaque_xattr`, the copy keeps whiteouts, and directories that hide others have that attribute. Within
    layers, which do not change, files are linked instead of copied.
    """

    def __init__(
        self,
        source: MergedLayers,
        target: int,
        *,
        opaque_xattr: str | None,
        direction: CopyDirection,
        previous: PreviousCopy | None = None,
        budget: int | None = None,
        flush: bool = False,
    ) -> None:
        self.report = CopyReport()
        self._source, self._root = source, target
        self._target = TreeCursor(os.dup(target), need=0o700)
        self._earlier = TreeCursor(os.dup(previous.tree)) if previous else None
        self._states: FileStates = previous.states if previous else {}
        self._mark, self._direction, self._budget, self._flush = opaque_xattr, direction, budget, flush
        self._path: list[str] = []
        self._path_length = 0
        self._directories: list[tuple[os.stat_result, int | None]] = []
        self._seen: dict[tuple[int, int], str] = {}
        self._groups: dict[tuple[int, int], list[str]] = {}
        self._crowded: set[tuple[int, int]] = set()
        self._closed: list[list[str]] = []
        self._named = 0

    def run(self) -> CopyReport:
        """Do it all; the root's own attributes included. The source is closed in any case."""
        try:
            top = self._source.layers[0]
            noted = copy_attributes(top.fd, self._root, self._direction)
            self._walk()
            finish_directory(self._root, top.root_status, noted, self._direction)
        finally:
            self._source.close()
            self._target.close()
            if self._earlier:
                self._earlier.close()
        groups = (names for key, names in self._groups.items() if key not in self._crowded)
        self.report.groups = [names for names in groups if len(names) > 1] + self._closed
        return self.report

    def _walk(self) -> None:
        levels: list[Iterator[tuple[str, int]]] = [iter(self._source.names().items())]
        while levels:
            entry = next(levels[-1], None)
            if entry:
                if self._take(*entry):
                    levels.append(iter(self._source.names().items()))
                continue
            levels.pop()
            if levels:
                self._leave()

    def _take(self, name: str, index: int) -> bool:
        """Copy one entry; True when it is a directory, which has then been entered."""
        try:
            status = self._source.status(name, index)
            self.report.entries += 1
            self._charge(_ENTRY_BYTES)
            if stat.S_ISDIR(status.st_mode):
                return self._enter(name, status)
            self._take_other(name, index, status)
        except NotRegular:
            self._skip(name)
        except OSError as error:
            if error.errno not in _GONE:
                raise
        return False

    def _take_other(self, name: str, index: int, status: os.stat_result) -> None:
        source, target = self._source.layers[index].fd, self._target.fd
        hides = self._source.is_deleted(status)
        if hides and not self._mark:
            return
        if self._direction == "within" and _linked(name, source, target):
            return
        if hides:
            os.mknod(name, stat.S_IFCHR, dir_fd=target)
        elif stat.S_ISREG(status.st_mode):
            self._take_file(name, source, status)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            times = (status.st_atime_ns, status.st_mtime_ns)
            os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)
        elif stat.S_ISFIFO(status.st_mode):
            os.mkfifo(name, dir_fd=target)
            os.chmod(name, stat.S_IMODE(status.st_mode) & KEPT_MODE, dir_fd=target)
            os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=target)
        else:
            self._skip(name)

    def _take_file(self, name: str, source: int, status: os.stat_result) -> None:
        key = (status.st_dev, status.st_ino)
        if status.st_nlink > 1:
            first = self._seen.get(key)
            if first and _linked(first, self._root, self._target.fd, name):
                self._join(key, name)
                return
        if self._is_as_earlier(name, status) and _linked(name, self._earlier_fd(), self._target.fd):
            self.report.states[status.st_ino] = self._states[status.st_ino]
        else:
            self._charge(status.st_blocks * 512)
            state, copy = copy_file(name, source, self._target.fd, self._direction, self._flush)
            if state and len(self.report.states) < _MOST_REMEMBERED:
                self.report.states[state.st_ino] = (state.st_ctime_ns, copy.st_ino)
                self.report.copies[copy.st_ino] = (copy.st_ctime_ns, state.st_ino)
        if status.st_nlink > 1 and self._path_length + len(name) < _LONGEST_PATH and len(self._seen) < _MOST_REMEMBERED:
            self._seen[key] = "/".join((*self._path, name))
            self._join(key, name)
        elif is_closed(status.st_mode, directory=False):
            self._note_closed(name)

    def _is_as_earlier(self, name: str, status: os.stat_result) -> bool:
        if not self._earlier or not self._earlier.present:
            return False
        ctime, inode = self._states.get(status.st_ino, (None, None))
        if ctime != status.st_ctime_ns:
            return False
        try:
            old = os.stat(name, dir_fd=self._earlier.fd, follow_symlinks=False)
        except OSError:
            return False
        return old.st_ino == inode and stat.S_ISREG(old.st_mode) and old.st_size == status.st_size

    def _earlier_fd(self) -> int:
        return self._earlier.fd if self._earlier else -1

    def _join(self, key: tuple[int, int], name: str) -> None:
        """Remember that this name is one of several of a file, as long as there are not too many of them."""
        self._named += 1
        if self._named > MOST_LINKED_NAMES or self._path_length + len(name) >= _LONGEST_PATH:
            self._crowded.add(key)
        else:
            self._groups.setdefault(key, []).append("/".join((*self._path, name)))

    def _note_closed(self, name: str) -> None:
        self._named += 1
        if self._named <= MOST_LINKED_NAMES and self._path_length + len(name) < _LONGEST_PATH:
            self._closed.append(["/".join((*self._path, name))])

    def _enter(self, name: str, status: os.stat_result) -> bool:
        if not self._source.enter(name):
            self._source.leave()
            return False
        if is_closed(status.st_mode, directory=True):
            self._note_closed(f"{name}/")
        os.mkdir(name, 0o700, dir_fd=self._target.fd)
        self._target.enter(name)
        if self._earlier:
            self._earlier.enter(name)
        self._path.append(name)
        self._path_length += len(name.encode(errors="surrogateescape")) + 1
        noted = copy_attributes(self._source.top.fd, self._target.fd, self._direction) if self._source.top else None
        self._directories.append((status, noted))
        if self._mark and self._source.opaque:
            os.setxattr(self._target.fd, self._mark, b"y")
        return True

    def _leave(self) -> None:
        status, noted = self._directories.pop()
        self._path_length -= len(self._path.pop().encode(errors="surrogateescape")) + 1
        self._source.leave()
        if self._earlier:
            self._earlier.leave()
        self._target.leave(lambda fd: finish_directory(fd, status, noted, self._direction))

    def _skip(self, name: str) -> None:
        """A snapshot cannot hold this entry. A whiteout keeps what a lower layer has under its name hidden."""
        if len(self.report.skipped) < 1000:
            self.report.skipped.append("/".join((*self._path[:200], name)))
        if self._mark:
            os.mknod(name, stat.S_IFCHR, dir_fd=self._target.fd)

    def _charge(self, more: int) -> None:
        self.report.bytes += more
        if self._budget is not None and self.report.bytes > self._budget:
            raise OverBudget


def _linked(name: str, source: int, target: int, new: str | None = None) -> bool:
    """Whether a hard link could be made. A file can have only so many names, and may have been taken away."""
    try:
        os.link(name, new or name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        return False
    return True
