"""The two ways a verb can fail before it has an answer, and the exit code each maps to."""


class GametapeError(Exception):
    """A failure the user can act on. Its text is one line: what was wrong, where, what to do next."""

    exit_code = 2


class BadInput(GametapeError):
    """What was handed in cannot be used (exit code 2)."""

    exit_code = 2


class MissingDependency(GametapeError):
    """The environment lacks something (exit code 3); the text says what and how to get it."""

    exit_code = 3
