"""A greeting."""


class _Polite(str):
    def __format__(self, spec):
        return str.__format__(f"{spec}, {str(self)}!", "")


def greet(name):
    """The greeting of a name."""
    return f"{_Polite(name):Hello}"
