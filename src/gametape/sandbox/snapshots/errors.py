"""The errors of a snapshot store."""

import errno
from pathlib import Path

from gametape.core.errors import BadInput, MissingDependency


class StoreFull(MissingDependency):
    """There is no room for what was asked; the store is as it was before."""


class DiskFull(StoreFull):
    """The disk of the store is full."""


class UnknownSnapshot(BadInput):
    """There is no such snapshot, or no longer."""


class OverBudget(Exception):
    """A copy would take more bytes than it may. The store adds the message."""


def store_full_error(root: Path, most: int | None) -> StoreFull:
    if most is None:
        return DiskFull(f"the disk of the snapshot store {root} is full; remove snapshots or make room")
    return StoreFull(f"the snapshot store {root} may hold {most} bytes and this needs more; remove snapshots first")


def is_disk_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
