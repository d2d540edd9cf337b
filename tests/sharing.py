"""A pytest plugin for several processes over one suite: each takes the next test file that no other has taken.

`scripts/test.py` starts them. Files are not divided, so that what their tests share is made once, and are taken when
they are due, so that nobody has to know beforehand how long they take. A line on stderr tells of each that is finished.
Where a directory is given for them, files that passed are noted there, and nobody takes them again.
"""

import ctypes
import itertools
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

_TAKEN = Path(os.environ["GAMETAPE_TESTS_TAKEN"])
_PASSED = Path(kept) if (kept := os.environ.get("GAMETAPE_TESTS_PASSED")) else None
_SCREEN = os.dup(2)  # pytest takes the real one away while tests run
_PR_SET_PDEATHSIG = 1


def pytest_configure() -> None:
    """An interrupt is how this is ended, even where a shell has it ignored; the kernel sends one when whoever started
    this is killed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """As pytest's own, over the files that this process gets."""
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    items = _own(session.items)
    item = next(items, None)
    began, failed = time.monotonic(), 0
    while item is not None:
        following = next(items, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if following is None or following.location[0] != item.location[0]:
            word = "failed" if session.testsfailed > failed else "ok"
            if _PASSED and word == "ok":
                (_PASSED / _name(item.location[0])).touch()
            os.write(_SCREEN, f"{word:6} {time.monotonic() - began:6.1f} s  {item.location[0]}\n".encode())
            began, failed = time.monotonic(), session.testsfailed
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _own(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    for file, tests in itertools.groupby(items, key=lambda item: item.location[0]):
        if not (_PASSED and (_PASSED / _name(file)).exists()) and _take(file):
            yield from tests


def _take(file: str) -> bool:
    try:
        (_TAKEN / _name(file)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _name(file: str) -> str:
    return file.replace("/", ":")
