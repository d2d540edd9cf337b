"""What a hostile command leaves behind for the host program itself: exit codes, output, files, descriptors."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gametape.core.errors import GametapeError
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.policy import PythonRules, SandboxPolicy
from gametape.sandbox.result import ExecResult
from tests.patience import HANG, effort, wait_until

PYTHON = ("python3", "-c")


def _exec(code: str, workspace: Path | None = None, **policy: object) -> ExecResult:
    spec = SandboxSpec(workspace=workspace, policy=SandboxPolicy.model_validate(policy))
    return open_backend().start(spec).exec([*PYTHON, code])


def test_a_grant_inside_the_workspace_cannot_be_redirected(tmp_path: Path) -> None:
    """A second command must not be shown a place that the first one put behind a granted name."""
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "tests").mkdir(parents=True)
    outside.mkdir(mode=0o700)
    (outside / "secret").write_text("planted")
    (outside / "secret").chmod(0o600)
    granted = workspace / "tests"
    try:
        sandbox = open_backend().start(
            SandboxSpec(workspace=workspace, policy=SandboxPolicy(read_only=(str(granted),)))
        )
        sandbox.exec(["mv", "/workspace/tests", "/workspace/old"])
        sandbox.exec(["ln", "-s", str(outside), "/workspace/tests"])
        result = sandbox.exec(["cat", f"{granted}/secret"])
    except GametapeError:
        return
    assert "planted" not in result.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount on the host")
def test_a_mount_made_between_two_commands_is_seen(tmp_path: Path) -> None:
    """The keeper prepares the next sandbox ahead of time; it must not show what lies under a newer mount."""
    open_backend().start(SandboxSpec(workspace=tmp_path)).exec(["true"])
    time.sleep(0.5)
    subprocess.run(["mount", "-t", "tmpfs", "gametape-test", tmp_path], check=True)
    try:
        (tmp_path / "above").touch()
        result = open_backend().start(SandboxSpec(workspace=tmp_path)).exec(["ls", "/workspace"])
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert result.stdout.split() == ["above"]


def test_a_descriptor_given_away_does_not_keep_exec_waiting(tmp_path: Path) -> None:
    give = """
import os, socket, time
open('/workspace/up', 'w').close()
while not os.path.exists('/workspace/listening'): time.sleep(0.01)
client = socket.socket(socket.AF_UNIX); client.connect('/workspace/socket')
socket.send_fds(client, [b'x'], [1]); print('given', flush=True)
"""
    hold = """
import os, socket, time
server = socket.socket(socket.AF_UNIX); server.bind('/workspace/socket'); server.listen()
open('/workspace/listening', 'w').close()
socket.recv_fds(server.accept()[0], 9, 9); open('/workspace/held', 'w').close()
while not os.path.exists('/workspace/over'): time.sleep(0.01)
"""
    sandbox = open_backend().start(SandboxSpec(workspace=tmp_path))
    with ThreadPoolExecutor() as both:
        giver = both.submit(sandbox.exec, [*PYTHON, give])
        wait_until((tmp_path / "up").exists, "the start of the giver")
        holder = both.submit(sandbox.exec, [*PYTHON, hold])
        try:
            given = giver.result(HANG)
            wait_until((tmp_path / "held").exists, "the holder to have the descriptor")
        finally:
            (tmp_path / "over").touch()
        assert given.stdout == "given\n"
        assert holder.result(HANG).killed_by is None


@pytest.mark.parametrize("code", [137, 152, 153, 159])
def test_exit_codes_do_not_forge_killed_by(code: int) -> None:
    result = _exec(f"import os; os._exit({code})")
    assert result.exit_code == code
    assert result.killed_by is None


@pytest.mark.parametrize(
    "line",
    [
        b'["x", 1, "\\ud800"]',
        b"[" * 50_000,
        b'["x", 1e999]',
        b'["x", ' + b"9" * 5000 + b"]",
        b'["\\u0000", 1, "\\u001b[31m"]',
        b"\xff\xfe",
        b"null",
        b'{"a": 1}',
        b'["x", true, "y"]',
        b'["x", 99999999999999999999999999, "y"]',
    ],
    ids=range(10),
)
def test_results_can_always_be_stored(line: bytes) -> None:
    """The audit pipe is the hostile program's to write to."""
    result = _exec(f"import os; os.write(3, {line!r} + b'\\n')", language=PythonRules())
    ExecResult.model_validate_json(result.model_dump_json())


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40)",
        "import sys; sys.stdout.buffer.write(b'\\x1b]0;title' * 20000)",
        "import sys; sys.stdout.buffer.write(b'\\x9d\\x90' * 40000)",
        "import sys; sys.stdout.buffer.write(b'\\xed\\xa0\\x80' * 1000)",
        "import os; os.rename('/workspace/a', b'/workspace/\\xff\\xfe')\nimport socket; socket.socket(16, 3)",
        "import ctypes; ctypes.CDLL(None).syscall(165, b'\\xff\\x1b[31m\\xed\\xa0\\x80', b'/', 0, 0, 0)",
        "import ctypes; ctypes.CDLL(None).syscall(165, ctypes.c_long(-1), ctypes.c_long(1), 0, 0, 0)",
        "import os, sys; os.execv(sys.executable, [b'\\xff\\x1b[2J', '-c', 'import socket; socket.socket(16, 3)'])",
    ],
    ids=range(8),
)
def test_output_and_record_can_always_be_stored(code: str, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    result = _exec(code, tmp_path)
    stored = result.model_dump_json()
    assert "\\u001b" not in stored
    ExecResult.model_validate_json(stored)


def test_lint_is_bounded(tmp_path: Path) -> None:
    """Text that is costly to parse must not cost the host more than a moment, whatever lies in the workspace."""
    for number in range(6):
        (tmp_path / f"costly{number}.py").write_text("x = [" + "[]," * 340_000 + "]\n")
    assert effort(lambda: _exec("pass", tmp_path, language=PythonRules())) < 250


def test_python_files_that_are_not_files_are_passed_over(tmp_path: Path) -> None:
    prepare = """
import os
os.mkfifo('/workspace/pipe.py'); os.symlink('/etc/shadow', '/workspace/link.py'); os.mkdir('/workspace/d.py')
"""
    sandbox = open_backend().start(SandboxSpec(workspace=tmp_path, policy=SandboxPolicy(language=PythonRules())))
    sandbox.exec([*PYTHON, prepare])
    assert sandbox.exec([*PYTHON, "pass"]).exit_code == 0


def test_closed_and_strange_workspaces_still_start(tmp_path: Path) -> None:
    """Names and modes left by one command must not keep the next one from starting."""
    leave = """
import os, socket
os.mkdir('/workspace/closed'); os.chmod('/workspace/closed', 0)
open(b'/workspace/\\xff\\n\\x1b', 'w').close()
os.symlink('loop', '/workspace/loop'); os.symlink('/', '/workspace/root')
socket.socket(socket.AF_UNIX).bind('/workspace/dead.sock')
os.chdir('/workspace')
for _ in range(80):
    os.mkdir('d' * 100); os.chdir('d' * 100)
"""
    sandbox = open_backend().start(SandboxSpec(workspace=tmp_path))
    assert sandbox.exec([*PYTHON, leave]).exit_code == 0
    assert sandbox.exec(["true"]).exit_code == 0
    sandbox.exec(["chmod", "700", "/workspace/closed"])
    sandbox.exec(["rm", "-rf", "/workspace/" + "d" * 100])
