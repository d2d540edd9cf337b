"""Write a new directory completely, or leave nothing of it behind."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, write_error
from gametape.sandbox.snapshots.cleanup import remove_tree


@contextlib.contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Create a directory to write into. If the block fails, everything that was created is removed.

    An existing directory is accepted if it is empty, and is left empty after a failure.
    """
    try:
        if path.exists() and not path.is_dir():
            raise BadInput(f"{printable_path(path)}: not a directory; give the name of a new one")
        if path.is_dir() and any(path.iterdir()):
            raise BadInput(f"{printable_path(path)}: not empty; give the name of a new directory")
        created = [parent for parent in (path, *path.parents) if not parent.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
            yield path
        except BaseException:
            _empty(path)
            for directory in created:
                if directory.is_dir():
                    directory.rmdir()
            raise
    except OSError as error:
        raise write_error(path, error) from error


def _empty(directory: Path) -> None:
    if not directory.is_dir():
        return
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink()
