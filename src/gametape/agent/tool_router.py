"""The tool router: check each tool call of a reply against limits and constraints, run it, and answer it.

Every reply has an outcome here, and no reply ends the rollout by accident.
"""

import asyncio
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

from gametape.agent.constraints import Constraints
from gametape.agent.events import RolloutEvent, RolloutEventKind
from gametape.agent.limits import RolloutLimits, RolloutUsage
from gametape.agent.output_room import OutputRoom
from gametape.agent.tools.history import current_branch
from gametape.agent.tools.read import ReadTool
from gametape.agent.truncation import truncate
from gametape.core.errors import GametapeError
from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool, Workspace
from gametape.engines.conversation import Call, Reply, ToolResponse
from gametape.sandbox.keeper_client import SandboxError

_GRACE = 5.0
"""Seconds that a call may take beyond its limit, so that the tool can report the timeout itself."""


@dataclass
class RoutedTurn:
    """The results of one turn. `notice` is a message to the model beside the answers to its calls."""

    answers: list[ToolResponse] = field(default_factory=list)
    notice: str | None = None
    events: list[RolloutEvent] = field(default_factory=list)
    finished: bool = False
    sandbox_died: bool = False
    """The sandbox died during a call."""
    calls_run: int = 0
    """Calls with arguments that the tool accepted."""

    def add_notice(self, text: str | None) -> None:
        self.notice = "\n\n".join(filter(None, (self.notice, text))) or None

    def refuse(self, call: Call, kind: RolloutEventKind, text: str) -> None:
        self.answers.append(ToolResponse(call, text, failed=True))
        self.events.append(RolloutEvent(kind, text))


class ToolRouter:
    """Runs the calls of a turn in their order, under limits and constraints."""

    def __init__(
        self,
        tools: Sequence[Tool],
        limits: RolloutLimits,
        constraints: Constraints,
        room: OutputRoom,
        reply_ends_run: bool = False,
    ) -> None:
        """`reply_ends_run`: a reply without a call is the answer to a person, and ends the run."""
        self._tools = {tool.name: tool for tool in tools}
        self._limits = limits
        self._constraints = constraints
        self._room = room
        self._reply_ends_run = reply_ends_run

    async def route(self, reply: Reply, workspace: Workspace, usage: RolloutUsage) -> RoutedTurn:
        routed = RoutedTurn()
        self._note_forbidden_text(reply, routed)
        if reply.finish == "length":
            self._note_cut_off(reply, routed)
        elif not reply.calls:
            self._handle_no_call(reply, routed)
        for number, call in enumerate(reply.calls):
            if routed.finished or routed.sandbox_died:
                why = "the work was finished before it" if routed.finished else "the sandbox had died"
                routed.refuse(call, "after_finish" if routed.finished else "sandbox_death", f"Not run: {why}.")
            elif number >= self._limits.calls_per_turn:
                limit = self._limits.calls_per_turn
                routed.refuse(call, "too_many_calls", f"Not run: at most {limit} calls in one turn.")
            elif refusal := await self._refusal(call, workspace, usage):
                routed.refuse(call, *refusal)
            else:
                used = sum(len(answer.content) for answer in routed.answers)
                room = self._room.for_call(used, len(reply.calls) - number, call.name == ReadTool.name)
                await self._run(call, workspace, usage, routed, room)
        usage.useless_turns = 0 if routed.calls_run else usage.useless_turns + 1
        return routed

    def _handle_no_call(self, reply: Reply, routed: RoutedTurn) -> None:
        kind: RolloutEventKind
        if reply.problem:
            kind, text = "malformed_call", reply.problem
        elif self._reply_ends_run and reply.text.strip():
            routed.finished = True
            return
        else:
            kind, text = "no_call", "You called no tool. Call one, or call finish when the work is done."
        routed.notice = text
        routed.events.append(RolloutEvent(kind, text))

    def _note_cut_off(self, reply: Reply, routed: RoutedTurn) -> None:
        """A turn that reached the limit of tokens. Calls that were complete by then are run all the same."""
        length = reply.usage.completion_tokens
        text = f"Your turn was cut off after {length:,} tokens, the most that one turn may have."
        if reply.calls:
            text += " The calls that were complete were run, the rest of the turn is lost."
        else:
            text += " No call in it was complete. Say less, and write a long file in parts, one call for each."
        routed.add_notice(text)
        routed.events.append(RolloutEvent("cut_off", text))

    async def _refusal(
        self, call: Call, workspace: Workspace, usage: RolloutUsage
    ) -> tuple[RolloutEventKind, str] | None:
        tool = self._tools.get(call.name)
        if tool is None:
            return "unknown_tool", f"There is no tool {call.name[:80]!r}. The tools are: {', '.join(self._tools)}."
        limit = self._limits.calls.get(call.name)
        if limit is not None and usage.calls[call.name] >= limit:
            return "call_limit", f"Not run: {call.name} may be called {limit} times, and has been."
        branch = await current_branch(workspace) if self._constraints.branches else None
        if breach := self._constraints.call_breach(call.name, call.arguments, branch):
            return "constraint", f"Not run: {breach}"
        return None

    async def _run(self, call: Call, workspace: Workspace, usage: RolloutUsage, routed: RoutedTurn, room: int) -> None:
        began = time.monotonic()
        usage.calls[call.name] += 1
        try:
            async with asyncio.timeout(self._limits.tool_seconds + _GRACE):
                result = await self._tools[call.name].call(call.arguments, workspace)
        except TimeoutError:
            text = f"{call.name} did not end within {self._limits.tool_seconds:g} seconds and was stopped."
            result = ToolResult(content=text, failed=True)
            routed.events.append(RolloutEvent("tool_timeout", text))
        except SandboxError as error:
            routed.sandbox_died = True
            text = f"The sandbox died during this call ({error}). The workspace is as it was before this turn."
            result = ToolResult(content=text, failed=True)
            routed.events.append(RolloutEvent("sandbox_death", text))
        except GametapeError as error:
            result = ToolResult(content=str(error), failed=True)
        except Exception as error:  # a bug in a tool must not cost the rollout; it is recorded with its location
            result = crashed_call(call.name, error)
            location = traceback.format_exception_only(error)[-1].strip() + " in " + _where(error)
            routed.events.append(RolloutEvent("tool_crash", location))
        if result.refused:
            routed.events.append(RolloutEvent("wrong_arguments", _one_line(result.content)))
        routed.calls_run += not result.refused
        usage.tool_seconds += time.monotonic() - began
        usage.cpu_seconds += result.cpu_seconds
        routed.finished = result.finished
        content = truncate(_whole_text(result.content), room)
        routed.answers.append(ToolResponse(call, content, result.failed))

    def _note_forbidden_text(self, reply: Reply, routed: RoutedTurn) -> None:
        if breach := self._constraints.text_breach(reply.text):
            routed.events.append(RolloutEvent("constraint", f"{breach.rule}: {breach.evidence}"))


def crashed_call(name: str, error: Exception) -> ToolResult:
    """What an agent reads of a tool that raised: the last line of the traceback."""
    if isinstance(error, GametapeError):
        return ToolResult(content=str(error), failed=True)
    last = traceback.format_exception_only(error)[-1].strip()
    return ToolResult(content=f"{name} failed inside: {last}", failed=True)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _whole_text(text: str) -> str:
    """Replace unpaired surrogates, which no record can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
