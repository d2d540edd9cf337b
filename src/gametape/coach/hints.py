"""Hints: one line that states a rule and never gives the instance's answer."""

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from gametape.coach.complaints import Complaint, generalise, words_in
from gametape.engines.conversation import ToolDefinition
from gametape.syntax.source import parse_or_none

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

FIXED_HINTS = frozenset(
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
"""The same for every instance, so that they cannot reveal an answer."""

_MOST_TOOLS = 16
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_LARGEST = 10**18
"""Larger numbers are no part of a sentence, and Python refuses to print some of them."""
_SHORTEST = 7
"""Characters, without spaces, from which on a match of code is no coincidence."""
_OF_THE_LANGUAGE = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls"])


def hint_from_complaint(complaint: Complaint, names: Collection[str], known: Collection[str] = ()) -> tuple[str, str]:
    """The type and the text of a hint from a complaint: the rule, where it states one, or what to avoid."""
    sentence = generalise(complaint.sentence, names, known)
    if len(sentence.split()) < 2:
        return "unclear error", CHECK_FIRST
    return sentence.lower(), f"{'rule' if complaint.states_a_rule else 'avoid'} : {sentence}"


def hint_for_unknown_tool(tools: Sequence[ToolDefinition]) -> str:
    names = [tool["name"] for tool in tools]
    return f"rule : the tools are {' , '.join(names[:_MOST_TOOLS])}"


def hint_for_arguments(tool: ToolDefinition) -> str:
    """The tool's schema in one line."""
    schema = tool.get("parameters") or {}
    required = schema.get("required", [])
    optional = [name for name in schema.get("properties", {}) if name not in required]
    rule = f"rule : {tool['name']} takes {' , '.join(required) or 'no arguments'}"
    return f"{rule} , if wanted {' , '.join(optional)}" if optional else rule


@dataclass(frozen=True)
class LeakChecker:
    """Finds what reveals the answer: names, numbers and code that only the solution has, and the arguments of right
    calls. Numbers have at least two digits."""

    names: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    """Lines, expressions and texts, in the form of `_squeezed`."""
    calls: tuple[frozenset[str], ...] = ()

    def leak(self, hint: str) -> str:
        """The part of the answer that a hint contains, or nothing."""
        if hint in FIXED_HINTS:
            return ""
        words = {*words_in(hint), *_WORD.findall(hint)}
        if leaked := sorted(self.names & words) or sorted(self.numbers & {*_NUMBER.findall(hint)}):
            return leaked[0]
        squeezed = _squeezed(hint)
        if fragments := [part for part in self.code if part in squeezed]:
            return max(fragments, key=len)
        return next((" ".join(sorted(values)) for values in self.calls if values and values <= words), "")


NO_LEAK_CHECK = LeakChecker()


def leak_checker_from_files(solution: Iterable[str], visible: Iterable[str]) -> LeakChecker:
    """For the files of a solution; what is in the `visible` files reveals nothing."""
    files, visible_text = [(text, parse_or_none(text)) for text in solution], "\n".join(visible)
    names = {name for text, tree in files for name in _names(text, tree)} - _OF_THE_LANGUAGE
    numbers = {number for text, tree in files for number in _numbers(text, tree)} - {*_NUMBER.findall(visible_text)}
    visible_code = _squeezed(visible_text)
    code = {part for text, tree in files for part in _code_fragments(text, tree) if part not in visible_code}
    return LeakChecker(
        frozenset(names - {*_WORD.findall(visible_text)}),
        frozenset(number for number in numbers if len(number) > 1),
        frozenset(part for part in code if len(part) >= _SHORTEST and not part.isidentifier()),
    )


def _squeezed(text: str) -> str:
    """Code without spaces and with one kind of quotes, for comparison."""
    return "".join(text.split()).replace('"', "'")


def _names(text: str, tree: ast.Module | None) -> Iterable[str]:
    """Identifiers and one-word texts of a Python file, without comments and prose; all words of any other file."""
    if tree is None:
        return _WORD.findall(text)
    fields = (value for node in ast.walk(tree) for _, value in ast.iter_fields(node))
    parts = (part for field in fields for part in (field if isinstance(field, list) else [field]))
    return [part for part in parts if isinstance(part, str) and _WORD.fullmatch(part)]


def _numbers(text: str, tree: ast.Module | None) -> Iterable[str]:
    if tree is None:
        return _NUMBER.findall(text)
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [str(value) for value in values if isinstance(value, float) or (type(value) is int and value < _LARGEST)]


def _code_fragments(text: str, tree: ast.Module | None) -> Iterable[str]:
    """The lines of a file; and of a Python file every expression, as it is written."""
    lines = _LINE_END.split(text.encode())
    yield from (_squeezed(line.decode()) for line in lines)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _squeezed(node.value)
        elif isinstance(node, ast.expr) and node.end_lineno:
            part = b"\n".join(lines[node.lineno - 1 : node.end_lineno])
            left = len(lines[node.end_lineno - 1]) - (node.end_col_offset or 0)
            yield _squeezed(part[node.col_offset : len(part) - left].decode(errors="replace"))
