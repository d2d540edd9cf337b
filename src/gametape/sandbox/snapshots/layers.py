"""Several layers read as the one tree that overlayfs would show."""

import os
import stat
from collections.abc import Sequence

from gametape.sandbox.snapshots.tree_cursor import TreeCursor


def is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


class MergedLayers:
    """A walk through layers, top first. `opaque_xattr` is the attribute of a directory that hides what lies below it.

    Without one, it is a walk through one plain tree, where nothing hides anything.
    """

    def __init__(self, trees: list[int], opaque_xattr: str | None) -> None:
        self.layers = [TreeCursor(fd) for fd in trees]
        self._mark = opaque_xattr
        self._covers = [False]

    @property
    def opaque(self) -> bool:
        """Whether this directory hides everything that layers below these may have at its place."""
        return self._covers[-1]

    @property
    def top(self) -> TreeCursor | None:
        """The layer whose attributes this directory has."""
        return next((layer for layer in self.layers if layer.present), None)

    def present(self) -> frozenset[tuple[int, int]]:
        """The directories that make up this one."""
        stats = [os.fstat(layer.fd) for layer in self.layers if layer.present]
        return frozenset((status.st_dev, status.st_ino) for status in stats)

    def names(self) -> dict[str, int]:
        """Each name here with the layer that decides about it. Whiteouts are among them."""
        names: dict[str, int] = {}
        for index, layer in enumerate(self.layers):
            if layer.present:
                for name in os.listdir(layer.fd):
                    names.setdefault(name, index)
        return names

    def status(self, name: str, index: int) -> os.stat_result:
        return os.stat(name, dir_fd=self.layers[index].fd, follow_symlinks=False)

    def is_deleted(self, status: os.stat_result) -> bool:
        """Whether an entry only says that there is none."""
        return self._mark is not None and is_whiteout(status)

    def enter(self, name: str) -> bool:
        """Go down in every layer that takes part in this directory; False when it is gone (leave all the same)."""
        hidden = False
        for layer in self.layers:
            if hidden or not layer.present:
                layer.skip()
            elif layer.enter(name):
                hidden = self._is_opaque(layer.fd)
            elif self._mark and len(self.layers) > 1:
                layer.leave()
                hidden = _exists(name, layer.fd)
                layer.skip()
        self._covers.append(hidden)
        return self.top is not None

    def leave(self) -> None:
        self._covers.pop()
        for layer in self.layers:
            layer.leave()

    def close(self) -> None:
        for layer in self.layers:
            layer.close()

    def _is_opaque(self, fd: int) -> bool:
        if not self._mark:
            return False
        try:
            return os.getxattr(fd, self._mark) == b"y"
        except OSError:
            return False


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True


MOST_LAYERS = 20
_WANTED = 12


def layers_to_merge(entries: Sequence[int]) -> int:
    """How many of the topmost layers to merge into one; 0 while the stack is short. `entries` are top first."""
    if len(entries) <= MOST_LAYERS:
        return 0
    count = len(entries) - _WANTED + 1
    total = sum(entries[:count])
    while count < len(entries) - 1 and entries[count] <= 2 * total:
        total += entries[count]
        count += 1
    return count
