"""A process ends with the one at the other end of its socket, unless it was told to end and takes its time."""

import socket
import subprocess
import sys

_CHILD = """
import socket, sys, time
from gametape.record.parent_watch import end_with_peer

connection = socket.socket(fileno=int(sys.argv[1]))
told = end_with_peer(connection.fileno())
connection.send(b".")
if connection.recv(1):
    told.set()
    connection.recv(1)
    time.sleep(1.5)
else:
    time.sleep(1000)
"""


def begun() -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", _CHILD, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    theirs.close()
    assert ours.recv(1) == b"."
    return ours, process


def test_it_ends_with_its_peer_whatever_it_waits_for() -> None:
    ours, process = begun()
    assert process.poll() is None
    ours.close()
    assert process.wait() == 1


def test_what_was_told_to_end_ends_in_order() -> None:
    ours, process = begun()
    ours.send(b"x")
    ours.close()
    assert process.wait() == 0
