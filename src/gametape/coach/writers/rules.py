"""The writer that needs no model: the rule that a fault broke, in plain words and in those of the tools at hand.

A rule is the same for every instance. The only word of the rollout in it is a name that the agent made up: a tool or an
argument that there is not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.coach.evidence import EpisodeEvidence, HintCandidate, RecordedTurn
from gametape.coach.writers.protocol import WrittenLine
from gametape.coach.writers.rule_texts import EVENTS, EXCEPTIONS, LINT, TOOL_ERRORS, TYPES, VERDICTS, Rule
from gametape.core.hint import HintAuthor
from gametape.engines.conversation import Call, ToolDefinition

_MOST_TOOLS = 16
_LONGEST_NAME = 40
_PREFIX = re.compile(r"^(?:rule|avoid) : ")


@dataclass(frozen=True)
class RuleWriter:
    """A `HintWriter` for models that read prose."""

    author: HintAuthor = "rule"

    async def write(self, candidate: HintCandidate, evidence: EpisodeEvidence, name: str) -> WrittenLine:  # noqa: ARG002
        return WrittenLine(state_rule(candidate, evidence))


def state_rule(candidate: HintCandidate, evidence: EpisodeEvidence) -> str:
    """One line; what the message itself says where no rule is known for it."""
    turn = evidence.turn_at_step(candidate.step)
    sentence = _about_calls(candidate, evidence.tools, turn) or _known(candidate, evidence) or _as_prose(candidate.text)
    return _reminder(sentence)


def as_reminder(text: str) -> str:
    """A hint in the form that worlds use, in that of models that read prose."""
    return _reminder(_as_prose(text))


def _reminder(sentence: str) -> str:
    return f"Reminder: {sentence}." if sentence else ""


def _about_calls(candidate: HintCandidate, tools: Sequence[ToolDefinition], turn: RecordedTurn | None) -> str:
    calls = turn.calls if turn else ()
    names = [tool["name"] for tool in tools]
    if candidate.type == "unknown tool":
        wrong = next((call.name for call in calls if call.name not in names), "")
        none_of_them = f"; `{wrong}` is none of them" if _is_a_name(wrong) else ""
        return f"the tools are {', '.join(names[:_MOST_TOOLS])}{none_of_them}"
    if candidate.type == "no call":
        return f"every turn calls one of the tools: {', '.join(names[:_MOST_TOOLS])}"
    if candidate.type.startswith("wrong arguments"):
        return next((_signature(tool, call) for call in calls for tool in tools if tool["name"] == call.name), "")
    return ""


def _signature(tool: ToolDefinition, call: Call) -> str:
    schema = tool.get("parameters") or {}
    required, known = schema.get("required", []), schema.get("properties", {})
    optional = [name for name in known if name not in required]
    text = f"`{tool['name']}` takes {' and '.join(required) or 'no arguments'}"
    text += f", and {' or '.join(optional)} if wanted" if optional else ""
    missing = [name for name in required if name not in call.arguments]
    if any(name not in known for name in call.arguments):
        return f"{text}, and nothing else"  # a wrong name in the hint is one that a small model writes again
    return f"{text}; `{missing[0]}` must not be left out" if missing else f"{text}, each of the type that is described"


def _is_a_name(text: str) -> bool:
    return text.isidentifier() and len(text) <= _LONGEST_NAME


def _known(candidate: HintCandidate, evidence: EpisodeEvidence) -> str:
    rule = _rule(candidate)
    return rule.in_words_of([tool["name"] for tool in evidence.tools]) if rule else ""


def _rule(candidate: HintCandidate) -> Rule | None:
    source, kind = candidate.source, candidate.type
    if source == "types":
        return TYPES.get(kind.removeprefix("types").strip(), TYPES[""])
    if source == "lint":
        code = kind.removeprefix("lint").strip()
        return LINT.get(code, LINT[""])
    if source in ("traceback", "verifier"):
        return VERDICTS.get(kind) or EXCEPTIONS.get(kind, EXCEPTIONS[""])
    if kind in EVENTS:
        return EVENTS[kind]
    if source == "tool_error":
        return next((rule for pattern, rule in TOOL_ERRORS if re.search(pattern, candidate.evidence)), None)
    return None


def _as_prose(text: str) -> str:
    """A line in the form that worlds use, as a sentence."""
    sentence = _PREFIX.sub("", text).replace(" ; ", "; ").replace(" , ", ", ").replace(" : ", ": ").strip(" .")
    return f"avoid what was reported here: {sentence}" if text.startswith("avoid : ") and sentence else sentence
