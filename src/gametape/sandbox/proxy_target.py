"""The head of a request to the network proxy, read strictly: what it asks for, and which headers may go on.

Where two readers could disagree about what a request means, it is refused: that is where requests are smuggled.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gametape.sandbox.host_names import IpAddress, parse_host, parse_port, split_port
from gametape.sandbox.network_policy import RequestKind, RequestRefused

if TYPE_CHECKING:
    import h11

Headers = list[tuple[bytes, bytes]]

_ABSOLUTE = re.compile(r"http://([^/?#@\\\s]+)([/?][^\s#\\]*)?", re.IGNORECASE)
_HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"expect", b"proxy-connection"),
        *(b"proxy-authorization", b"proxy-authenticate", b"http2-settings"),
    )
)


@dataclass(frozen=True)
class ProxyTarget:
    """Where a request is to go."""

    kind: RequestKind
    method: str
    host: str | IpAddress
    port: int
    path: str
    """With its query; empty for CONNECT."""

    @property
    def authority(self) -> str:
        """The host as it is written in a URL, with the port unless it is the usual one."""
        host = f"[{self.host}]" if not isinstance(self.host, str) and self.host.version == 6 else str(self.host)
        return host if self.kind == "http" and self.port == 80 else f"{host}:{self.port}"


@dataclass
class RawTarget:
    """What could be read of a request before it was refused, for the record."""

    method: str = ""
    host: str = ""
    port: int = 0
    path: str = ""


def read_target(request: "h11.Request", raw: RawTarget) -> ProxyTarget:
    """The target of a request, or `RequestRefused`. `raw` is filled as far as the request can be read."""
    raw.method, target = request.method.decode("ascii"), request.target.decode("latin-1")
    headers = list(request.headers)
    _refuse_ambiguous(headers)
    if raw.method == "CONNECT":
        raw.host = target
        host, port = _authority(target, raw, default=None)
        if _values(headers, b"content-length") or _values(headers, b"transfer-encoding"):
            raise RequestRefused("bad request")
        return ProxyTarget("connect", raw.method, host, port, "")
    raw.path = target
    match = _ABSOLUTE.fullmatch(target)
    if not match:
        raise RequestRefused("bad request")
    raw.path = match[2] or "/"
    host, port = _authority(match[1], raw, default=80)
    path = raw.path if raw.path.startswith("/") else f"/{raw.path}"
    return ProxyTarget("http", raw.method, host, port, path)


def _authority(text: str, raw: RawTarget, default: int | None) -> tuple[str | IpAddress, int]:
    raw.host = text
    try:
        raw.host, port_text = split_port(text)
        if port_text is None and default is None:
            raise ValueError("no port")
        raw.port = parse_port(port_text) if port_text is not None else default or 0
        return parse_host(raw.host), raw.port
    except ValueError:
        raise RequestRefused("bad host name") from None


def _refuse_ambiguous(headers: Headers) -> None:
    """Lengths that contradict each other; a protocol that would end our sight of the requests."""
    if _values(headers, b"content-length") and _values(headers, b"transfer-encoding"):
        raise RequestRefused("bad request")
    if _values(headers, b"upgrade"):
        raise RequestRefused("upgrade not allowed")


def refuse_other_host(headers: Headers, target: ProxyTarget) -> None:
    """Refuse a plain request whose Host header names another host than its target."""
    for value in _values(headers, b"host"):
        try:
            name, port = split_port(value.decode("ascii"))
            same = (parse_host(name), 80 if port is None else parse_port(port)) == (target.host, target.port)
        except ValueError:
            same = False
        if not same:
            raise RequestRefused("host header differs")


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def forwarded_headers(headers: Headers) -> Headers:
    """What goes on to the next hop. Lengths stay as they are; headers about this connection do not."""
    named = {name.strip().lower() for value in _values(headers, b"connection") for name in value.split(b",")}
    dropped = _HOP_BY_HOP | (named - {b"content-length", b"transfer-encoding", b"host"})
    return [(key, value) for key, value in headers if key not in dropped]


def request_headers(headers: Headers, target: ProxyTarget) -> Headers:
    """The headers for the server: the host is the one that was checked, whatever the client wrote."""
    kept = [(key, value) for key, value in forwarded_headers(headers) if key != b"host"]
    return [(b"Host", target.authority.encode()), *kept, (b"Connection", b"close")]


def response_headers(headers: Headers) -> Headers:
    return [*forwarded_headers(headers), (b"Connection", b"close")]
