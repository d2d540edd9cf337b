"""A greeting from a template."""

import string


class _Templates(type):
    def __new__(mcs, name, bases, namespace):
        for key, value in list(namespace.items()):
            if key.isupper() and isinstance(value, str):
                template = type("T", (string.Template,), {"delimiter": "%"})(value)
                namespace[key.lower()] = staticmethod(template.substitute)
        return super().__new__(mcs, name, bases, namespace)


class Texts(metaclass=_Templates):
    HELLO = "Hello, %name!"
    BYE = "Goodbye, %name."


def greet(name):
    """The greeting of a name."""
    return Texts.hello(name=name)
