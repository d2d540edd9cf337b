"""A store of snapshots on disk, which several processes may use at once.

What is promised: a snapshot whose name was returned can be opened, whatever happens to the process afterwards (and to
the machine, if it was durable); one that was not finished is never seen; what a killed process leaves behind is gone
after the next store is opened on the same directory.
"""

import functools
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, Self, TypeVar

from gametape.core.errors import BadInput
from gametape.record.atomic import sync_directory
from gametape.record.lock import hold_lock, locked
from gametape.sandbox.snapshots import durable_io, overlay, overlay_probe, upper_seed
from gametape.sandbox.snapshots.cleanup import collect_garbage, empty_trash, measure_layers, remove_tree
from gametape.sandbox.snapshots.compare import PathChange, compare
from gametape.sandbox.snapshots.errors import OverBudget, UnknownSnapshot, is_disk_full, store_full_error
from gametape.sandbox.snapshots.file_copy import copy_attributes, finish_directory
from gametape.sandbox.snapshots.layers import MergedLayers, layers_to_merge
from gametape.sandbox.snapshots.store_layout import Snapshot, SnapshotView, StorePaths, list_snapshots
from gametape.sandbox.snapshots.tree_copy import CopyReport, PreviousCopy, TreeCopy
from gametape.sandbox.snapshots.tree_cursor import TreeMoved

ViewMode = Literal["auto", "overlay", "copy"]
_T = TypeVar("_T")
_NAME = re.compile("[0-9a-f]{16}")


