"""The pytest plugin of a test process: runs exactly the wanted tests, and reports the result of each once."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

Tell = Callable[[dict[str, Any]], None]
_LONGEST = 6000


class Reporter:
    """`correct` may change the result of each test after its teardown, before it is reported."""

    def __init__(self, tell: Tell, wanted: Sequence[str], shuffle: int | None, correct: Callable[[str], str]) -> None:
        self._tell = tell
        self._wanted = frozenset(wanted)
        self._shuffle = shuffle
        self._correct = correct
        self._results: dict[str, str] = {}
        self._seconds: dict[str, float] = {}
        self._texts: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._wanted]
        if self._shuffle is not None:
            random.Random(self._shuffle).shuffle(items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell({"broken": report.nodeid, "message": self._text(report.longreprtext)})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        self._seconds[test] = self._seconds.get(test, 0.0) + report.duration
        before = self._results.get(test, "passed")
        if report.failed:
            self._results[test] = "failed"
            self._texts[test] = self._texts.get(test, "") + self._text(report.longreprtext)
        elif report.skipped or hasattr(report, "wasxfail"):
            self._results[test] = "skipped" if before == "passed" else before
            self._texts.setdefault(test, "xfail" if hasattr(report, "wasxfail") else "skip")
        else:
            self._results[test] = before

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._tell(
            {
                "test": nodeid,
                "result": self._correct(self._results.pop(nodeid, "failed")),
                "seconds": round(self._seconds.pop(nodeid, 0.0), 4),
                "message": self._texts.pop(nodeid, "")[:_LONGEST],
            }
        )

    def _text(self, text: str) -> str:
        return text[-_LONGEST:]
