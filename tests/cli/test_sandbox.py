"""`gametape sandbox exec` as scripts use it: a real process, its exit code, the JSON on its last line."""

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import gametape


def execute(*words: str, env: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    done = gametape("sandbox", "exec", "--json", *words, env=env)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def test_the_answer_holds_what_the_contract_promises() -> None:
    code, answer = execute("--", "sh", "-c", "echo hello; exit 3")
    assert code == 1
    assert (answer["exit_code"], answer["signal"], answer["killed_by"]) == (3, None, None)
    assert (answer["stdout"], answer["backend"]) == ("hello\n", "bubblewrap")
    expected = {"stderr", "usage", "violations", "assurance", "policy_hash", "held_by"}
    assert expected <= set(answer)


def test_success_is_exit_code_0() -> None:
    assert gametape("sandbox", "exec", "--", "true").returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sh", "-c", "exit 3"), "gametape: the command ended with exit code 3\n"),
        (("no-such-program",), "exit code 127 (there is no such program in the sandbox)\n"),
    ],
)
def test_a_failure_is_said_to_a_person(words: tuple[str, ...], says: str) -> None:
    done = gametape("sandbox", "exec", "--", *words)
    assert done.returncode == 1
    assert done.stderr.endswith(says)


def test_a_program_that_reads_the_password_file() -> None:
    code, answer = execute("--", "python3", "-c", "print(open('/etc/shadow').read())")
    assert (code, answer["exit_code"], answer["killed_by"], answer["stdout"]) == (1, 1, None, "")
    (violation,) = answer["violations"]
    assert (violation["syscall"], violation["args"][1], violation["action"]) == (
        "openat",
        "/etc/shadow",
        "denied",
    )
    assert set(violation) == {"syscall", "args", "pid", "command", "time", "action"}


def test_a_program_that_connects_to_a_listening_port_of_the_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, answer = execute("--", "python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}))")
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert (code, answer["exit_code"], answer["killed_by"]) == (1, 1, None)
    assert [violation["syscall"] for violation in answer["violations"]] == ["socket"]
    assert "AF_INET" in answer["violations"][0]["args"]


@pytest.mark.parametrize(
    ("options", "program", "killed_by"),
    [
        (["--memory", "300"], "x = b'x' * (8 << 30)", "memory"),
        (["--processes", "50"], "import os\nwhile True: os.fork()", "processes"),
        (["--output-bytes", "5000"], "while True: print('x' * 100)", "output"),
        (["--timeout", "0.5"], "import time\nwhile True: time.sleep(100)", "time"),
        (["--disk", "30"], "f = open('f', 'wb')\nwhile True: f.write(bytes(1 << 20))", "disk"),
        (["--cpu", "1"], "while True: pass", "cpu"),
    ],
)
def test_a_program_without_end(options: list[str], program: str, killed_by: str) -> None:
    code, answer = execute(*options, "--", "python3", "-c", program)
    assert (code, answer["killed_by"], answer["violations"]) == (1, killed_by, [])
    assert answer["exit_code"] != 0


def test_a_host_that_was_allowed_is_reached_and_another_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer_one() -> None:
            connection, _address = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

        threading.Thread(target=answer_one, daemon=True).start()
        program = f"curl -sS http://127.0.0.1:{port}/a; curl -sS http://127.0.0.1:1/b; curl -sS https://example.com/"
        code, answer = execute("--allow-host", f"127.0.0.1:{port}", "--", "sh", "-c", program)
    assert (code, answer["stdout"], answer["violations"]) == (1, "higametape: port not allowed\n", [])
    found = [(one["method"], one["host"], one["path"], one["allowed"], one["reason"]) for one in answer["network"]]
    assert found == [
        ("GET", "127.0.0.1", "/a", True, ""),
        ("GET", "127.0.0.1", "/b", False, "port not allowed"),
        ("CONNECT", "example.com", "", False, "host not allowed"),
    ]


@pytest.mark.parametrize("host", ["*", "https://example.com", "*.com", "example.com:0"])
def test_a_host_that_cannot_be_allowed_is_bad_input(host: str) -> None:
    done = gametape("sandbox", "exec", "--allow-host", host, "--", "true")
    assert done.returncode == 2
    assert host in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_hosts_can_be_allowed_in_a_policy_file(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[network_access]\nhosts = ["allowed.example"]\nmethods = ["GET"]\n')
    program = "curl -sS http://evil.example/; curl -sS -X POST http://allowed.example/"
    _code, answer = execute("--policy", str(policy), "--", "sh", "-c", program)
    assert [one["reason"] for one in answer["network"]] == ["host not allowed", "method not allowed"]
    policy.write_text('[network_access]\nhosts = ["*"]\n')
    done = gametape("sandbox", "exec", "--policy", str(policy), "--", "true")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_secrets_of_the_host_are_masked_in_what_a_program_prints(tmp_path: Path) -> None:
    (tmp_path / "leak").write_text("the key is hunter2-hunter2\n")
    env = {**os.environ, "SERVICE_API_KEY": "hunter2-hunter2"}
    _, answer = execute("--workspace", str(tmp_path), "--", "cat", "leak", env=env)
    assert answer["stdout"] == "the key is [masked]\n"


def test_a_policy_file_is_obeyed(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('on_violation = "kill"\n[environment]\nCOLOUR = "blue"\n[limits]\nmemory_mb = 100\n')
    _, answer = execute("--policy", str(policy), "--", "sh", "-c", "echo $COLOUR; cat /etc/shadow; echo after")
    assert (answer["stdout"], answer["killed_by"]) == ("blue\n", "policy")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--memory", "lots", "--", "true"], "--memory"),
        (["--memory", "-5", "--", "true"], "memory"),
        (["--timeout", "0", "--", "true"], "wall_seconds"),
        (["--backend", "wishful", "--", "true"], "unknown sandbox backend 'wishful'"),
        (["--workspace", "/no/such/place", "--", "true"], "/no/such/place"),
        (["--policy", "/no/such/file", "--", "true"], "/no/such/file"),
        (["--policy", "/etc/hostname", "--", "true"], "/etc/hostname"),
        (["--nonsense", "--", "true"], "--nonsense"),
        (["--"], "ARGV"),
        ([], "ARGV"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: list[str], says: str) -> None:
    done = gametape("sandbox", "exec", *words)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr


def test_a_bad_policy_field_is_named(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"limits": {"memory_mb": "much"}}')
    done = gametape("sandbox", "exec", "--policy", str(policy), "--", "true")
    assert done.returncode == 2
    assert "limits.memory_mb" in done.stderr
    assert str(policy) in done.stderr


def test_without_bubblewrap_the_exit_code_is_3_and_the_cure_is_named(tmp_path: Path) -> None:
    done = gametape("sandbox", "exec", "--", "true", env={"PATH": str(tmp_path)})
    assert done.returncode == 3
    assert "apt-get install bubblewrap" in done.stderr
    assert len(done.stderr.splitlines()) == 1
