"""Twins of a parametrised test: other expected values in its table, in all the cases that can be changed at once. A
case without a change of its own would be one that code may answer without being contradicted.

pytest may name the case after the value, and then the twin has another id than its test. An `id=` that kept the old one
would give the twin away.
"""

import ast
import random
from collections.abc import Iterator

from gametape.syntax.parametrization import argument_names
from gametape.syntax.pytest_ids import is_param, param_ids, row_values
from gametape.syntax.source import parse_expression
from gametape.syntax.source_text import SourceEdit, apply_edits
from gametape.verify.twins.expected_values import count_bindings, is_only_compared, value_edits
from gametape.verify.twins.parsed_tests import TestFunction
from gametape.verify.twins.twin import ChangedCase


def twins_of_cases(test: TestFunction, rng: random.Random) -> Iterator[ChangedCase]:
    """The cases that can be changed, together or each alone, for tests with one table whose ids are certain."""
    marks = [mark for mark in test.node.decorator_list if _is_parametrize(test, mark)]
    above = [mark for owner in test.enclosing_classes for mark in owner.decorator_list if _is_parametrize(test, mark)]
    if len(marks) != 1 or above or not isinstance(marks[0], ast.Call) or len(marks[0].args) < 2:
        return
    given = {word.arg: word.value for word in marks[0].keywords}
    names, table = argument_names(marks[0]), marks[0].args[1]
    if set(given) - {"ids"} or not names or not isinstance(table, ast.List | ast.Tuple):
        return
    if len(marks[0].args) > 2 or any(isinstance(row, ast.Starred) for row in table.elts):
        return
    expected = [name for name in names if count_bindings(test.node, name) == 1 and is_only_compared(test, name)]
    if expected:
        yield from _cases(test, names, expected, table, given.get("ids"), rng)


def _is_parametrize(test: TestFunction, decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (test.module.resolve(target) or "pytest.mark.parametrize") == "pytest.mark.parametrize"


def _cases(
    test: TestFunction,
    names: list[str],
    expected: list[str],
    table: ast.List | ast.Tuple,
    ids: ast.expr | None,
    rng: random.Random,
) -> Iterator[ChangedCase]:
    case_ids = _case_ids(names, table.elts, ids)
    taken = {*case_ids}
    for index in range(len(table.elts)):
        values, case_id = _values(test, table.elts[index], len(names)), case_ids[index]
        if values is None or case_id is None:
            continue
        value = values[names.index(rng.choice(expected))]
        for edits in value_edits(test, value, rng):
            renamed = _id_after(test, table, edits, names, ids, index)
            if renamed is not None and (renamed == case_id or renamed not in taken):
                taken.add(renamed)
                yield ChangedCase(case_id, None if renamed == case_id else renamed, edits)
                break


def _case_ids(names: list[str], rows: list[ast.expr], ids: ast.expr | None) -> list[str | None]:
    """The ids that pytest gives the cases; None where it is not certain."""
    return [param_id.exact for param_id in param_ids(names, rows, ids)]


def _id_after(
    test: TestFunction,
    table: ast.List | ast.Tuple,
    edits: tuple[SourceEdit, ...],
    names: list[str],
    ids: ast.expr | None,
    index: int,
) -> str | None:
    """The id of a case once its value is another one."""
    start = test.text.start(table)
    new = apply_edits(test.text.text_of(table), [edit.moved(-start) for edit in edits])
    parsed = parse_expression(new)
    if not isinstance(parsed, ast.List | ast.Tuple) or len(parsed.elts) != len(table.elts):
        return None
    return _case_ids(names, parsed.elts, ids)[index]


def _values(test: TestFunction, row: ast.expr, width: int) -> list[ast.expr] | None:
    if is_param(row) and test.called_name(row) != "pytest.param":
        return None
    values = row_values(row, width)
    return values if len(values) == width and not any(isinstance(value, ast.Starred) for value in values) else None
