"""The two cheap gates: does the hint change the model's mind, and is what it then prefers well formed."""

import ast
from collections.abc import Sequence
from typing import Any

from gametape.agent.tools import schema
from gametape.coach.scoring import Question, Scored, greedy
from gametape.core.hint import Gate
from gametape.core.messages import Generation
from gametape.engines.conversation import Call, ToolDefinition
from gametape.engines.token_conversation import TokenModel

DELTA = 1.0
"""Nats by which a hint must lower the log-probability of what it is about."""


async def g0(model: TokenModel, question: Question, hint: str, found: Scored | None, delta: float = DELTA) -> Gate:
    """Passed where the hint lowers the log-probability of the span by `delta`, or where it changes the likeliest token
    at the first place at which the hinted turn leaves the span. The value is the drop, 0 where it was not scored.
    """
    drop, tokens = (found.drop, found.tokens) if found else (0.0, 0)
    if drop >= delta:
        return Gate(passed=True, value=drop, detail=f"the log-probability falls by {drop:.2f}", tokens=tokens)
    sampled = question.ids
    after = await greedy(model, question, hint, len(sampled), spoken=True)
    tokens += _taken(after)
    leaves = _first_difference(after.completion_ids, sampled)
    if leaves is None:
        return Gate(passed=False, value=drop, detail="the hint changes nothing there", tokens=tokens)
    before = await greedy(model, question, "", leaves + 1, spoken=True)
    changed = before.completion_ids[: leaves + 1] == sampled[: leaves + 1]
    told = f"the likeliest token {'changes' if changed else 'does not change'} at {leaves}"
    return Gate(passed=changed, value=drop, detail=told, tokens=tokens + _taken(before))


async def g1(model: TokenModel, question: Question, hint: str, tools: Sequence[ToolDefinition], most: int) -> Gate:
    """Passed where the likeliest turn after the hint holds calls, all of tools that there are, with arguments that fit
    and, where they write Python, with code that can be read."""
    after = await greedy(model, question, hint, most, spoken=False)
    parsed = model.dialect.parse(after.completion_ids)
    fault = parsed.problem or ("" if parsed.calls else "no call")
    fault = fault or next((told for call in parsed.calls if (told := _fault(call, tools))), "")
    said = ", ".join(f"{call.name} {call.arguments}" for call in parsed.calls)
    return Gate(passed=not fault, value=float(not fault), detail=(fault or said)[:200], tokens=_taken(after))


def _fault(call: Call, tools: Sequence[ToolDefinition]) -> str:
    tool = next((tool for tool in tools if tool["name"] == call.name), None)
    if tool is None:
        return f"no tool {call.name[:80]}"
    return schema.problem(tool.get("parameters") or {}, call.arguments) or _unreadable(call.arguments)


def _unreadable(arguments: dict[str, Any]) -> str:
    path, content = arguments.get("path"), arguments.get("content")
    if isinstance(path, str) and path.endswith(".py") and isinstance(content, str):
        try:
            ast.parse(content)
        except (SyntaxError, ValueError, RecursionError) as error:
            return f"the code cannot be read: {error}"
    return ""


def _first_difference(ids: Sequence[int], others: Sequence[int]) -> int | None:
    return next((at for at, (one, other) in enumerate(zip(ids, others, strict=False)) if one != other), None)


def _taken(generation: Generation) -> int:
    return generation.usage.prompt_tokens + generation.usage.completion_tokens
