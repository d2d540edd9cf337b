"""A live sandbox with a past: snapshots between commands, forks, and going back; on overlayfs and by copying."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.core.errors import GametapeError
from gametape.core.protocols import Workspace
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.rewindable_session import RewindableSession
from gametape.sandbox.scheduler import SandboxScheduler
from gametape.sandbox.snapshots.store import SnapshotStore, ViewMode
from tests.patience import HANG, wait_until

SPEC = SandboxSpec(
    policy=SandboxPolicy(limits=SandboxLimits(wall_seconds=HANG, memory_mb=300, processes=60, disk_mb=50))
)


@pytest.fixture(params=["overlay", "copy"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SnapshotStore]:
    mode: ViewMode = request.param
    with SnapshotStore(tmp_path / "store", mode=mode) as opened:
        yield opened


@pytest.fixture
def line(store: SnapshotStore, tmp_path: Path) -> Iterator[RewindableSession]:
    tree = tmp_path / "tree"
    (tree / "pkg").mkdir(parents=True)
    (tree / "pkg" / "a.py").write_text("a = 1\n")
    (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("pkg/a.py")
    with RewindableSession(store, store.import_tree(tree), SPEC) as opened:
        yield opened
    assert (tree / "pkg" / "a.py").read_text() == "a = 1\n", "the host's directory is never written"
    assert sorted(path.name for path in tree.iterdir()) == ["link", "pkg", "run.sh"]


def test_the_tree_is_there_and_belongs_to_the_command(line: RewindableSession) -> None:
    result = line.run("./run.sh; cat link; stat -c %U pkg/a.py; echo b >> pkg/a.py; cat pkg/a.py; rm run.sh; ls")
    assert result.stdout == "ran\na = 1\nagent\na = 1\nb\nlink\npkg\n"
    assert (result.stderr, result.violations) == ("", ())


def test_going_back_undoes_what_a_shell_did(line: RewindableSession) -> None:
    line.run("echo kept > kept; mkdir -p deep/er; chmod 700 pkg")
    saved = line.snapshot()
    line.run("rm -rf pkg kept deep; echo worse > worse; ln -s /etc evil")
    line.restore(saved)
    assert (
        line.run("cat kept pkg/a.py; ls; stat -c %a pkg").stdout == "kept\na = 1\ndeep\nkept\nlink\npkg\nrun.sh\n700\n"
    )
    line.restore(line.start)
    assert line.run("ls").stdout == "link\npkg\nrun.sh\n"


def test_the_shell_comes_back_where_it_was(line: RewindableSession) -> None:
    line.run("mkdir d && cd d && export LOST=1")
    saved = line.snapshot()
    line.run("cd /tmp")
    line.restore(saved)
    assert line.run('pwd; echo "${LOST-gone}"').stdout == "/workspace/d\ngone\n"


def test_a_fork_goes_its_own_way(line: RewindableSession) -> None:
    line.run("echo 1 > n")
    saved = line.snapshot()
    with line.fork(saved) as other, line.fork() as third:
        other.run("echo 2 > n; rm pkg/a.py")
        third.run("echo 3 >> n")
        line.run("echo 4 > n")
        assert [each.run("cat n; ls pkg").stdout for each in (line, other, third)] == [
            "4\na.py\n",
            "2\n",
            "1\n3\na.py\n",
        ]
        deeper = other.fork()
        assert deeper.run("cat n").stdout == "2\n"
        deeper.close()


def test_a_job_that_writes_is_held_still_and_goes_on(line: RewindableSession) -> None:
    line.run("(while :; do echo x >> log; sleep 0.005; done) & until [ $(wc -l < log) -ge 6 ]; do sleep 0.01; done")
    saved = line.snapshot()
    before = len(line.session.get("log"))
    wait_until(lambda: len(line.session.get("log")) > before, "that the job goes on")
    line.restore(saved)
    content = line.session.get("log")
    assert set(content.split(b"\n")) == {b"x", b""}
    assert len(content) > 10
    time.sleep(0.2)
    assert line.session.get("log") == content, "processes are not restored"


def test_a_failed_restore_changes_nothing(line: RewindableSession) -> None:
    line.run("A=5; echo here > here")
    with pytest.raises(GametapeError):
        line.restore("0" * 16)
    assert line.run("echo $A; cat here").stdout == "5\nhere\n"


def test_put_get_and_export(line: RewindableSession, store: SnapshotStore, tmp_path: Path) -> None:
    line.session.put("new/file", b"from outside")
    assert line.run("cat new/file; echo more >> new/file").stdout == "from outside"
    assert line.session.get("new/file") == b"from outsidemore\n"
    store.export(line.snapshot(), tmp_path / "out")
    assert (tmp_path / "out" / "new" / "file").read_text() == "from outsidemore\n"
    assert (tmp_path / "out" / "run.sh").stat().st_mode & 0o777 == 0o755


def test_a_disk_filler_in_the_tree_is_ended(line: RewindableSession) -> None:
    result = line.run('python3 -c \'f = open("big", "wb")\nwhile True: f.write(bytes(1 << 20)); f.flush()\'')
    assert result.killed_by == "disk"
    assert line.run("rm big; echo again").stdout == "again\n"


def test_nothing_stays_mounted_or_stored(store: SnapshotStore, tmp_path: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    (tmp_path / "tree").mkdir()
    with RewindableSession(store, store.import_tree(tmp_path / "tree"), SPEC) as line:
        line.run("echo 1 > a")
        with line.fork() as other:
            other.run("echo 2 > b")
        assert Path("/proc/self/mountinfo").read_text() == mounts
    assert not list((tmp_path / "store" / "views").iterdir())


def test_an_environment_in_the_full_sense(store: SnapshotStore, tmp_path: Path) -> None:
    async def talk() -> None:
        (tmp_path / "tree").mkdir()
        snapshot = store.import_tree(tmp_path / "tree")
        async with SandboxScheduler(store=store) as scheduler:
            workspace: Workspace = await scheduler.open_snapshot(snapshot, SPEC)
            await workspace.put("n", b"1")
            saved = await workspace.snapshot()
            forks = await asyncio.gather(*(workspace.fork(saved) for _ in range(4)))
            for number, fork in enumerate(forks):
                await fork.run(["sh", "-c", f"echo {number} > n"], timeout=HANG)
            assert [await fork.get("n") for fork in forks] == [f"{n}\n".encode() for n in range(4)]
            await workspace.put("n", b"2")
            await workspace.restore(saved)
            assert await workspace.get("n") == b"1"

    asyncio.run(talk())
