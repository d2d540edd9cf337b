"""Twins of one case of a parametrised test: another expected value in the table, under the same test id."""

import ast
import random
import re
from collections.abc import Iterator

from gametape.syntax.parametrization import argument_names
from gametape.syntax.pytest_ids import explicit_id, is_param, param_ids, row_values
from gametape.syntax.source_text import SourceEdit
from gametape.verify.twins.expected_values import count_bindings, is_only_compared, value_edits
from gametape.verify.twins.parsed_tests import TestFunction

CaseEdits = tuple[str, tuple[SourceEdit, ...]]
"""The id of a case, as it stands in the brackets of a test id, and the edits that make it fail."""


def twins_of_cases(test: TestFunction, rng: random.Random) -> Iterator[CaseEdits]:
    """Twins in which one case fails, for tests with one table whose ids are certain."""
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
        yield from _cases(test, names, expected, table.elts, given.get("ids"), rng)


def _is_parametrize(test: TestFunction, decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (test.module.resolve(target) or "pytest.mark.parametrize") == "pytest.mark.parametrize"


def _cases(
    test: TestFunction,
    names: list[str],
    expected: list[str],
    rows: list[ast.expr],
    ids: ast.expr | None,
    rng: random.Random,
) -> Iterator[CaseEdits]:
    case_ids = [
        _case_id(row, param_id.exact, ids) for row, param_id in zip(rows, param_ids(names, rows, ids), strict=True)
    ]
    order = list(range(len(rows)))
    rng.shuffle(order)
    for index in order:
        values, case_id = _values(test, rows[index], len(names)), case_ids[index]
        if values is None or case_id is None:
            continue
        value = values[names.index(rng.choice(expected))]
        for edits in value_edits(test, value, rng):
            complete = _keeping_id(test, rows[index], values, value, edits, case_id, ids)
            if complete:
                yield case_id, complete
            break


def _values(test: TestFunction, row: ast.expr, width: int) -> list[ast.expr] | None:
    if is_param(row) and test.called_name(row) != "pytest.param":
        return None
    values = row_values(row, width)
    return values if len(values) == width and not any(isinstance(value, ast.Starred) for value in values) else None


def _case_id(row: ast.expr, exact: str | None, ids: ast.expr | None) -> str | None:
    """The id that pytest gives the case; None where it is not certain or could not be written into the row."""
    if exact is None or ids is not None or explicit_id(row) is not None:
        return exact
    return exact if re.fullmatch(r"[ -~]+", exact) and "\\" not in exact and "::" not in exact else None


def _keeping_id(
    test: TestFunction,
    row: ast.expr,
    values: list[ast.expr],
    value: ast.expr,
    edits: tuple[SourceEdit, ...],
    name: str,
    ids: ast.expr | None,
) -> tuple[SourceEdit, ...] | None:
    """The edits, and what else it takes that the case keeps its id."""
    stays = isinstance(value, ast.List | ast.Tuple | ast.Dict | ast.Set)
    if stays or ids is not None or explicit_id(row) is not None:
        return edits
    quoted = '"' + name.replace('"', '\\"') + '"'
    if test.called_name(row) == "pytest.param":
        return (*edits, test.text.insert_after(values[-1], f", id={quoted}"))
    param = next((f"{n}.param" for n, origin in test.module.imports.items() if origin == "pytest"), None)
    if param is None:
        return None
    text = test.text
    if len(values) == 1 and values[0] is row:
        return (text.insert_before(row, f"{param}("), *edits, text.insert_after(row, f", id={quoted})"))
    opening = SourceEdit(text.start(row), text.start(row) + 1, f"{param}(")
    if text.source[text.start(row)] not in "([":
        return None
    return (
        opening,
        *edits,
        text.insert_after(values[-1], f", id={quoted}"),
        SourceEdit(text.end(row) - 1, text.end(row), ")"),
    )
