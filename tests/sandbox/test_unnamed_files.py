"""Files without a name count towards disk space, however they are kept; what was there before does not."""

import os
import time
from pathlib import Path

import pytest

from gametape.sandbox.disk_watch import DiskWatch
from tests.sandbox.test_disk import MB, SMALL, run

WAYS = {
    "mapped": """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def hide(n, f):
    libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0))
""",
    "in flight": """
import array, socket
held = []
def hide(n, f):
    a, b = socket.socketpair()
    a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f]))])
    held.append((a, b))
""",
    "sockets in flight": """
import array, socket
a, b = socket.socketpair()
def hide(n, f):
    c, d = socket.socketpair()
    for end, sent in ((c, f), (a, d.fileno())):
        end.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [sent]))])
""",
    "running": """
import subprocess
def hide(n, f):
    with open('/usr/bin/sleep', 'rb') as program:
        os.pwrite(f, program.read(), 0)
    os.chmod(f'f{n}', 0o755)
    os.dup2(os.open(f'f{n}', os.O_RDONLY), f)  # a file that is open for writing does not run
    os.closerange(f + 1, f + 9)
    subprocess.Popen([f'./f{n}', '100'])
""",
    "in a thread's own table": """
import ctypes, threading
libc = ctypes.CDLL(None)
turn, done = threading.Semaphore(0), threading.Semaphore(0)
def thread():
    assert libc.syscall(436, 1 << 20, 1 << 20, 2) == 0  # close_range with a copy of the table
    while turn.acquire():
        held.append(os.open(path, os.O_RDONLY)); done.release()
held = []
threading.Thread(target=thread, daemon=True).start()
def hide(n, f):
    global path
    path = f'f{n}'
    turn.release(); done.acquire()
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_files_without_a_name_count_however_they_are_kept(way: str, tmp_path: Path) -> None:
    code = f"""
import time
{WAYS[way]}
for n in range(30):
    f = os.open(f'f{{n}}', os.O_CREAT | os.O_RDWR)
    os.write(f, bytes(5 * MB))
    hide(n, f)
    os.close(f)
    os.unlink(f'f{{n}}')
    time.sleep(0.03)
time.sleep(1)
"""
    assert run(code, tmp_path).killed_by == "disk"


EMPTIED = """
import time
def emptied(n):
    os.mkdir(f'd{n}')
    top = os.open(f'd{n}', os.O_RDONLY | os.O_DIRECTORY)
    for k in range(3000): os.link('o', f'{k:0240}', dst_dir_fd=top)
    for k in range(3000): os.unlink(f'{k:0240}', dir_fd=top)
    return top
open('o', 'w').close()
"""


@pytest.mark.parametrize(
    "hold",
    [
        "for n in range(9): f = emptied(n); os.rmdir(f'd{n}')",
        "for n in range(9):\n    if os.fork() == 0:\n        os.fchdir(emptied(n)); os.closerange(3, 99);"
        " os.rmdir(f'/workspace/d{n}'); time.sleep(100)\n    time.sleep(0.2)",
        "for n in range(800): os.symlink('x' * 4000, 's'); os.open('s', os.O_PATH | os.O_NOFOLLOW); os.unlink('s')",
        "for n in range(900): os.mkfifo('p'); os.open('p', os.O_PATH); os.unlink('p')\n"
        "f = os.open('f', os.O_CREAT | os.O_RDWR); os.write(f, bytes(1200 << 10))",
    ],
    ids=["open directories", "working directories", "links", "pipes"],
)
def test_whatever_has_no_name_counts(hold: str, tmp_path: Path) -> None:
    code = f"{EMPTIED}{hold}\ntime.sleep(100)"
    assert run(code, tmp_path, SMALL.model_copy(update={"disk_mb": 2})).killed_by == "disk"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A workspace with 60 MB of the user's files."""
    (tmp_path / "data").mkdir()
    for number in range(100):
        (tmp_path / "data" / str(number)).write_bytes(bytes(600 << 10))
    time.sleep(0.1)  # the clock of the file system is coarse
    return tmp_path


@pytest.mark.parametrize(
    "work",
    [
        "for p in files: os.chmod(p, 0o600)",
        "os.mkdir('copy')\nfor n, p in enumerate(files): os.link(p, f'copy/{n}')",
        "os.mkdir('other')\nfor n, p in enumerate(files): os.rename(p, f'other/{n}')",
        "for p in files[:30]: f = open(p, 'ab'); f.write(bytes(400 << 10)); f.close()",
        "for p in files: open('new', 'wb').write(bytes(600 << 10)); os.rename('new', p)",
        "held = [open(p) for p in files]\nfor p in files: os.unlink(p)",
        "import tempfile\nfor _ in range(300): d = tempfile.mkdtemp(dir='.'); os.open(d, os.O_RDONLY); os.rmdir(d)",
        "for _ in range(4): os.write(os.memfd_create('m'), bytes(15 * MB))",
    ],
    ids=[
        "chmod",
        "links",
        "renamed",
        "appended",
        "replaced",
        "removed but open",
        "removed directories",
        "files in memory",
    ],
)
def test_work_on_what_was_there_before_is_left_alone(work: str, users: Path) -> None:
    code = f"import glob, time\nfiles = glob.glob('data/*')\n{work}\ntime.sleep(1.5)"
    result = run(code, users, SMALL.model_copy(update={"memory_mb": 400}))
    assert (result.exit_code, result.killed_by, result.stderr) == (0, None, "")


def test_filling_holes_of_the_user_counts(tmp_path: Path) -> None:
    os.truncate(os.open(tmp_path / "hole", os.O_CREAT | os.O_WRONLY), 60 * MB)
    code = "f = os.open('hole', os.O_WRONLY)\nfor n in range(60): os.pwrite(f, bytes(MB), n * MB)"
    assert run(code, tmp_path).killed_by == "disk"


def test_what_others_write_is_no_debt(tmp_path: Path) -> None:
    own, others = tmp_path / "own", tmp_path / "others"
    own.mkdir()
    watch = DiskWatch([str(own)], 5 * MB)
    others.write_bytes(bytes(20 * MB))
    assert not watch.exceeded()


def test_a_process_that_the_command_stopped_stays_stopped(tmp_path: Path) -> None:
    code = """
import signal, subprocess, time
p = subprocess.Popen(['sleep', '100'])
os.kill(p.pid, signal.SIGSTOP)
state = lambda: open(f'/proc/{p.pid}/stat').read().split()[2]
while state() != 'T': time.sleep(0.01)
f = os.open('a', os.O_CREAT | os.O_RDWR)
for k in range(6):
    os.ftruncate(f, 0); os.pwrite(f, bytes(9 * MB), 0); time.sleep(0.05)
    g = os.open(f'b{k}', os.O_CREAT | os.O_RDWR); os.write(g, bytes(9 * MB)); os.close(g); os.unlink(f'b{k}')
print(state())
"""
    assert run(code, tmp_path).stdout == "T\n"
