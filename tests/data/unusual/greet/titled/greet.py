"""A greeting."""


def greet(name):
    """The greeting of a name."""
    return f"Hello, {name.strip().title()}."
