"""Disk space: what the kernel refuses at the limit, what the watch ends, and what the user keeps."""

import time
from pathlib import Path

import pytest

from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.bubblewrap import BubblewrapBackend
from gametape.sandbox.disk_watch import DiskWatch, most_bytes_in_a_file
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.result import ExecResult
from gametape.sandbox.session import open_session
from tests.patience import HANG

MB = 1 << 20
SMALL = SandboxLimits(wall_seconds=HANG, disk_mb=20)


def run(code: str, workspace: Path | None = None, limits: SandboxLimits = SMALL) -> ExecResult:
    spec = SandboxSpec(policy=SandboxPolicy(limits=limits), workspace=workspace)
    return BubblewrapBackend().start(spec).exec(["python3", "-c", f"import os\nMB = 1 << 20\n{code}"])


def held(workspace: Path) -> int:
    """What lies in the workspace, in megabytes: the larger of what is taken and what it seems to be."""
    sizes = (max(path.lstat().st_blocks * 512, path.lstat().st_size) for path in workspace.rglob("*"))
    return sum(sizes) // MB


def test_space_is_not_taken_without_writing_to_it(tmp_path: Path) -> None:
    result = run(
        "for n in range(3): os.posix_fallocate(os.open(f'f{n}', os.O_CREAT | os.O_RDWR), 0, 1 << 30)", tmp_path
    )
    assert (result.ok, result.killed_by) == (False, "disk")
    assert held(tmp_path) <= 20


@pytest.mark.parametrize(
    "call",
    [
        "call = lambda f: libc.fallocate(f, 0, ctypes.c_long(0), ctypes.c_long(MB))",
        "call = lambda f: libc.fallocate(f, 1, ctypes.c_long(0), ctypes.c_long(1 << 30))",
        "call = lambda f: libc.fallocate(f, 0x10, ctypes.c_long(0), ctypes.c_long(1 << 30))",
        "call = lambda f: libc.ioctl(f, ctypes.c_ulong(0x40305828), area)",
        "call = lambda f: libc.ioctl(f, ctypes.c_ulong(0x4030582a), area)",
    ],
    ids=["plain", "size kept", "zeros", "ioctl", "ioctl with 64 bits"],
)
def test_every_call_for_that_is_not_supported(call: str, tmp_path: Path) -> None:
    code = f"""
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
area = struct.pack('hhqqiI16x', 0, 0, 0, 1 << 30, 0, 0)
{call}
f = os.open('f', os.O_CREAT | os.O_RDWR)
print(call(f), os.strerror(ctypes.get_errno()), os.fstat(f).st_blocks)
"""
    assert run(code, tmp_path).stdout == "-1 Operation not supported 0\n"


def test_space_can_be_given_back(tmp_path: Path) -> None:
    code = """
import ctypes
f = os.open('f', os.O_CREAT | os.O_RDWR)
os.write(f, b'x' * MB)
print(ctypes.CDLL(None).fallocate(f, 3, ctypes.c_long(0), ctypes.c_long(MB)), os.pread(f, 2, 0))
"""
    assert run(code, tmp_path).stdout == "0 b'\\x00\\x00'\n"


def test_a_file_does_not_seem_larger_than_the_limit(tmp_path: Path) -> None:
    result = run("os.truncate(os.open('f', os.O_CREAT | os.O_RDWR), 900 * MB)", tmp_path)
    assert "File too large" in result.stderr
    assert held(tmp_path) == 0


@pytest.mark.parametrize("grow", ["os.ftruncate(f, 15 * MB)", "os.pwrite(f, b'x', 15 * MB)"])
def test_many_files_with_holes_are_ended(grow: str, tmp_path: Path) -> None:
    code = f"for n in range(50): f = os.open(f'f{{n}}', os.O_CREAT | os.O_RDWR); {grow}; os.close(f)"
    assert run(code, tmp_path).killed_by == "disk"


def test_names_alone_are_ended(tmp_path: Path) -> None:
    limits = SMALL.model_copy(update={"disk_mb": 4})
    code = "open('o', 'w')\nfor n in range(60000): os.link('o', f'{n:0240}')\nimport time; time.sleep(100)"
    assert run(code, tmp_path, limits).killed_by == "disk"


def test_scratch_is_one_file_system_of_the_limits_size() -> None:
    code = """
places = ['/tmp', '/dev/shm', os.environ['HOME'], '/workspace']
status = os.statvfs('/tmp')
print(len({os.stat(place).st_dev for place in places}), status.f_blocks * status.f_frsize // MB, status.f_files)
"""
    assert run(code).stdout.split() == ["1", "20", str(20 << 10)]


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/workspace", "/tmp/home"])
def test_scratch_refuses_what_does_not_fit(place: str) -> None:
    code = f"f = os.open('{place}/f', os.O_CREAT | os.O_WRONLY)\nfor _ in range(30): os.write(f, bytes(MB))"
    result = run(code)
    assert (result.ok, result.killed_by) == (False, "disk")


def test_scratch_refuses_more_files_than_fit() -> None:
    limits = SMALL.model_copy(update={"disk_mb": 1})
    assert run("for n in range(2000): os.close(os.open(f'/tmp/{n}', os.O_CREAT))", limits=limits).killed_by == "disk"


def test_what_was_large_before_may_grow_by_the_limit(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(bytes(60 * MB))
    time.sleep(0.1)  # the clock of the file system is coarse
    result = run("f = open('old', 'ab'); f.write(bytes(5 * MB)); f.close(); import time; time.sleep(1)", tmp_path)
    assert (result.exit_code, result.killed_by) == (0, None)
    assert (tmp_path / "old").stat().st_size == 65 * MB
    assert run("f = open('old', 'ab')\nwhile True: f.write(bytes(MB))", tmp_path).killed_by == "disk"
    assert held(tmp_path) <= 65 + 20


def test_the_largest_file_sets_the_size_of_one(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "old").write_bytes(bytes(3 * MB))
    assert most_bytes_in_a_file(SMALL, [str(tmp_path)]) == 23 * MB
    assert most_bytes_in_a_file(SandboxLimits(file_size_mb=10), [str(tmp_path)]) == 10 * MB


def test_after_a_reset_only_growth_counts(tmp_path: Path) -> None:
    watch = DiskWatch([str(tmp_path)], MB)
    (tmp_path / "f").write_bytes(bytes(2 * MB))
    assert watch.exceeded()
    watch.reset_baseline()
    assert not watch.exceeded()


def test_a_session_counts_files_without_a_name(tmp_path: Path) -> None:
    code = 'import os, time\nheld = [os.open(".", os.O_TMPFILE | os.O_RDWR) for _ in range(9)]\n'
    code += "for f in held: os.write(f, bytes(5 << 20))\ntime.sleep(100)"
    with open_session(SandboxSpec(policy=SandboxPolicy(limits=SMALL), workspace=tmp_path)) as session:
        assert session.run(f"python3 -c '{code}'").killed_by == "disk"
        assert session.run("echo x > kept; cat kept").stdout == "x\n"
