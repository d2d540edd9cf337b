"""The largest number."""


def largest(numbers):
    """The largest number of a list that is not empty."""
    best = 0
    for number in numbers:
        if number > best:
            best = number
    return best
