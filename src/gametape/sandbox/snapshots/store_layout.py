"""The directories of a store, and the records in them.

    layers/ID/tree            a layer: a directory tree in the format of overlayfs
    layers/ID/snapshot.json   there is a snapshot of this name, whose top layer this is
    layers/ID/layer.json      the same record, after the snapshot was removed and while others still need the layer
    building/OWNER.ID         a layer that is not finished
    views/OWNER.ID            a view, or a reader, with the layers that it holds
    owners/OWNER              locked by a process as long as it lives
    trash/                    what may be removed
    usage                     bytes in layers; never less than the truth
    marks                     the attributes by which layers of this store hide others: trusted.* or user.*
    lock                      held for the moment in which names come or go

One rename makes a snapshot: of the directory that holds both its layer and its record.
"""

import functools
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gametape.record.lock import locked
from gametape.sandbox.snapshots import durable_io
from gametape.sandbox.snapshots.overlay import MountPlan


@dataclass(frozen=True)
class Snapshot:
    """A stack of layers, top first, each with the number of its entries."""

    id: str
    layers: tuple[tuple[str, int], ...]
    parent: str | None
    created: int
    bytes: int
    skipped: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def layer_ids(self) -> tuple[str, ...]:
        return tuple(layer for layer, _entries in self.layers)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Snapshot":
        layers = tuple((str(layer), int(entries)) for layer, entries in value["layers"])
        groups = tuple(tuple(names) for names in value["groups"])
        return cls(**{**value, "layers": layers, "skipped": tuple(value["skipped"]), "groups": groups})


@dataclass
class SnapshotView:
    """A private, writable state of a workspace: either to be mounted, or a plain directory."""

    id: str
    snapshot: Snapshot
    directory: Path
    mount: MountPlan | None
    tree: Path | None
    last_layer: str | None = None
    """The layer that the last seal made; what has not changed since is shared with it."""
    states: dict[int, tuple[int, int]] = field(default_factory=dict, repr=False)


class StorePaths:
    """The directories of a store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock, self.usage = root / "lock", root / "usage"
        self.layers, self.building, self.views = root / "layers", root / "building", root / "views"
        self.owners, self.trash, self.marks = root / "owners", root / "trash", root / "marks"

    def create(self) -> None:
        """Only the owner may go in: layers hold what hostile code wrote, set-id programs in a live view included."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for directory in (self.layers, self.building, self.views, self.owners, self.trash):
            directory.mkdir(mode=0o700, exist_ok=True)
        with locked(self.lock):
            if not self.marks.exists():
                self.marks.write_text("trusted" if _may_set_trusted(self.trash) else "user", encoding="ascii")

    @functools.cached_property
    def opaque_xattr(self) -> str:
        """The attribute of a directory that hides what lies below. Nobody in a sandbox can set one in `trusted`."""
        return f"{self.marks.read_text(encoding='ascii')}.overlay.opaque"

    def tree(self, layer: str) -> Path:
        return self.layers / layer / "tree"

    def record(self, snapshot: str) -> Path:
        return self.layers / snapshot / "snapshot.json"

    def move_to_trash(self, path: Path) -> None:
        """Make it unreachable now; `empty_trash` does the work later."""
        with suppress(FileNotFoundError):
            path.rename(self.trash / f"{path.parent.name}.{secrets.token_hex(8)}")

    def used(self) -> int | None:
        """Bytes in layers; None when unknown. Called under the lock, like `set_used`."""
        try:
            return max(0, int(self.usage.read_text(encoding="ascii")))
        except (FileNotFoundError, ValueError):
            return None

    def add_used(self, more: int) -> None:
        if (used := self.used()) is not None:
            self.set_used(used + more)

    def set_used(self, used: int) -> None:
        """Written in place and with a fixed width: replacing a file waits for the disk on ext4."""
        descriptor = os.open(self.usage, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, b"%020d\n" % max(0, used), 0)
        finally:
            os.close(descriptor)


def _may_set_trusted(directory: Path) -> bool:
    try:
        os.setxattr(directory, "trusted.gametape", b"")
    except OSError:
        return False
    return True


def list_snapshots(paths: StorePaths) -> list[Snapshot]:
    """Every snapshot there is, oldest first."""
    snapshots = []
    for layer in os.listdir(paths.layers):
        with suppress(FileNotFoundError):
            snapshots.append(Snapshot.from_json(durable_io.read_json(paths.record(layer))))
    return sorted(snapshots, key=lambda snapshot: (snapshot.created, snapshot.id))


def layers_in_use(paths: StorePaths, alive: set[str]) -> set[str]:
    """Layers that a snapshot or a living view needs. Under the lock."""
    used = {layer for snapshot in list_snapshots(paths) for layer in snapshot.layer_ids}
    for view in paths.views.iterdir():
        if view.name.partition(".")[0] in alive:
            with suppress(FileNotFoundError):
                used.update(durable_io.read_json(view / "view.json"))
    return used
