"""Which hosts a sandbox may reach through the network proxy, and how much. Pure decisions, no I/O."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator

from gametape.sandbox.host_names import IpAddress, is_public, parse_host, parse_port, split_port
from gametape.sandbox.result import FrozenModel

_DEFAULT_PORTS = {"connect": 443, "http": 80}

RequestKind = Literal["connect", "http"]


class RequestRefused(Exception):
    """A request that the policy does not allow; the text says why in a few words."""


@dataclass(frozen=True)
class HostRule:
    """One allowed host: a name, the names below one, or an address; on one port, or on the usual ones."""

    host: str | IpAddress
    below: bool
    """The rule was `*.name`: it holds for every name below, not for the name itself."""
    port: int | None

    @classmethod
    def parse(cls, text: str) -> "HostRule":
        """`name`, `*.name`, `1.2.3.4` or `[::1]`, each with or without `:port`."""
        try:
            host, port = split_port(text.removeprefix("*."))
            rule = cls(parse_host(host), text.startswith("*."), None if port is None else parse_port(port))
        except ValueError as error:
            raise ValueError(
                f"{text!r} is no host that can be allowed ({error}); "
                "write name, *.name or an address, with :port if it is not 80 or 443, and xn-- for other letters"
            ) from None
        if rule.below and (not isinstance(rule.host, str) or "." not in rule.host):
            raise ValueError(f"{text!r} allows too much; a wildcard needs a domain below it, such as *.example.com")
        return rule

    def matches_host(self, host: str | IpAddress) -> bool:
        if self.below:
            return isinstance(host, str) and host.endswith(f".{self.host}")
        return host == self.host

    def matches_port(self, port: int, kind: RequestKind) -> bool:
        return port == (self.port or _DEFAULT_PORTS[kind])


class NetworkAccess(FrozenModel):
    """The hosts outside that a sandbox may reach, and the limits of that. All other hosts stay unreachable."""

    hosts: Annotated[tuple[str, ...], Field(min_length=1)]
    """Exact names, `*.name` for all names below one, or addresses; `:port` for another than 443 (TLS) and 80 (http).
    An address that is not public is reached only where it is itself named here, whatever name leads to it."""
    methods: tuple[str, ...] = ()
    """Methods of plain http requests; none named: all. What is inside TLS cannot be told."""
    connections: Annotated[int, Field(gt=0, le=1024)] = 32
    """At once; more wait."""
    requests: Annotated[int, Field(gt=0, le=1_000_000)] = 10_000
    """In the life of a sandbox, refused ones included."""
    sent_mb: Annotated[int, Field(gt=0, le=1 << 20)] = 64
    received_mb: Annotated[int, Field(gt=0, le=1 << 20)] = 2048
    seconds: Annotated[float, Field(gt=0, le=24 * 3600)] = 900.0
    """The longest that one connection may last."""
    idle_seconds: Annotated[float, Field(gt=0, le=24 * 3600)] = 120.0
    head_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """How long a request line, its headers and a TLS greeting may take to arrive."""

    @field_validator("hosts")
    @classmethod
    def _can_be_read(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            HostRule.parse(text)
        return value

    @field_validator("methods")
    @classmethod
    def _are_methods(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for method in value:
            if not (method.isascii() and method.isalpha() and method.isupper()) or method == "CONNECT":
                raise ValueError(f"{method!r} is no method of plain http")
        return value

    @functools.cached_property
    def rules(self) -> tuple[HostRule, ...]:
        return tuple(HostRule.parse(text) for text in self.hosts)

    def check_target(self, host: str | IpAddress, port: int, kind: RequestKind) -> None:
        """Refuse a host or a port that no rule allows."""
        rules = [rule for rule in self.rules if rule.matches_host(host)]
        if not rules:
            raise RequestRefused("host not allowed")
        if not any(rule.matches_port(port, kind) for rule in rules):
            raise RequestRefused("port not allowed")

    def check_method(self, method: str) -> None:
        if self.methods and method not in self.methods:
            raise RequestRefused("method not allowed")

    def reachable(
        self, host: str | IpAddress, addresses: Iterable[IpAddress], port: int, kind: RequestKind
    ) -> list[IpAddress]:
        """Those addresses of an allowed host to which a connection may go."""
        if not isinstance(host, str):
            return [host]
        found = list(addresses)
        allowed = [address for address in found if is_public(address) or self.names_address(address, port, kind)]
        if not allowed:
            raise RequestRefused("address not public" if found else "no such name")
        return allowed

    def names_address(self, address: IpAddress, port: int, kind: RequestKind) -> bool:
        """Whether an address is itself allowed."""
        return any(rule.matches_host(address) and rule.matches_port(port, kind) for rule in self.rules)
