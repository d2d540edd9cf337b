"""The server name in the first message of a TLS client, read without taking part in the connection.

The whole of the message is read, over as many records and segments as the client likes; whatever could be read in two
ways (two names, two name extensions, an encrypted second greeting) is refused.
"""

from gametape.sandbox.network_policy import RequestRefused

LONGEST_GREETING = 1 << 16
_HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _ENCRYPTED_CLIENT_HELLO = 0, 0xFE0D


def server_name(stream: bytes) -> tuple[bool, str | None]:
    """Whether the greeting is complete, and the name it asks for, None if it names none.

    Raises `RequestRefused` as soon as the stream cannot become a greeting that we can vouch for.
    """
    message, complete = _handshake_message(stream)
    if not complete:
        if len(stream) > LONGEST_GREETING:
            raise RequestRefused("not TLS")
        return False, None
    try:
        return True, _name_in(_Reader(message))
    except (IndexError, UnicodeDecodeError):
        raise RequestRefused("not TLS") from None


def _handshake_message(stream: bytes) -> tuple[bytes, bool]:
    """The body of the first handshake message, put together from its records."""
    body, at = b"", 0
    while True:
        if len(body) >= 4:
            if body[0] != _CLIENT_HELLO:
                raise RequestRefused("not TLS")
            length = int.from_bytes(body[1:4], "big")
            if length > LONGEST_GREETING:
                raise RequestRefused("not TLS")
            if len(body) >= 4 + length:
                return body[4 : 4 + length], True
        header = stream[at : at + 5]
        if (header[:1] and header[0] != _HANDSHAKE) or (header[1:2] and header[1] != 3):
            raise RequestRefused("not TLS")
        size = int.from_bytes(header[3:5], "big") if len(header) == 5 else 0
        if len(header) == 5 and not 0 < size <= 1 << 14:
            raise RequestRefused("not TLS")
        if len(header) < 5 or len(stream) < at + 5 + size:
            return b"", False
        body += stream[at + 5 : at + 5 + size]
        at += 5 + size


class _Reader:
    """Reads fields with their lengths in front. IndexError at the end of what is there."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) < count:
            raise IndexError
        self._at += count
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def field(self, length_size: int) -> "_Reader":
        return _Reader(self.take(self.number(length_size)))

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)


def _name_in(hello: _Reader) -> str | None:
    hello.take(2 + 32)  # version and random
    hello.field(1)  # session
    hello.field(2)  # ciphers
    hello.field(1)  # compression
    if hello.at_end:
        return None
    extensions, names = hello.field(2), list[str]()
    if not hello.at_end:
        raise RequestRefused("not TLS")
    while not extensions.at_end:
        kind = extensions.number(2)
        content = extensions.field(2)
        if kind == _ENCRYPTED_CLIENT_HELLO:
            raise RequestRefused("encrypted TLS name")
        if kind == _SERVER_NAME:
            entries = content.field(2)
            while not entries.at_end:
                entry_kind, entry = entries.number(1), entries.field(2)
                if entry_kind != 0:
                    raise RequestRefused("not TLS")
                names.append(entry.rest().decode("ascii"))
    if len(names) > 1:
        raise RequestRefused("two TLS names")
    return names[0].lower() if names else None
