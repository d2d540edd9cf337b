"""`--allow-host` of the verbs that let an agent work: the agent reaches the host, and it is told and recorded.

Nobody else gets there: not the verifier, not the judge."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import gametape as package
from gametape.record.trajectory_file import load_trajectory
from gametape.verify.integrity.trajectory_audit import audit_trajectory
from tests.cli.command import run
from tests.desk.goals.shop import DONE, call, script

TASK = Path(__file__).parents[2] / "examples/tasks/slugs"


class Server(threading.Thread):
    """Answers every request with `pong`, and remembers their first lines."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.asked: list[str] = []
        self.start()

    def run(self) -> None:
        while True:
            try:
                connection, _address = self.listener.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(1 << 16).decode().partition("\r\n")[0])
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npong")

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.listener.close()


def test_the_agent_of_a_goal_reaches_it_and_the_judge_does_not(server: Server, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    judged = f'test "$(cat got)" = pong && test -z "$http_proxy" && ! curl -s {server.url}/judge'
    (workspace / "check.sh").write_text(f"{judged}\n")
    asks = [call("shell", command=f"curl -sS {server.url}/agent > got; curl -sS https://example.com/"), DONE]
    model, home = script(tmp_path / "turns.jsonl", asks), tmp_path / "home"
    words = ("--workspace", workspace, "--success", "sh check.sh", "--model", model, "--home", home, "--json")
    ran = run("goal", "run", *words, "--allow-host", server.host)
    assert ran.code == 0, ran.err
    assert server.asked == ["GET /agent HTTP/1.1"]
    network = ran.answer["network"]
    assert (network["hosts"], network["requests"], network["refused"]) == ([server.host], 2, 1)
    records = [json.loads(line) for line in Path(network["log"]).read_text().splitlines()]
    assert [(record["host"], record["allowed"]) for record in records if record["seconds"] is not None] == [
        ("127.0.0.1", True),
        ("example.com", False),
    ]
    trajectory = load_trajectory(Path(ran.answer["trajectory"]))
    assert (trajectory.extra or {})["network_hosts"] == [server.host]
    assert f"Hosts that you can reach: {server.host}." in str(trajectory.steps[0].message)
    assert "without network" not in str(trajectory.steps[0].message)
    assert [flag for flag in audit_trajectory(trajectory) if flag.rule == "network.fetched"] == []


def test_an_attempt_at_a_task_has_no_hosts_unless_they_are_named(server: Server, tmp_path: Path) -> None:
    turns = [call("shell", command=f"curl -sS {server.url}/agent"), DONE]
    words = ("solve", TASK, "--model", script(tmp_path / "turns.jsonl", turns), "--json", "--out")
    without = run(*words, tmp_path / "without")
    assert (without.code, server.asked, "network" in without.answer) == (1, [], False)
    extra = load_trajectory(Path(without.answer["trajectory"])).extra or {}
    assert not {"network", "network_hosts"} & set(extra)
    ran = run(*words, tmp_path / "with", "--allow-host", server.host)
    assert (ran.code, server.asked) == (1, ["GET /agent HTTP/1.1"])
    record = load_trajectory(Path(ran.answer["trajectory"]))
    assert (record.extra or {})["network"] == ran.answer["network"]
    assert "pong" in record.steps[2].model_dump_json()
    refused = run(*words, tmp_path / "with", "--resume")
    assert (refused.code, f"begun with {server.host} allowed" in refused.err) == (2, True)


def test_a_thread_keeps_its_hosts(server: Server, tmp_path: Path) -> None:
    arguments = {"command": f"curl -sS {server.url}/thread"}
    turns = [{"text": "", "tool_calls": [{"name": "shell", "arguments": arguments}]}, {"text": "Done."}]
    (tmp_path / "turns.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    home, model = ("--home", tmp_path / "home"), f"scripted:{tmp_path / 'turns.jsonl'}"
    made = run("thread", "new", "--model", model, "--allow-host", server.host, *home, "--json")
    assert run("thread", "say", made.answer["thread"], "Go", *home).out == "Done.\n"
    assert server.asked == ["GET /thread HTTP/1.1"]
    log = Path(made.answer["directory"], "network.jsonl")
    assert json.loads(log.read_text().splitlines()[-1])["path"] == "/thread"
    refused = run("thread", "new", "--model", model, "--allow-host", server.host, "--local-only", *home)
    assert (refused.code, "--local-only" in refused.err) == (2, True)


@pytest.mark.parametrize("verb", ["solve", "goal", "thread"])
def test_a_host_that_cannot_be_allowed_is_refused_before_anything_is_made(verb: str, tmp_path: Path) -> None:
    model, home = script(tmp_path / "turns.jsonl", [DONE]), ("--home", tmp_path / "home")
    (tmp_path / "work").mkdir()
    words: dict[str, tuple[str | Path, ...]] = {
        "solve": ("solve", TASK, "--out", tmp_path / "out"),
        "goal": ("goal", "run", "--workspace", tmp_path / "work", "--success", "true"),
        "thread": ("thread", "new"),
    }
    ran = run(*words[verb], "--model", model, *home, "--allow-host", "*.com")
    assert (ran.code, ran.err.count("\n"), "*.com" in ran.err) == (2, 1, True)
    assert not (tmp_path / "out").exists()


def test_nobody_but_an_agent_is_given_hosts() -> None:
    """The verifier, the judge, training and everything else start their sandboxes without hosts."""
    giving = re.compile(r"\b(with_hosts|allow_hosts)\(|network_access=(?!True|None)")
    root = Path(package.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if giving.search(path.read_text())}
    assert found == {
        "agent/allowed_hosts.py",
        "agent/solve.py",
        "cli/sandbox.py",
        "desk/goals/goal_agent.py",
        "desk/threads/session.py",
        "sandbox/policy.py",
    }
