"""Reaching the host, or anything else, through a socket."""

from tests.sandbox.escape.probe import Probe

FAMILY = "network"
OPEN_NETWORK = frozenset({"call-filter", "own-network"})


def _family(name: str, number: int, kind: int = 2, protocol: int = 0, unshown: str = "") -> Probe:
    """A family that is none of the sandbox's business: the socket must not come to be."""
    return Probe(
        name,
        FAMILY,
        f'reach("socket", {number}, {kind}, {protocol})',
        logged="socket",
        escapes_without=frozenset() if unshown else frozenset({"call-filter"}),
        unshown=unshown,
    )


_ABSENT = "not every kernel has it, and one without answers as the call filter does"
_FAMILIES = [
    _family("netlink-route", 16, 3, 0),
    _family("netlink-audit", 16, 3, 9),
    _family("vsock-stream", 40, 1),
    _family("vsock-datagram", 40, 2),
    _family("alg", 38, 5, unshown=_ABSENT),
    _family("bluetooth", 31, 3, 1, unshown=_ABSENT),
    _family("tipc", 30, 1, unshown=_ABSENT),
    _family("can", 29, 3, 1, unshown=_ABSENT),
    _family("rds", 21, 5, unshown=_ABSENT),
    _family("x25", 9, 5, unshown=_ABSENT),
    _family("appletalk", 5, 2, unshown=_ABSENT),
    _family("key", 15, 3, 2, unshown=_ABSENT),
    _family("nfc", 39, 5, unshown=_ABSENT),
    _family("smc", 43, 1, unshown=_ABSENT),
    _family("family-with-high-bits", (7 << 32) | 16, 3, 0),
    Probe(
        "packet",
        FAMILY,
        'reach("socket", 17, 3, 0x0300)',
        logged="socket",
        escapes_without=frozenset({"call-filter", "no-capabilities", "drop-user", "own-users", "no-nested-users"}),
    ),
    Probe(
        "xdp",
        FAMILY,
        'reach("socket", 44, 3, 0)',
        logged="socket",
        escapes_without=frozenset({"call-filter", "no-capabilities", "drop-user", "own-users", "no-nested-users"}),
    ),
    Probe(
        "raw",
        FAMILY,
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
        logged="socket",
        escapes_without=frozenset({"call-filter", "no-capabilities", "drop-user", "own-users", "no-nested-users"}),
    ),
    Probe(
        "socketpair-reaches-another-family",
        FAMILY,
        """
        try: socket.socketpair(16, socket.SOCK_RAW)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP: raise
        """,
        logged="socketpair",
        escapes_without=frozenset({"call-filter"}),
    ),
]

_HOST = [
    Probe(
        "tcp-to-the-host",
        FAMILY,
        'socket.create_connection(("127.0.0.1", G["tcp"]), 5)',
        logged="socket",
        escapes_without=OPEN_NETWORK,
    ),
    Probe(
        "tcp-to-any-address",
        FAMILY,
        'socket.create_connection(("0.0.0.0", G["tcp_any"]), 5)',
        logged="socket",
        escapes_without=OPEN_NETWORK,
    ),
    Probe(
        "tcp6-to-the-host",
        FAMILY,
        'socket.create_connection(("::1", G["tcp6"]), 5)',
        logged="socket",
        escapes_without=OPEN_NETWORK,
    ),
    Probe(
        "tcp-through-a-mapped-address",
        FAMILY,
        """
        client = socket.socket(socket.AF_INET6)
        client.connect(('::ffff:127.0.0.1', G["tcp"]))
        """,
        logged="socket",
        escapes_without=OPEN_NETWORK,
    ),
    Probe(
        "udp-to-the-host",
        FAMILY,
        """
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.connect(('127.0.0.1', G["udp"]))
        client.send(NONCE.encode())
        """,
        logged="socket",
        escapes_without=OPEN_NETWORK,
    ),
    Probe(
        "name-service",
        FAMILY,
        """
        query = b'\\x12\\x34\\x01\\x00\\x00\\x01' + bytes(6) + b'\\x04test\\x00\\x00\\x01\\x00\\x01'
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.sendto(query, ('127.0.0.1', G["udp"]))
        """,
        logged="socket",
        escapes_without=OPEN_NETWORK,
    ),
    Probe(
        "resolver",
        FAMILY,
        "need(socket.getaddrinfo(NONCE + '.example.com', 80), 'no answer')",
        unshown="only loopback traffic may leave a weaker sandbox",
    ),
    Probe(
        "abstract-socket-of-the-host",
        FAMILY,
        """
        client = socket.socket(socket.AF_UNIX)
        client.connect(chr(0) + G["abstract"])
        """,
        escapes_without=frozenset({"own-network"}),
    ),
    *(
        Probe(
            f"host-server-in-the-workspace-{name}",
            FAMILY,
            f"""
            client = socket.socket(socket.AF_UNIX, socket.{kind})
            client.connect('/workspace/{name}.sock')
            """,
            escapes_without=frozenset({"masked-sockets"}),
        )
        for name, kind in (("stream", "SOCK_STREAM"), ("datagram", "SOCK_DGRAM"), ("relative", "SOCK_STREAM"))
    ),
    Probe(
        "unmask-a-host-server",
        FAMILY,
        """
        os.rename('/workspace/stream.sock', '/workspace/moved.sock')
        """,
        escapes_without=frozenset({"masked-sockets"}),
    ),
    Probe(
        "host-server-by-another-name",
        FAMILY,
        """
        os.link('/workspace/stream.sock', '/workspace/again.sock', follow_symlinks=False)
        client = socket.socket(socket.AF_UNIX)
        client.connect('/workspace/again.sock')
        """,
        escapes_without=frozenset({"masked-sockets"}),
    ),
    Probe(
        "descriptor-passed-to-a-host-server",
        FAMILY,
        """
        client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('=i', 0))
        client.sendmsg([NONCE.encode()], [rights], 0, '/workspace/datagram.sock')
        """,
        escapes_without=frozenset({"masked-sockets"}),
    ),
]

