"""How a failure is told: one line on stderr, an exit code and, where `--json` was given, one JSON object on stdout."""

import contextlib
import difflib
import errno
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import typer

from gametape.cli.shared import emit_json, printable_line
from gametape.core.errors import GametapeError
from gametape.record.installation import what_to_install

INTERNAL_ERROR = 70
"""The exit code of a fault of gametape itself, as in sysexits.h. Only then is there a traceback."""
_PATH_ERRNOS = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTEMPTY),
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL, errno.ENXIO, errno.ENODEV, errno.ETXTBSY),
)
_EXHAUSTED_ERRNOS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


class Failure(NamedTuple):
    message: str
    exit_code: int

    @property
    def line(self) -> str:
        """The message as one line of printable characters."""
        return printable_line(self.message)


def describe_failure(error: Exception) -> Failure:
    """What a person is told about an error."""
    return _known_failure(error) or Failure(
        f"internal error: {type(error).__name__}: {error}; please report it, with the lines above", INTERNAL_ERROR
    )


def tell_failure(failure: Failure, as_json: bool, error: BaseException | None = None) -> int:
    """Print a failure and return its exit code. A stream that cannot be written changes nothing about it."""
    with contextlib.suppress(OSError, ValueError):
        if failure.exit_code == INTERNAL_ERROR and error is not None:
            traceback.print_exception(error, file=sys.stderr)
        print(f"gametape: {failure.line}", file=sys.stderr, flush=True)
    if as_json:
        with contextlib.suppress(OSError, ValueError):
            emit_json({"error": failure.line, "exit_code": failure.exit_code})
    return failure.exit_code


def wants_json(command: Any, words: Sequence[str]) -> bool:
    """Whether `--json` is an option in these words: not the value of another option, nor part of a command to run."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            return False
        if word.startswith("-") and len(word) > 1:
            if word.partition("=")[0] == "--json":
                return True
            if _takes_next_word(command, word):
                next(rest, None)
        elif hasattr(command, "list_commands"):
            try:
                command = command.get_command(None, word)
            except ImportError:
                command = None
        elif command is not None and command.context_settings.get("allow_interspersed_args") is False:
            return False
    return False


def close_matches(word: str, known: Iterable[str]) -> str:
    """`; did you mean ...?`, or nothing where no known name is near."""
    near = difflib.get_close_matches(word, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def help_of(error: Exception) -> str | None:
    """The help, where the error only says that a command was given without any words."""
    context = getattr(error, "ctx", None)
    if context is None or not isinstance(error, typer.TyperException):
        return None
    text: str = context.get_help()
    return text if error.format_message() == text else None


def _takes_next_word(command: Any, word: str) -> bool:
    """Whether an option is given without its value, which then is the next word."""
    if "=" in word or (not word.startswith("--") and len(word) > 2):
        return False
    options = [param for param in getattr(command, "params", ()) if word in (*param.opts, *param.secondary_opts)]
    return bool(options) and not options[0].is_flag


def _usage_message(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "gametape"
    text = _in_plain_words(error.format_message().rstrip("."))
    option = getattr(error, "option_name", None)
    if context is not None and option and hasattr(error, "possibilities"):
        known = [name for param in context.command.get_params(context) for name in (*param.opts, *param.secondary_opts)]
        text = f"no such option: {option}" + close_matches(option, [name for name in known if name.startswith("-")])
    return f"{text} (try {path} --help)"


def _in_plain_words(text: str) -> str:
    """What a validator says about an option, without the validator's own words."""
    text = re.sub(r": Input should be (.*?)(, unable to parse .*)?$", r": expected \1", text)
    for jargon, plain in (
        ("Value error, ", ""),
        ("a valid integer", "a whole number"),
        ("a valid number", "a number"),
        ("requires an argument", "needs a value"),
    ):
        text = text.replace(jargon, plain)
    return text


def _known_failure(error: Exception) -> Failure | None:
    """None where the error is a fault of gametape itself."""
    match error:
        case GametapeError():
            failure = Failure(str(error), error.exit_code)
        case typer.TyperException():
            failure = Failure(_usage_message(error), 2)
        case typer.Abort():
            failure = Failure("interrupted", 130)
        case OSError():
            return _system_failure(error)
        case ModuleNotFoundError(name=str(name)) if not name.startswith("gametape"):
            package = name.partition(".")[0]
            failure = Failure(f"the Python package {package} is missing here: {what_to_install(package)}", 3)
        case MemoryError():
            failure = Failure("out of memory; give it less to do at once", 3)
        case ValueError() if "embedded null" in str(error):
            failure = Failure("a path or a word with a NUL character in it cannot be used", 2)
        case _:
            return None
    return failure


def _system_failure(error: OSError) -> Failure | None:
    """None where the error is no matter of a path, the disk or the limits of this process."""
    from gametape.record.errors import DISK_FULL_ERRNOS

    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if error.errno in DISK_FULL_ERRNOS:
        return Failure(f"{name or 'the output'}: {error.strerror}; free some space and try again", 3)
    if error.errno in _EXHAUSTED_ERRNOS:
        return Failure(f"{error.strerror}; end something else or raise the limit (ulimit), and try again", 3)
    if error.errno in _PATH_ERRNOS and name:
        return Failure(f"{name}: {error.strerror}", 2)
    return None
