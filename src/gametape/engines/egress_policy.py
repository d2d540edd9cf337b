"""Which hosts the engines may send requests to. Every HTTP client of the engines is made by an `EgressPolicy`.

The check is in the transport: it sees each request as it will be sent, redirects included, and decides before any name
is looked up. Only literal loopback addresses count as this machine, and `localhost`, which is never looked up but
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
    """Whether the kernel delivers to this machine. Of IPv6 only `::1` counts: no mapped address, none with a scope."""
    return address.is_loopback if address.version == 4 else str(address) == "::1"


class EgressDenied(EngineError):
    """The policy does not allow requests to this host."""

    def __init__(self, host: str) -> None:
        super().__init__("refused", f"{host!r} is not this machine, and nothing may leave it: use a local model")


@dataclass(frozen=True)
class EgressPolicy:
    """`local_only` forbids other hosts; `private_paths` are directories whose content must stay here (`for_path`)."""

    local_only: bool = False
    private_paths: tuple[Path, ...] = ()
    is_local_address: Callable[[IPAddress], bool] = is_loopback

    def for_path(self, path: Path) -> "EgressPolicy":
        """The policy for work on this path: local-only if it lies in a private directory or contains one."""
        real = path.resolve()
        private = [directory.resolve() for directory in self.private_paths]
        if any(real.is_relative_to(directory) or directory.is_relative_to(real) for directory in private):
            return replace(self, local_only=True)
        return self

    def is_local(self, host: str) -> bool:
        """Whether this host, as a URL names it, is this machine. Names other than `localhost` never are."""
        return all(self._is_local_ip(address) for address in _addresses(host))

    def http_client(self, timeout: "httpx.Timeout", socket: Path | None = None) -> "httpx.AsyncClient":
        """A client that follows no redirect and uses no proxy; with `socket`, it connects to that Unix socket only."""
        from gametape.engines.http_client import make_http_client  # noqa: PLC0415 - httpx is slow to import

        return make_http_client(self, timeout, socket)

    def allowed_addresses(self, host: str) -> Sequence[str]:
        """The addresses to connect to for this host; raises `EgressDenied` if the policy does not allow it."""
        if self.local_only and not self.is_local(host):
            raise EgressDenied(host)
        return _addresses(host)

    def _is_local_ip(self, address: str) -> bool:
        try:
            return self.is_local_address(ipaddress.ip_address(address))
        except ValueError:
            return False


def _addresses(host: str) -> Sequence[str]:
    return _LOCALHOST if host == "localhost" else (host,)
