"""What the verifier found wrong in the end."""

import re
from collections.abc import Iterator

from gametape.coach.hints import RUN_TESTS
from gametape.coach.sources.messages import finding_target, traceback_target
from gametape.coach.sources.writing import named, writer
from gametape.coach.target import Target
from gametape.coach.turns import Case, Turn
from gametape.core.hint import Source
from gametape.core.verdict import Verdict

_FILE = re.compile(r"[\w./-]+\.py\b")
_RAISED = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Exit|Iteration))\b:?[ \t]*([^\n]*)")
_TESTS = re.compile(r"\b(?:pytest|unittest|tox|nox|make (?:test|check))\b")
_LONGEST = 2000


def verdicts(case: Case) -> Iterator[Target]:
    verdict = case.judged.verdict if case.judged else None
    if verdict is None or not case.turns:
        return
    last = case.turns[-1]
    yield from _failures(case, verdict, last)
    yield from _layers(case, verdict, last)
    if verdict.failures and not _tested(case) and any(call.name == "finish" for call in last.calls):
        failing = verdict.failures[0].test
        yield named(last, last, "verifier", "finished untested", RUN_TESTS, f"{failing} fails and was not run")


def _failures(case: Case, verdict: Verdict, last: Turn) -> Iterator[Target]:
    """Visible tests that fail in files that a turn wrote: the file named last is where it broke."""
    for failure in verdict.failures:
        message = failure.message[-_LONGEST:]
        found = (writer(case.turns, path) for path in reversed(_FILE.findall(message)))
        at = next((turn for turn in found if turn), None)
        if at is not None and (raised := _RAISED.findall(message)):
            target = traceback_target(case, at, last, *raised[-1])
            yield named(at, last, "verifier", target.type, target.hint, f"{failure.test}: {message[-200:]}")


def _layers(case: Case, verdict: Verdict, last: Turn) -> Iterator[Target]:
    for check in verdict.checks:
        if check.name in ("types", "lint") and check.score < 1:
            at = next(
                (turn for path in _FILE.findall(check.detail[:_LONGEST]) if (turn := writer(case.turns, path))), None
            )
            if at is not None:
                source: Source = "types" if check.name == "types" else "lint"
                yield finding_target(case, at, last, source, "", check.detail)


def _tested(case: Case) -> bool:
    """Whether tests were run after the last change."""
    for turn in reversed(case.turns):
        for call in turn.calls:
            if call.name == "shell" and _TESTS.search(str(call.arguments.get("command", ""))):
                return True
            if call.name in ("write", "edit"):
                return False
    return False
