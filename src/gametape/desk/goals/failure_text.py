"""What the agent is told of an attempt that does not reach the goal: failing tests, exit codes, files not used."""

from collections.abc import Sequence

from gametape.core.verdict import Verdict
from gametape.desk.goals.apart_run import ApartRun
from gametape.desk.goals.command_judge import CommandVerdict
from gametape.desk.goals.minimum_counts import is_placeholder

NO_TEST_PASSES = "no test passes: every test that the command selects is skipped, excused or deselected"
_MAX_NAMED = 5
_MAX_FAILURES, _MAX_MESSAGE = 8, 1200


def check_text(judged: CommandVerdict) -> str:
    """Which files of the agent were not used."""
    replaced = f" Changes to these files do not count: {first_names([*judged.replaced])}." if judged.replaced else ""
    removed = f" These files may not be added: {first_names([*judged.removed])}." if judged.removed else ""
    return replaced + removed


def first_failure(exit_codes: Sequence[int]) -> int:
    """The first exit code that is not 0, as a shell would return; else 0."""
    return next((code for code in exit_codes if code != 0), 0)


def first_names(tests: list[str]) -> str:
    return ", ".join(tests[:_MAX_NAMED]) + (" and more" if len(tests) > _MAX_NAMED else "")


def failure_text(verdict: Verdict, failing: list[str], judged: CommandVerdict, apart: ApartRun) -> str:
    """The failing tests and their messages. Twins and flags are not mentioned."""
    counts = verdict.tests
    parts = [f"{counts.passed} of {counts.expected} tests that the command needs pass."]
    if not counts.expected:
        parts = [f"{NO_TEST_PASSES[0].upper()}{NO_TEST_PASSES[1:]}."]
    earlier_messages: set[str] = set()
    failures = [failure for failure in verdict.failures if not is_placeholder(failure.test)]
    for failure in failures[:_MAX_FAILURES]:
        message = failure.message.strip()[-_MAX_MESSAGE:]
        parts.append(
            f"{failure.result}: {failure.test}"
            + (f"\n{message}" if message and message not in earlier_messages else "")
        )
        earlier_messages.add(message)
    parts += [f"failed: {test}" for test in failing[:_MAX_FAILURES]]
    if apart.refuted:
        parts.append(f"{len(apart.refuted)} of them fail when your code runs in another process than the tests:")
        refuted = [*apart.refuted.items()][:_MAX_FAILURES]
        parts += [f"failed: {test}\n{message.strip()[-_MAX_MESSAGE:]}" for test, message in refuted]
    if code := first_failure(judged.exit_codes):
        parts.append(f"Another part of the command ended with exit code {code}.{check_text(judged)}")
    return "\n\n".join(parts)
