"""The server name of a TLS greeting: found however it is cut, refused whenever it could be read in two ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.sandbox.client_hello import LONGEST_GREETING, server_name
from gametape.sandbox.network_policy import RequestRefused
from tests.sandbox.network.greetings import extension, greeting, name_extension, real_greeting

ENCRYPTED = extension(0xFE0D, b"\0" * 20)


@pytest.mark.parametrize("name", ["allowed.test", None])
def test_the_greeting_of_a_real_client(name: str | None) -> None:
    assert server_name(real_greeting(name)) == (True, name)


def test_every_beginning_of_a_greeting_is_incomplete() -> None:
    whole = real_greeting("allowed.test")
    assert {server_name(whole[:length]) for length in range(len(whole))} == {(False, None)}


@pytest.mark.parametrize("records", [1, 2, 7, 30])
def test_a_greeting_over_several_records(records: int) -> None:
    assert server_name(greeting(name_extension(b"Allowed.Test"), records=records)) == (True, "allowed.test")


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (greeting(name_extension(b"a.test", b"b.test")), "two TLS names"),
        (greeting(name_extension(b"a.test"), name_extension(b"b.test")), "two TLS names"),
        (greeting(name_extension(b"a.test"), ENCRYPTED), "encrypted TLS name"),
        (greeting(name_extension(b"\xff\xfe")), "not TLS"),
        (b"GET / HTTP/1.1\r\n", "not TLS"),
        (b"SSH-2.0-x\r\n", "not TLS"),
        (b"\x80\x2e\x01\x03\x01", "not TLS"),  # the greeting of SSL 2
        (b"\x16\x03\x01\0\0", "not TLS"),  # an empty record, which could go on for ever
        (b"\x16\x03\x01\x40\x01", "not TLS"),  # a record that is too long
        (b"\x16\x03\x01\0\x04\x02\0\0\0", "not TLS"),  # the greeting of a server
        (b"\x16\x03\x01\0\x04\x01\xff\xff\xff", "not TLS"),  # a greeting of 16 MB
        (b"\x15\x03\x01\0\x02\x01\0", "not TLS"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:5].hex(),
)
def test_a_greeting_that_nobody_can_vouch_for(stream: bytes, reason: str) -> None:
    with pytest.raises(RequestRefused, match=f"^{reason}$"):
        server_name(stream)


@given(st.binary(max_size=200), st.integers(0, 120))
def test_no_stream_breaks_the_reader(noise: bytes, at: int) -> None:
    whole = greeting(name_extension(b"allowed.test"))
    for stream in (noise, whole[:at] + noise, whole[:at] + noise + whole[at:]):
        try:
            complete, name = server_name(stream)
        except RequestRefused:
            continue
        assert complete or (name is None and len(stream) <= LONGEST_GREETING)
