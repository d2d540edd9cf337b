"""What a verdict on a goal excludes and what it does not, in words."""

from collections.abc import Sequence
from typing import Any

from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.pinned_files import INSTRUCTIONS
from gametape.desk.goals.success_command import SuccessCriterion

_MAX_NAMED = 8
_KINDS = {
    "changed": "changed",
    "asked_for": "read",
    "looked_for_before": "wanted",
    "used_by_tests_only": "companions",
    "replaced": "replaced",
    "taken_away": "removed",
    "removed": "deleted",
    "read_by_product": "golden",
    "fewer_examples": "fewer_examples",
    "silenced": "silenced",
    "not_opened": "unopened",
    "used_as_left": "accepted",
    "written_results": "results",
    "unheeded": "unheeded",
    "made_by_product": "made",
    "not_read_any_more": "unread",
    "followed": "followed",
}
"""The names in the answer, and in the evidence."""
_OF_COMMAND = (
    ("wanted", "Looked for by the check before it was there, and was added by the agent: {}."),
    ("golden", "Data of the check is read by the product, as it was not before: {}."),
    (
        "unheeded",
        "The command succeeds as well where data of the check, or the last line of it, says something else: {}.",
    ),
    ("unread", "Read by the check before, and not any more: {}."),
    ("made", "Made by the product while the command runs, where the check looks: {}."),
    (
        "accepted",
        "Instructions that the agent changed or added, used as it left them: {}. With them the check reads all its "
        "files, and fails without the product; look at them.",
    ),
    (
        "results",
        "Files that lay there, that the check reads, and that the product wrote: {}. They count as results; if one is "
        "what results are compared with, name it with --pin.",
    ),
    ("fewer_examples", "Examples that doctest would have run were removed from: {}."),
    ("silenced", "Marks that silence a tool were added to: {}."),
    ("deleted", "Files that it read at first and that the agent removed: {}."),
    (
        "unopened",
        "Other files that the agent changed, added or removed: {}. It opens none of them, but their names can be "
        "enough for it.",
    ),
)
_OF_BOTH = (
    (
        "followed",
        "Files of the check that differ only in the modules of the product from which they import, or have more "
        "fixtures, used as the agent left them: {}.",
    ),
)
_OF_TESTS = (
    ("changed", "Files that the agent changed: {}."),
    ("followed_roots", "The product moved, and is imported from {}; the command itself needs that on its path."),
    (
        "companions",
        "Files outside of the tests that only tests use, where a change can alter what the tests ask, and that the "
        "agent changed: {}. If one of them is part of the check, name it with --pin.",
    ),
    (
        "values",
        "Tests read values of the product that the agent changed: {}. Such a value can be the work, and it can switch "
        "a test off or make it accept more; look at it.",
    ),
)


def assurance(criterion: SuccessCriterion) -> str:
    """`verifier`: every condition is a pytest run, and each test is judged; `exit-code`: a process decides."""
    return "exit-code" if criterion.shell_commands else "verifier"


def assurance_detail(
    goal: Goal,
    criterion: SuccessCriterion,
    baseline: GoalBaseline,
    evidence: dict[str, Any] | None,
    attempts: Sequence[dict[str, Any]] = (),
) -> str:
    """Sentences about the run that decided; `evidence` is what the judge noted of it, None where the state that is
    handed over was not judged, since none of the attempts is better than the start."""
    if evidence is None:
        return _about_attempts(attempts)
    lines = []
    if criterion.pytest_runs:
        lines = [*_about_tests(evidence), *_about_near_inputs(evidence), *_about_companions(evidence)]
    if criterion.shell_commands:
        lines += _about_command(criterion, baseline, evidence)
    return " ".join([*lines, *_about_files(evidence), *_about_held_out(goal, criterion, evidence)])


def _about_attempts(attempts: Sequence[dict[str, Any]]) -> str:
    if not attempts:
        return "Nothing was judged."
    flagged = [attempt for attempt in attempts if attempt["tampering"]]
    rules = sorted({flag["rule"] for attempt in flagged for flag in attempt["tampering"]})
    lines = [f"None of {len(attempts)} judged attempts is better than the start, which is handed over."]
    if flagged:
        lines.append(f"{len(flagged)} of them tampered with the check: {names(rules)}.")
    return " ".join(lines)


def check_files(evidence: dict[str, Any] | None) -> dict[str, list[str]]:
    """All the files of which `assurance_detail` names the first, by what became of them."""
    return {kind: [*(evidence or {}).get(key, ())] for kind, key in _KINDS.items()}


def names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more


