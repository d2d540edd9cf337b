"""A program in a sandbox that the host talks to."""

import socket

import pytest

from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.interactive import InteractiveProcess, open_interactive
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from tests.patience import HANG

ECHO = "import socket; s = socket.socket(fileno=0); [s.sendall(d.upper()) for d in iter(lambda: s.recv(100), b'')]"


def start(code: str, **limits: float) -> InteractiveProcess:
    return open_interactive(
        SandboxSpec(policy=SandboxPolicy(limits=SandboxLimits(**limits))), ["python3", "-I", "-c", code]
    )  # type: ignore[arg-type]


def test_words_go_both_ways_and_the_end_is_told() -> None:
    with start(ECHO) as process:
        process.watch_closely()
        process.socket.sendall(b"hello")
        assert process.socket.recv(100) == b"HELLO"
        process.socket.shutdown(socket.SHUT_WR)
        assert process.result().exit_code == 0


def test_a_descriptor_can_be_handed_in() -> None:
    code = """
import os, socket
host = socket.socket(fileno=0)
_, (given,), _, _ = socket.recv_fds(host, 1, 1)
os.write(given, b"from inside")
"""
    ours, theirs = socket.socketpair()
    with start(code) as process, ours, theirs:
        socket.send_fds(process.socket, [b"+"], [theirs.fileno()])
        assert ours.recv(100) == b"from inside"


def test_closing_ends_a_program_that_does_not_end_by_itself() -> None:
    process = start("import time; time.sleep(100000)")
    process.close()
    assert process.result().signal == 9
    process.close()  # and once more is no harm


def test_when_the_program_ends_the_socket_ends() -> None:
    with start("pass") as process:
        process.socket.settimeout(HANG)
        assert process.socket.recv(1) == b""
        assert process.result().exit_code == 0


@pytest.mark.parametrize(
    ("code", "limits", "reason"),
    [
        ("x = bytearray(400 << 20)", {"memory_mb": 64}, "memory"),
        ("import time; time.sleep(1000)", {"wall_seconds": 0.3}, "time"),
    ],
)
def test_limits_hold(code: str, limits: dict[str, float], reason: str) -> None:
    with start(code, **limits) as process:
        assert process.result().killed_by == reason


def test_what_is_denied_is_written_down() -> None:
    code = "import socket\ntry: socket.socket(socket.AF_INET)\nexcept OSError: pass"
    with start(code) as process:
        assert "socket" in [violation.syscall for violation in process.result().violations]
