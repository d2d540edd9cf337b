"""`gametape trajectory show`: a trajectory on the terminal, or the table of those in a directory."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from gametape.record.errors import printable_path
from gametape.studio.step_view import StepView, mapping
from gametape.studio.trajectory_view import TrajectoryTotals, TrajectoryView
from gametape.terminal.step_lines import (
    Fold,
    call_lines,
    clip_line,
    mark_lines,
    message_lines,
    reasoning_lines,
    result_lines,
)
from gametape.terminal.table import Column, numbers, print_table
from gametape.watch.text_features import one_line

_OUTCOME_STYLES = {"passed": "bold green", "reached": "bold green", "running": "bold yellow", "open": "bold yellow"}
_WHO = {"user": "bold cyan", "system": "bold magenta"}
_PROMPT_LINES = 6
_LONGEST_TITLE = 120


def show_trajectory(console: Console, view: TrajectoryView, fold: Fold, wrap: bool) -> None:
    """`wrap` breaks lines between words at the width of the console, each part below its beginning."""
    for line in trajectory_lines(view, fold):
        for part in _wrapped(console, line) if wrap else [line]:
            console.print(part, soft_wrap=True)


def _wrapped(console: Console, line: Text) -> list[Text]:
    if line.cell_len <= console.width:
        return [line]
    margin = min(len(line.plain) - len(line.plain.lstrip(" |")), console.width // 2)
    parts = line[margin:].wrap(console, console.width - margin)
    for part in parts:
        part.rstrip()
    return [Text.assemble(line[:margin], part) for part in parts]


def trajectory_lines(view: TrajectoryView, fold: Fold) -> Iterator[Text]:
    """Every line of a trajectory: header, steps, verdict."""
    yield from _header(view)
    for step in view.steps:
        yield Text("")
        yield from _step(view, step, fold)
    if not view.steps:
        yield Text(f"no turn{' yet' if view.outcome == 'running' else ' to show'}", style="dim")
    yield from _ending(view, fold)


def show_table(console: Console, views: Sequence[TrajectoryView], root: str) -> None:
    """One line for each of several trajectories."""
    columns = [Column("trajectory", wraps=True), Column("task", wraps=True), Column("model", wraps=True)]
    rows = [
        (
            printable_path(view.path).removeprefix(f"{root}/"),
            one_line(view.task),
            one_line(view.model),
            Text(one_line(view.outcome) or "-", style=_OUTCOME_STYLES.get(view.outcome, "")),
            str(view.totals.turns),
            f"{view.totals.tokens:,}",
        )
        for view in views
    ]
    print_table([*columns, Column("outcome"), *numbers("turns", "tokens")], rows, console)


def totals_text(totals: TrajectoryTotals) -> str:
    """Turns, tokens, cost and time in one line."""
    parts = [f"{totals.turns} turn{'s' if totals.turns != 1 else ''}"]
    if totals.tokens:
        cached = f", {totals.cached_tokens:,} cached" if totals.cached_tokens else ""
        parts.append(f"{totals.prompt_tokens:,} tokens read{cached}, {totals.completion_tokens:,} written")
    if totals.cost_usd:
        parts.append(f"${totals.cost_usd:.4f}")
    if totals.seconds is not None:
        parts.append(duration_text(totals.seconds))
    return "  ".join(parts)


def duration_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _header(view: TrajectoryView) -> Iterator[Text]:
    yield Text(clip_line(view.title, _LONGEST_TITLE), style="bold")
    rows = {
        "id": one_line(view.name) if view.name != view.title else "",
        "agent": f"{one_line(view.agent)}  {one_line(view.version)}",
        "model": one_line(view.model),
        "took": totals_text(view.totals),
        "file": printable_path(view.path),
    }
    for name, text in rows.items():
        if text.strip():
            yield Text.assemble((f"{name:<9}", "dim"), text)
    reason = f"  {one_line(view.reason)}" if view.reason and view.reason != view.outcome else ""
    outcome = one_line(view.outcome) or "not recorded"
    style = _OUTCOME_STYLES.get(view.outcome, "bold red" if view.outcome else "dim")
    yield Text.assemble(("outcome  ", "dim"), (outcome, style), reason)


def _step(view: TrajectoryView, step: StepView, fold: Fold) -> Iterator[Text]:
    yield _heading(view, step)
    yield from reasoning_lines(step, "  ", fold)
    first = step.source != "agent" and fold.lines is not None
    yield from message_lines(step.text, "  ", Fold(_PROMPT_LINES, fold.line_characters) if first else _whole(fold))
    unanswered = list(step.results)
    for call in step.calls:
        yield from call_lines(call, "  ", fold)
        for answer in [result for result in unanswered if result.call_id and result.call_id == call.call_id]:
            unanswered.remove(answer)
            yield from result_lines(answer, "    ", fold)
    for result in unanswered:
        yield from result_lines(result, "    ", fold)
    yield from mark_lines(step.marks, "  ")


def _heading(view: TrajectoryView, step: StepView) -> Text:
    if step.source != "agent":
        return Text(one_line(step.source), style=_WHO.get(step.source, "bold"))
    facts = [f"step {step.number}"]
    if step.prompt_tokens or step.completion_tokens:
        facts.append(f"{step.prompt_tokens:,} + {step.completion_tokens:,} tokens")
    if step.cost_usd:
        facts.append(f"${step.cost_usd:.4f}")
    if step.model and step.model != view.model:
        facts.append(one_line(step.model))
    return Text.assemble((f"turn {step.turn}", "bold"), (f"  {'  '.join(facts)}", "dim"))


def _whole(fold: Fold) -> Fold:
    """What the agent itself says is not folded by lines."""
    return Fold(None, fold.line_characters)


def _ending(view: TrajectoryView, fold: Fold) -> Iterator[Text]:
    if view.verdict:
        passed, tests = bool(view.verdict.get("passed")), mapping(view.verdict.get("tests"))
        counts = f"{tests.get('passed')} of {tests.get('expected')} tests" if tests else ""
        words = ("passed", "bold green") if passed else ("not passed", "bold red")
        reward = view.verdict.get("reward")
        score = f"  reward {reward:+.2f}" if isinstance(reward, int | float) else ""
        yield Text("")
        yield Text.assemble(("verdict  ", "dim"), words, f"{score}  {one_line(counts)}")
    shown = view.marks if fold.lines is None else view.marks[: fold.lines]
    yield from mark_lines(shown, "  ")
    if len(view.marks) > len(shown):
        yield Text(f"  ... {len(view.marks) - len(shown)} more (--full)", style="dim italic")
    for sub in view.subagents:
        took = totals_text(sub.totals)
        yield Text.assemble(("subagent ", "dim"), (one_line(sub.name), "magenta"), f"  {one_line(sub.agent)}  {took}")
