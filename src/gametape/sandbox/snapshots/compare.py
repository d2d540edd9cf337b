"""Which paths differ between two trees. Directories made of the same layers are not read."""

import os
import stat
from typing import Literal

from gametape.sandbox.snapshots.file_copy import same_content
from gametape.sandbox.snapshots.layers import MergedLayers

PathChange = Literal["added", "modified", "deleted"]


def compare(before: MergedLayers, after: MergedLayers) -> dict[str, PathChange]:
    """Each differing path with what happened to it. A directory is `modified` only if its mode changed."""
    try:
        return _Comparison(before, after).run()
    finally:
        before.close()
        after.close()


class _Comparison:
    def __init__(self, before: MergedLayers, after: MergedLayers) -> None:
        self._sides = (before, after)
        self._path: list[str] = []
        self._changes: dict[str, PathChange] = {}

    def run(self) -> dict[str, PathChange]:
        levels = [self._names()]
        while levels:
            if levels[-1]:
                name = levels[-1].pop()
                if self._visit(name):
                    levels.append(self._names())
                continue
            levels.pop()
            if levels:
                self._leave()
        return self._changes

    def _names(self) -> list[str]:
        before, after = self._sides
        if before.present() == after.present():
            return []
        return sorted(set(before.names()) | set(after.names()), reverse=True)

    def _visit(self, name: str) -> bool:
        """Record what happened to one name; True when it is a directory on either side, which was then entered."""
        old, new = (self._find(side, name) for side in self._sides)
        path = "/".join((*self._path, name))
        if old and new:
            if self._differs(name, old, new):
                self._changes[path] = "modified"
        elif old or new:
            self._changes[path] = "added" if new else "deleted"
        if not any(entry and stat.S_ISDIR(entry[1].st_mode) for entry in (old, new)):
            return False
        for side in self._sides:
            side.enter(name)
        self._path.append(name)
        return True

    def _leave(self) -> None:
        self._path.pop()
        for side in self._sides:
            side.leave()

    def _find(self, side: MergedLayers, name: str) -> tuple[int, os.stat_result] | None:
        for layer in side.layers:
            if layer.present:
                try:
                    status = os.stat(name, dir_fd=layer.fd, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                return None if side.is_deleted(status) else (layer.fd, status)
        return None

    def _differs(self, name: str, old: tuple[int, os.stat_result], new: tuple[int, os.stat_result]) -> bool:
        (first, first_status), (second, second_status) = old, new
        if first_status.st_mode != second_status.st_mode:
            return True
        if (first_status.st_dev, first_status.st_ino) == (second_status.st_dev, second_status.st_ino) or stat.S_ISDIR(
            first_status.st_mode
        ):
            return False
        if stat.S_ISLNK(first_status.st_mode):
            return os.readlink(name, dir_fd=first) != os.readlink(name, dir_fd=second)
        if stat.S_ISREG(first_status.st_mode):
            return first_status.st_size != second_status.st_size or not same_content(name, first, second)
        return False
