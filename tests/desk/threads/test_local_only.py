"""A thread that must not leave this machine: a server elsewhere sees not one connection, whatever is tried."""

import json
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest

from gametape.desk.threads import agent_setup, lifecycle
from gametape.desk.threads.lifecycle import fork_thread
from gametape.desk.threads.thread import thread_ids
from gametape.engines.egress_policy import EgressDenied, EgressPolicy
from gametape.engines.router import Router, RouterArm
from tests.engines.openai.server import FaultServer, Said, Status

from .bench import Bench, says


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes 127.0.0.2 another machine for everything that threads open."""

    def perimeter(local_only: bool = False) -> EgressPolicy:
        return EgressPolicy(local_only, is_local_address=lambda address: address == ip_address("127.0.0.1"))

    for module in (lifecycle, agent_setup):
        monkeypatch.setattr(module, "EgressPolicy", perimeter)
    return "127.0.0.2"


def test_it_is_not_begun_with_a_model_elsewhere(tmp_path: Path, elsewhere: str) -> None:
    bench = Bench(tmp_path, [says("x")])
    with FaultServer(host=elsewhere) as server:
        for url in (f"{server.url}/v1", server.url.replace("127.0.0.2", "localhost.evil.example")):
            with pytest.raises(EgressDenied):
                bench.begin(model=f"openai:tiny@{url}", local_only=True)
        assert server.connections == 0
    assert thread_ids(bench.home) == []


def test_it_stays_after_its_file_was_edited_and_in_its_forks(tmp_path: Path, elsewhere: str) -> None:
    bench = Bench(tmp_path, [says("Here."), says("Still here.")])
    directory = bench.begin(local_only=True)
    assert bench.say(directory, "first").answer == "Here."
    forked = fork_thread(bench.home, directory.root.name)
    with FaultServer(host=elsewhere) as server:
        for one in (directory, forked):
            document = json.loads(one.thread_file.read_text())
            document |= {"model": f"openai:tiny@{server.url}/v1", "local_only": False}
            one.thread_file.write_text(json.dumps(document))
            with pytest.raises(EgressDenied):
                bench.say(one, "second")
        assert server.connections == 0


def test_a_local_server_that_fails_or_redirects_sends_nothing_elsewhere(tmp_path: Path, elsewhere: str) -> None:
    bench = Bench(tmp_path, [])
    with FaultServer(host=elsewhere) as away:
        move = Status(307, {"location": f"{away.url}/v1/chat/completions"})
        with FaultServer([Said("Here.")], faults=[None, move, Status(400)], window=32_000) as here:
            directory = bench.begin(model=f"openai:tiny@{here.url}/v1", local_only=True)
            assert bench.say(directory, "first").answer == "Here."
            assert bench.say(directory, "second").ended == "error"
            assert bench.say(directory, "third").ended == "error"
        assert away.connections == 0


def test_a_cascade_never_leaves(tmp_path: Path, elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, [says("Here."), says("Still here.")])
    real = agent_setup.resolve_model
    with FaultServer(host=elsewhere) as away:

        def cascade(name: str, home: Path, perimeter: EgressPolicy) -> Router:
            """A router whose frontier was opened without a perimeter, and which expects nothing of the local one."""
            frontier = real(f"openai:tiny@{away.url}/v1", home, replace(perimeter, local_only=False))
            return Router(RouterArm(real(name, home, perimeter)), RouterArm(frontier), perimeter, lambda: 0.0)

        directory = bench.begin(local_only=True)
        monkeypatch.setattr(agent_setup, "resolve_model", cascade)
        assert bench.say(directory, "first").answer == "Here."
        assert away.requests == []
