"""The three standard streams as every verb can rely on them, whatever the caller closed."""

import contextlib
import io
import os
import sys


def prepare_streams() -> None:
    """Open what was closed (`>&-`), or the next file that is opened would become stdout. What a stream's encoding does
    not have is escaped."""
    with contextlib.suppress(OSError):
        fd = os.open(os.devnull, os.O_RDWR)
        while fd <= 2:
            os.set_inheritable(fd, True)
            fd = os.open(os.devnull, os.O_RDWR)
        os.close(fd)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Let what is still to be written to stdout go nowhere, so that the end of the process does not fail on it."""
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
