"""A small real server that speaks as OpenAI's and vLLM's do, and can be told to fail in every way a server can.

    with FaultServer(replies=["hello"], faults=[None, Status(429, {"retry-after": "1"})]) as server:
        ... server.url ...

Requests for a completion take the next reply and the next fault; a fault of None is none. The last reply is repeated.
Its tokenizer has a token per byte, and three special ones. In `token_mode` it can be given ids; else only messages.
"""

import json
import math
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

SPECIAL = {"<|im_start|>": 256, "<|im_end|>": 257, "<|endoftext|>": 258}
_BY_ID = {number: text for text, number in SPECIAL.items()}


def tokenize(text: str) -> list[int]:
    """Ids as a careless tokenizer makes them: special text becomes special ids."""
    ids: list[int] = []
    while text:
        marker = next((m for m in SPECIAL if text.startswith(m)), None)
        ids += [SPECIAL[marker]] if marker else list(text[0].encode("utf-8", "replace"))
        text = text[len(marker or text[0]) :]
    return ids


def detokenize(ids: Sequence[int]) -> str:
    out = b"".join(_BY_ID[i].encode() if i in _BY_ID else bytes([i]) for i in ids)
    return out.decode("utf-8", "replace")


@dataclass(frozen=True)
class Said:
    """A reply with tool calls, or with an ending of its own. `arguments` go out as they are, valid JSON or not."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"
    usage: dict[str, Any] | None = None


@dataclass(frozen=True)
class Status:
    """Answers with a status instead."""

    code: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"error": {"message": "out of order"}}'


@dataclass(frozen=True)
class Cut:
    """Closes the connection after this many events, before the stream is whole; `clean` ends it as if it were."""

    after: int = 1
    clean: bool = False


@dataclass(frozen=True)
class Raw:
    """Sends these bytes as the body of the stream."""

    body: bytes


@dataclass(frozen=True)
class Endless:
    """Streams for ever: `event` again and again, or events of the reply's text if there is none."""

    event: bytes | None = None


@dataclass(frozen=True)
class Drip:
    """A byte at a time, so that the connection is never silent for `seconds`."""

    seconds: float = 0.05


@dataclass(frozen=True)
class Hang:
    """Says nothing until the client has gone; after the headers, or before them."""

    after_headers: bool = False


@dataclass(frozen=True)
class HugeHeaders:
    """A header of this many bytes."""

    size: int = 1 << 20


Fault = Status | Cut | Raw | Endless | Drip | Hang | HugeHeaders


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class FaultServer:
    """`requests` are the completions that were asked for, `seen` all requests, `connections` how many there were."""

    def __init__(
        self,
        replies: Sequence[str | Said] = ("ok",),
        faults: Sequence[Fault | None] = (),
        token_mode: bool = False,
        window: int = 4096,
        tool_template: bool = False,
        scaled_logprobs: bool = True,
        grammars: bool = False,
        host: str = "127.0.0.1",
    ) -> None:
        self.replies = [reply if isinstance(reply, Said) else Said(reply) for reply in replies]
        self.faults = list(faults)
        self.token_mode = token_mode
        self.window = window
        self.tool_template = tool_template
        self.scaled_logprobs = scaled_logprobs
        self.grammars = grammars
        self.detokenize_faults: list[Status] = []
        self.seen: list[Seen] = []
        self.connections = 0
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._http = (_SocketListener if host.startswith("/") else _Listener)((host, 0), _Handler)
        self._http.owner = self

    @property
    def url(self) -> str:
        if isinstance(self._http, _SocketListener):
            return f"unix:{self._http.server_address!s}"
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def requests(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.path.endswith("/completions") and not _is_probe(seen.body)]

    def next_reply(self) -> Said:
        with self.lock:
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def next_fault(self) -> Fault | None:
        with self.lock:
            return self.faults.pop(0) if self.faults else None

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


