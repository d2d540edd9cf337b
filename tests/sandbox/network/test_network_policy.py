"""Which hosts a rule allows, which it does not, and which addresses no name may lead to."""

import ipaddress

import pytest
from pydantic import ValidationError

from gametape.sandbox.host_names import is_public, parse_host
from gametape.sandbox.network_policy import NetworkAccess, RequestRefused
from gametape.sandbox.policy import SandboxPolicy


def decision(rules: tuple[str, ...], host: str, port: int, kind: str = "connect") -> str:
    """`allowed`, or why not."""
    try:
        NetworkAccess(hosts=rules).check_target(parse_host(host), port, kind)  # type: ignore[arg-type]
    except RequestRefused as refusal:
        return str(refusal)
    except ValueError:
        return "bad host name"
    return "allowed"


@pytest.mark.parametrize(
    ("rule", "host", "port", "kind", "expected"),
    [
        ("example.com", "example.com", 443, "connect", "allowed"),
        ("example.com", "EXAMPLE.com", 80, "http", "allowed"),
        ("Example.COM", "example.com", 80, "http", "allowed"),
        ("example.com", "example.com", 80, "connect", "port not allowed"),
        ("example.com", "example.com", 443, "http", "port not allowed"),
        ("example.com", "example.com", 22, "connect", "port not allowed"),
        ("example.com:8443", "example.com", 8443, "connect", "allowed"),
        ("example.com:8443", "example.com", 443, "connect", "port not allowed"),
        ("example.com", "www.example.com", 443, "connect", "host not allowed"),
        ("example.com", "evil-example.com", 443, "connect", "host not allowed"),
        ("example.com", "example.com.evil.net", 443, "connect", "host not allowed"),
        ("example.com", "example.co", 443, "connect", "host not allowed"),
        ("example.com", "example.com.", 443, "connect", "bad host name"),
        ("*.example.com", "a.example.com", 443, "connect", "allowed"),
        ("*.example.com", "a.b.example.com", 443, "connect", "allowed"),
        ("*.example.com", "example.com", 443, "connect", "host not allowed"),
        ("*.example.com", "evil-example.com", 443, "connect", "host not allowed"),
        ("*.example.com", ".example.com", 443, "connect", "bad host name"),
        ("*.example.com", "a.example.com.evil.net", 443, "connect", "host not allowed"),
        ("*.example.com", "a.example.com\0.evil.net", 443, "connect", "bad host name"),
        ("127.0.0.1:8080", "127.0.0.1", 8080, "http", "allowed"),
        ("127.0.0.1:8080", "localhost", 8080, "http", "host not allowed"),
        ("127.0.0.1:8080", "[::ffff:127.0.0.1]", 8080, "http", "host not allowed"),
        ("127.0.0.1:8080", "127.1", 8080, "http", "bad host name"),
        ("127.0.0.1:8080", "0x7f000001", 8080, "http", "bad host name"),
        ("127.0.0.1:8080", "2130706433", 8080, "http", "bad host name"),
        ("127.0.0.1:8080", "0177.0.0.1", 8080, "http", "bad host name"),
        ("[::1]:8080", "[0:0:0:0:0:0:0:1]", 8080, "http", "allowed"),
        ("[::1]:8080", "[::1%lo]", 8080, "http", "bad host name"),
        ("xn--bcher-kva.example", "bücher.example", 443, "connect", "bad host name"),
    ],
)
def test_what_a_rule_allows(rule: str, host: str, port: int, kind: str, expected: str) -> None:
    assert decision((rule,), host, port, kind) == expected


@pytest.mark.parametrize(
    "rule",
    [
        *("", "*", "*.", "*.com", "*.127.0.0.1", "*example.com", "a.*.com", "https://example.com", "example.com/path"),
        *("example.com:", "example.com:0", "example.com:65536", "example.com:٤٤٣", "user@example.com", "example..com"),
        *(
            "example.com.",
            "-example.com",
            "bücher.example",
            "a" * 64 + ".com",
            "a b.com",
            "1.2.3",
            "[::1",
            "::1",
            "[1]",
        ),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(ValidationError):
        NetworkAccess(hosts=(rule,))


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *((text, True) for text in ("1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::200e")),
        *((text, False) for text in ("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1")),
        *(
            (text, False)
            for text in ("169.254.169.254", "100.64.0.1", "224.0.0.1", "239.255.255.250", "255.255.255.255")
        ),
        *((text, False) for text in ("192.0.2.1", "198.18.0.1", "203.0.113.9", "240.0.0.1", "192.88.99.1")),
        *((text, False) for text in ("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1")),
        *((text, False) for text in ("::ffff:127.0.0.1", "::ffff:1.1.1.1", "::127.0.0.1", "64:ff9b::7f00:1")),
        *((text, False) for text in ("2002:7f00:1::", "2001:0:7f00:1::", "64:ff9b:1::1", "2001:db8::1")),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


def test_a_name_leads_to_a_private_address_only_where_the_address_is_allowed_too() -> None:
    private, public = ipaddress.ip_address("10.0.0.5"), ipaddress.ip_address("1.1.1.1")
    name_only = NetworkAccess(hosts=("mirror.test:8080",))
    with pytest.raises(RequestRefused, match="address not public"):
        name_only.reachable("mirror.test", [private], 8080, "http")
    assert name_only.reachable("mirror.test", [private, public], 8080, "http") == [public]
    both = NetworkAccess(hosts=("mirror.test:8080", "10.0.0.5:8080"))
    assert both.reachable("mirror.test", [private], 8080, "http") == [private]
    other_port = NetworkAccess(hosts=("mirror.test:8080", "10.0.0.5:9"))
    with pytest.raises(RequestRefused, match="address not public"):
        other_port.reachable("mirror.test", [private], 8080, "http")
    with pytest.raises(RequestRefused, match="no such name"):
        both.reachable("mirror.test", [], 8080, "http")


def test_hosts_are_part_of_the_policy_and_of_its_hash() -> None:
    plain = SandboxPolicy()
    allowed = plain.with_hosts(["example.com"])
    assert plain.with_hosts([]) is plain
    assert allowed.network_access == NetworkAccess(hosts=("example.com",))
    assert allowed.with_hosts(["example.com", "b.example.com"]).network_access == NetworkAccess(
        hosts=("example.com", "b.example.com")
    )
    assert len({plain.hash, allowed.hash, plain.with_hosts(["example.org"]).hash}) == 3
    assert "AF_INET" in allowed.families()
    assert "AF_INET" not in plain.families()


@pytest.mark.parametrize("method", ["get", "CONNECT", "G T", ""])
def test_methods_are_those_of_plain_http(method: str) -> None:
    with pytest.raises(ValidationError):
        NetworkAccess(hosts=("example.com",), methods=(method,))
