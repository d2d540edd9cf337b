"""Hints: one line that states a rule and never gives the instance's answer."""

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from gametape.coach.wording import Complaint, general, words_in
from gametape.engines.conversation import ToolDefinition

CHECK_FIRST = "rule : check each name and value before the call"
SAY_LESS = "rule : say less and call one tool"
CALL_A_TOOL = "rule : every turn calls one of the tools"
ONE_CALL = "rule : a turn is one call in the form of the tools"
ANOTHER_WAY = "rule : this call gave the same result already ; do something else"
DECIDES = "rule : this step decides the outcome ; look again at what it asks for"
OWN_WORK = "rule : solve it in the sources ; leave the tests and what runs them alone"
CONSTRAINTS = "rule : keep to what is allowed ; do without what the constraints forbid"
RUN_TESTS = "rule : run the tests after the last change and before you finish"
BREAK_OFF = "rule : stop repeating yourself ; take the next step of the work"

FIXED = frozenset(
    {
        CHECK_FIRST,
        SAY_LESS,
        CALL_A_TOOL,
        ONE_CALL,
        ANOTHER_WAY,
        DECIDES,
        OWN_WORK,
        CONSTRAINTS,
        RUN_TESTS,
        BREAK_OFF,
    }
)
"""The same for every instance, so that they cannot give one away."""

_MOST_TOOLS = 16
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_SHORTEST_LINE = 8
_OF_THE_LANGUAGE = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls"])


def rule_of(complaint: Complaint, names: Collection[str], known: Collection[str] = ()) -> tuple[str, str]:
    """The type and the text of a hint from a complaint: the rule, where it states one, or what to avoid."""
    sentence = general(complaint.sentence, names, known)
    if len(sentence.split()) < 2:
        return "unclear error", CHECK_FIRST
    return sentence.lower(), f"{'rule' if complaint.states_a_rule else 'avoid'} : {sentence}"


def tools_hint(tools: Sequence[ToolDefinition]) -> str:
    names = [tool["name"] for tool in tools]
    return f"rule : the tools are {' , '.join(names[:_MOST_TOOLS])}"


def arguments_hint(tool: ToolDefinition) -> str:
    """The tool's schema in one line."""
    schema = tool.get("parameters") or {}
    required = schema.get("required", [])
    optional = [name for name in schema.get("properties", {}) if name not in required]
    told = f"rule : {tool['name']} takes {' , '.join(required) or 'no arguments'}"
    return f"{told} , if wanted {' , '.join(optional)}" if optional else told


@dataclass(frozen=True)
class Reference:
    """What gives the answer away: names and lines that only the solution has, and the arguments of right calls."""

    names: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()
    calls: tuple[frozenset[str], ...] = ()

    def leak(self, hint: str) -> str:
        """What of it a hint holds, or nothing."""
        if hint in FIXED:
            return ""
        words = {*words_in(hint), *_WORD.findall(hint)}
        if names := sorted(self.names & words):
            return names[0]
        flat = " ".join(hint.split())
        if lines := [line for line in self.lines if line in flat]:
            return lines[0]
        return next((" ".join(sorted(values)) for values in self.calls if values and values <= words), "")


NO_REFERENCE = Reference()


def reference_of(solution: Iterable[str], shown: Iterable[str]) -> Reference:
    """Of a solution's files; what the agent has been `shown` gives nothing away."""
    files, seen = list(solution), "\n".join(shown)
    names = {name for text in files for name in _names(text)} - {*_WORD.findall(seen)} - _OF_THE_LANGUAGE
    lines = {line for text in files for line in _lines(text)} - {*_lines(seen)}
    return Reference(frozenset(names), frozenset(line for line in lines if len(line) >= _SHORTEST_LINE))


def _lines(text: str) -> Iterable[str]:
    return (" ".join(line.split()) for line in text.splitlines())


def _names(text: str) -> Iterable[str]:
    """Identifiers and one-word texts of a Python file, without comments and prose; all words of any other file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _WORD.findall(text)
    fields = (value for node in ast.walk(tree) for _, value in ast.iter_fields(node))
    parts = (part for field in fields for part in (field if isinstance(field, list) else [field]))
    return [part for part in parts if isinstance(part, str) and _WORD.fullmatch(part)]