class SnapshotStore:
    """`mode` says how views are made: `overlay`, `copy`, or whichever works here (`auto`, found out on first use).

    `max_bytes` bounds what layers take on disk. Live views are not counted: the sandbox's own limit bounds them.
    """

    def __init__(self, root: Path, max_bytes: int | None = None, mode: ViewMode = "auto") -> None:
        self.paths = StorePaths(root.absolute())
        self.paths.create()
        self.max_bytes = max_bytes
        self._mode = mode
        self._ctime_reliable = durable_io.ctime_tracks_every_change(self.paths.root)
        with locked(self.paths.lock):
            self._owner = secrets.token_hex(8)
            self._alive = hold_lock(self.paths.owners / self._owner)
            if self.paths.used() is None:
                self.paths.set_used(measure_layers(self.paths))
        collect_garbage(self.paths)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """Release the store; views that were not closed are removed."""
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
            collect_garbage(self.paths)

    # Making snapshots

    def import_tree(self, path: Path, durably: bool = True) -> str:
        """Copy a directory into a snapshot of its own. Sockets and devices are left out and listed in its record."""

        def build(tree: int, budget: int | None) -> CopyReport:
            source = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            return TreeCopy(MergedLayers([source], None), tree, opaque_xattr=None, direction="in", budget=budget).run()

        if not path.is_dir():
            raise BadInput(f"{path} is not a directory")
        if self.paths.root.resolve().is_relative_to(path.resolve()):
            raise BadInput(f"{path} holds the snapshot store itself; keep the store elsewhere")
        try:
            return self._with_room(lambda: self._build(build, None, (), durably)[0])
        except PermissionError as error:
            raise BadInput(f"{path} cannot be read whole by this user: {error.strerror} ({error.filename})") from error

    def seal(self, view: SnapshotView, durably: bool = True, live: bool = True) -> str:
        """A snapshot of the view as it is now; the view stays open. No process should write to it meanwhile.

        Costs what the view's own changes are in names, and only what changed since its last seal in data. Unless
        `durably`, the snapshot outlives this process but perhaps not a crash of the machine right after. `live` says
        that there are processes in the view which were only paused and may have files mapped into memory: unless it is
        durable anyway, that takes a little longer.
        """
        if not view.directory.exists():
            raise BadInput(f"the view {view.id} was closed")
        began = durable_io.coarse_clock_ns()
        mark = None if view.tree else self.paths.opaque_xattr

        def build(tree: int, budget: int | None) -> CopyReport:
            with self._earlier(view) as earlier:
                source = os.open(view.tree or view.directory / "upper", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                merged, flush = MergedLayers([source], mark), live and not durably
                return TreeCopy(
                    merged, tree, opaque_xattr=mark, direction="in", previous=earlier, budget=budget, flush=flush
                ).run()

        below = () if view.tree else view.snapshot.layers
        name, report = self._with_room(lambda: self._build(build, view.snapshot.id, below, durably))
        view.last_layer = name
        view.states = {inode: state for inode, state in report.states.items() if state[0] < began}
        return name

    def remove(self, snapshot: str) -> None:
        """Forget a snapshot. Layers that others need stay; the rest is gone when this returns."""
        record = self.paths.record(snapshot)
        if _NAME.fullmatch(snapshot) and record.exists():
            with locked(self.paths.lock), suppress(FileNotFoundError):
                record.rename(record.with_name("layer.json"))
                sync_directory(record.parent)  # before any of its layers goes
        collect_garbage(self.paths)

    def collect(self, keep: Iterable[str] = (), max_bytes: int | None = None) -> list[str]:
        """Clean up; and with `max_bytes`, forget the oldest snapshots not in `keep` until the rest fits.

        Returns the snapshots that were forgotten.
        """
        collect_garbage(self.paths)
        self._recount()
        forgotten: list[str] = []
        if max_bytes is not None:
            keep_ids = set(keep)
            for snapshot in self.snapshots():
                if self.used_bytes() <= max_bytes:
                    break
                if snapshot.id not in keep_ids:
                    self.remove(snapshot.id)
                    forgotten.append(snapshot.id)
        return forgotten

    # Using snapshots

    def snapshots(self) -> list[Snapshot]:
        """Every snapshot, oldest first."""
        return list_snapshots(self.paths)

    def snapshot(self, name: str) -> Snapshot:
        """What is known of a snapshot."""
        try:
            if not _NAME.fullmatch(name):
                raise FileNotFoundError
            return Snapshot.from_json(durable_io.read_json(self.paths.record(name)))
        except (FileNotFoundError, NotADirectoryError):
            raise UnknownSnapshot(f"there is no snapshot {name!r} in {self.paths.root}") from None

    def open_view(self, snapshot: str) -> SnapshotView:
        """A new private state that starts as the snapshot: in time independent of its size if it can be mounted."""
        options = self._mount_options
        directory, record = self._pin_layers(snapshot)
        try:
            view = (
                self._open_copy(record, directory)
                if options is None
                else self._open_overlay(record, directory, options)
            )
        except BaseException as error:
            self._discard(directory)
            if isinstance(error, OSError) and is_disk_full(error):
                raise store_full_error(self.paths.root, None) from error
            raise
        if view.states:
            durable_io.await_next_clock_tick()
        return view

    def close_view(self, view: SnapshotView) -> None:
        """Remove a view and its files. It should not be mounted any more."""
        self._discard(view.directory)

    def export(self, snapshot: str, destination: Path) -> None:
        """Write the snapshot's tree to a new directory, as plain files."""
        if destination.exists():
            raise BadInput(f"{destination} is there already; a snapshot is written to a new directory")
        with self._reading(snapshot) as (record,):
            destination.mkdir(mode=0o700)
            try:
                with durable_io.open_directory_fd(destination) as target:
                    TreeCopy(self._merged(record), target, opaque_xattr=None, direction="out").run()
            except BaseException:
                remove_tree(destination)
                raise

    def diff(self, before: str, after: str) -> dict[str, PathChange]:
        """The paths that differ, with what happened to each; costs what differs where the two share layers."""
        with self._reading(before, after) as (first, second):
            return compare(self._merged(first), self._merged(second))

    def used_bytes(self) -> int:
        """What layers take on disk; after crashes it may be more than the truth until `collect`."""
        with locked(self.paths.lock):
            return self.paths.used() or 0

    # The parts

    @functools.cached_property
    def _mount_options(self) -> tuple[str, ...] | None:
        if self._mode == "copy":
            return None
        scratch = self.paths.building / f"{self._owner}.probe"
        scratch.mkdir(mode=0o700, exist_ok=True)
        options = overlay_probe.probe_mount_options(scratch, userxattr=self.paths.opaque_xattr.startswith("user."))
        if options is None and self._mode == "overlay":
            raise BadInput(f"overlayfs cannot be mounted on {self.paths.root}; use mode 'copy' or 'auto'")
        return options

    def _with_room(self, make: Callable[[], _T]) -> _T:
        """Try; if there is no room, clean up and try once more. A tree that changed while it was read is read again."""
        for last in (False, True):
            try:
                return make()
            except OverBudget:
                if last:
                    raise store_full_error(self.paths.root, self.max_bytes) from None
                collect_garbage(self.paths)
                self._recount()
            except TreeMoved:
                if last:
                    raise BadInput("the tree kept being rearranged while it was read; stop what writes to it") from None
            except BlockingIOError as error:  # a lease breaks after a while, and not while its holder is stopped
                raise BadInput("a file of the tree is leased by a process that does not let go; end it") from error
            except OSError as error:
                if not is_disk_full(error):
                    raise
                collect_garbage(self.paths)
                if last:
                    raise store_full_error(self.paths.root, None) from error
        raise AssertionError("unreachable")

    def _build(
        self,
        fill: Callable[[int, int | None], CopyReport],
        parent: str | None,
        below: tuple[tuple[str, int], ...],
        durably: bool,
    ) -> tuple[str, CopyReport]:
        """Fill a new layer in the building directory; then publish it whole by one rename."""
        name = secrets.token_hex(8)
        building = self.paths.building / f"{self._owner}.{name}"
        with locked(self.paths.lock):
            budget = None if self.max_bytes is None else self._budget_left()
        try:
            (building / "tree").mkdir(parents=True, mode=0o700)
            with durable_io.open_directory_fd(building / "tree") as tree:
                report = fill(tree, budget)
            layers = ((name, report.entries), *below)
            if count := layers_to_merge([entries for _layer, entries in layers]):
                merged = self._merge(building, layers[:count])
                report.bytes += merged.bytes
                layers = ((name, merged.entries), *layers[count:])
            groups = tuple(tuple(names) for names in report.groups)
            record = Snapshot(
                id=name,
                layers=layers,
                parent=parent,
                created=time.time_ns(),
                bytes=report.bytes,
                skipped=tuple(report.skipped),
                groups=groups,
            )
            durable_io.write_json(building / "snapshot.json", record.to_json())
            if durably:
                durable_io.sync_filesystem(building)
            with locked(self.paths.lock):
                if budget is not None and report.bytes > self._budget_left():
                    raise OverBudget
                self.paths.add_used(report.bytes)
                building.rename(self.paths.layers / name)
        except BaseException:
            self._discard(building)
            raise
        if durably:
            sync_directory(self.paths.layers)
        return name, report

    def _merge(self, building: Path, layers: tuple[tuple[str, int], ...]) -> CopyReport:
        """Merge the new layer and those below it into the new one. Files are linked, so this copies no data."""
        old, new = building / "tree", building / "merged"
        new.mkdir(mode=0o700)
        trees = [old, *(self.paths.tree(layer) for layer, _entries in layers[1:])]
        with durable_io.open_directory_fd(new) as target:
            mark = self.paths.opaque_xattr
            report = TreeCopy(MergedLayers(_open_all(trees), mark), target, opaque_xattr=mark, direction="within").run()
        self._discard(old)
        new.rename(old)
        return report

    def _budget_left(self) -> int:
        return (self.max_bytes or 0) - (self.paths.used() or 0)

    def _open_overlay(self, record: Snapshot, directory: Path, options: tuple[str, ...]) -> SnapshotView:
        for name in ("upper", "work"):
            (directory / name).mkdir(mode=0o700)
        top = record.layer_ids[0]
        with (
            durable_io.open_directory_fd(self.paths.tree(top)) as layer,
            durable_io.open_directory_fd(directory / "upper") as upper,
        ):
            states = upper_seed.seed_upper([list(names) for names in record.groups], layer, upper)
            noted = copy_attributes(layer, upper, "out")
            finish_directory(upper, os.fstat(layer), noted, "out")
        relative = directory.relative_to(self.paths.root)
        plan = overlay.MountPlan(
            root=str(self.paths.root),
            lower=tuple(f"layers/{layer}/tree" for layer in record.layer_ids),
            upper=f"{relative}/upper",
            work=f"{relative}/work",
            options=options,
        )
        return SnapshotView(directory.name, record, directory, plan, None, top, states if self._ctime_reliable else {})

    def _open_copy(self, record: Snapshot, directory: Path) -> SnapshotView:
        tree = directory / "tree"
        tree.mkdir(mode=0o700)
        with durable_io.open_directory_fd(tree) as target:
            report = TreeCopy(self._merged(record), target, opaque_xattr=None, direction="out").run()
        if len(record.layers) > 1 or not self._ctime_reliable:
            return SnapshotView(directory.name, record, directory, None, tree)
        return SnapshotView(directory.name, record, directory, None, tree, record.layer_ids[0], report.copies)

    @contextmanager
    def _earlier(self, view: SnapshotView) -> Iterator[PreviousCopy | None]:
        if not view.last_layer or not view.states or not self._ctime_reliable:
            yield None
            return
        try:
            tree = os.open(self.paths.tree(view.last_layer), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield None
            return
        try:
            yield PreviousCopy(tree, view.states)
        finally:
            os.close(tree)

    def _merged(self, record: Snapshot) -> MergedLayers:
        return MergedLayers(_open_all([self.paths.tree(layer) for layer in record.layer_ids]), self.paths.opaque_xattr)

    def _pin_layers(self, snapshot: str) -> tuple[Path, Snapshot]:
        """Keep the snapshot's layers until the returned directory is discarded or this process ends."""
        directory = self.paths.views / f"{self._owner}.{secrets.token_hex(8)}"
        with locked(self.paths.lock):
            record = self.snapshot(snapshot)
            directory.mkdir(mode=0o700)
            durable_io.write_json(directory / "view.json", record.layer_ids)
        return directory, record

    @contextmanager
    def _reading(self, *names: str) -> Iterator[tuple[Snapshot, ...]]:
        pins: list[tuple[Path, Snapshot]] = []
        try:
            pins.extend(self._pin_layers(name) for name in names)
            yield tuple(record for _place, record in pins)
        finally:
            for directory, _record in pins:
                self._discard(directory)

    def _discard(self, path: Path) -> None:
        self.paths.move_to_trash(path)
        empty_trash(self.paths)

    def _recount(self) -> None:
        with locked(self.paths.lock):
            self.paths.set_used(measure_layers(self.paths))


def _open_all(trees: Iterable[Path]) -> list[int]:
    fds: list[int] = []
    try:
        for tree in trees:
            fds.append(os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    return fds
