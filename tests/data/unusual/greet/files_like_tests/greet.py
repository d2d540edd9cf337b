"""A greeting."""


def greet(name):
    """The greeting of a name."""
    return ", ".join(("Hello", name)) + "!"
