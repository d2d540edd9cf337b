"""Twice a number."""


def double(number):
    """Two times the number."""
    return number**2
