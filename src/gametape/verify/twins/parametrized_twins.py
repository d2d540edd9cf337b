"""Twins of one case of a parametrised test: another expected value in the table, under the same test id."""

import ast
import random
import re
from collections.abc import Iterator

from gametape.verify.twins.expected_values import count_bindings, is_literal, is_only_compared, value_edits
from gametape.verify.twins.parsed_tests import TestFunction
from gametape.verify.twins.source_edit import SourceEdit

CaseEdits = tuple[str, tuple[SourceEdit, ...]]
"""The id of a case, as it stands in the brackets of a test id, and the edits that turn it."""


def twins_of_cases(test: TestFunction, rng: random.Random) -> Iterator[CaseEdits]:
    """One case turned, for tests with one table whose ids are certain."""
    marks = [each for each in test.node.decorator_list if _is_parametrize(test, each)]
    above = [each for owner in test.enclosing_classes for each in owner.decorator_list if _is_parametrize(test, each)]
    if len(marks) != 1 or above or not isinstance(marks[0], ast.Call) or len(marks[0].args) < 2:
        return
    given = {each.arg: each.value for each in marks[0].keywords}
    names, table = _names(marks[0].args[0]), marks[0].args[1]
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


def _names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        found = [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return found if len(found) == len(node.elts) else []
    return []


def _cases(
    test: TestFunction,
    names: list[str],
    expected: list[str],
    rows: list[ast.expr],
    ids: ast.expr | None,
    rng: random.Random,
) -> Iterator[CaseEdits]:
    values = [_values(test, row, len(names)) for row in rows]
    known = [
        _case_id(test, row, found, names, index, ids) if found else None
        for index, (row, found) in enumerate(zip(rows, values, strict=True))
    ]
    order = list(range(len(rows)))
    rng.shuffle(order)
    for index in order:
        found, name = values[index], known[index]
        if found is None or name is None or known.count(name) != 1:
            continue
        value = found[names.index(rng.choice(expected))]
        for edits in value_edits(test, value, rng):
            kept = _keeping_id(test, rows[index], found, value, edits, name, ids)
            if kept:
                yield name, kept
            break


def _values(test: TestFunction, row: ast.expr, width: int) -> list[ast.expr] | None:
    if test.called_name(row) == "pytest.param" and isinstance(row, ast.Call):
        found = row.args
    else:
        found = [row] if width == 1 else getattr(row, "elts", [])
    return found if len(found) == width and not any(isinstance(each, ast.Starred) for each in found) else None


def _case_id(
    test: TestFunction, row: ast.expr, values: list[ast.expr], names: list[str], index: int, ids: ast.expr | None
) -> str | None:
    """The id that pytest gives the case; None where that is not certain."""
    own = _explicit_id(test, row)
    if own is not None:
        return own.value if isinstance(own, ast.Constant) and isinstance(own.value, str) else None
    if ids is not None:
        listed = ids.elts if isinstance(ids, ast.List | ast.Tuple) else []
        name = listed[index] if index < len(listed) else None
        return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
    parts = [_id_part(value, name, index) for value, name in zip(values, names, strict=True)]
    return "-".join(part for part in parts if part is not None) if None not in parts else None


def _explicit_id(test: TestFunction, row: ast.expr) -> ast.expr | None:
    if test.called_name(row) == "pytest.param" and isinstance(row, ast.Call):
        return next((each.value for each in row.keywords if each.arg == "id"), None)
    return None


def _id_part(value: ast.expr, name: str, index: int) -> str | None:
    if isinstance(value, ast.List | ast.Tuple | ast.Dict | ast.Set):
        return f"{name}{index}"
    if not is_literal(value) or isinstance(value, ast.BinOp | ast.JoinedStr):
        return None
    found = ast.literal_eval(value)
    if isinstance(found, str):
        return found if re.fullmatch(r"[ -~]+", found) and "\\" not in found and "::" not in found else None
    return str(found) if found is None or isinstance(found, bool | int | float | complex) else None


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
    if stays or ids is not None or _explicit_id(test, row) is not None:
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
