"""Rules over answers of visible tests that are handed out one after the other, or hidden in encoded data."""

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from gametape.verify.attempt import Attempt
from gametape.verify.integrity.code import Code
from gametape.verify.integrity.expectations import frozen, visible_pairs, visible_values
from gametape.verify.integrity.facts import MISSING, Facts, leaves
from gametape.verify.integrity.literals import given
from gametape.verify.integrity.rule import Finding, over_runs
from gametape.verify.integrity.view import product_view
from gametape.verify.observation import Run


@over_runs(
    "special-case.encoded-answers",
    "suspect",
    "answers of visible tests are hidden in encoded data",
    "inputs and outputs of at least two visible tests must stand in the decoded bytes, and be no facts of the domain",
)
def encoded_answers(attempt: Attempt, _runs: Sequence[Run]) -> Iterator[Finding]:
    pairs = [
        pair
        for pair in visible_pairs(attempt.subject)
        if isinstance(pair.expected, str)
        and len(pair.expected) >= 4
        and any(isinstance(leaf, str) and len(leaf) >= 4 for leaf in leaves(pair.arguments))
    ]
    for code in product_view(attempt).codes if pairs else ():
        for node in code.nodes:
            value = code.folded(node) if isinstance(node, ast.Call) else None
            if not isinstance(value, bytes) or len(value) < 40:
                continue
            facts = Facts(attempt.subject)
            text = value.decode("utf-8", "replace")
            hidden = [
                pair
                for pair in pairs
                if pair.expected in text
                and any(isinstance(leaf, str) and len(leaf) >= 4 and leaf in text for leaf in leaves(pair.arguments))
            ]
            if sum(not facts.hold(pair) for pair in hidden) >= 2:
                yield Finding(f"{hidden[0].arguments!r} and others"[:200], file=code.path, line=code.line_of(node))


@over_runs(
    "special-case.counts-calls",
    "suspect",
    "answers of visible tests are given out by the number of the call",
    "a list of at least two expected values that are no facts of the domain, handed out by a counter or an iterator",
)
def counts_calls(attempt: Attempt, _runs: Sequence[Run]) -> Iterator[Finding]:
    wholes = {frozen(value) for value in visible_values(attempt.subject).outputs}
    expected = {frozen(pair.expected) for pair in visible_pairs(attempt.subject)}
    facts: Facts | None = None
    for code in product_view(attempt).codes:
        counted = {
            getattr(name, "id", getattr(name, "attr", ""))
            for node in code.nodes
            if isinstance(node, ast.AugAssign)
            for name in ast.walk(node.target)
            if isinstance(name, ast.Name | ast.Attribute)
        } - {"self"}
        for node in code.nodes:
            values = _handed_out_in_order(code, node, counted)
            known = [value for value in values if frozen(value) in expected]
            if len(values) >= 4 and len({*map(frozen, values)}) > 1 and frozen(values) in wholes:
                yield Finding(f"{values!r}"[:200], file=code.path, line=code.line_of(node))
            if len(known) >= 2 and len(known) * 2 > len(values):
                facts = facts or Facts(attempt.subject)
                if sum(not facts.knows(value) for value in known) >= 2:
                    yield Finding(f"{known!r}"[:200], file=code.path, line=code.line_of(node))
        for scope in {code.scope_of(node) for node in code.nodes if isinstance(node, ast.If)}:
            known = [
                value
                for node in ast.walk(scope)
                if isinstance(node, ast.If)
                and isinstance(node.test, ast.Compare)
                and getattr(node.test.left, "id", getattr(node.test.left, "attr", "")) in counted
                for answer in given(node.body)
                if frozen(value := code.folded(answer, MISSING)) in expected
            ]
            if len(known) >= 2:
                facts = facts or Facts(attempt.subject)
                if sum(not facts.knows(value) for value in known) >= 2:
                    yield Finding(f"{known!r}"[:200], file=code.path, line=code.line_of(scope))


def _handed_out_in_order(code: Code, node: ast.AST, counted: set[str]) -> list[Any]:
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
    value = code.folded(source)
    if isinstance(value, dict):
        value = list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _yielded(code: Code, function: ast.FunctionDef) -> list[Any]:
    """What a generator gives that does nothing but give constants."""
    found: list[Any] = []
    for item in function.body:
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
            continue
        if not isinstance(item, ast.Expr) or not isinstance(item.value, ast.Yield | ast.YieldFrom):
            return []
        value = code.folded(item.value.value, MISSING)
        if value is MISSING:
            return []
        found += list(value) if isinstance(item.value, ast.YieldFrom) and isinstance(value, list | tuple) else [value]
    return found
