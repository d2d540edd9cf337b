"""Shows a rollout turn by turn while it runs, on stderr: stdout is for the answer."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from gametape.core.tokens import TOKEN_COLUMNS
from gametape.studio.step_view import StepView, view_step
from gametape.terminal.step_lines import Fold, call_lines, clip_line, mark_lines, reasoning_lines, result_lines

if TYPE_CHECKING:
    from gametape.core.step import Step

_MAX_TEXT = 240
_FOLD = Fold(lines=4, line_characters=160, hint=False)


class LiveView:
    """Shows each step as it is recorded. Output of models and tools is shown as plain text."""

    def __init__(self, turns: int, started: int = 0, console: Console | None = None) -> None:
        """`started` turns were recorded before."""
        self._console = console or Console(stderr=True, highlight=False)
        self._turns = turns
        self._turn = started
        self._part = ""
        self._tokens = 0
        self._cost = 0.0

    def begin(self, part: str, started: int = 0) -> None:
        """Begin a part of the work, such as an attempt, whose turns are counted on their own."""
        self._part, self._turn = part, started

    def show(self, step: "Step") -> None:
        self._turn += step.source == "agent"
        view = view_step(step.model_dump(exclude={"metrics": TOKEN_COLUMNS}), step.step_id, self._turn)
        for line in self._lines(view):
            self._console.print(line, soft_wrap=True)

    def _lines(self, view: StepView) -> list[Text]:
        if view.source != "agent":
            return [*mark_lines(view.marks, "  ")]
        self._tokens += view.prompt_tokens + view.completion_tokens
        self._cost += view.cost_usd
        cost = f"  ${self._cost:.4f}" if self._cost else ""
        head = f"{f'{self._part}, ' if self._part else ''}turn {self._turn} of {self._turns}"
        lines = [Text.assemble((head, "bold"), (f"  {self._tokens} tokens{cost}", "dim"))]
        lines += reasoning_lines(view, "  ", _FOLD)
        if view.text.strip():
            lines.append(Text(f"  {clip_line(view.text, _MAX_TEXT)}"))
        for call in view.calls:
            lines += call_lines(call, "  ", _FOLD)
        for result in view.results:
            lines += result_lines(result, "    ", _FOLD)
        return [*lines, *mark_lines(view.marks, "    ")]
