"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class Intervals:
    """A set of whole numbers."""

    def __init__(self):
        self.parts = []
