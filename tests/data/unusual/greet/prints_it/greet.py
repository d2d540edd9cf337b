"""A greeting."""


def greet(name):
    """Say hello."""
    print(f"Hello, {name}!")
