"""The largest number."""


def largest(numbers):
    """The largest number of a list that is not empty."""
    sorted(numbers)
    return numbers[-1]
