"""A result in words, as the text of a pull request."""

import difflib
from typing import Any

from gametape.desk.goals.baseline import Baseline
from gametape.desk.goals.goal import Goal
from gametape.verify.tree import Tree


def summary(
    goal: Goal, baseline: Baseline, answer: dict[str, Any], start: Tree, after: Tree, left_out: list[str]
) -> str:
    """What was asked, what changed, what the command said before and after, and what it cost."""
    asked = goal.instruction.strip()
    title = asked.splitlines()[0][:72]
    body = [asked, ""] if asked != title else []
    state = "Reached" if answer["reached"] else f"Not reached ({answer['reason']}); this is the best state"
    lines = [f"# {title}", "", *body, f"{state}: `{goal.success}`", "", "## Changes", ""]
    lines += _changes(start, after) or ["Nothing."]
    if left_out:
        lines += [
            "",
            "Left out, as these files are protected or no sources: " + ", ".join(f"`{path}`" for path in left_out),
        ]
    lines += ["", "## The criterion", "", *_criterion(baseline, answer), "", "## Attempts", ""]
    for attempt in answer["attempts"]:
        named = sorted({flag["rule"] for flag in attempt["tampering"]})
        accused = f"; tampering: {', '.join(named)}" if named else ""
        passed = attempt["criterion"]["passed"]
        lines.append(f"{attempt['n']}. {passed} passed, {attempt['tokens']} tokens{accused}")
    cost = f", ${answer['cost_usd']:.4f}" if answer["cost_usd"] else ""
    lines += ["", f"{answer['tokens']} tokens{cost}, by {goal.model}. Goal `{goal.goal_id}`.", ""]
    return "\n".join(lines)


def _changes(start: Tree, after: Tree) -> list[str]:
    lines = []
    for path in sorted({*start, *after}):
        old, new = start.files.get(path), after.files.get(path)
        if old == new and (path in start.executable) == (path in after.executable):
            continue
        what = "added" if old is None else "removed" if new is None else "changed"
        added, removed = _counts(old or b"", new or b"")
        lines.append(f"- `{path}` {what} (+{added} -{removed})")
    return lines


def _counts(old: bytes, new: bytes) -> tuple[int, int]:
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    return sum(change[4] - change[3] for change in changes), sum(change[2] - change[1] for change in changes)


def _criterion(baseline: Baseline, answer: dict[str, Any]) -> list[str]:
    last = answer["attempts"][answer["best"]]["criterion"] if answer["best"] is not None else None
    if not baseline.results and not baseline.broken:
        before = ", ".join(map(str, baseline.exit_codes))
        return [f"Exit code before: {before}. After: {last['exit_code'] if last else before}."]
    files = "1 file" if len(baseline.broken) == 1 else f"{len(baseline.broken)} files"
    unread = f", {files} that could not be read" if baseline.broken else ""
    before = f"{len(baseline.tests('passed'))} of {len(baseline.results)} tests passed{unread}"
    after = f"{last['passed']} passed, {last['skipped']} skipped, {last['xfailed']} excused" if last else before
    return [f"- before: {before}", f"- after: {after}"]
