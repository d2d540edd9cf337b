"""Shows a rollout turn by turn while it runs, on stderr: stdout is for the answer."""

import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from gametape.watch.text_features import one_line

if TYPE_CHECKING:
    from gametape.core.step import Step

_MAX_TEXT, _MAX_RESULT_LINES = 240, 4


class LiveView:
    """Shows each step as it is recorded. Output of models and tools is shown as plain text."""

    def __init__(self, turns: int, started: int = 0, console: Console | None = None) -> None:
        """`started` turns were recorded before."""
        self._console = console or Console(stderr=True, highlight=False)
        self._turns = turns
        self._turn = started
        self._tokens = 0
        self._cost = 0.0

    def show(self, step: "Step") -> None:
        if step.source != "agent":
            self._console.print(Text(f"  {self._events(step)}", style="yellow"))
            return
        self._turn += 1
        metrics = step.metrics
        if metrics:
            self._tokens += (metrics.prompt_tokens or 0) + (metrics.completion_tokens or 0)
            self._cost += metrics.cost_usd or 0.0
        cost = f"  ${self._cost:.4f}" if self._cost else ""
        head = f"turn {self._turn} of {self._turns}"
        self._console.print(Text.assemble((head, "bold"), (f"  {self._tokens} tokens{cost}", "dim")))
        message = step.message if isinstance(step.message, str) else ""
        if message.strip():
            self._console.print(Text(f"  {clip_line(message, _MAX_TEXT)}"), soft_wrap=True)
        for call in step.tool_calls or []:
            arguments = clip_line(json.dumps(call.arguments, ensure_ascii=False), _MAX_TEXT)
            self._console.print(
                Text.assemble(("  > ", "cyan"), (clip_line(call.function_name, 80), "cyan"), f" {arguments}"),
                soft_wrap=True,
            )
        for result in step.observation.results if step.observation else []:
            failed = bool((result.extra or {}).get("failed")) or result.source_call_id is None
            content = result.content if isinstance(result.content, str) else ""
            for line in _some_lines(content):
                self._console.print(Text(f"    {line}", style="red" if failed else "dim"), soft_wrap=True)
        if step.gametape_extra.events:
            kinds = ", ".join(str(event.get("kind")) for event in step.gametape_extra.events)
            self._console.print(Text(f"    [{kinds}]", style="yellow"))

    @staticmethod
    def _events(step: "Step") -> str:
        return "; ".join(
            f"{event.get('kind')}: {clip_line(str(event.get('detail')), 100)}"
            for event in step.gametape_extra.events or []
        )


def clip_line(text: str, limit: int) -> str:
    """Text on one line, without control characters, of at most `limit` characters."""
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _some_lines(text: str) -> list[str]:
    lines = [clip_line(line, 160) for line in text.splitlines() if line.strip()]
    if len(lines) <= _MAX_RESULT_LINES:
        return lines
    return [*lines[: _MAX_RESULT_LINES - 2], f"... {len(lines) - _MAX_RESULT_LINES + 1} more lines ...", lines[-1]]
