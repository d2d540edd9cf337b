"""Host names and addresses as a network proxy must read them: strictly, and one way only.

A name that a resolver, a server or a TLS library could read differently than we do is refused: trailing dots, empty
labels, non-ASCII letters, numbers such as `0x7f.1` that some resolvers take for an address.
"""

import asyncio
import ipaddress
import re
import socket

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST_NAME = 253
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")

_NEVER_PUBLIC = tuple(
    ipaddress.ip_network(block)
    for block in (
        *("192.88.99.0/24", "240.0.0.0/4"),
        # IPv6 that carries an IPv4 address, which a router or the kernel may unwrap: mapped, compatible, NAT64, 6to4,
        # Teredo; and the site-local block of old.
        *("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10"),
    )
)


def parse_host(text: str) -> str | IpAddress:
    """A host of a URL or a CONNECT line: a name in lower case, or an address. ValueError for anything else."""
    if text.startswith("["):
        if not text.endswith("]") or "%" in text:
            raise ValueError(f"{text!r} is not a host name")
        return ipaddress.IPv6Address(text[1:-1])
    name = text.lower() if text.isascii() else ""
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{text!r} is not a host name")
    if _NUMERIC.fullmatch(labels[-1]):
        return ipaddress.IPv4Address(name)
    return name


def parse_port(text: str) -> int:
    """A port number in plain decimal digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 1 << 16):
        raise ValueError(f"{text!r} is not a port")
    return int(text)


def split_port(authority: str) -> tuple[str, str | None]:
    """Host and port of `host`, `host:port`, `[address]` or `[address]:port`."""
    host, bracket, rest = authority.rpartition("]")
    name, colon, port = rest.partition(":")
    if bracket and name:
        raise ValueError(f"{authority!r} is not a host name")
    return f"{host}{bracket}{name}", port if colon else None


def is_public(address: IpAddress) -> bool:
    """Whether an address belongs to the public internet, and cannot be another name for one that does not."""
    if any(address in block for block in _NEVER_PUBLIC if block.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_link_local)


async def resolve_host(name: str, port: int) -> list[IpAddress]:
    """The addresses of a name, as this machine's resolver gives them; none when there is no such name."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    return list(dict.fromkeys(addresses))
