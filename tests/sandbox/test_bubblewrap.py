"""The backend's manners: what a command sees, what comes back, what is refused."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox.backend import SandboxSpec, open_backend, require_capabilities
from gametape.sandbox.bubblewrap import BubblewrapBackend
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.result import BackendCapabilities, BackendProbe, ExecResult
from tests.patience import HANG, processes_with, wait_until


def run(
    *argv: str, workspace: Path | None = None, policy: SandboxPolicy | None = None, stdin: bytes = b""
) -> ExecResult:
    return (
        BubblewrapBackend().start(SandboxSpec(policy=policy or SandboxPolicy(), workspace=workspace)).exec(argv, stdin)
    )


def test_a_harmless_command_works_and_leaves_no_trace_of_suspicion() -> None:
    result = run("python3", "-c", "import sys; print('out'); print('err', file=sys.stderr)")
    assert (result.stdout, result.stderr, result.exit_code, result.violations) == ("out\n", "err\n", 0, ())


def test_exit_codes_come_through() -> None:
    assert [run("sh", "-c", f"exit {code}").exit_code for code in (0, 1, 3, 126)] == [0, 1, 3, 126]


def test_no_such_command_is_127() -> None:
    assert run("no-such-command").exit_code == 127


def test_input_is_readable_and_nothing_else() -> None:
    assert (
        run("cat", stdin=b"hello" * 100_000, policy=SandboxPolicy(limits=SandboxLimits(output_bytes=1_000_000))).stdout
        == "hello" * 100_000
    )
    assert (
        "EBADF"
        in run(
            "python3",
            "-c",
            "import os, errno\ntry: os.write(0, b'x')\nexcept OSError as e: print(errno.errorcode[e.errno])",
            stdin=b"x",
        ).stdout
    )


def test_files_of_the_workspace_keep_their_owner_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("before")
    result = run(
        "sh",
        "-c",
        "echo after > mine && mkdir -p d && echo new > d/new && stat -c %U mine d/new",
        workspace=tmp_path,
    )
    assert result.stdout == "agent\nagent\n"
    owners = {path.stat().st_uid for path in (tmp_path / "mine", tmp_path / "d", tmp_path / "d" / "new")}
    assert owners == {os.getuid()}
    assert (tmp_path / "mine").read_text() == "after\n"


def test_without_a_workspace_there_is_an_empty_one_that_vanishes() -> None:
    sandbox = BubblewrapBackend().start(SandboxSpec())
    assert sandbox.exec(["sh", "-c", "ls -A; echo x > file"]).stdout == ""
    assert sandbox.exec(["ls", "-A"]).stdout == ""


def test_put_and_get(tmp_path: Path) -> None:
    sandbox = BubblewrapBackend().start(SandboxSpec(workspace=tmp_path))
    sandbox.put("in/put.txt", b"abc")
    assert sandbox.exec(["sh", "-c", "tr a-c A-C < in/put.txt > out.txt"]).ok
    assert sandbox.get("out.txt") == b"ABC"


def test_the_environment_is_the_policys() -> None:
    os.environ["GAMETAPE_TEST_MARK"] = "host-only"
    try:
        result = run("env", policy=SandboxPolicy(environment=(("WANTED", "yes"), ("HOME", "/workspace"))))
    finally:
        del os.environ["GAMETAPE_TEST_MARK"]
    variables = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert variables["WANTED"] == "yes"
    assert variables["HOME"] == "/workspace"
    assert set(variables) == {"WANTED", "HOME", "PATH", "USER", "LANG", "TMPDIR", "PWD"}


def test_granted_paths_are_read_only_or_writable_as_granted(tmp_path: Path) -> None:
    (tmp_path / "ro").mkdir()
    (tmp_path / "rw").mkdir()
    (tmp_path / "ro" / "file").write_text("seen")
    (tmp_path / "hidden").write_text("never")
    policy = SandboxPolicy(read_only=(str(tmp_path / "ro"),), writable=(str(tmp_path / "rw"),))
    script = f"cd {tmp_path}; cat ro/file; echo x > ro/new; echo y > rw/new; cat hidden"
    result = run("sh", "-c", script, policy=policy)
    assert result.stdout == "seen"
    assert "Read-only file system" in result.stderr
    assert (tmp_path / "rw" / "new").read_text() == "y\n"
    assert not (tmp_path / "ro" / "new").exists()


def test_a_private_directory_of_the_host_user_can_be_granted(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "file").write_text("mine")
    (private / "file").chmod(0o600)
    assert run("cat", str(private / "file"), policy=SandboxPolicy(read_only=(str(private),))).stdout == "mine"


def test_a_policy_can_kill_at_the_first_violation() -> None:
    code = "import socket\ntry: socket.socket()\nexcept OSError: pass\nprint('went on')"
    result = run("python3", "-c", code, policy=SandboxPolicy(on_violation="kill"))
    assert (result.killed_by, result.stdout) == ("policy", "")
    assert [(v.syscall, v.action) for v in result.violations] == [("socket", "killed")]


def test_a_flood_of_violations_ends_the_command() -> None:
    code = "import socket\nwhile True:\n  try: socket.socket()\n  except OSError: pass"
    result = run("python3", "-c", code, policy=SandboxPolicy(max_violations=50))
    assert (result.killed_by, len(result.violations)) == ("policy", 50)


def test_audited_opens_are_let_go_and_written_down_once(tmp_path: Path) -> None:
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "objects" / "ab").write_text("answer")
    (tmp_path / "x.pyc").write_bytes(b"")
    (tmp_path / "digit").write_text("")
    script = (
        "cat .git/objects/ab .git/objects/ab x.pyc digit; cd .git; cat ../.git/objects/ab; cat /usr/bin/env >/dev/null"
    )
    policy = SandboxPolicy(audited=(".git", "*.pyc", "/usr/bin/env"))
    result = run("sh", "-c", script, workspace=tmp_path, policy=policy)
    assert (result.exit_code, result.stdout) == (0, "answer" * 3)
    assert [(record.args[0], record.action) for record in result.violations] == [
        ("/workspace/.git/objects/ab", "logged"),
        ("/workspace/x.pyc", "logged"),
        ("/usr/bin/env", "logged"),
    ]


def test_loopback_is_the_sandboxs_own() -> None:
    code = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
print(socket.create_connection(server.getsockname()).recv(10))
"""
    result = run("python3", "-c", code, policy=SandboxPolicy(network="loopback"))
    assert (result.stdout, result.violations) == ("b'hello'\n", ())


