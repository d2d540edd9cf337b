"""The store's own rules: names, errors, what goes and what stays."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox.snapshots.errors import StoreFull, UnknownSnapshot
from gametape.sandbox.snapshots.store import SnapshotStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SnapshotStore]:
    with SnapshotStore(tmp_path / "store", mode="copy") as opened:
        yield opened


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source" / "directory").mkdir(parents=True)
    (tmp_path / "source" / "directory" / "file").write_text("content")
    return tmp_path / "source"


def test_nobody_else_can_look_into_a_store(store: SnapshotStore) -> None:
    assert stat.S_IMODE(store.paths.root.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["", "../layers", "0123456789abcdef", "x" * 300, "/etc"])
def test_a_name_that_is_none_is_refused(store: SnapshotStore, name: str) -> None:
    with pytest.raises(UnknownSnapshot, match="there is no snapshot"):
        store.open_view(name)
    store.remove(name)


def test_errors_say_what_to_do(store: SnapshotStore, source: Path) -> None:
    snapshot = store.import_tree(source)
    with pytest.raises(BadInput, match="is not a directory"):
        store.import_tree(source / "nowhere")
    with pytest.raises(BadInput, match="keep the store elsewhere"):
        store.import_tree(source.parent)
    with pytest.raises(BadInput, match="there already"):
        store.export(snapshot, source)
    view = store.open_view(snapshot)
    store.close_view(view)
    with pytest.raises(BadInput, match="was closed"):
        store.seal(view)
    assert issubclass(StoreFull, MissingDependency)


def test_what_a_view_needs_stays_and_what_nobody_needs_goes(store: SnapshotStore, source: Path) -> None:
    snapshot = store.import_tree(source)
    view = store.open_view(snapshot)
    store.remove(snapshot)
    assert os.listdir(store.paths.layers) == [snapshot]
    assert store.snapshots() == []
    store.close_view(view)
    store.collect()
    assert os.listdir(store.paths.layers) == []


def test_what_a_gone_process_had_open_is_swept_and_others_are_left_alone(tmp_path: Path, source: Path) -> None:
    first = SnapshotStore(tmp_path / "store", mode="copy")
    view = first.open_view(first.import_tree(source))
    with SnapshotStore(tmp_path / "store", mode="copy"):
        assert view.directory.exists()
    first.shutdown()
    assert not view.directory.exists()
    assert [list(place.iterdir()) for place in (first.paths.views, first.paths.owners)] == [[], []]


def test_the_oldest_go_first_and_those_to_keep_stay(store: SnapshotStore, source: Path) -> None:
    (source / "large").write_bytes(os.urandom(100_000))
    made = []
    for _ in range(4):
        (source / "large").write_bytes(os.urandom(100_000))
        made.append(store.import_tree(source))
    assert store.collect(keep=[made[0]], max_bytes=250_000) == [made[1], made[2]]
    assert [snapshot.id for snapshot in store.snapshots()] == [made[0], made[3]]
    assert 200_000 < store.used_bytes() < 250_000


def test_differences_between_two_snapshots(store: SnapshotStore, source: Path) -> None:
    (source / "kept").write_text("same")
    before = store.import_tree(source)
    view = store.open_view(before)
    assert view.tree
    (view.tree / "directory" / "file").write_text("CONTENT")
    (view.tree / "directory" / "more").mkdir()
    (view.tree / "directory" / "more" / "new").write_text("")
    (view.tree / "kept").unlink()
    (view.tree / "kept").symlink_to("directory")
    after = store.seal(view)
    assert store.diff(before, before) == {}
    assert store.diff(before, after) == {
        "directory/file": "modified",
        "directory/more": "added",
        "directory/more/new": "added",
        "kept": "modified",
    }
    assert store.diff(after, before)["directory/more/new"] == "deleted"
    assert store.snapshot(after).parent == before


def test_a_store_remembers_how_its_layers_hide_others(tmp_path: Path) -> None:
    with SnapshotStore(tmp_path / "store") as first:
        mark = first.paths.opaque_xattr
    assert mark == ("trusted.overlay.opaque" if os.geteuid() == 0 else "user.overlay.opaque")
    (tmp_path / "store" / "marks").write_text("user")
    with SnapshotStore(tmp_path / "store") as second:
        assert second.paths.opaque_xattr == "user.overlay.opaque"
