"""Greetings in several languages. Ein Verzeichnis, in das sich jede Sprache selbst einträgt."""


class Language:
    known = {}
    word = ""

    def __init_subclass__(cls, code, **rest):
        super().__init_subclass__(**rest)
        Language.known[code] = cls

    @classmethod
    def greet(cls, name):
        return f"{cls.word}, {name}!"


class English(Language, code="en"):
    word = "Hello"


class Deutsch(Language, code="de"):
    word = "Hallo"


class Français(Language, code="fr"):
    word = "Bonjour"


def greet(name, language="en"):
    """The greeting of a name."""
    return Language.known[language].greet(name)
