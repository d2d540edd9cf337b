"""What each attempt at a goal came to, in words: how many tests passed, which did not, and what cut it short."""

import re
from collections.abc import Collection
from typing import Any

from gametape.verify.jobs import file_of

_FAILURE = re.compile(r"^(?:failed|skipped|timed_out|missing): (\S.*)$", re.MULTILINE)
_MAX_NAMED = 3
_REASONS = {"budget": "the budget is spent", "deadline": "the time is up"}


def failing_tests(feedback: str, files: Collection[str]) -> list[str]:
    """The tests of these files that the judge's feedback names."""
    return [test for test in dict.fromkeys(_FAILURE.findall(feedback)) if file_of(test) in files]


def end_text(answer: dict[str, Any]) -> str:
    """Why a goal that is not reached has ended."""
    reason, attempts = str(answer["reason"]), len(answer["attempts"])
    if reason == "attempts":
        return f"all {attempts} attempts used" if attempts != 1 else "the only attempt used"
    return _REASONS.get(reason, reason)


def count_text(attempt: dict[str, Any]) -> str:
    criterion, demanded, held_out = attempt["criterion"], attempt.get("demanded"), attempt.get("held_out")
    hidden = f", {held_out['passed']} of {held_out['required']} held-out tests" if held_out else ""
    if criterion["collected"] is None:
        return f"exit code {criterion['exit_code']}{hidden}"
    return (f"{criterion['passed']} of {demanded} passed" if demanded else f"{criterion['passed']} passed") + hidden


def shortcomings(attempt: dict[str, Any]) -> list[str]:
    """What cut an attempt short, and the first tests that it left failing."""
    lines = [f"ended early: {attempt['ended']}"] if attempt.get("ended") else []
    failing: list[str] = attempt.get("failing") or []
    more = attempt.get("demanded", 0) - attempt["criterion"]["passed"] - len(failing[:_MAX_NAMED])
    if failing:
        also = f" and {more} more" if more > 0 else ""
        lines.append(f"failing: {', '.join(failing[:_MAX_NAMED])}{also}")
    return lines


def shortcomings_section(answer: dict[str, Any]) -> str:
    """The section of the summary about attempts that did not reach the goal; empty where every one did."""
    lines = [
        f"{attempt['n']}. {'; '.join([count_text(attempt), *found])}"
        for attempt in answer["attempts"]
        if (found := shortcomings(attempt))
    ]
    end = [] if answer["reached"] else [f"Not reached: {end_text(answer)}.", ""]
    return "\n".join(["", "## What attempts left open", "", *end, *lines, ""]) if end or lines else ""
