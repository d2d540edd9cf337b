"""The lines of one step on a terminal: calls with short arguments, coloured diffs, folded results, marks.

Everything that a model or a tool wrote goes through `printable`: no control character reaches the terminal.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from gametape.studio.call_parts import call_parts, is_diff
from gametape.studio.step_view import CallView, ResultView, StepMark, StepView
from gametape.watch.text_features import one_line, printable

MARK_STYLES = {"note": "dim", "warning": "yellow", "bad": "bold red", "good": "bold green"}
_LONGEST_ARGUMENT = 160
_TAIL_LINES = 2
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True)
class Fold:
    """How much is shown. None is everything."""

    lines: int | None = 8
    line_characters: int | None = 240
    reasoning: bool = False
    hint: bool = True
    """Whether the option that unfolds is named."""


def clip_line(text: str, limit: int) -> str:
    """Text on one line, without control characters, of at most `limit` characters."""
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 3] + "..."


def fold_lines(lines: Sequence[str], fold: Fold) -> Iterator[tuple[str, bool]]:
    """Lines from both ends, and between them how many are hidden. The flag marks that line."""
    most = fold.lines
    if most is None or len(lines) <= most + 1:  # one line is not worth another that says it is hidden
        yield from ((line, False) for line in lines)
        return
    tail = min(_TAIL_LINES, most // 2)
    yield from ((line, False) for line in lines[: most - tail])
    yield f"... {len(lines) - most} more lines{' (--full)' if fold.hint else ''}", True
    yield from ((line, False) for line in lines[len(lines) - tail :])


def message_lines(text: str, margin: str, fold: Fold, style: str = "") -> Iterator[Text]:
    lines = [printable(line.expandtabs(4)) for line in text.strip("\n").splitlines()]
    for line, hidden in fold_lines(lines, fold):
        yield Text(f"{margin}{_clipped(line, fold)}", style="dim italic" if hidden else style)


def reasoning_lines(step: StepView, margin: str, fold: Fold) -> Iterator[Text]:
    if not step.reasoning.strip():
        return
    if fold.reasoning:
        yield from message_lines(step.reasoning, f"{margin}| ", Fold(None, fold.line_characters), "dim italic")
        return
    words = len(step.reasoning.split())
    hint = " (--reasoning)" if fold.hint else ""
    yield Text(f"{margin}| reasoning, {words} word{'s' if words != 1 else ''}{hint}", style="dim italic")


def call_lines(call: CallView, margin: str, fold: Fold) -> Iterator[Text]:
    """The tool's name with its short arguments, and below it those of several lines; an edit is shown as a diff."""
    parts = call_parts(call)
    words = " ".join(f"{one_line(key)}={clip_line(text, _LONGEST_ARGUMENT)}" for key, text in parts.short.items())
    yield Text.assemble((f"{margin}> ", "cyan"), (clip_line(call.name, 80), "bold cyan"), f" {words}".rstrip())
    yield from diff_lines(parts.diff, f"{margin}    ", fold)
    for key, text in parts.blocks.items():
        yield Text(f"{margin}  {one_line(key)}:", style="cyan")
        yield from _block(text, f"{margin}    ", fold)


def result_lines(result: ResultView, margin: str, fold: Fold) -> Iterator[Text]:
    yield from _block(result.text, margin, fold, "red" if result.failed else "dim")
    for name in result.subagents:
        yield Text(f"{margin}subagent {clip_line(name, 200)}", style="magenta")


def mark_lines(marks: Iterable[StepMark], margin: str) -> Iterator[Text]:
    for mark in marks:
        style = MARK_STYLES[mark.level]
        yield Text.assemble((f"{margin}[{one_line(mark.kind)}]", style), (f" {one_line(mark.text)}".rstrip(), style))


def diff_lines(lines: Sequence[str], margin: str, fold: Fold) -> Iterator[Text]:
    for line, hidden in fold_lines([printable(line.expandtabs(4)) for line in lines], fold):
        style = "dim italic" if hidden else _DIFF_STYLES.get(line[:1], "")
        yield Text(f"{margin}{_clipped(line, fold)}", style=style)


def _block(text: str, margin: str, fold: Fold, style: str = "") -> Iterator[Text]:
    lines = text.strip("\n").splitlines()
    if is_diff(lines):
        yield from diff_lines(lines, margin, fold)
    else:
        yield from message_lines(text, margin, fold, style)


def _clipped(line: str, fold: Fold) -> str:
    if fold.line_characters is None or len(line) <= fold.line_characters:
        return line
    return f"{line[: fold.line_characters]} ... {len(line) - fold.line_characters} more characters"
