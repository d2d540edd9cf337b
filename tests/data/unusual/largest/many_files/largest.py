"""The largest number."""

from functools import reduce


def largest(numbers):
    """The largest number of a list that is not empty."""
    return reduce(lambda best, number: number if number > best else best, numbers)