def test_many_threads_may_run_sandboxes_at_once() -> None:
    results: list[str] = []
    sandbox = BubblewrapBackend().start(SandboxSpec())
    threads = [
        threading.Thread(target=lambda n=n: results.append(sandbox.exec(["echo", str(n)]).stdout)) for n in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, results)) == list(range(24))


def test_what_is_required_and_lacking_fails_closed() -> None:
    with pytest.raises(MissingDependency, match="kernel_isolation"):
        open_backend().start(SandboxSpec(requires=frozenset({"kernel_isolation"})))
    probe = BackendProbe(
        available=False, capabilities=BackendCapabilities(), missing=("bubblewrap (apt-get install bubblewrap)",)
    )
    with pytest.raises(MissingDependency, match="apt-get install bubblewrap"):
        require_capabilities("bubblewrap", probe, frozenset())


def test_bad_input_is_named(tmp_path: Path) -> None:
    for argv in ([], [""], ["a\0b"]):
        with pytest.raises(BadInput):
            BubblewrapBackend().start(SandboxSpec()).exec(argv)
    with pytest.raises(BadInput, match="no such workspace"):
        BubblewrapBackend().start(SandboxSpec(workspace=tmp_path / "missing"))
    with pytest.raises(BadInput, match="does not exist"):
        BubblewrapBackend().start(SandboxSpec(policy=SandboxPolicy(read_only=("/no/such/path",))))
    with pytest.raises(BadInput, match="unknown sandbox backend"):
        open_backend("nonsense")


def test_an_interrupt_ends_the_sandbox(tmp_path: Path) -> None:
    """Ctrl-C at the host: the command is gone before the host is."""
    nonce = f"100000.{os.getpid()}"
    script = f"""
import signal
from pathlib import Path
from gametape.sandbox.backend import SandboxSpec, open_backend
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it
spec = SandboxSpec(workspace=Path({str(tmp_path)!r}))
open_backend().start(spec).exec(["sh", "-c", "echo > up; sleep 10" + "{nonce[2:]}"])
"""
    host = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    wait_until((tmp_path / "up").exists, "the start of the command")
    host.send_signal(signal.SIGINT)
    _, error = host.communicate(timeout=HANG)
    assert b"KeyboardInterrupt" in error
    assert processes_with(nonce) == []
