"""Fills the upper directory of a fork with what it needs from the start.

overlayfs gives a file that it changes a copy of its own, under the one name that was used: other names of the same file
would go on showing the old content. So files that have several names start in the upper directory, as hard links of one
copy. So do, with an ordinary user, files and directories that are closed to their owner: in a layer they lie open.
There are few of either in most trees; past the limits, links behave as overlayfs has them, and what was closed is open.
"""

import contextlib
import os
from collections.abc import Iterator

from gametape.sandbox.snapshots.file_copy import copy_attributes, copy_file, finish_directory
from gametape.sandbox.snapshots.tree_copy import FileStates

MAX_SEED_BYTES = 16 << 20


def seed_upper(groups: list[list[str]], layer: int, upper: int) -> FileStates:
    """Copy each group of names from the top layer, where all of them are. Returns the state of the copied files.

    A name that ends in a slash is a directory. The layer does not change and the upper directory is still empty and
    private, so these paths are safe to use.
    """
    states: FileStates = {}
    directories: dict[str, tuple[os.stat_result, int | None]] = {}
    room = MAX_SEED_BYTES
    for names in groups:
        original = os.stat(names[0], dir_fd=layer, follow_symlinks=False)
        if original.st_blocks * 512 > room:
            continue
        room -= original.st_blocks * 512
        for name in names:
            _bring_directories(name, layer, upper, directories)
        if not names[0].endswith("/"):
            state = _bring_file(names, layer, upper)
            states[state.st_ino] = (state.st_ctime_ns, original.st_ino)
    for path, (status, mode) in reversed(directories.items()):
        with _opened(path, upper) as fd:
            finish_directory(fd, status, mode, "out")
    return states


def _bring_file(names: list[str], layer: int, upper: int) -> os.stat_result:
    directory, _, last = names[0].rpartition("/")
    with _opened(directory or ".", layer) as source, _opened(directory or ".", upper) as target:
        copy_file(last, source, target, "out")
    for other in names[1:]:
        os.link(names[0], other, src_dir_fd=upper, dst_dir_fd=upper, follow_symlinks=False)
    return os.stat(names[0], dir_fd=upper, follow_symlinks=False)


def _bring_directories(name: str, layer: int, upper: int, known: dict[str, tuple[os.stat_result, int | None]]) -> None:
    """Make the parent directories, with their attributes; their entries are visible from the layers below."""
    parts = name.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        path = "/".join(parts[:depth])
        if path not in known:
            os.mkdir(path, 0o700, dir_fd=upper)
            with _opened(path, layer) as source, _opened(path, upper) as target:
                known[path] = (os.fstat(source), copy_attributes(source, target, "out"))


@contextlib.contextmanager
def _opened(path: str, directory: int) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)
