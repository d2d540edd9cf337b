"""Threads on the terminal. Whatever an agent wrote is shown as text, never obeyed."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gametape.agent.recorder import recorded_answers, step_text
from gametape.cli.vault_view import age
from gametape.desk.threads.turn_result import is_answer
from gametape.watch.text_features import printable

if TYPE_CHECKING:
    from gametape.core.step import Step
    from gametape.desk.threads.overview import ThreadSummary
    from gametape.terminal.rollout_view import LiveView

_MOST_LINES = 6
_STATES = {"open": "green", "paused": "yellow", "archived": "dim"}


def thread_to_dict(one: "ThreadSummary") -> dict[str, Any]:
    """As JSON says it."""
    thread = one.thread
    return {
        "thread": thread.thread_id,
        "title": thread.title,
        "model": thread.model,
        "state": thread.state,
        "paused": thread.paused,
        "local_only": thread.local_only,
        "forked_from": thread.forked_from,
        "said": one.said,
        "answered": one.answered,
        "turns": one.turns,
        "tokens": one.tokens,
        "cost_usd": one.cost_usd,
        "budget_tokens": thread.budget_tokens,
        "budget_usd": thread.budget_usd,
        "created": thread.created,
        "last": one.last,
    }


def step_to_dict(step: "Step") -> dict[str, Any]:
    """What was said and done, without the ids of its tokens."""
    answers, notices = recorded_answers(step)
    return {
        "step": step.step_id,
        "source": step.source,
        "time": step.timestamp,
        "text": step_text(step),
        "calls": [
            {"name": one.call.name, "arguments": one.call.arguments, "answer": one.content, "failed": one.failed}
            for one in answers
        ],
        "notices": notices,
        "events": step.gametape_extra.events or [],
    }


def print_threads(found: Sequence["ThreadSummary"]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("thread", no_wrap=True)
    for column in ("title", "model", "state", "last"):
        table.add_column(column)
    for column in ("said", "turns", "tokens", "spent"):
        table.add_column(column, justify="right")
    for one in found:
        thread = one.thread
        told = f"{thread.state}: {printable(thread.paused)}" if thread.paused and not thread.archived else thread.state
        spent = f"${one.cost_usd:.4f}" if one.cost_usd else "-"
        table.add_row(
            thread.thread_id,
            Text(printable(thread.title)),
            Text(printable(thread.model.rpartition("/")[2])),
            Text(told, style=_STATES[thread.state]),
            f"{age(one.last)} ago",
            *(str(number) for number in (one.said, one.turns, one.tokens)),
            spent,
        )
    Console(highlight=False).print(table if found else "no threads yet")


def print_thread(one: "ThreadSummary", steps: Sequence["Step"]) -> None:
    console = Console(highlight=False)
    thread = one.thread
    console.print(Text(printable(thread.title or thread.thread_id), style="bold"))
    budget = f" of {thread.budget_tokens}" if thread.budget_tokens else ""
    facts = [thread.thread_id, thread.state, printable(thread.model), f"{one.turns} turns, {one.tokens}{budget} tokens"]
    facts += ["stays on this machine"] if thread.local_only else []
    facts += [f"from {thread.forked_from}"] if thread.forked_from else []
    console.print(Text("  ".join(facts), style="dim"), soft_wrap=True)
    for step in steps:
        console.print()
        _print_step(console, step)


def working(view: "LiveView") -> Callable[["Step"], None]:
    """Shows what the agent does, but neither what it was told nor its answer, which is printed elsewhere."""

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
        told = answer.content.splitlines()
        shown = told[:_MOST_LINES] + ([f"... {len(told) - _MOST_LINES} more lines"] if len(told) > _MOST_LINES else [])
        for line in shown:
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
