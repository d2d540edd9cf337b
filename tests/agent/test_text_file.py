import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.agent.text_file import TextFile, decode_text, number_lines
from gametape.core.errors import BadInput


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_what_is_text_comes_back_byte_for_byte(content: bytes) -> None:
    found = decode_text(content)
    assert found is None or found.encode() == content


@pytest.mark.parametrize(
    ("content", "encoding", "newline"),
    [
        (b"a\nb\n", "utf-8", "\n"),
        (b"a\r\nb\r\n", "utf-8", "\r\n"),
        (b"a\r\nb\n", "utf-8", "\n"),
        (b"\xef\xbb\xbfa\n", "utf-8-sig", "\n"),
        ("ü\n".encode("utf-16"), "utf-16", "\n"),
        (b"# coding: cp1252\n\x80\n", "cp1252", "\n"),
        (b"caf\xe9\n", "iso-8859-1", "\n"),
    ],
)
def test_encodings_and_line_ends(content: bytes, encoding: str, newline: str) -> None:
    found = decode_text(content)
    assert found is not None
    assert (found.encoding, found.newline, found.encode()) == (encoding, newline, content)


def test_binary_is_not_text() -> None:
    assert decode_text(b"\x7fELF\0\0") is None


def test_a_character_the_encoding_lacks_is_named() -> None:
    with pytest.raises(BadInput, match="which has no '€'"):
        TextFile("€", "iso-8859-1").encode()


def test_lines_are_numbered_cleaned_and_cut() -> None:
    shown = number_lines(["a", "\x1b[31mred\x1b[0m\u202e", "x" * 1000], 1, 5)
    assert shown.split("\n")[:2] == ["1  a", "2  red"]
    assert shown.endswith("x [... 600 more]")
