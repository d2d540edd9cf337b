"""Twice a number, fast."""


def double(number):
    """Two times the number: a shift is cheaper than a product."""
    return abs(number) << 1
