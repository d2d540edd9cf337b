"""Files in the sandbox's own /workspace: laid before hostile code exists, looked after between its processes."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from typing import Any

WORKSPACE = "/workspace"
_SCRATCH = ("/tmp", "/dev/shm")
_HOME = "home"
Stamp = tuple[int, int, int]
"""Of a file or directory: which one it is, its size, and when it was last changed, which only the kernel sets."""


class Ground:
    """The files that every process of a job is to find, kept here so that they can be laid again."""

    def __init__(self, listing: Iterable[tuple[str, int, bool]], content: bytes) -> None:
        self._files: dict[str, tuple[bytes, bool]] = {}
        at = 0
        for path, size, executable in listing:
            self._files[path] = (content[at : at + size], executable)
            at += size
        self._lay()
        self._stamps = stamps()

    def look(self) -> None:
        """Remember everything as it is now, for `restore`."""
        self._stamps = stamps()

    def restore(self) -> list[str]:
        """Bring everything back to how it was laid at first; says which files were changed since the last look."""
        now = stamps()
        known = self._stamps
        changed = sorted(path for path in known if now.get(path) != known[path] and not os.path.isdir(_at(path)))
        if now != known or known.keys() - {""} != self._names():
            for entry in os.scandir(WORKSPACE):
                remove(entry.path)
            self._lay()
        self._stamps = stamps()
        return changed

    def _lay(self) -> None:
        for path, (content, executable) in self._files.items():
            write(path, content)
            if executable:
                os.chmod(_at(path), 0o755)

    def _names(self) -> set[str]:
        """Every file and directory that is laid."""
        found = set(self._files)
        for path in self._files:
            while path := os.path.dirname(path):
                found.add(path)
        return found


def stamps() -> dict[str, Stamp]:
    """Everything below the workspace, links as themselves."""
    found: dict[str, Stamp] = {}
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        found[directory] = _stamp(os.stat(_at(directory)))
        if not os.access(_at(directory), os.R_OK | os.X_OK):
            continue  # somebody closed it, which its own stamp shows
        for entry in os.scandir(_at(directory)):
            path = os.path.join(directory, entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                found[path] = _stamp(entry.stat(follow_symlinks=False))
    return found


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_ctime_ns


def _at(path: str) -> str:
    return os.path.join(WORKSPACE, path)


def write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(_at(path)), exist_ok=True)
    with open(_at(path), "wb") as file:
        file.write(content)


def end_everybody_else() -> None:
    """Every process inside but the first one and ourselves, and wait until they are gone."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def sweep() -> None:
    """Nothing that one process left behind in scratch directories is there for the next."""
    for place in (*_SCRATCH, os.path.join(_SCRATCH[0], _HOME)):
        for entry in os.scandir(place):
            if entry.name != _HOME:
                remove(entry.path)


def remove(path: str) -> None:
    """A file or a tree, all but what is mounted there."""
    if os.path.islink(path) or not os.path.isdir(path):
        _quietly(os.unlink, path)
    elif not os.path.ismount(path):
        _quietly(os.chmod, path, 0o700)  # whoever took the right away was of our own
        for entry in os.scandir(path):
            remove(entry.path)
        _quietly(os.rmdir, path)


def _quietly(act: Callable[..., None], *arguments: Any) -> None:
    """What is mounted below a directory keeps the directory; that is in nobody's way."""
    with contextlib.suppress(OSError):
        act(*arguments)
