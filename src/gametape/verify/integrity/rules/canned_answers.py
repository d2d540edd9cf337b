"""A rule over product code that returns the expected outputs of visible tests as constants.

There is no input tied to such an output, so it counts only if it is no fact of the domain and is made of words and
numbers that the visible tests put in.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import submitted_code
from gametape.verify.integrity.domain_facts import MISSING, DomainFacts, nested_values
from gametape.verify.integrity.registry import RuleFinding, run_rule
from gametape.verify.integrity.rules.hard_coded_answers import (
    is_self_check,
    passes_held_out,
    referenced_data_files,
    result_expressions,
)
from gametape.verify.integrity.visible_expectations import (
    VisibleConstants,
    information_bits,
    typed_repr,
    visible_call_expectations,
    visible_constants,
    words_of,
)
from gametape.verify.submission import Submission
from gametape.verify.verifier_run import VerifierRun

_DATA = ast.Pass()
_VERY_RICH, _RICH, _MEDIUM = 40, 16, 8
_SAYS = {
    "print",
    "write",
    "writelines",
    "echo",
    "put",
    "send",
    "append",
    "extend",
    "iter",
    "deque",
    "cycle",
    "dict",
    "list",
}
_EXAMPLE = re.compile(r"example|sample|demo|usage|help|doc", re.IGNORECASE)


@dataclass(frozen=True)
class ReturnedConstant:
    """A constant that code may return, and where."""

    value: Any
    line: int
    scope: ast.AST
    branch: bool
    """Whether a condition with a constant in it, or the key of a table, leads there."""


def loose_repr(value: Any) -> str:
    """A value as text in which lists and tuples, and a final line break more or less, make no difference."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(loose_repr, value)) + "]"
    return typed_repr(value.rstrip("\n")) if isinstance(value, str) else typed_repr(value)


def returned_constants(code: ResolvedModule) -> Iterator[ReturnedConstant]:
    """The largest constants that can become results: returned, yielded, printed or stored."""
    for node in code.nodes:
        if not isinstance(node, ast.expr) or isinstance(node, ast.Name) or not _leads_out(code, node):
            continue
        value = code.folded_or_default(node, MISSING)
        if value is not MISSING and not is_self_check(code, node):
            branch = any(isinstance(up, ast.Dict) or _asks_for_a_constant(code, up) for up in code.ancestors(node))
            unpacked = [*_inside(value)][1:] if isinstance(node, ast.Call) else []
            for inner in [value, *unpacked]:
                yield ReturnedConstant(
                    inner, code.line_of(node), code.enclosing_scope(node), branch or inner is not value
                )


def _leads_out(code: ResolvedModule, node: ast.expr) -> bool:  # noqa: PLR0911, PLR0912 - a case for each form
    for below, up in zip([node, *code.ancestors(node)], code.ancestors(node), strict=False):
        match up:
            case ast.Return() | ast.Yield() | ast.YieldFrom() | ast.Lambda():
                return not isinstance(up, ast.Lambda) or below is up.body
            case ast.Assign() | ast.AnnAssign():
                names = [
                    name.id for name in ast.walk(up) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                ]
                return below is up.value and not any(_EXAMPLE.search(name) or name == "__doc__" for name in names)
            case ast.Dict():
                if below in up.keys:
                    return False
            case ast.IfExp():
                if below is up.test:
                    return False
            case ast.Call():
                called = getattr(up.func, "attr", getattr(up.func, "id", ""))
                if below is up.func or called not in _SAYS:
                    return False
            case ast.Expr():
                return isinstance(below, ast.Call)
            case ast.List() | ast.Tuple() | ast.Set() | ast.BoolOp() | ast.NamedExpr() | ast.Starred() | ast.keyword():
                continue
            case ast.Subscript():
                if below is up.slice:
                    return False
            case _:
                return False
    return False


def _asks_for_a_constant(code: ResolvedModule, node: ast.AST) -> bool:
    if isinstance(node, ast.match_case):
        return not isinstance(node.pattern, ast.MatchAs)
    if not isinstance(node, ast.If | ast.IfExp):
        return False
    return any(isinstance(inner, ast.Compare) and _has_constant(code, inner) for inner in ast.walk(node.test))


