"""A small real server that speaks Ollama's own protocol: `/api/show`, `/api/tags` and `/api/chat` as JSON lines.

    with OllamaServer([Turn("hello", thinking="hm", calls=[("read", {"path": "a"})])]) as server:
        ... f"ollama:tiny@{server.url}" ...

Requests for a chat take the next turn, or the next fault where one is due; the last turn is repeated. As the real one,
it refuses tools and thinking that the model does not have, and knows only its own models.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

CREATED = "2026-11-16T12:00:00.000000Z"


@dataclass(frozen=True)
class Turn:
    """An answer of the model. `ids` are there in newer versions only."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    reason: str | None = "stop"
    ids: bool = False
    counts: bool = True


@dataclass(frozen=True)
class Status:
    """Answers with a status instead."""

    code: int
    error: str = "server busy, please try again.  maximum pending requests exceeded"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """Closes the connection after this many lines."""

    lines: int = 1


@dataclass(frozen=True)
class Lines:
    """Sends these lines as the stream."""

    body: bytes


Fault = Status | Cut | Lines


class OllamaServer:
    """`chats` are the bodies of the requests for a chat, `paths` all requests."""

    def __init__(
        self,
        turns: Sequence[Turn] = (Turn("ok"),),
        faults: Sequence[Fault | None] = (),
        model: str = "tiny",
        capabilities: Sequence[str] | None = ("completion", "tools", "thinking"),
        supports: Sequence[str] | None = None,
        window: int = 40960,
        levels: bool = False,
    ) -> None:
        """`supports` is what the model really takes, where `capabilities` does not say it."""
        self.turns, self.faults = list(turns), list(faults)
        self.model, self.capabilities, self.window, self.levels = model, capabilities, window, levels
        self.supports = tuple(supports if supports is not None else capabilities or ())
        self.chats: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.owner = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def owner(self) -> OllamaServer:
        return self.server.owner  # type: ignore[attr-defined,no-any-return]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.owner.paths.append(self.path)
        if self.path == "/api/tags":
            self._json(200, {"models": [{"name": self.owner.model, "model": self.owner.model, "size": 1}]})
        else:
            self._send(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        self.owner.paths.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path not in {"/api/show", "/api/chat"}:
            return self._send(404, b"404 page not found", "text/plain")
        if body["model"].removesuffix(":latest") != self.owner.model:
            return self._json(404, {"error": f"model '{body['model']}' not found"})
        return self._show() if self.path == "/api/show" else self._chat(body)

    def _show(self) -> None:
        info = {"general.architecture": "llama", "llama.block_count": 2, "llama.context_length": self.owner.window}
        shown: dict[str, Any] = {"modelfile": "FROM x", "details": {"family": "llama"}, "model_info": info}
        if self.owner.capabilities is not None:
            shown["capabilities"] = list(self.owner.capabilities)
        self._json(200, shown)

    def _chat(self, body: dict[str, Any]) -> None:
        owner = self.owner
        with owner.lock:
            refusal = self._refusal(body)
            owner.chats.append(body)
            fault = None if refusal else (owner.faults.pop(0) if owner.faults else None)
            if not refusal and not isinstance(fault, Status):
                turn = owner.turns.pop(0) if len(owner.turns) > 1 else owner.turns[0]
        if refusal:
            return self._json(400, {"error": refusal})
        if isinstance(fault, Status):
            return self._json(fault.code, {"error": fault.error}, fault.headers)
        lines = _lines(turn, body) if not isinstance(fault, Lines) else [fault.body]
        return self._stream(lines, fault.lines if isinstance(fault, Cut) else None)

    def _refusal(self, body: dict[str, Any]) -> str | None:
        full = f"registry.ollama.ai/library/{self.owner.model}:latest"
        if body.get("tools") and "tools" not in self.owner.supports:
            return f"{full} does not support tools"
        if body.get("think") and "thinking" not in self.owner.supports:
            return f'"{self.owner.model}" does not support thinking'
        if isinstance(body.get("think"), str) and not self.owner.levels:
            return f'think value "{body["think"]}" is not supported for this model'
        return None

    def _stream(self, lines: list[bytes], cut: int | None) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for line in lines[:cut]:
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.flush()
        if cut is None:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _json(self, code: int, document: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._send(code, json.dumps(document).encode(), "application/json; charset=utf-8", headers)

    def _send(self, code: int, data: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _lines(turn: Turn, body: dict[str, Any]) -> list[bytes]:
    messages: list[dict[str, Any]] = []
    messages += [{"role": "assistant", "content": "", "thinking": part} for part in _parts(turn.thinking)]
    messages += [{"role": "assistant", "content": part} for part in _parts(turn.text)]
    for number, (name, arguments) in enumerate(turn.calls):
        call: dict[str, Any] = {"function": {"index": number, "name": name, "arguments": arguments}}
        made = {"id": f"call_{name}{number}", **call} if turn.ids else call
        messages.append({"role": "assistant", "content": "", "tool_calls": [made]})
    head = {"model": body["model"], "created_at": CREATED}
    lines: list[dict[str, Any]] = [{**head, "message": message, "done": False} for message in messages]
    last: dict[str, Any] = {**head, "message": {"role": "assistant", "content": ""}, "done": True}
    if turn.reason is not None:
        last["done_reason"] = turn.reason
    last |= {"total_duration": 10706818083, "load_duration": 6338219291, "eval_duration": 4232710000}
    if turn.counts:
        last |= {"prompt_eval_count": len(json.dumps(body["messages"])) // 4, "eval_count": max(1, len(messages))}
    return [json.dumps(line).encode() + b"\n" for line in [*lines, last]]


def _parts(text: str) -> list[str]:
    """A few characters a line, as tokens are."""
    return [text[at : at + 12] for at in range(0, len(text), 12)]
