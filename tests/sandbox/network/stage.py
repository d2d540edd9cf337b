"""The outside world of the network tests, all of it on this machine's loopback: servers that a sandbox may reach, one
that it must not, and the names that lead to them."""

import http.server
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.sandbox import host_names
from gametape.sandbox.host_names import IpAddress
from gametape.sandbox.network_policy import NetworkAccess

MARKER = "planted-7f3a"
"""What the forbidden server answers."""

_LOOPBACK = ipaddress.ip_address("127.0.0.1")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        seen: list[dict[str, Any]] = self.server.seen  # type: ignore[attr-defined]
        seen.append({"method": self.command, "path": self.path, "headers": list(self.headers.items()), "body": body})
        answer = f"answer to {self.path}".encode()
        if location := getattr(self.server, "redirect", None) if self.path == "/redirect" else None:
            self.send_response(302)
            self.send_header("Location", location)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        """Nothing: the test looks at `seen`."""


class _ForbiddenServer(threading.Thread):
    """Counts every connection and answers each with the marker."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.received: list[bytes] = []
        self.start()

    def run(self) -> None:
        while True:
            try:
                connection, _address = self.listener.accept()
            except OSError:
                return
            self.received.append(b"")
            threading.Thread(target=self._serve, args=(connection, len(self.received) - 1), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection:
            try:
                self.received[number] += connection.recv(1 << 16)
                body = MARKER.encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n" + body)
            except OSError:
                return


@dataclass
class NetworkStage:
    """What the attacks are played on."""

    allowed: http.server.ThreadingHTTPServer
    tls: http.server.ThreadingHTTPServer
    forbidden: _ForbiddenServer
    names: dict[str, list[str]] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)

    @property
    def seen(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.allowed.seen  # type: ignore[attr-defined]
        return found

    @property
    def ports(self) -> dict[str, int]:
        return {"A": self.allowed.server_port, "T": self.tls.server_port, "B": self.forbidden.port}

    def access(self, **changes: Any) -> NetworkAccess:
        """The policy under attack: four names and the addresses of the two servers; nothing of the forbidden one but
        a name whose owner has turned it to this machine."""
        a, t, b = self.ports["A"], self.ports["T"], self.ports["B"]
        hosts = (f"allowed.test:{a}", f"*.wild.test:{a}", f"tls.test:{t}", f"rebind.test:{b}")
        return NetworkAccess(hosts=(*hosts, f"127.0.0.1:{a}", f"127.0.0.1:{t}"), **changes)

    def forget(self) -> None:
        self.seen.clear()
        self.forbidden.received.clear()
        self.looked_up.clear()

    async def resolve(self, name: str, port: int) -> list[IpAddress]:
        """Every name leads to this machine."""
        self.looked_up.append(name)
        return [ipaddress.ip_address(text) for text in self.names.get(name, [])] or [_LOOPBACK]


@contextmanager
def open_stage() -> Iterator[NetworkStage]:
    """The servers, and the resolver of this process turned to them."""
    allowed = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    tls = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("tls.pem"))
    tls.socket = context.wrap_socket(tls.socket, server_side=True, do_handshake_on_connect=False)
    stage = NetworkStage(allowed, tls, _ForbiddenServer())
    for server in (allowed, tls):
        server.seen = []  # type: ignore[attr-defined]
        server.redirect = f"http://127.0.0.1:{stage.ports['B']}/"  # type: ignore[attr-defined]
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    real = host_names.resolve_host
    host_names.resolve_host = stage.resolve
    try:
        yield stage
    finally:
        host_names.resolve_host = real
        for server in (allowed, tls):
            server.shutdown()
            server.server_close()
        stage.forbidden.listener.close()
