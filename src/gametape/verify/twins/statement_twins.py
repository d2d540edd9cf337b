"""Twins of plain statements: what the test does without an error is expected to be an error.

A statement that runs through in the real test raises nothing, whatever the code under test is; so a twin that waits
for an exception there fails. This reaches the tests that assert nothing, and those that leave it to helpers.
"""

import ast
import random
from collections.abc import Iterator

from gametape.syntax.names import is_standard
from gametape.verify.twins.assertion_twins import TwinEdits
from gametape.verify.twins.expected_values import expected_arguments, local_expected_value, value_edits
from gametape.verify.twins.parsed_tests import TestFunction

_EXPECTED = ("ValueError", "TypeError", "KeyError", "RuntimeError", "AttributeError", "IndexError")
_SETTING_UP = {"setUp", "tearDown", "setUpClass", "skipTest", "addCleanup", "fail"}


def twins_of_helper(test: TestFunction, statement: ast.stmt, rng: random.Random) -> Iterator[TwinEdits]:
    """Other expected values for a helper of the suite that compares them: `check(f(x), 3)`."""
    if (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and test.is_deterministic(statement.value)
    ):
        for argument in expected_arguments(test, statement.value):
            value = local_expected_value(test, argument.id) if isinstance(argument, ast.Name) else argument
            if value is not None:
                yield from (("helper", edits) for edits in value_edits(test, value, rng))


def twins_of_call(test: TestFunction, statement: ast.stmt, rng: random.Random) -> Iterator[TwinEdits]:
    """The statement in the block of a guard that waits for an exception."""
    if not isinstance(statement, ast.Expr | ast.Assign) or not test.text.is_first_on_line(statement):
        return
    call = statement.value
    if not isinstance(call, ast.Call) or not test.is_deterministic(call) or _is_of_the_tools(test, call):
        return
    error = rng.choice([name for name in _EXPECTED if test.resolve(ast.Name(name, ast.Load()))] or ["Exception"])
    indent = " " * statement.col_offset
    lines = "".join(f"{line}\n{indent}" for line in _guard_lines(test, error))
    yield "error", (test.text.insert_before(statement, f"{lines}    "),)


def _is_of_the_tools(test: TestFunction, call: ast.Call) -> bool:
    """Whether this call belongs to the test tools or the standard library: no error would be expected of those."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if test.self_method_name(call) is not None and (name.startswith("assert") or name in _SETTING_UP):
        return True
    return name.startswith(("assert_called", "assert_not", "assert_any", "assert_has")) or is_standard(
        test.called_name(call)
    )


def _guard_lines(test: TestFunction, error: str) -> list[str]:
    for name, origin in test.module.imports.items():
        if name not in test.local_names and origin in {"pytest", "pytest.raises"}:
            return [f"with {name}.raises({error}):" if origin == "pytest" else f"with {name}({error}):"]
    bases = {
        base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
        for o in test.enclosing_classes
        for base in o.bases
    }
    if test.self_name and any("TestCase" in base for base in bases):
        return [f"with {test.self_name}.assertRaises({error}):"]
    return ["import pytest", f"with pytest.raises({error}):"]
