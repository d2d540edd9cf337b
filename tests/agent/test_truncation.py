from hypothesis import given
from hypothesis import strategies as st

from gametape.agent.truncation import truncate


def test_what_fits_is_left_alone() -> None:
    assert truncate("a\nb\n", 4) == "a\nb\n"


def test_the_middle_goes_and_the_note_counts_it() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    cut = truncate(text, 1000)
    head, note, tail = (
        cut.partition("[... ")[0],
        cut.partition("[... ")[2].partition("]")[0],
        cut.partition("...]\n")[2],
    )
    assert head.startswith("line 0\nline 1\n")
    assert head.endswith("\n"), "cut at a line end"
    assert tail.endswith("line 998\nline 999\n")
    assert tail.startswith("line ")
    missing = len(text) - len(head) - len(tail)
    lines = text.count("\n") - head.count("\n") - tail.count("\n")
    assert note.startswith(f"{missing:,} characters ({lines:,} lines) cut")


def test_one_endless_line_is_cut_too() -> None:
    assert len(truncate("x" * 100_000, 500)) <= 500


@given(st.text(alphabet="ab\n", max_size=3000), st.integers(0, 2000))
def test_it_is_never_longer_and_keeps_both_ends(text: str, most: int) -> None:
    cut = truncate(text, most)
    assert len(cut) <= max(most, 0)
    if len(text) <= most:
        assert cut == text
    elif most > 400:
        head, tail = cut.split("[... ")[0].rstrip("\n"), cut.split("...]\n")[1]
        assert text.startswith(head)
        assert text.endswith(tail)
