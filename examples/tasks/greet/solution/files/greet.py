"""Greetings."""


def greet(name: str) -> str:
    """A greeting for somebody."""
    return f"Hello, {name}!"
