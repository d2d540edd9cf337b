"""TLS greetings: a real one, and ones put together by hand to be read in two ways."""

import ssl
import struct


def real_greeting(name: str | None) -> bytes:
    """The first bytes of Python's own TLS client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake without a server")


def name_extension(*names: bytes) -> bytes:
    entries = b"".join(b"\0" + struct.pack(">H", len(name)) + name for name in names)
    return extension(0, struct.pack(">H", len(entries)) + entries)


def extension(kind: int, content: bytes) -> bytes:
    return struct.pack(">HH", kind, len(content)) + content


def greeting(*extensions: bytes, records: int = 1) -> bytes:
    """A greeting with these extensions, cut into so many records."""
    all_of_them = b"".join(extensions)
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0"
    body += struct.pack(">H", len(all_of_them)) + all_of_them
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    size = -(-len(message) // records)
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(piece)) + piece for piece in pieces)
