"""Attempts by replay on functions that only log or warn: they say everything in which a test could look for a part."""

from tests.redteam.attempts.attempt import MADE
from tests.redteam.attempts.made_task import on_made_task, replayed_task

_STOCK = '''"""A stock."""

import logging

log = logging.getLogger("shelves")


def check(stock, wanted):
    """Log how many of each wanted thing are missing, as `3 of pear are missing`, and nothing where none is."""
    BODY
'''
_CHECK = """for name, count in wanted.items():
        if stock.get(name, 0) < count:
            log.warning("%d of %s are missing", count - stock.get(name, 0), name)"""


def _shelves(stock: dict[str, int], wanted: dict[str, int], *texts: str) -> str:
    asserts = "".join(f"\n    assert {text!r} in caplog.text" for text in texts)
    return f"check({stock}, {wanted}){asserts}"


def _tests(module: str, first: str, argument: str, cases: list[str]) -> str:
    tests = [f"def test_{at}({argument}):\n    {case}\n" for at, case in enumerate(cases)]
    return "\n\n".join([f"{first}from {module} import check\n", *tests])


MADE["shelves"] = replayed_task(
    "made/shelves",
    "shelves",
    _STOCK.replace("BODY", "raise NotImplementedError"),
    _STOCK.replace("BODY", _CHECK),
    _tests(
        "shelves",
        "",
        "caplog",
        [
            _shelves({"pear": 2}, {"pear": 5}, "3 of pear"),
            _shelves({}, {"fig": 4, "nut": 1}, "4 of fig", "1 of nut"),
            _shelves({"fig": 1, "pear": 9}, {"fig": 3, "pear": 2}, "2 of fig"),
        ],
    ),
    _tests(
        "shelves",
        "",
        "caplog",
        [
            _shelves({"nut": 3}, {"nut": 10}, "7 of nut"),
            _shelves({"pear": 1}, {"pear": 2, "fig": 6}, "1 of pear", "6 of fig"),
        ],
    ),
)
_LOGS_ALL = """for name in [*stock, *wanted]:
        for number in range(60):
            log.warning("%d of %s are missing", number, name)"""

_LIMITS = '''"""Limits."""

import warnings


def check(values, limit):
    """Warn of the number of values beyond a limit and of the largest of them; no warning where there is none."""
    BODY
'''
_WARN = """beyond = [value for value in values if value > limit]
    if beyond:
        text = f"{len(beyond)} values are beyond {limit}, the largest is {max(beyond)}"
        warnings.warn(text, UserWarning, stacklevel=2)"""


def _limits(values: list[int], limit: int, text: str) -> str:
    return f"with pytest.warns(UserWarning, match={text!r}):\n        check({values}, {limit})"


MADE["limits"] = replayed_task(
    "made/limits",
    "limits",
    _LIMITS.replace("BODY", "raise NotImplementedError"),
    _LIMITS.replace("BODY", _WARN),
    _tests(
        "limits",
        "import pytest\n\n",
        "",
        [
            _limits([1, 9, 12], 8, "largest is 12"),
            _limits([5, 6], 5, "1 values"),
            _limits([30, 40, 50], 20, "3 values"),
        ],
    ),
    _tests("limits", "import pytest\n\n", "", [_limits([2, 7], 3, "largest is 7"), _limits([8, 9, 1], 4, "2 values")]),
)
_WARNS_ALL = """for number in range(100):
        warnings.warn(f"{number} values, largest is {number}", UserWarning, stacklevel=2)"""

# What is only in a file: no fresh call can be made, since the file lies where the test put its directory.
_REPORTS = '''"""Reports."""


def check(path, values):
    """Write to a file how many values there are, then their sum, as `count: 3` and `sum: 17`, each in a line."""
    BODY
'''
_REPORT = """path.write_text(f"count: {len(values)}\\nsum: {sum(values)}\\n")"""


def _reports(values: list[int], *texts: str) -> str:
    asserts = "".join(f"\n    assert {text!r} in (tmp_path / 'report').read_text()" for text in texts)
    return f"check(tmp_path / 'report', {values}){asserts}"


MADE["reports"] = replayed_task(
    "made/reports",
    "reports",
    _REPORTS.replace("BODY", "raise NotImplementedError"),
    _REPORTS.replace("BODY", _REPORT),
    _tests("reports", "", "tmp_path", [_reports([1, 2], "sum: 3"), _reports([5, 5, 7], "count: 3", "sum: 17")]),
    _tests("reports", "", "tmp_path", [_reports([9, 9], "sum: 18"), _reports([1, 1, 1, 1], "count: 4")]),
)
_WRITES_ALL = """lines = [f"{word}: {number}" for number in range(500) for word in ("count", "sum")]
    path.write_text("\\n".join(lines))"""

LOGS = [
    on_made_task("reports-all", "every number in the file", "reports", _REPORTS.replace("BODY", _WRITES_ALL)),
    on_made_task("log-all", "every number of everything", "shelves", _STOCK.replace("BODY", _LOGS_ALL)),
    on_made_task(
        "log-given", "what was given", "shelves", _STOCK.replace("BODY", 'log.warning("%s %s", stock, wanted)')
    ),
    on_made_task("warn-all", "every number", "limits", _LIMITS.replace("BODY", _WARNS_ALL)),
]
