"""A model that never answers: there is nothing to judge, and the exit code says whether something is missing here."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Ran, run
from tests.desk.goals.shop import BY_EXIT_CODE, lay
from tests.engines.openai.server import FaultServer, Said, Status

TASK = Path(__file__).parents[2] / "examples/tasks/double"
pytestmark = pytest.mark.usefixtures("tasks_prepared_once")
DONE = Said("Done.", (("finish", json.dumps({"summary": "done", "confidence": 1.0})),))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(replies=[DONE], token_mode=False, window=1 << 16) as running:
        yield running


def _solve(tmp_path: Path, server: FaultServer) -> Ran:
    words = ("solve", TASK, "--model", f"openai:test@{server.url}", "--out", tmp_path / "out", "--json")
    return run(*words, "--home", tmp_path / "home")


@pytest.mark.parametrize(("fault", "code"), [(Status(401), 3), (Status(403), 3), (Status(400), 1)])
def test_solve_gives_no_verdict(tmp_path: Path, server: FaultServer, fault: Status, code: int) -> None:
    server.faults = [fault] * 9
    ran = _solve(tmp_path, server)
    assert (ran.code, ran.answer["outcome"], ran.answer["verdict"], ran.answer["turns"]) == (code, "error", None, 0)
    host = server.url.removeprefix("http://").split("/")[0]
    assert host in ran.answer["reason"]
    assert f"answered {fault.code}" in ran.answer["reason"]
    assert "\n" not in ran.answer["reason"]
    shown = run("trajectory", "check", ran.answer["trajectory"])
    assert shown.code == 0, shown.out


def test_a_model_that_answered_once_has_a_verdict_all_the_same(tmp_path: Path) -> None:
    looks = Said("I look.", (("read", json.dumps({"path": "double.py"})),))
    with FaultServer(replies=[looks], token_mode=False, window=1 << 16) as server:
        server.faults = [None, *[Status(401)] * 9]
        ran = _solve(tmp_path, server)
    assert (ran.code, ran.answer["outcome"], ran.answer["turns"]) == (3, "error", 1)
    assert ran.answer["verdict"]["passed"] is False


def test_a_goal_has_no_attempt(tmp_path: Path, server: FaultServer) -> None:
    server.faults = [Status(401)] * 9
    aim = ("--workspace", lay(tmp_path / "workspace"), "--success", BY_EXIT_CODE)
    words = (*aim, "--home", tmp_path / "home", "--json")
    ran = run("goal", "run", *words, "--model", f"openai:test@{server.url}")
    assert ran.code == 3
    assert (ran.answer["reached"], ran.answer["attempts"], ran.answer["tokens"]) == (False, [], 0)
    assert ran.answer["reason"].startswith("error: ")
    assert "401" in ran.answer["reason"]
    assert ran.answer["branch"] is None


def test_a_thread_says_why(tmp_path: Path, server: FaultServer) -> None:
    home = ("--home", tmp_path / "home")
    thread = run("thread", "new", "--model", f"openai:test@{server.url}", "--json", *home).answer["thread"]
    server.faults = [Status(401)] * 9
    ran = run("thread", "say", thread, "Hello", "--json", *home)
    assert (ran.code, ran.answer["ended"]) == (3, "error")
    assert "401" in ran.answer["reason"]


def test_eval_counts_attempts_that_broke_off_apart(tmp_path: Path, server: FaultServer) -> None:
    words = ("eval", TASK, "--model", f"openai:test@{server.url}", "-n", "2", "--jobs", "1", "--json")
    server.faults = [Status(401), None]
    ran = run(*words, "--home", tmp_path / "home")
    assert ran.code == 0, ran.err
    assert (ran.answer["attempts"], ran.answer["errors"], ran.answer["success"]["n"]) == (2, 1, 1)
    ((reason, number),) = ran.answer["error_reasons"].items()
    assert number == 1
    assert "401" in reason
    server.faults = [Status(400)] * 9
    assert run(*words, "--home", tmp_path / "home").code == 1
    server.faults = [Status(401)] * 9
    refused = run(*words, "--home", tmp_path / "home")
    assert refused.code == 3
    assert "401" in refused.err.splitlines()[-1]


def test_a_server_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("solve", TASK, "--model", f"openai:test@http://127.0.0.1:{port}/v1", "--out", tmp_path / "out")
    ran = run(*words, "--home", tmp_path / "home")
    assert ran.code == 3
    assert "cannot be reached" in ran.err
