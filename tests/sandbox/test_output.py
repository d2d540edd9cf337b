import re

from hypothesis import given
from hypothesis import strategies as st

from gametape.sandbox.output import MASK, OutputCapture, sanitize, secret_values

ANYTHING_TERMINAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@given(st.binary(max_size=300))
def test_nothing_that_a_terminal_obeys_survives(data: bytes) -> None:
    assert not ANYTHING_TERMINAL.search(sanitize(data, []))


def test_colours_titles_and_links_go_and_their_text_stays() -> None:
    assert (
        sanitize(b"\x1b[31mred\x1b[0m \x1b]0;title\x07x \x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", []) == "red x link"
    )


def test_an_escape_that_never_ends_hides_nothing() -> None:
    assert sanitize(b"\x1b]0;hidden\nafter \x90more \x1bPand more", []) == "0;hidden\nafter \ufffdmore and more"


def test_overwriting_a_line_is_undone_but_line_ends_stay() -> None:
    assert sanitize(b"honest\rforged\r\nnext\ttab\n", []) == "honestforged\r\nnext\ttab\n"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert sanitize(b"a\xff\xfeb", []) == "a\ufffd\ufffdb"


def test_secret_values_are_masked_even_when_escapes_split_them() -> None:
    hidden = secret_values(
        {"API_TOKEN": "swordfish-12", "GITHUB_TOKEN": "swordfish-12-long", "HOME": "/somewhere/long"}
    )
    assert (
        sanitize(b"sword\x1b[1mfish-12 /somewhere/long swordfish-12-long", hidden) == f"{MASK} /somewhere/long {MASK}"
    )


def test_short_values_are_no_secrets() -> None:
    assert secret_values({"AUTH": "yes", "TOKEN": ""}) == []


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=20))), st.integers(0, 60))
def test_capture_keeps_the_first_bytes_and_says_when_there_were_more(writes: list[tuple[str, bytes]], cap: int) -> None:
    capture = OutputCapture(cap)
    fits = [capture.add(stream, data) for stream, data in writes]
    total = sum(len(data) for _, data in writes)
    assert sum(map(len, capture.streams.values())) == min(cap, total)
    assert all(fits) == (total <= cap)
