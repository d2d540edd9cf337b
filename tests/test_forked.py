"""A command from the fork server is what it would be in an interpreter of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import ForkServer
from tests.patience import HANG

COMMAND = """
import atexit, os, sys, threading, time

def command():
    def slowly():
        time.sleep(0.1)
        print("thread", flush=True)
    atexit.register(lambda: print("at the end", file=sys.stderr))
    threading.Thread(target=slowly).start()
    print(sys.argv[1:], os.getcwd(), os.environ.get("COLOUR"), os.environ.get("TASTE"), repr(sys.stdin.read()))
    return eval(sys.argv[1])

if __name__ == "__main__":
    sys.exit(command())
"""


@pytest.mark.parametrize(
    "word",
    ["None", "0", "3", "'no'", "sys.exit(4)", "sys.exit('no')", "1 // 0", f"os.kill(os.getpid(), {signal.SIGTERM})"],
)
def test_a_command_is_what_it_would_be_alone(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "told.py").write_text(COMMAND)
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TASTE", "sweet")
    server = ForkServer("told:command")
    environment = {"COLOUR": "red", "PYTHONPATH": str(tmp_path)}
    forked = server.run(["told", word, "more"], tmp_path / "here", environment)
    alone = subprocess.run(
        [sys.executable, "-m", "told", word, "more"],
        cwd=tmp_path / "here",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (forked.returncode, forked.stdout) == (alone.returncode, alone.stdout)
    assert _last_lines(forked.stderr) == _last_lines(alone.stderr)


def _last_lines(said: str) -> list[str]:
    """Without the frames of whoever called the command."""
    return [line for line in said.splitlines() if not line.startswith((" ", "Traceback"))]


def test_the_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    server = ForkServer("platform:system")
    assert [server.run(["platform"], tmp_path).returncode for _ in range(3)] == [1, 1, 1]  # a text is no exit code
    assert server.run(["platform"], tmp_path).stderr == os.uname().sysname + "\n"
    server._socket.close()
    assert server._process.wait(HANG) == 0
