"""From what the model said to what was done about it: each call checked, run, answered.

Whatever a model can say has an outcome here, and nothing it says ends the rollout by accident.
"""

import asyncio
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

from gametape.agent.constraints import Constraints
from gametape.agent.events import Event, Kind
from gametape.agent.limits import Limits, Spent
from gametape.agent.tools.history import current_branch
from gametape.agent.truncation import truncate
from gametape.core.errors import GametapeError
from gametape.core.messages import ToolResult
from gametape.core.protocols import Environment, Tool
from gametape.engines.conversation import Answer, Call, Reply
from gametape.sandbox.launcher import SandboxError

_GRACE = 5.0
"""Seconds that a call may take beyond its limit before it is given up, for it to say so itself."""


@dataclass
class Routed:
    """What came of one turn. `notice` is said to the model where there was no call that could be answered."""

    answers: list[Answer] = field(default_factory=list)
    notice: str | None = None
    events: list[Event] = field(default_factory=list)
    finished: bool = False
    died: bool = False
    """The sandbox ended under a call."""
    ran: int = 0
    """Calls that a tool could make something of."""

    def refuse(self, call: Call, kind: Kind, text: str) -> None:
        self.answers.append(Answer(call, text, failed=True))
        self.events.append(Event(kind, text))


class Routing:
    """Runs the calls of a turn in their order, under limits and constraints."""

    def __init__(
        self, tools: Sequence[Tool], limits: Limits, constraints: Constraints, conversing: bool = False
    ) -> None:
        """`conversing`: what is said without a call is the answer that somebody waits for, and ends the work."""
        self._tools = {tool.name: tool for tool in tools}
        self._limits = limits
        self._constraints = constraints
        self._conversing = conversing

    async def route(self, reply: Reply, environment: Environment, spent: Spent) -> Routed:
        routed = Routed()
        self._note_forbidden_text(reply, routed)
        if not reply.calls:
            self._without_call(reply, routed)
        for number, call in enumerate(reply.calls):
            if routed.finished or routed.died:
                why = "the work was finished before it" if routed.finished else "the sandbox had died"
                routed.refuse(call, "after_finish" if routed.finished else "sandbox_death", f"Not run: {why}.")
            elif number >= self._limits.calls_per_turn:
                most = self._limits.calls_per_turn
                routed.refuse(call, "too_many_calls", f"Not run: at most {most} calls in one turn.")
            elif refusal := await self._refusal(call, environment, spent):
                routed.refuse(call, *refusal)
            else:
                await self._run(call, environment, spent, routed)
        spent.useless_turns = 0 if routed.ran else spent.useless_turns + 1
        return routed

    def _without_call(self, reply: Reply, routed: Routed) -> None:
        kind: Kind
        if reply.problem:
            kind, text = "malformed_call", reply.problem
        elif reply.finish == "length":
            kind, text = "cut_off", "Your turn was cut off because it was too long. Say less, and call one tool."
        elif self._conversing and reply.text.strip():
            routed.finished = True
            return
        else:
            kind, text = "no_call", "You called no tool. Call one, or call finish when the work is done."
        routed.notice = text
        routed.events.append(Event(kind, text))

    async def _refusal(self, call: Call, environment: Environment, spent: Spent) -> tuple[Kind, str] | None:
        tool = self._tools.get(call.name)
        if tool is None:
            return "unknown_tool", f"There is no tool {call.name[:80]!r}. The tools are: {', '.join(self._tools)}."
        most = self._limits.calls.get(call.name)
        if most is not None and spent.calls[call.name] >= most:
            return "call_limit", f"Not run: {call.name} may be called {most} times, and has been."
        branch = await current_branch(environment) if self._constraints.branches else None
        if breach := self._constraints.breach(call.name, call.arguments, branch):
            return "constraint", f"Not run: {breach}"
        return None

    async def _run(self, call: Call, environment: Environment, spent: Spent, routed: Routed) -> None:
        began = time.monotonic()
        spent.calls[call.name] += 1
        try:
            async with asyncio.timeout(self._limits.tool_seconds + _GRACE):
                result = await self._tools[call.name].call(call.arguments, environment)
        except TimeoutError:
            text = f"{call.name} did not end within {self._limits.tool_seconds:g} seconds and was stopped."
            result = ToolResult(content=text, failed=True)
            routed.events.append(Event("tool_timeout", text))
        except SandboxError as error:
            routed.died = True
            text = f"The sandbox died during this call ({error}). The workspace is as it was before this turn."
            result = ToolResult(content=text, failed=True)
            routed.events.append(Event("sandbox_death", text))
        except GametapeError as error:
            result = ToolResult(content=str(error), failed=True)
        except Exception as error:  # a fault of ours must not cost the rollout; it is on the record, with its place
            text = f"{call.name} failed inside: {type(error).__name__}: {error}"
            result = ToolResult(content=text, failed=True)
            place = traceback.format_exception_only(error)[-1].strip() + " in " + _where(error)
            routed.events.append(Event("tool_crash", place))
        if result.refused:
            routed.events.append(Event("wrong_arguments", _one_line(result.content)))
        routed.ran += not result.refused
        spent.tool_seconds += time.monotonic() - began
        spent.cpu_seconds += result.cpu_seconds
        routed.finished = result.finished
        content = truncate(_whole_text(result.content), self._limits.output_characters)
        routed.answers.append(Answer(call, content, result.failed))

    def _note_forbidden_text(self, reply: Reply, routed: Routed) -> None:
        if breach := self._constraints.said(reply.text):
            routed.events.append(Event("constraint", f"{breach.rule}: {breach.evidence}"))


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _whole_text(text: str) -> str:
    """Without halves of surrogate pairs, which no record can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
