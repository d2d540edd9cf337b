"""A process that is about to be killed: it imports, opens, changes and seals, and says so after each seal.

Each acknowledged line names a snapshot and the number that its file `count` holds.
"""

import os
import sys
from pathlib import Path

from gametape.sandbox.snapshots import overlay
from gametape.sandbox.snapshots.store import SnapshotStore


def main() -> None:
    root = Path(sys.argv[1])
    mode = sys.argv[2]
    store = SnapshotStore(root / "store", mode=mode)  # type: ignore[arg-type]
    print("ready", flush=True)
    source = root / f"source-{os.getpid()}"
    (source / "deep" / "er").mkdir(parents=True)
    for number in range(30):
        (source / "deep" / f"file-{number}").write_text(f"{number}" * 100)
    (source / "count").write_text("0")
    snapshot = store.import_tree(source)
    print(snapshot, 0, flush=True)
    for number in range(1, 1_000_000):
        view = store.open_view(snapshot)
        for step in (number, number + 500_000):
            change(view, step)
            snapshot = store.seal(view, durably=number % 3 == 0)
            print(snapshot, step, flush=True)
        store.close_view(view)


def change(view, number: int) -> None:  # type: ignore[no-untyped-def]
    """In a process that holds the mount and goes away again, as a sandbox would."""
    pid = os.fork()
    if pid == 0:
        place = view.tree
        if view.mount:
            overlay.enter_private_namespace()
            place = view.directory.parent.parent.parent / "shown"
            place.mkdir(exist_ok=True)
            overlay.mount(view.mount, str(place))
        (place / "count").write_text(str(number))
        (place / f"new-{number}").write_text(str(number))
        (place / "deep" / f"file-{number % 30}").unlink(missing_ok=True)
        os._exit(0)
    os.waitpid(pid, 0)