def _is_probe(body: dict[str, Any]) -> bool:
    """What a client asks to find out what the server can do, rather than to have an answer."""
    return body.get("max_tokens", 0) <= 4 and "prompt" in body


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: FaultServer

    def get_request(self) -> tuple[socket.socket, Any]:
        self.owner.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients leave in the middle here; that is what is tested."""


class _SocketListener(_Listener):
    """At a Unix socket; the host is its path."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.server_address = self.server_address[0]  # type: ignore[assignment]
        self.socket.bind(self.server_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def setup(self) -> None:
        self.disable_nagle_algorithm = self.server.address_family == socket.AF_INET
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._saw({})
        models = [{"id": "tiny", "max_model_len": self.server.owner.window}]
        self._json({"data": models} if self.path.endswith("/models") else {"error": "not found"})

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self._saw(body)
        if self.path.endswith("/chat/completions"):
            self._completion(body, self._chat_events)
        elif self.path.endswith("/v1/completions") and owner.token_mode:
            self._completion(body, self._token_events)
        elif self.path == "/tokenize" and owner.token_mode:
            text = body["prompt"] if "prompt" in body else self._render(body)
            ids = tokenize(text)
            strings = [_BY_ID.get(i) or (chr(i) if 32 <= i < 127 else f"<0x{i:02X}>") for i in ids]
            self._json({"tokens": ids, "count": len(ids), "max_model_len": owner.window, "token_strs": strings})
        elif self.path == "/detokenize" and owner.token_mode:
            fault = owner.detokenize_faults.pop(0) if owner.detokenize_faults else None
            self._status(fault or Status(200, body=json.dumps({"prompt": detokenize(body["tokens"])})))
        else:
            self._status(Status(404, body='{"detail": "Not Found"}'))

    def _saw(self, body: dict[str, Any]) -> None:
        self.server.owner.seen.append(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body))

    def _render(self, body: dict[str, Any]) -> str:
        text, knows_tools = "", self.server.owner.tool_template
        if body.get("tools") and knows_tools:
            text += f"<|im_start|>tools\n{json.dumps(body['tools'])}<|im_end|>\n"
        for message in body["messages"]:
            content = message["content"]
            for call in message.get("tool_calls", []) if knows_tools else []:
                arguments = json.loads(call["function"]["arguments"])
                document = {"name": call["function"]["name"], "arguments": arguments}
                content += f"<tool_call>\n{json.dumps(document)}\n</tool_call>"
            text += f"<|im_start|>{message['role']}\n{content}<|im_end|>\n"
        return text + ("<|im_start|>assistant\n" if body.get("add_generation_prompt", True) else "")

    def _completion(self, body: dict[str, Any], events_of: Any) -> None:
        owner = self.server.owner
        probe = _is_probe(body)
        fault = None if probe else owner.next_fault()
        reply = Said("q" * body["max_tokens"], finish="length") if probe else None
        if probe and owner.grammars and "structured_outputs" in body:
            reply = Said("ab")
        if isinstance(fault, Status):
            return self._status(fault)
        if isinstance(fault, Hang) and not fault.after_headers:
            return self._hang()
        if isinstance(fault, HugeHeaders):
            return self._status(Status(200, {"x-huge": "a" * fault.size}))
        # A fault that spoils the stream takes a reply of its own only where the stream would have been whole.
        spoilt = fault is not None and not isinstance(fault, Drip)
        if reply is None:
            reply = owner.replies[0] if spoilt else owner.next_reply()
        events = [b"data: " + json.dumps(e).encode() + b"\n\n" for e in events_of(body, reply)] + [b"data: [DONE]\n\n"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        if not (isinstance(fault, Cut) and fault.clean):
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self._stream(events, fault)
        self.close_connection = True
        return None

    def _stream(self, events: list[bytes], fault: Fault | None) -> None:
        owner = self.server.owner
        match fault:
            case Hang():
                self._hang()
            case Cut(after, clean):
                for event in events[:after]:
                    self.wfile.write(event) if clean else self._chunk(event)
            case Raw(body):
                self._chunk(body)
                self._chunk(b"")
            case Endless(event):
                while not owner.closing.is_set():
                    self._chunk(event or events[0])
            case Drip(seconds):
                for byte in b"".join(events):
                    if owner.closing.wait(seconds):
                        return
                    self._chunk(bytes([byte]))
                self._chunk(b"")
            case _:
                for event in events:
                    self._chunk(event)
                self._chunk(b"")

    def _hang(self) -> None:
        self.wfile.flush()
        self.connection.settimeout(0.05)
        while not self.server.owner.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def _chat_events(self, body: dict[str, Any], reply: Said) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": reply.text[i : i + 4]} for i in range(0, len(reply.text), 4)]
        for index, (name, arguments) in enumerate(reply.calls):
            start = {"index": index, "id": f"call-{time.monotonic_ns()}", "type": "function"}
            deltas.append({"tool_calls": [start | {"function": {"name": name, "arguments": ""}}]})
            for i in range(0, len(arguments), 5):
                part = {"index": index, "function": {"arguments": arguments[i : i + 5]}}
                deltas.append({"tool_calls": [part]})
        events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        finish = "tool_calls" if reply.calls and reply.finish == "stop" else reply.finish
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        prompt = sum(len(str(message.get("content"))) for message in body["messages"])
        usage = {"prompt_tokens": prompt, "completion_tokens": len(deltas) - 1}
        return [*events, {"choices": [], "usage": reply.usage or usage}]

    def _token_events(self, body: dict[str, Any], reply: Said) -> list[dict[str, Any]]:
        ids = tokenize(reply.text)
        if reply.finish == "stop" and SPECIAL["<|im_end|>"] not in ids:
            ids.append(SPECIAL["<|im_end|>"])
        cut = ids[: body["max_tokens"]]
        finish = reply.finish if len(cut) == len(ids) else "length"
        scale = body["temperature"] if self.server.owner.scaled_logprobs else 1.0
        events: list[dict[str, Any]] = []
        for n, token in enumerate(cut):
            logprob = -math.log1p(token + 1) / (scale or 1.0)
            choice = {"index": 0, "text": detokenize([token]), "token_ids": [token], "finish_reason": None}
            scores = {"token_logprobs": [logprob], "top_logprobs": [{"?": logprob}] if body["logprobs"] else None}
            events.append({"choices": [choice | {"logprobs": scores}]})
            if n == 0:
                events[0]["choices"][0]["prompt_token_ids"] = body["prompt"]
        if events:
            events[-1]["choices"][0]["finish_reason"] = finish
        usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": len(cut)}
        return [*events, {"choices": [], "usage": reply.usage or usage}]

    def _json(self, document: dict[str, Any]) -> None:
        self._status(Status(200, body=json.dumps(document)))

    def _status(self, status: Status) -> None:
        content = status.body.encode()
        self.send_response(status.code)
        for name, value in status.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
