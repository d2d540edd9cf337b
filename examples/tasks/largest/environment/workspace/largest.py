"""Lists of numbers."""


def largest(numbers: list[int]) -> int:
    """The largest of the numbers."""
    raise NotImplementedError
