"""Several layers read as the one tree that overlayfs would show."""

import os
import stat

from gametape.sandbox.snapshots.cursor import Cursor


def is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


class Merged:
    """A walk through layers, top first. `mark` is the attribute that makes a directory hide what lies below it.

    Without one, it is a walk through one plain tree, where nothing hides anything.
    """

    def __init__(self, trees: list[int], mark: str | None) -> None:
        self.layers = [Cursor(fd) for fd in trees]
        self._mark = mark
        self._covers = [False]

    @property
    def covers(self) -> bool:
        """Whether this directory hides everything that layers below these may have at its place."""
        return self._covers[-1]

    @property
    def top(self) -> Cursor | None:
        """The layer whose attributes this directory has."""
        return next((layer for layer in self.layers if layer.present), None)

    def present(self) -> frozenset[tuple[int, int]]:
        """The directories that make up this one."""
        stats = [os.fstat(layer.fd) for layer in self.layers if layer.present]
        return frozenset((status.st_dev, status.st_ino) for status in stats)

    def names(self) -> dict[str, int]:
        """Each name here with the layer that decides about it. Whiteouts are among them."""
        found: dict[str, int] = {}
        for index, layer in enumerate(self.layers):
            if layer.present:
                for name in os.listdir(layer.fd):
                    found.setdefault(name, index)
        return found

    def status(self, name: str, index: int) -> os.stat_result:
        return os.stat(name, dir_fd=self.layers[index].fd, follow_symlinks=False)

    def hides(self, status: os.stat_result) -> bool:
        """Whether an entry only says that there is none."""
        return self._mark is not None and is_whiteout(status)

    def enter(self, name: str) -> bool:
        """Go down in every layer that takes part in this directory; False when it is gone (leave all the same)."""
        hidden = False
        for layer in self.layers:
            if hidden or not layer.present:
                layer.wait()
            elif layer.enter(name):
                hidden = self._is_opaque(layer.fd)
            elif self._mark and len(self.layers) > 1:
                layer.leave()
                hidden = _exists(name, layer.fd)
                layer.wait()
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