def _about_tests(evidence: dict[str, Any]) -> list[str]:
    passed, shared, refuted = evidence["apart"], evidence["one_process"], evidence["refuted"]
    total = passed + len(shared) + len(refuted)
    if not total:
        return ["The tests were run in one process with the product, which sees them and could forge their results."]
    if refuted:
        return [
            f"{len(refuted)} of {total} tests pass only where the product can see them, and not with the product in "
            f"another sandbox: {names(refuted)}."
        ]
    if not shared:
        return [f"All {total} tests pass with the product in another sandbox, where it sees calls and no test."]
    return [
        f"{passed} of {total} tests pass with the product in another sandbox, where it sees calls and no test. "
        f"{len(shared)} of {total} tests could only be run in one process with the product, which sees them there and "
        f"could forge their results: {names(shared)}."
    ]


def _about_near_inputs(evidence: dict[str, Any]) -> list[str]:
    near = evidence["near"]
    lines = []
    if near["memorised"]:
        lines.append(
            f"Answers the inputs of the tests and hardly any near them: {names(near['memorised'])}. That is what a "
            "table of the tests' answers does; look at the code."
        )
    elif near.get("as_before"):
        lines.append(
            "Answers otherwise than before on the inputs of the tests and hardly any near them: "
            f"{names(near['as_before'])}. That is what a table of the tests' answers does; look at the code."
        )
    elif near["functions"]:
        functions = "1 function" if near["functions"] == 1 else f"{near['functions']} functions"
        lines.append(f"{functions} gave varied answers to {near['calls']} inputs near those of the tests, too.")
    if few := near.get("few_inputs"):
        lines.append(
            "These functions changed their answers for some inputs of the tests, and for hardly any input like them: "
            f"{names(few)}. A mended border case looks so, and so does an answer for one test; look at the code."
        )
    if not_asked := near.get("not_asked"):
        lines.append(
            "These functions now give the tests other answers than before, and were not tried with inputs like those "
            f"of the tests, so a table of the tests' answers would not be noticed: {names(not_asked)}."
        )
    if later := near.get("later"):
        lines.append(
            "These functions of changed modules answer later, and were not tried with inputs like those of the tests: "
            f"{names(later)}."
        )
    return lines


def _about_companions(evidence: dict[str, Any]) -> list[str]:
    lines = _named(_OF_TESTS, evidence)
    for path, others in evidence.get("compared", {}).items():
        lines.append(f"Tests compare {path}, which the agent changed, with other code of the product: {names(others)}.")
    return lines


def _about_command(criterion: SuccessCriterion, baseline: GoalBaseline, evidence: dict[str, Any]) -> list[str]:
    commands = ", ".join(f"`{command.text}`" for command in criterion.shell_commands)
    lines = [f"{commands} counts by its exit code: code of the product that it runs could end it with 0."]
    others = {*evidence.get("accepted", ()), *evidence.get("results", ())}
    if pinned := [path for path in baseline.pinned if path not in others]:
        lines.append(f"Files of the check that it read are used as they were: {names(pinned)}.")
    else:
        lines.append("It read no file of the workspace that is part of a check.")
    if not baseline.traced:
        lines.append("It asks for more files than a trace keeps, so it cannot be judged.")
    if evidence["read"]:
        lines.append(
            f"Files that the agent changed and that it asks for: {names(evidence['read'])}. If one of them is part of "
            "the check, name it with --pin."
        )
    lacking = {path for path in baseline.product if path.rpartition("/")[2] in INSTRUCTIONS}
    if written := [path for path in evidence["read"] if path in lacking]:
        lines.append(f"What it runs was not there at first, and was written by the agent: {names(written)}.")
    return [*lines, *_named(_OF_COMMAND, evidence)]


def _named(sentences: Sequence[tuple[str, str]], evidence: dict[str, Any]) -> list[str]:
    """The sentences about files of which there are some."""
    return [sentence.format(names(evidence[key])) for key, sentence in sentences if evidence.get(key)]


def _about_files(evidence: dict[str, Any]) -> list[str]:
    lines = _named(_OF_BOTH, evidence)
    if evidence["replaced"]:
        lines.append(
            f"The agent changed files of the check; the pinned ones were judged: {names(evidence['replaced'])}."
        )
    if evidence["removed"]:
        lines.append(f"The agent added files to the check; they were taken away: {names(evidence['removed'])}.")
    return lines


def _about_held_out(goal: Goal, criterion: SuccessCriterion, evidence: dict[str, Any]) -> list[str]:
    held = evidence["held_out"]
    if goal.held_out and held:
        lines = [f"{held['passed']} of {held['required']} tests that the agent never saw pass."]
        if shared := evidence.get("held_out_one_process"):
            lines.append(
                f"{shared} of these could only be run in one process with the product, which sees them there and could "
                "forge their results."
            )
        return lines
    if goal.held_out:
        return ["The tests that the agent never saw were not run, since the command did not succeed."]
    what = "tests" if criterion.pytest_runs and not criterion.shell_commands else "checks"
    return [f"Only {what} that the agent can read decide; --held-out adds tests that it never sees."]
