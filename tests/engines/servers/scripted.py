"""A real HTTP server on loopback that plays a script: turns of a model, and faults between them.

A protocol adds three things: how a request is checked (`refuse`), how a turn becomes the bytes of a stream (`stream`),
and what stands at other paths (`answer`). Every request that asks for a turn takes the next item of the script, unless
the protocol refuses the request: then the item stays, as a server that refuses has done no work.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class ScriptedCall:
    """A call of a tool."""

    name: str
    arguments: dict[str, Any]
    id: str


@dataclass(frozen=True)
class Turn:
    """What the model says in one turn. `stop` is the protocol's own word for why it ended."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: dict[str, Any] = field(default_factory=dict)
    stop: str | None = None


@dataclass(frozen=True)
class HTTPFault:
    """An answer with this status instead of a turn."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CutFault:
    """The turn's stream, closed after this many events."""

    turn: Turn
    events: int


@dataclass(frozen=True)
class RawFault:
    """These bytes instead of the rest of the turn's stream, after this many events."""

    turn: Turn
    events: int
    raw: bytes


ScriptItem = Turn | HTTPFault | CutFault | RawFault


@dataclass(frozen=True)
class Request:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ScriptedServer:
    """`requests` are those that asked for a turn, `seen` all of them. `key` is what a client must send, and `said` are
    the turns that it was sent whole."""

    turn_path = ""

    def __init__(self, script: Sequence[ScriptItem], key: str | None = None) -> None:
        self.script = list(script)
        self.key = key
        self.seen: list[Request] = []
        self.said: list[Turn] = []
        self._lock = threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.owner = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def requests(self) -> list[Request]:
        return [request for request in self.seen if request.path == self.turn_path and request.method == "POST"]

    def refuse(self, request: Request) -> HTTPFault | None:
        """The answer to a request that the protocol does not allow."""
        raise NotImplementedError

    def stream(self, turn: Turn, request: Request) -> Iterator[bytes]:
        """The events of a turn."""
        raise NotImplementedError

    def answer(self, request: Request) -> HTTPFault:
        """The answer at any other path."""
        return HTTPFault(404, {"error": {"message": f"no {request.path} here"}})

    def next_item(self) -> ScriptItem:
        with self._lock:
            return self.script.pop(0) if self.script else HTTPFault(500, {"error": {"message": "the script is over"}})

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: ScriptedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients leave in the middle of what is cut."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send_answer(self.server.owner.answer(self._received("GET", {})))

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        request = self._received("POST", body)
        if request.path != owner.turn_path:
            return self._send_answer(owner.answer(request))
        refusal = owner.refuse(request)
        item = refusal or owner.next_item()
        match item:
            case HTTPFault():
                self._send_answer(item)
            case Turn():
                owner.said.append(item)
                self._send_stream([*owner.stream(item, request)])
            case CutFault(turn, events):
                self._send_stream([*owner.stream(turn, request)][:events], whole=False)
            case RawFault(turn, events, raw):
                self._send_stream([*[*owner.stream(turn, request)][:events], raw])
        return None

    def _received(self, method: str, body: dict[str, Any]) -> Request:
        request = Request(method, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.server.owner.seen.append(request)
        return request

    def _send_answer(self, answer: HTTPFault) -> None:
        content = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_stream(self, events: list[bytes], whole: bool = True) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        if whole:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


def pieces(text: str, size: int = 7) -> list[str]:
    """A text as a stream cuts it."""
    return [text[at : at + size] for at in range(0, len(text), size)]
