"""What may leave this machine. Every HTTP client of the engines is made here, so this is the one place that says no.

The check sits in the transport: it sees each request as it will be sent, redirects included, and decides before any
name is looked up. Only literal loopback addresses count as this machine, and `localhost`, which is never looked up but
replaced by such an address. Proxies that the environment names are not used.
"""

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gametape.engines.errors import EngineError

if TYPE_CHECKING:
    import httpx

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_LOCALHOST = ("127.0.0.1", "::1")


def is_loopback(address: IPAddress) -> bool:
    """Whether the kernel keeps what is sent there. Of IPv6 only `::1` counts: no mapped address, none with a scope."""
    return address.is_loopback if address.version == 4 else str(address) == "::1"


class EgressDenied(EngineError):
    """A host that may not be spoken to."""

    def __init__(self, host: str) -> None:
        super().__init__("refused", f"{host!r} is not this machine, and nothing may leave it: use a local model")


@dataclass(frozen=True)
class EgressPolicy:
    """`local_only` holds for everything; `private_paths` are directories whose content stays here (`around`)."""

    local_only: bool = False
    private_paths: tuple[Path, ...] = ()
    is_local_address: Callable[[IPAddress], bool] = is_loopback

    def for_path(self, path: Path) -> "EgressPolicy":
        """The perimeter for work on this path: local-only if it lies in a private directory, or has one inside."""
        real = path.resolve()
        for private in (private.resolve() for private in self.private_paths):
            if real.is_relative_to(private) or private.is_relative_to(real):
                return replace(self, local_only=True)
        return self

    def is_local(self, host: str) -> bool:
        """Whether this host, as a URL names it, is this machine. Names other than `localhost` never are."""
        return all(self._stays(address) for address in _addresses(host))

    def http_client(self, timeout: "httpx.Timeout", socket: Path | None = None) -> "httpx.AsyncClient":
        """A client that follows no redirect and asks no proxy; with `socket`, all it speaks to is that Unix socket."""
        from gametape.engines.http_client import make_http_client  # noqa: PLC0415 - httpx is slow to import

        return make_http_client(self, timeout, socket)

    def allowed_addresses(self, host: str) -> Sequence[str]:
        """Where to connect for this host; raises `Outside` if that may not be."""
        if self.local_only and not self.is_local(host):
            raise EgressDenied(host)
        return _addresses(host)

    def _stays(self, address: str) -> bool:
        try:
            return self.is_local_address(ipaddress.ip_address(address))
        except ValueError:
            return False


def _addresses(host: str) -> Sequence[str]:
    return _LOCALHOST if host == "localhost" else (host,)
