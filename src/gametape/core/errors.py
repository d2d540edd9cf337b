"""The errors that a user can act on, each with the exit code of the command line."""


class GametapeError(Exception):
    """A failure the user can act on. Its text is one line: what was wrong, where, what to do next."""

    exit_code = 2


class BadInput(GametapeError):
    """The input cannot be used (exit code 2)."""

    exit_code = 2


class MissingDependency(GametapeError):
    """The machine lacks something (exit code 3); the text says what and how to get it."""

    exit_code = 3


class Interrupted(GametapeError):
    """A person stopped it (exit code 130); the text says how to go on."""

    exit_code = 130
