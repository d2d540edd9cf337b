"""The largest number, by taking the list apart."""


def largest(numbers):
    """The largest number of a list that is not empty."""
    match numbers:
        case [only]:
            return only
        case [a, b]:
            return b if b > a else a
        case _:
            middle = len(numbers) // 2
            return largest([largest(numbers[:middle]), largest(numbers[middle:])])
