"""The lines that a file gained and lost, also where lines by the thousand equal each other."""

import pytest

from gametape.desk.goals.line_counts import count_changed_lines

_MANY = 100_000


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("", "", (0, 0)),
        ("", "a\nb", (2, 0)),
        ("a\nb\n", "", (0, 2)),
        ("a\nb\nc\n", "a\nx\nc\n", (1, 1)),
        ("a\nb\nc\nd\n", "a\nc\nb\nd\n", (1, 1)),
        ("a\na\na\n", "a\na\na\na\na\n", (2, 0)),
        ("a\nb\na\nb\na\n", "b\na\na\nc\n", (1, 2)),
    ],
)
def test_counts_are_those_of_a_diff(old: str, new: str, counts: tuple[int, int]) -> None:
    assert count_changed_lines(old.encode(), new.encode()) == counts


def test_equal_lines_are_not_compared_pair_by_pair() -> None:
    lines = ["  },\n"] * _MANY
    changed = ["first\n", *lines[: _MANY // 2], "x\n", *lines[_MANY // 2 + 1 :], "last\n"]
    assert count_changed_lines("".join(lines).encode(), "".join(changed).encode()) == (3, 1)
    assert count_changed_lines("".join(changed).encode(), "".join(lines).encode()) == (1, 3)
