"""A pytest plugin for several processes over one suite: each takes the next test file that no other has taken.

`scripts/test.py` starts them. Files are not divided, so that what their tests share is made once, and are taken when
they are due, those first that took longest in the run that is given, so that none of them is left for the end; before
them come those that it does not know. A line on stderr tells of each that is finished: a file in which all was skipped
is `skipped`, with the first reason.
Where a directory is given for them, files that passed are noted there, and nobody takes them again. Those that failed
are noted in another one.

pytest-xdist's `--dist loadfile` shares out alike, but the temporary directory for each process, the memory of what
passed, the longest first and the end with whoever started it would be a plugin of this size on top of it.
"""

import ctypes
import itertools
import math
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

_TAKEN = Path(os.environ["GAMETAPE_TESTS_TAKEN"])
_STARTER = int(os.environ["GAMETAPE_TESTS_STARTER"])
_FAILED = Path(os.environ["GAMETAPE_TESTS_FAILED"])
_PASSED = Path(kept) if (kept := os.environ.get("GAMETAPE_TESTS_PASSED")) else None
_TIMES = Path(times) if (times := os.environ.get("GAMETAPE_TESTS_TIMES")) else None
_SCREEN = os.dup(2)  # pytest takes the real one away while tests run
_PR_SET_PDEATHSIG = 1
_ran: list[str] = []
"""How the tests of this process went that were not skipped."""
_skips: list[str] = []
_unread: dict[str, str] = {}
"""Files that are skipped as a whole, with the reason."""


def pytest_configure() -> None:
    """An interrupt is how this is ended, even where a shell has it ignored; the kernel sends one when whoever started
    this is killed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() != _STARTER:
        raise KeyboardInterrupt  # it was killed before we could ask to be told


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skips.append(_reason(report))
    elif report.when == "call" or report.failed:
        _ran.append(report.outcome)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _unread[report.nodeid] = _reason(report)


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
            word = "failed" if session.testsfailed > failed else "ok" if _ran or not _skips else "skipped"
            noted = _PASSED if word == "ok" else _FAILED if word == "failed" else None
            if noted:
                (noted / _name(item.location[0])).touch()
            _tell(word, time.monotonic() - began, item.location[0], _skips[0] if word == "skipped" else "")
            began, failed = time.monotonic(), session.testsfailed
            _ran.clear()
            _skips.clear()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    for file, reason in _unread.items():
        if _take(file):
            _tell("skipped", 0.0, file, reason)
    return True


def _own(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    files = [(file, list(tests)) for file, tests in itertools.groupby(items, key=lambda item: item.location[0])]
    took = _took()
    for file, tests in sorted(files, key=lambda each: -took.get(each[0], math.inf)):
        if not (_PASSED and (_PASSED / _name(file)).exists()) and _take(file):
            yield from tests


def _took() -> dict[str, float]:
    """Seconds that files took, from the lines that `_tell` wrote in another run."""
    text = _TIMES.read_text() if _TIMES and _TIMES.exists() else ""
    return {file: float(seconds) for seconds, file in re.findall(r"^ok +([\d.]+) s  (\S+)$", text, re.MULTILINE)}


def _tell(word: str, seconds: float, file: str, reason: str) -> None:
    os.write(_SCREEN, f"{word:7}{seconds:6.1f} s  {file}{reason and f': {reason}'}\n".encode())


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(said.removeprefix("Skipped: ").split())


def _take(file: str) -> bool:
    try:
        (_TAKEN / _name(file)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _name(file: str) -> str:
    return file.replace("/", ":")
