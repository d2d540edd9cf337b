"""Greetings."""


def greet(name: str) -> str:
    """A greeting for somebody."""
    raise NotImplementedError
