"""Serves the studio's page: a socket of this machine unless another one is asked for, which then needs a token."""

import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn

from gametape.core.errors import BadInput, MissingDependency
from gametape.studio.web.app import create_app
from gametape.studio.web.guard import LOOPBACK, TOKEN, make_token
from gametape.studio.web.site import StudioSite

_SECONDS_TO_CLOSE = 2


@dataclass(frozen=True)
class BoundStudio:
    """A socket that listens already, and the address to open."""

    socket: socket.socket
    token: str | None
    host: str

    @property
    def address(self) -> str:
        port = self.socket.getsockname()[1]
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{port}/{f'?{TOKEN}={self.token}' if self.token else ''}"


def bind_studio(host: str, port: int) -> BoundStudio:
    """Listen there; port 0 is any free one. Raises where that cannot be."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        number = None if isinstance(error, socket.gaierror) else getattr(error, "errno", None)
        if number is None:
            raise BadInput(f"{host}: not an address of this machine ({error})") from None
        advice = "another --host" if number == errno.EADDRNOTAVAIL else "--port another one, or 0 for any"
        raise MissingDependency(f"port {port} at {host}: {os.strerror(number)}; give {advice}") from None
    return BoundStudio(listening, None if host in LOOPBACK else make_token(), host)


def serve_studio(site: StudioSite, bound: BoundStudio, tell: Callable[[str], None]) -> None:
    """Answer until Ctrl-C. `tell` gets the address once."""
    app = create_app(site, bound.token)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=_SECONDS_TO_CLOSE
    )
    tell(bound.address)
    uvicorn.Server(config).run(sockets=[bound.socket])