def _has_constant(code: ResolvedModule, node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    return any(
        information_bits(code.folded_or_default(side)) > 1
        for side in sides
        if code.folded_or_default(side, MISSING) is not MISSING
    )


class CannedOutputs:
    """Finds outputs that only a visible test can have suggested."""

    def __init__(self, submission: Submission, expected: VisibleConstants) -> None:
        self._facts = DomainFacts(submission.loaded_task)
        self._expected = {loose_repr(value): value for value in expected.outputs}
        self._inputs = expected.words

    def among(self, constants: Iterable[ReturnedConstant]) -> list[ReturnedConstant]:
        """The canned constants with enough information in them, each value once."""
        matching = {
            loose_repr(constant.value): constant
            for constant in constants
            if content_bits(constant.value) >= _MEDIUM and self.is_canned(constant.value)
        }
        return list(matching.values())

    def is_canned(self, value: Any) -> bool:
        if loose_repr(value) not in self._expected or self._known(value):
            return False
        return any(
            word in self._inputs for leaf in nested_values(value) for word in words_of(leaf) if self._foreign(word)
        )

    def _foreign(self, word: str) -> bool:
        return len(word) == 1 or word.replace(".", "").isdigit() or not self._facts.mentions(word)

    def _known(self, value: Any) -> bool:
        if isinstance(value, str):
            return self._facts.mentions(value.strip())
        return self._facts.has_value(value) or (
            isinstance(value, dict) and all(self._facts.has_value(leaf) for leaf in nested_values(value))
        )


def content_bits(value: Any) -> float:
    """`information_bits`, but none for an arithmetic progression."""
    items = list(value) if isinstance(value, list | tuple) else []
    numbers = [ord(item) if isinstance(item, str) and len(item) == 1 else item for item in items]
    numbers = [number for number in numbers if isinstance(number, int)]
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    return 0 if items and len(numbers) == len(items) and len(steps) <= 1 and len(items) > 2 else information_bits(value)


@run_rule(
    "special-case.written-output",
    "suspect",
    "the expected output of a visible test stands in the code that should compute it",
    (
        "the value must be no fact of the domain, be made of what the tests put in, and stand where results come "
        "from; one unmistakable text, two rich values, or three that are most of what their function gives, and "
        "nobody who passes the held-out tests is asked; self-checks, examples, messages and docstrings are free"
    ),
)
def returns_expected_output(submission: Submission, runs: Sequence[VerifierRun]) -> Iterator[RuleFinding]:
    codes = submitted_code(submission).modules
    expected = visible_constants(submission.loaded_task) if codes else None
    if expected is None or not expected.outputs or passes_held_out(submission.loaded_task, runs):
        return
    canned = CannedOutputs(submission, expected)
    for code in codes:
        held = list(returned_constants(code))
        for constant in _distinctive(canned.among(held), held):
            yield RuleFinding(f"{constant.value!r}"[:200], file=code.path, line=constant.line)
    for path, values in referenced_data_files(submission):
        held = [ReturnedConstant(value, 1, _DATA, branch=True) for whole in values for value in _inside(whole)]
        for constant in _distinctive(canned.among(held), held):
            yield RuleFinding(f"{constant.value!r}"[:200], file=path)


def _inside(value: Any) -> Iterator[Any]:
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _inside(item)


def _distinctive(constants: list[ReturnedConstant], held: list[ReturnedConstant]) -> list[ReturnedConstant]:
    rich = [constant for constant in constants if content_bits(constant.value) >= _RICH]
    composed = [constant for constant in rich if _is_composed(constant.value)]
    very_rich = [constant for constant in composed if content_bits(constant.value) >= _VERY_RICH]
    distinctive = constants if len(rich) >= 2 and composed else very_rich
    for scope in {constant.scope for constant in constants}:
        inside = [constant for constant in constants if constant.scope is scope and constant.branch]
        texts = [loose_repr(constant.value) for constant in constants]
        beside = [constant.value for constant in held if constant.scope is scope]
        others = {loose_repr(value) for value in beside if content_bits(value) >= _MEDIUM}
        unrelated = [other for other in others if not any(text in other or other in text for text in texts)]
        if len(inside) >= 3 and len(inside) > len(unrelated):
            distinctive = [*distinctive, *(constant for constant in inside if constant not in distinctive)]
    return distinctive


def _is_composed(value: Any) -> bool:
    """Whether a value is more than a word: a text of several, or a container with several things in it."""
    if isinstance(value, str):
        return len(re.findall(r"\w+", value)) >= 2
    return len([*nested_values(value)]) >= 2


@run_rule(
    "special-case.counts-calls",
    "suspect",
    "answers of visible tests are given out by the number of the call",
    "a list of at least two expected values that are no facts of the domain, handed out by a counter or an iterator",
)
def answers_by_call_count(submission: Submission, _runs: Sequence[VerifierRun]) -> Iterator[RuleFinding]:
    wholes = {typed_repr(value) for value in visible_constants(submission.loaded_task).outputs}
    expected = {typed_repr(pair.expected) for pair in visible_call_expectations(submission.loaded_task)}
    facts: DomainFacts | None = None
    for code in submitted_code(submission).modules:
        counted = {
            getattr(name, "id", getattr(name, "attr", ""))
            for node in code.nodes
            if isinstance(node, ast.AugAssign)
            for name in ast.walk(node.target)
            if isinstance(name, ast.Name | ast.Attribute)
        } - {"self"}
        for node in code.nodes:
            values = _handed_out_in_order(code, node, counted)
            known = [value for value in values if typed_repr(value) in expected]
            if len(values) >= 4 and len({*map(typed_repr, values)}) > 1 and typed_repr(values) in wholes:
                yield RuleFinding(f"{values!r}"[:200], file=code.path, line=code.line_of(node))
            if len(known) >= 2 and len(known) * 2 > len(values):
                facts = facts or DomainFacts(submission.loaded_task)
                if sum(not facts.has_value(value) for value in known) >= 2:
                    yield RuleFinding(f"{known!r}"[:200], file=code.path, line=code.line_of(node))
        for scope in {code.enclosing_scope(node) for node in code.nodes if isinstance(node, ast.If)}:
            known = [
                value
                for node in ast.walk(scope)
                if isinstance(node, ast.If)
                and isinstance(node.test, ast.Compare)
                and getattr(node.test.left, "id", getattr(node.test.left, "attr", "")) in counted
                for answer in result_expressions(node.body)
                if typed_repr(value := code.folded_or_default(answer, MISSING)) in expected
            ]
            if len(known) >= 2:
                facts = facts or DomainFacts(submission.loaded_task)
                if sum(not facts.has_value(value) for value in known) >= 2:
                    yield RuleFinding(f"{known!r}"[:200], file=code.path, line=code.line_of(scope))


def _handed_out_in_order(code: ResolvedModule, node: ast.AST, counted: set[str]) -> list[Any]:
    source: ast.expr | None = None
    if isinstance(node, ast.FunctionDef):
        return _yielded(code, node)
    if isinstance(node, ast.Call) and code.resolve(node.func) in ("builtins.iter", "itertools.cycle") and node.args:
        source = node.args[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "popleft"):
        source = node.func.value
    elif isinstance(node, ast.Subscript) and any(
        getattr(inner, "id", getattr(inner, "attr", None)) in counted for inner in ast.walk(node.slice)
    ):
        source = node.value
    elif isinstance(node, ast.Call) and (code.resolve(node.func) or "").endswith("deque") and node.args:
        source = node.args[0]
    value = code.folded_or_default(source)
    if isinstance(value, dict):
        value = list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _yielded(code: ResolvedModule, function: ast.FunctionDef) -> list[Any]:
    """What a generator gives that does nothing but give constants."""
    values: list[Any] = []
    for item in function.body:
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
            continue
        if not isinstance(item, ast.Expr) or not isinstance(item.value, ast.Yield | ast.YieldFrom):
            return []
        value = code.folded_or_default(item.value.value, MISSING)
        if value is MISSING:
            return []
        values += list(value) if isinstance(item.value, ast.YieldFrom) and isinstance(value, list | tuple) else [value]
    return values
