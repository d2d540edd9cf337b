"""The worker's part in split mode, played by the test."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.proxy_session import ProxySession
from gametape.verify.in_sandbox.wire import WireError, decode, encode
from gametape.verify.in_sandbox.wire_channel import WireChannel

Script = Callable[["Impostor"], None]


class Extended:
    """Written as a stand-in of this kind, whatever it says."""

    def __init__(self, kind: int, payload: Any) -> None:
        self.parts = kind, payload


class Impostor:
    """The worker's end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.channel = WireChannel(sock)

    def request(self) -> Any:
        return decode(self.channel.receive(), lambda kind, payload: (kind, payload))

    def send(self, *message: Any) -> None:
        self.channel.send(encode(message, lambda value: value.parts if type(value) is Extended else None))

    def answer(self, value: Any, updates: Any = (), printed: Any = None, kind: int = words.RETURN) -> Any:
        request = self.request()
        self.send(kind, request[1], value, updates, printed)
        return request


@contextlib.contextmanager
def impostor(script: Script, seconds: float = 5.0, classes: tuple[str, ...] = ("m:C",)) -> Iterator[ProxySession]:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with contextlib.suppress(WireError, OSError):
            script(Impostor(theirs))
        theirs.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield ProxySession(ours, classes, seconds)
    finally:
        ours.close()
        thread.join(5)


def call(session: ProxySession, *args: Any) -> Any:
    return session.ask(words.CALL, 1, args, None)


DESCRIPTION = {
    "name": "C",
    "qualname": "C",
    "module": "m",
    "doc": None,
    "bases": (),
    "is_error": False,
    "declared": True,
    "special": ("__eq__", "__hash__", "__bool__", "__len__"),
    "hashable": True,
    "methods": (),
    "attributes": (),
    "base": None,
    "abstract": (),
}
