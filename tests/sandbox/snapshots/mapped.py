"""What a root keeper does to show a view to a user that owns nothing: run as root, prints what that user saw."""

import json
import os
import sys
from pathlib import Path

from gametape.sandbox import linux
from gametape.sandbox.snapshots import overlay
from gametape.sandbox.snapshots.store import SnapshotStore

USER = 1_900_000_321


def main() -> None:
    root = Path(sys.argv[1])
    (root / "source" / "directory").mkdir(parents=True)
    for name in ("kept", "changed", "removed", "directory/file"):
        (root / "source" / name).write_text(name)
    with SnapshotStore(root / "store", mode="overlay") as store:
        snapshot = store.import_tree(root / "source")
        view = store.open_view(snapshot)
        assert view.mount
        seen = [in_a_child(root, view.mount, turn) for turn in (1, 2)]
        sealed = store.seal(view)
        store.export(sealed, root / "exported")
        owners = {os.lstat(path).st_uid for path in (root / "store").rglob("*")}
        changes = store.diff(snapshot, sealed)
    print(json.dumps({"seen": seen, "owners": sorted(owners), "changes": changes}))


def in_a_child(root: Path, plan: overlay.MountPlan, turn: int) -> dict[str, object]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become_user(root, plan)
            os.write(write, json.dumps(look_and_change(turn)).encode())
        except BaseException as error:
            os.write(write, json.dumps({"error": repr(error)}).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, encoding="ascii") as file:
        answer: dict[str, object] = json.load(file)
    os.waitpid(pid, 0)
    return answer


def become_user(root: Path, plan: overlay.MountPlan) -> None:
    owner_map = user_namespace()
    overlay.enter_private_namespace()
    tree = linux.clone_mount(plan.root)
    linux.map_owner(tree, owner_map)
    linux.mount("tmpfs", "/mnt", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
    os.mkdir("/mnt/store")
    os.mkdir("/mnt/view")
    linux.attach_mount(tree, "/mnt/store")
    overlay.mount(plan, "/mnt/view", root="/mnt/store", owner=USER)
    overlay.unmount("/mnt/store")
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.chdir("/mnt/view")


def look_and_change(turn: int) -> dict[str, object]:
    owners = sorted({os.lstat(path).st_uid for path in (".", *os.listdir())})
    before = sorted(os.listdir())
    with open("changed", "a", encoding="ascii") as file:
        file.write(f" {turn}")
    if turn == 1:
        os.unlink("removed")
        os.mkdir("new")
        os.chmod("directory/file", 0o600)
    return {"owners": owners, "names": before, "store": os.listdir("/mnt/store")}


def user_namespace() -> int:
    """One in which root, the owner on disk, is the user outside."""
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        linux.unshare(linux.CLONE_NEWUSER)
        os.write(ready[1], b"1")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{name}").write_text(f"0 {USER} 1", encoding="ascii")
    descriptor = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    os.write(done[1], b"1")
    os.waitpid(pid, 0)
    return descriptor
