"""What an agent may be told about a verdict: enough to go on with, and nothing about the tests it must not see."""

from gametape.core.verdict import Verdict

_LAYERS = frozenset(("types", "lint", "architecture"))
_MOST, _LONGEST = 8, 1200


def feedback(verdict: Verdict) -> str:
    """Failed visible tests with their messages, and findings about the code itself.

    Of held-out tests it says only whether some fail: no name, no number, no expectation. Accusations are not told
    either: whoever is told which rule caught it learns to go round it.
    """
    counts = verdict.tests
    visible = counts.expected - counts.held_out_expected
    passed = counts.passed - counts.held_out_passed
    parts = [f"{passed} of {visible} visible tests pass."]
    for failure in verdict.failures[:_MOST]:
        message = failure.message.strip()[-_LONGEST:]
        parts.append(f"{failure.result}: {failure.test}" + (f"\n{message}" if message else ""))
    if passed == visible and counts.held_out_passed < counts.held_out_expected:
        parts.append("Tests that you cannot see fail: read the instruction again.")
    parts += [f"{check.name}: {check.detail}" for check in verdict.checks if check.name in _LAYERS and check.score < 1]
    return "\n\n".join(parts)