_LOOPBACK = {"network": "loopback"}
_OWN = """
server = socket.socket(socket.FAMILY)
server.bind((ADDRESS, 0)); server.listen(1)
client = socket.create_connection(server.getsockname()[:2], 5)
client.sendall(b'x'); need(server.accept()[0].recv(1) == b'x', 'own loopback is broken'); print('own loopback works')
"""

_ALLOWED_LOOPBACK = [
    Probe(
        "loopback-tcp-to-the-host",
        FAMILY,
        _OWN.replace("FAMILY", "AF_INET").replace("ADDRESS", "'127.0.0.1'")
        + 'socket.create_connection(("127.0.0.1", G["tcp"]), 5)',
        policy=_LOOPBACK,
        escapes_without=frozenset({"own-network"}),
    ),
    Probe(
        "loopback-tcp6-to-the-host",
        FAMILY,
        _OWN.replace("FAMILY", "AF_INET6").replace("ADDRESS", "'::1'")
        + 'socket.create_connection(("::1", G["tcp6"]), 5)',
        policy=_LOOPBACK,
        escapes_without=frozenset({"own-network"}),
    ),
    Probe(
        "loopback-udp-to-the-host",
        FAMILY,
        """
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.connect(('127.0.0.1', G["udp"]))
        client.send(NONCE.encode())
        time.sleep(0.1)
        client.send(NONCE.encode())
        """,
        policy=_LOOPBACK,
        escapes_without=frozenset({"own-network"}),
    ),
    *(
        Probe(
            f"loopback-{name}",
            FAMILY,
            body,
            policy=_LOOPBACK,
            logged=logged,
            escapes_without=frozenset({"own-network", "call-filter"}),
            planted={"address": "127.0.0.1", "port": "{udp}"},
        )
        for name, logged, body in (
            (
                "connects-elsewhere",
                "connect",
                """
                client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                client.connect((G["address"] or '198.51.100.7', G["port"] or 53))
                client.send(NONCE.encode())
                """,
            ),
            (
                "sends-elsewhere",
                "sendto",
                """
                client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                client.sendto(NONCE.encode(), (G["address"] or '198.51.100.7', G["port"] or 53))
                """,
            ),
            (
                "sends-a-message-elsewhere",
                None,
                """
                client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                client.sendmsg([NONCE.encode()], [], 0, (G["address"] or '198.51.100.7', G["port"] or 53))
                """,
            ),
        )
    ),
    Probe(
        "loopback-vsock",
        FAMILY,
        'reach("socket", 40, 1, 0)',
        policy=_LOOPBACK,
        logged="socket",
        escapes_without=frozenset({"call-filter"}),
    ),
    Probe(
        "loopback-netlink",
        FAMILY,
        'reach("socket", 16, 3, 0)',
        policy=_LOOPBACK,
        logged="socket",
        escapes_without=frozenset({"call-filter"}),
    ),
    Probe(
        "interfaces",
        FAMILY,
        "need([name for _, name in socket.if_nameindex() if name != 'lo'], 'only lo')",
        policy=_LOOPBACK,
        unshown="listing needs a family that the filter refuses, and a host may have nothing but lo",
    ),
]

PROBES = [*_FAMILIES, *_HOST, *_ALLOWED_LOOPBACK]
