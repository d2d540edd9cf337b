"""Layer `runtime`: whether the code runs without errors, whether or not its answers are right.

A test of the task has an error if it was not reached (its file could not be imported, the process died), hung, or ended
in an exception other than a failed assertion. A test that passed in some run has none; warnings are no errors. Each
different system call that the sandbox denied, each kind of limit that ended a run, and each process that ended before
its tests halves the score. Accesses that were only logged are no violations.
"""

import re

from gametape.core.verdict import Check
from gametape.verify.layers.context import ScoringContext
from gametape.verify.layers.new_findings import summarize
from gametape.verify.verifier_run import VerifierRun

NAME = "runtime"

_RAISED = re.compile(r"^(?:E\s+)?(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Iteration))\b", re.M)
_ASSERTIONS = frozenset({"AssertionError"})
_ENDS = frozenset({"left early", "died", "runner ended"})
_LONGEST_MESSAGE = 20_000


def score(context: ScoringContext) -> Check | None:
    tests = context.submission.loaded_task.task.tests.every
    if not context.runs or not tests:
        return None
    errors = {test: error for test in tests if (error := _error(test, context.runs)) is not None}
    incidents = _incidents(context.runs)
    held_out = set(context.submission.loaded_task.task.tests.held_out)
    named = {test: "a held-out test" if test in held_out else test for test in errors}
    problems = [f"{named[test]}: {error}" for test, error in errors.items()] + incidents
    share = 1 - len(errors) / len(tests)
    return context.check(
        NAME, share * 0.5 ** len(incidents), summarize(problems) if problems else "no errors, no violations"
    )


def _error(test: str, runs: tuple[VerifierRun, ...]) -> str | None:
    """The error of a test, other than a wrong answer."""
    results = [run.result(test) for run in runs]
    if "passed" in results:
        return None
    if "timed_out" in results:
        return "timed out"
    if all(result == "missing" for result in results):
        return "never ran"
    messages = (run.outcomes[test].message for run in runs if run.result(test) == "failed")
    return next((name for message in messages if (name := _raised(message))), None)


def _raised(message: str) -> str | None:
    names = [match.group(1) for match in _RAISED.finditer(message[-_LONGEST_MESSAGE:])]
    return names[-1] if names and names[-1] not in _ASSERTIONS else None


def _incidents(runs: tuple[VerifierRun, ...]) -> list[str]:
    denied = {violation.syscall for run in runs for violation in run.violations if violation.action != "logged"}
    ended = sorted({f"a run was ended by its limit: {run.killed_by}" for run in runs if run.killed_by})
    ends = {f"{event.kind}: {event.detail}" for run in runs for event in run.events if event.kind in _ENDS}
    return [*(f"denied: {syscall}" for syscall in sorted(denied)), *ended, *sorted(ends)]
