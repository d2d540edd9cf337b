"""Which test reaches which function, by coverage.py's contexts. Code that runs outside any test has the context ''."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

os.environ["COVERAGE_CORE"] = "ctrace"  # the newer core knows no contexts
from coverage import Coverage

Span = tuple[int, int]
"""The first and the last line of a function's body."""


class FunctionCoverage:
    """A pytest plugin: measures the files from the start, with the running test as context."""

    def __init__(self, spans: Mapping[str, Sequence[Span]]) -> None:
        self._spans = spans
        self._coverage = Coverage(data_file=None, config_file=False, include=[*spans])
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def answer(self) -> dict[str, list[list[str]]]:
        """For every file, in the order of its spans, the contexts in which a line of the span ran."""
        self._coverage.stop()
        data = self._coverage.get_data()
        measured = data.measured_files()
        return {path: [*self._contexts(data, path)] for path in self._spans if path in measured}

    def _contexts(self, data: Any, path: str) -> Iterator[list[str]]:
        by_line: dict[int, list[str]] = data.contexts_by_lineno(path)
        for first, last in self._spans[path]:
            yield sorted({name for line in range(first, last + 1) for name in by_line.get(line, ())})
