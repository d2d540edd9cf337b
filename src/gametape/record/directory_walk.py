"""Walking and making directories of any depth: what Python 3.11 has for it calls itself for every level, and fails."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path


def walk(
    top: Path | str, on_error: Callable[[OSError], object] = lambda _error: None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each directory below `top`, from the top down, with the names of the directories and of the other entries in it,
    as `os.walk` has them. Links are not followed. A caller that removes or sorts names of directories decides which
    are entered, and in which order. What cannot be read is left out, after `on_error`."""
    waiting = [os.fspath(top)]
    while waiting:
        directory = waiting.pop()
        inner: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    (inner if entry.is_dir() else others).append(entry.name)
        except OSError as error:
            on_error(error)
            continue
        yield directory, inner, others
        below = (os.path.join(directory, name) for name in reversed(inner))
        waiting += [path for path in below if not os.path.islink(path)]


def make_directories(path: Path) -> None:
    """Make a directory and those above it that are missing, however many; `Path.mkdir` calls itself for each."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
