"""A server that answers every request for a turn with the same bytes, and any other with 404."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from gametape.core.messages import Sampling
from gametape.core.user_config import UserConfig
from gametape.engines.conversation import Conversation, Model
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_names import resolve_model

_TURN_PATHS = ("/chat", "/chat/completions", "/messages")


class ReplayServer:
    """`headers` are those of the requests for a turn. `body` may be changed between requests."""

    def __init__(self, body: bytes = b"", status: int = 200) -> None:
        self.body, self.status = body, status
        self.headers: list[dict[str, str]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                asked = self.path.endswith(_TURN_PATHS)
                if asked:
                    owner.headers.append({name.lower(): value for name, value in self.headers.items()})
                content = owner.body if asked else b"{}"
                self.send_response(owner.status if asked else 404)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def open_model(protocol: str, server: ReplayServer) -> Model:
    """The server's model, without retries."""
    name = f"{protocol}:m@{server.url}"
    model = resolve_model(name, Path("/nonexistent"), EgressPolicy(local_only=True), config=UserConfig())
    while inner := getattr(model, "inner", None):
        model = inner
    return model


def begin(model: Model) -> Conversation:
    conversation = model.start_conversation(Sampling())
    conversation.begin("Be good.", [{"name": "read", "description": "d", "parameters": {"type": "object"}}], "Go.")
    return conversation
