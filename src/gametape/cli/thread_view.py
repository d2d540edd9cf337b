"""Shows threads on the terminal. Agents' output is shown as plain text, without markup or control characters."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from gametape.agent.recorded_steps import is_answer, recorded_answers, step_text
from gametape.cli.vault_view import age
from gametape.engines.providers import URL_IN_NAME
from gametape.terminal.table import Cell, Column, numbers, print_table
from gametape.watch.text_features import printable

if TYPE_CHECKING:
    from gametape.core.step import Step
    from gametape.desk.threads.overview import ThreadSummary
    from gametape.terminal.rollout_view import LiveView

_MOST_LINES = 6
_STATES = {"open": "green", "paused": "yellow", "archived": "dim"}


def thread_to_dict(summary: "ThreadSummary") -> dict[str, Any]:
    """The JSON form of a thread."""
    thread = summary.thread
    return {
        "thread": thread.thread_id,
        "title": thread.title,
        "model": thread.model,
        "state": thread.state,
        "paused": thread.paused,
        "local_only": thread.local_only,
        "forked_from": thread.forked_from,
        "said": summary.said,
        "answered": summary.answered,
        "turns": summary.turns,
        "tokens": summary.tokens,
        "cost_usd": summary.cost_usd,
        "budget_tokens": thread.budget_tokens,
        "budget_usd": thread.budget_usd,
        "created": thread.created,
        "last": summary.last,
    }


def step_to_dict(step: "Step") -> dict[str, Any]:
    """The JSON form of a step, without token ids."""
    answers, notices = recorded_answers(step)
    return {
        "step": step.step_id,
        "source": step.source,
        "time": step.timestamp,
        "text": step_text(step),
        "calls": [
            {
                "name": answer.call.name,
                "arguments": answer.call.arguments,
                "answer": answer.content,
                "failed": answer.failed,
            }
            for answer in answers
        ],
        "notices": notices,
        "events": step.gametape_extra.events or [],
    }


def short_model_name(name: str) -> str:
    """A model's name without its server's address, options and directories."""
    bare = (URL_IN_NAME.split(part)[0].partition("?")[0] for part in name.split(","))
    return ",".join(part.rstrip("/").rpartition("/")[2] for part in bare)


def print_threads(summaries: Sequence["ThreadSummary"]) -> None:
    rows: list[list[Cell]] = []
    for summary in summaries:
        thread = summary.thread
        state = f"{thread.state}: {printable(thread.paused)}" if thread.paused and not thread.archived else thread.state
        spent = f"${summary.cost_usd:.4f}" if summary.cost_usd else "-"
        cells: list[Cell] = [
            thread.thread_id,
            printable(thread.title),
            printable(short_model_name(thread.model)),
            Text(state, style=_STATES[thread.state]),
            f"{age(summary.last)} ago",
            *(str(number) for number in (summary.said, summary.turns, summary.tokens)),
            spent,
        ]
        rows.append(cells)
    words = [Column("title", wraps=True), Column("model", wraps=True), Column("state", wraps=True), Column("last")]
    if rows:
        print_table([Column("thread"), *words, *numbers("said", "turns", "tokens", "spent")], rows)
    else:
        Console(highlight=False).print("no threads yet")


def print_thread(summary: "ThreadSummary", steps: Sequence["Step"]) -> None:
    console = Console(highlight=False)
    thread = summary.thread
    console.print(Text(printable(thread.title or thread.thread_id), style="bold"))
    budget = f" of {thread.budget_tokens}" if thread.budget_tokens else ""
    facts = [
        thread.thread_id,
        thread.state,
        printable(thread.model),
        f"{summary.turns} turns, {summary.tokens}{budget} tokens",
    ]
    facts += ["stays on this machine"] if thread.local_only else []
    facts += [f"from {thread.forked_from}"] if thread.forked_from else []
    console.print(Text("  ".join(facts), style="dim"), soft_wrap=True)
    for step in steps:
        console.print()
        _print_step(console, step)


def show_work(view: "LiveView") -> Callable[["Step"], None]:
    """Shows the agent's work, but not its answer, which is printed elsewhere."""

    def show(step: "Step") -> None:
        if step.source == "agent" and not (is_answer(step) and not step.tool_calls):
            view.show(step)

    return show


def print_answer(answer: dict[str, Any]) -> None:
    console = Console(highlight=False)
    if answer["ended"] == "answered":
        _print_lines(console, answer["answer"])
    else:
        console.print(Text(f"{answer['ended']}: {printable(answer['reason'])}", style="yellow"), soft_wrap=True)
    for warning in answer.get("warnings") or ():
        Console(stderr=True, highlight=False).print(Text(printable(warning), style="yellow"), soft_wrap=True)


def _print_step(console: Console, step: "Step") -> None:
    who = {"user": "you", "agent": "agent", "system": "instructions" if step.step_id == 1 else "desk"}[step.source]
    console.print(Text.assemble((f"{step.step_id:>4}  ", "dim"), (who, "bold cyan" if who == "you" else "bold")))
    lines = step_text(step).splitlines()
    if step.step_id == 1 and len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"... {len(lines) - _MOST_LINES + 1} more lines"]
    _print_lines(console, "\n".join(lines), "      ")
    for answer in recorded_answers(step)[0]:
        arguments = printable(json.dumps(answer.call.arguments, ensure_ascii=False))[:200]
        console.print(Text(f"      > {printable(answer.call.name)} {arguments}", style="cyan"), soft_wrap=True)
        content = answer.content.splitlines()
        more = [f"... {len(content) - _MOST_LINES} more lines"] if len(content) > _MOST_LINES else []
        for line in [*content[:_MOST_LINES], *more]:
            style = "red" if answer.failed else "dim"
            console.print(Text(f"        {printable(line)}", style=style), soft_wrap=True)
    for event in step.gametape_extra.events or []:
        console.print(
            Text(f"      [{printable(str(event.get('kind')))}] {printable(str(event.get('detail')))}", style="yellow"),
            soft_wrap=True,
        )


def _print_lines(console: Console, text: str, margin: str = "") -> None:
    for line in text.splitlines():
        console.print(Text(f"{margin}{printable(line)}"), soft_wrap=True)
