"""Attempts that attack the replay itself: none is paid, none hangs the host, none harms the next verdict."""

from random import Random

import pytest

from gametape.verify.replay.attempt import ReplayedTests, replay_attempt
from tests.verify.replay.conftest import Recorded
from tests.verify.replay.shelf_task import RIGHT, held_out, sources, visible

_WANTED = [held_out("empty"), visible("total"), visible("words")]
_WRONG = RIGHT.replace("return sum(numbers)", "raise NotImplementedError")
_SOCKET = """
import os, socket, stat, struct, threading, time
_fds = [int(fd) for fd in os.listdir("/proc/self/fd")]
_wires = []
for _fd in _fds:
    try:
        if stat.S_ISSOCK(os.fstat(_fd).st_mode):
            _wires.append(_fd)
    except OSError:
        pass
"""
_ATTACKS = {
    "answers before it is asked": _SOCKET
    + """
for _number in range(12):
    for _fd in _wires:
        _body = b"(\\x05i%bi%bi%b(\\x00N" % tuple(struct.pack(">q", part) for part in (1, _number, 0))
        os.write(_fd, struct.pack(">I", len(_body)) + _body)
""",
    "announces a huge frame": _SOCKET + "\nfor _fd in _wires:\n    os.write(_fd, b'\\xff' * 4)\n",
    "sends without end": _SOCKET
    + """
def _flood():
    while True:
        for _fd in _wires:
            os.write(_fd, struct.pack(">I", 1 << 16) + bytes(1 << 16))

threading.Thread(target=_flood, daemon=True).start()
time.sleep(60)
""",
    "leaves with success": "import os\nos._exit(0)\n",
    "closes the connection and stays": _SOCKET + "\nfor _fd in _wires:\n    os.close(_fd)\ntime.sleep(60)\n",
    "passes the connection on to a daemon": _SOCKET
    + """
if os.fork() == 0:
    os.setsid()
    while True:
        try:
            open("/workspace/shelf.py", "w").write("raise SystemExit")
            open("/tmp/left", "w").write("x")
            open("/dev/shm/left", "w").write("x")
        except OSError:
            pass
""",
    "kills its parent": "import os\nos.kill(os.getppid(), 9)\n",
    "kills everything": "import os\nos.kill(-1, 9)\n",
    "stops its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n",
    "changes the limits of its parent": """
import os, resource
resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (20, 20))
""",
    "takes all memory": "_hoard = []\nwhile True:\n    _hoard.append(bytearray(1 << 26))\n",
    "starts processes without end": """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    "removes its own files": "import shutil\nshutil.rmtree('/workspace', ignore_errors=True)\n",
}

_SLOW = {
    *("sends without end", "kills everything", "stops its parent", "takes all memory", "starts processes without end"),
    *("announces a huge frame", "closes the connection and stays", "removes its own files"),
}


def replay(recorded: Recorded, text: str) -> ReplayedTests:
    return replay_attempt(
        recorded.recording,
        recorded.loaded_task,
        sources(text),
        recorded.sandboxes,
        recorded.zygotes,
        Random(3),
        _WANTED,
    )


@pytest.mark.parametrize(
    "attack",
    [pytest.param(text, id=name, marks=[pytest.mark.slow] if name in _SLOW else []) for name, text in _ATTACKS.items()],
)
def test_an_attack_pays_nothing_and_harms_nobody(recorded: Recorded, attack: str) -> None:
    attacked = replay(recorded, attack + _WRONG)
    results = {test: outcome.result for test, outcome in attacked.outcomes.items()}
    assert results.keys() == set(_WANTED)
    assert results[held_out("empty")] != "passed"
    assert results[visible("total")] != "passed"
    honest = replay(recorded, RIGHT)
    assert {outcome.result for outcome in honest.outcomes.values()} == {"passed"}
    assert not any(run.events or run.violations or run.killed_by for run in honest.runs)


@pytest.mark.parametrize(
    ("attack", "kind"),
    [
        ("leaves with success", "left early"),
        ("kills its parent", "runner ended"),
        ("changes the limits of its parent", "runner tampered"),
    ],
)
def test_what_it_did_is_told_to_the_rules(recorded: Recorded, attack: str, kind: str) -> None:
    attacked = replay(recorded, _ATTACKS[attack] + _WRONG)
    assert kind in {event.kind for run in attacked.runs for event in run.events}


def test_nothing_is_left_for_the_next_verdict(recorded: Recorded) -> None:
    look = """
import os
def words(text):
    found = [os.path.exists(path) for path in ("/tmp/left", "/dev/shm/left", "/workspace/left")]
    return {str(found)} | {str(len([pid for pid in os.listdir("/proc") if pid.isdigit()]))}
"""
    leave = (
        "import os\nfor _path in ('/tmp/left', '/dev/shm/left', '/workspace/left'):\n    open(_path, 'w').write('x')\n"
    )
    before = replay(recorded, RIGHT + look).differences[visible("words")]
    replay(recorded, leave + "if os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(600)\n" + RIGHT)
    after = replay(recorded, RIGHT + look).differences[visible("words")]
    assert after.actual == before.actual
    assert "[False, False, False]" in before.actual[2]


def test_no_file_of_an_earlier_attempt_is_left_in_memory(recorded: Recorded) -> None:
    look = """
def words(text):
    found = 0
    for line in open("/proc/self/maps"):
        span, rights, *_ = line.split()
        low, high = (int(end, 16) for end in span.split("-"))
        if rights.startswith("rw"):
            with open("/proc/self/mem", "rb", 0) as memory:
                memory.seek(low)
                found += memory.read(high - low).count(b"etorw tpmetta reilrae na tahw"[::-1])
    return {f"found {found}"}
"""
    replay(recorded, RIGHT + "# what an earlier attempt wrote\n" * 1000)
    assert replay(recorded, RIGHT + look).differences[visible("words")].actual[2] == {"found 0"}


LEAVES = """
import os
for place in ('/tmp', '/dev/shm', '/workspace'):
    for name in ('.gametape-trash', 'home', '0' * 32):
        os.makedirs(f'{place}/{name}/a/b', exist_ok=True)
        open(f'{place}/{name}/a/b/left', 'w').write('x')
"""
FINDS = """
import os
def words(text):
    places = ('/tmp', '/dev/shm', '/workspace')
    found = [path for place in places for path, _, files in os.walk(place) if 'left' in files]
    return {str(sorted(found))}
"""


def test_nothing_that_an_attempt_leaves_in_directories_reaches_the_next(recorded: Recorded) -> None:
    replay(recorded, LEAVES + RIGHT)
    found = replay(recorded, RIGHT + FINDS).differences[visible("words")].actual
    assert "[]" in str(found), found
