"""What the network proxy does for an honest job, what it records, and what happens at its limits."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import MissingDependency
from gametape.sandbox import network_policy
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.docker import DockerBackend
from gametape.sandbox.network_policy import NetworkAccess
from gametape.sandbox.network_proxy import NetworkProxy
from gametape.sandbox.oci import OciBackend
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.result import BackendCapabilities, BackendProbe, ExecResult
from gametape.sandbox.session import open_session
from tests.sandbox.network.stage import NetworkStage, open_stage


@pytest.fixture(scope="module")
def stage() -> Iterator[NetworkStage]:
    with open_stage() as stage:
        yield stage


@pytest.fixture(autouse=True)
def _fresh(stage: NetworkStage) -> None:
    stage.forget()


def execute(stage: NetworkStage, program: str, log: Path | None = None, **changes: Any) -> ExecResult:
    policy = SandboxPolicy(network_access=stage.access(**changes)).with_limits(wall_seconds=600)
    ports = "".join(f"{name} = {port}\n" for name, port in stage.ports.items())
    spec = SandboxSpec(policy=policy, network_log=log)
    return open_backend().start(spec).exec(["python3", "-c", f"{ports}{program}"])


FETCH = """
import urllib.request
def fetch(url, **more):
    return urllib.request.urlopen(urllib.request.Request(url, **more)).read().decode()
"""


def test_an_honest_job_is_served_and_recorded(stage: NetworkStage, tmp_path: Path) -> None:
    log = tmp_path / "network.jsonl"
    program = """
print(fetch(f"http://allowed.test:{A}/one?token=hunter2", headers={"Authorization": "Bearer s3cr3t"}))
print(fetch(f"http://a.wild.test:{A}/two", data=b"b0dy" * 50_000))
"""
    result = execute(stage, FETCH + program, log)
    assert (result.exit_code, result.stdout) == (0, "answer to /one?token=hunter2\nanswer to /two\n"), result.stderr
    assert [(seen["method"], seen["path"], len(seen["body"])) for seen in stage.seen] == [
        ("GET", "/one?token=hunter2", 0),
        ("POST", "/two", 200_000),
    ]
    assert ("authorization", "Bearer s3cr3t") in stage.seen[0]["headers"]
    first, second = result.network
    assert (first.method, first.host, first.port, first.path, first.allowed, first.reason, first.address) == (
        *("GET", "allowed.test", stage.ports["A"], "/one"),
        *(True, "", "127.0.0.1"),
    )
    assert (second.sent_bytes > 200_000, second.received_bytes > 0, second.seconds is None) == (True, True, False)
    text = log.read_text()
    assert not any(secret in text for secret in ("hunter2", "s3cr3t", "Authorization", "b0dy"))
    records = [json.loads(line) for line in text.splitlines()]
    assert [(record["number"], record["seconds"] is None) for record in records] == [
        *((1, True), (1, False), (2, True), (2, False)),
    ]
    assert records[1] == first.model_dump(mode="json")


def test_tls_passes_unopened(stage: NetworkStage) -> None:
    program = """
import ssl
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
print(urllib.request.urlopen(f"https://tls.test:{T}/inside", context=context).read().decode())
"""
    result = execute(stage, FETCH + program)
    assert result.stdout == "answer to /inside\n", result.stderr
    (request,) = result.network
    assert (request.method, request.host, request.path, request.allowed, request.reason) == (
        *("CONNECT", "tls.test", ""),
        *(True, ""),
    )


def test_a_program_inside_finds_its_own_loopback_without_the_proxy(stage: NetworkStage) -> None:
    access = NetworkAccess(hosts=(f"allowed.test:{stage.ports['A']}",))
    program = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.handle_request).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/").status)
"""
    policy = SandboxPolicy(network_access=access)
    result = open_backend().start(SandboxSpec(policy=policy)).exec(["python3", "-c", program])
    assert (result.stdout, result.network) == ("200\n", ()), result.stderr


def test_nothing_inside_can_take_the_proxy_away(stage: NetworkStage) -> None:
    policy = SandboxPolicy(network_access=stage.access())
    url = f"http://allowed.test:{stage.ports['A']}"
    bind = "import socket; s = socket.socket(); s.setsockopt(1, 2, 1); s.setsockopt(1, 15, 1); s.bind((a, 3128))"
    with open_session(SandboxSpec(policy=policy)) as session:
        assert session.run(f"curl -sS {url}/1").stdout == "answer to /1"
        for address in ("127.0.0.1", "0.0.0.0", ""):
            assert "already in use" in session.run(f"python3 -c 'a = \"{address}\"; {bind}'").stderr
        names = session.run("cat /proc/[0-9]*/comm").stdout.split()
        assert not {"python3", "python", "gametape"} & set(names)
        session.run("kill -9 -1")
        again = session.run(f"curl -sS {url}/2; curl -sS http://evil.test/")
        assert (again.stdout, [request.reason for request in again.network][-1]) == (
            "answer to /2gametape: host not allowed\n",
            "host not allowed",
        )
        assert session.run("true").network == ()


def test_a_connection_ends_with_its_sandbox(stage: NetworkStage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        policy = SandboxPolicy(network_access=NetworkAccess(hosts=(f"127.0.0.1:{port}",)))
        with open_session(SandboxSpec(policy=policy)) as session:
            session.run(f"curl -sS http://127.0.0.1:{port}/ & sleep 0")
            connection, _address = server.accept()
            assert connection.recv(3) == b"GET"
        with connection:
            assert list(iter(lambda: connection.recv(1 << 16), b""))  # the rest of the request, then the end


def test_names_are_looked_up_once_and_only_those_that_are_allowed(stage: NetworkStage) -> None:
    program = """
import urllib.error
for url in (f"http://allowed.test:{A}/", f"http://leak.evil.test:{A}/", f"http://allowed.test:{B}/"):
    try:
        fetch(url)
    except urllib.error.HTTPError as error:
        print(error.code, error.reason)
"""
    assert execute(stage, FETCH + program).stdout == "403 host not allowed\n403 port not allowed\n"
    assert stage.looked_up == ["allowed.test"]


def test_this_machines_own_address_is_not_public(stage: NetworkStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public address of the host itself would lead to servers that listen on all addresses."""
    monkeypatch.setattr(network_policy, "is_public", lambda _address: True)
    result = execute(stage, FETCH + 'fetch(f"http://rebind.test:{B}/")')
    assert [request.reason for request in result.network] == ["address not public"]
    assert all(received == b"" for received in stage.forbidden.received)


class _Served:
    """A proxy on a socket of this machine, without a sandbox around its client."""

    def __init__(self, access: NetworkAccess, log: Path | None = None) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.proxy = NetworkProxy(access, log)
        self.proxy.serve(self.listener)

    def ask(self, text: str) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(text.encode())
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))

    def __enter__(self) -> "_Served":
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.close()


def test_more_connections_than_allowed_wait_for_their_turn(stage: NetworkStage) -> None:
    request = (
        f"GET http://allowed.test:{stage.ports['A']}/late HTTP/1.1\r\nHost: allowed.test:{stage.ports['A']}\r\n\r\n"
    )
    with _Served(stage.access(connections=2, head_seconds=3600)) as served:
        held = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(2)]
        with socket.create_connection(("127.0.0.1", served.port)) as late:
            late.sendall(request.encode())
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.recv(1)
            held.pop().close()
            late.settimeout(None)
            assert late.recv(12) == b"HTTP/1.1 200"
        held.pop().close()


def test_after_its_last_request_nothing_listens(stage: NetworkStage) -> None:
    with _Served(stage.access(requests=2)) as served:
        for _ in range(2):
            assert b"403 host not allowed" in served.ask("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        with pytest.raises(ConnectionError):
            served.ask("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        assert len(served.proxy.take_requests()) == 2


def _flood(upstream: socket.socket) -> None:
    """Send until the other side has had enough."""
    with contextlib.suppress(OSError):
        while True:
            upstream.sendall(bytes(1 << 16))


def test_an_answer_without_end_is_cut_off(stage: NetworkStage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with _Served(NetworkAccess(hosts=(f"127.0.0.1:{port}",), received_mb=1)) as served:
            client = socket.create_connection(("127.0.0.1", served.port))
            client.sendall(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            upstream, _address = server.accept()
            upstream.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            with client, upstream:
                pump = threading.Thread(target=_flood, args=(upstream,))
                pump.start()
                received = 0
                with contextlib.suppress(ConnectionResetError):
                    while piece := client.recv(1 << 16):
                        received += len(piece)
                pump.join()
            served.proxy.close()
            (request,) = served.proxy.take_requests()
    assert request.reason == "limit on bytes received"
    assert 0 < received < (1 << 20) + (1 << 16)  # and what the lengths of its pieces take


def test_a_request_that_cannot_be_recorded_is_not_let_through(stage: NetworkStage, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with _Served(stage.access(), log=tmp_path / "log") as served:
        port = stage.ports["A"]
        assert served.ask(f"GET http://allowed.test:{port}/ HTTP/1.1\r\nHost: allowed.test:{port}\r\n\r\n") == b""
    assert stage.seen == []


@pytest.mark.parametrize("backend", [OciBackend(), DockerBackend()], ids=lambda backend: backend.name)
def test_a_backend_without_a_proxy_does_not_start(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    works = BackendProbe(available=True, capabilities=BackendCapabilities(network_isolation=True))
    monkeypatch.setattr(type(backend), "probe", lambda _self: works)
    spec = SandboxSpec(policy=SandboxPolicy(network_access=NetworkAccess(hosts=("example.com",))))
    with pytest.raises(MissingDependency, match="cannot give network_access here"):
        backend.start(spec)


def test_a_sandbox_without_a_network_of_its_own_gets_no_proxy(stage: NetworkStage) -> None:
    from gametape.sandbox.bubblewrap import BubblewrapBackend
    from gametape.sandbox.keeper_client import SandboxError

    spec = SandboxSpec(policy=SandboxPolicy(network_access=stage.access()))
    with pytest.raises(SandboxError, match="no network of its own"):
        BubblewrapBackend().start(spec, without=frozenset({"own-network"})).exec(["true"])
