"""Twins of one case of a parametrised test: another expected value in the table, under the same test id."""

import ast
import random
import re
from collections.abc import Iterator

from gametape.verify.twins.edit import Edit
from gametape.verify.twins.expectations import changes, is_pure, only_expected, sets
from gametape.verify.twins.scope import Test

Case = tuple[str, tuple[Edit, ...]]
"""The id of a case, as it stands in the brackets of a test id, and the edits that turn it."""


def twins_of_cases(test: Test, rng: random.Random) -> Iterator[Case]:
    """One case turned, for tests with one table whose ids are certain."""
    marks = [each for each in test.node.decorator_list if _is_parametrize(test, each)]
    above = [each for owner in test.owners for each in owner.decorator_list if _is_parametrize(test, each)]
    if len(marks) != 1 or above or not isinstance(marks[0], ast.Call) or len(marks[0].args) < 2:
        return
    given = {each.arg: each.value for each in marks[0].keywords}
    names, table = _names(marks[0].args[0]), marks[0].args[1]
    if set(given) - {"ids"} or not names or not isinstance(table, ast.List | ast.Tuple):
        return
    if len(marks[0].args) > 2 or any(isinstance(row, ast.Starred) for row in table.elts):
        return
    expected = [name for name in names if sets(test.node, name) == 1 and only_expected(test, name)]
    if expected:
        yield from _cases(test, names, expected, table.elts, given.get("ids"), rng)


def _is_parametrize(test: Test, decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (test.module.origin(target) or "pytest.mark.parametrize") == "pytest.mark.parametrize"


def _names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        found = [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return found if len(found) == len(node.elts) else []
    return []


def _cases(
    test: Test,
    names: list[str],
    expected: list[str],
    rows: list[ast.expr],
    ids: ast.expr | None,
    rng: random.Random,
) -> Iterator[Case]:
    values = [_values(test, row, len(names)) for row in rows]
    known = [
        _id(test, row, found, names, index, ids) if found else None
        for index, (row, found) in enumerate(zip(rows, values, strict=True))
    ]
    order = list(range(len(rows)))
    rng.shuffle(order)
    for index in order:
        found, name = values[index], known[index]
        if found is None or name is None or known.count(name) != 1:
            continue
        value = found[names.index(rng.choice(expected))]
        for edits in changes(test, value, rng):
            kept = _keeping_id(test, rows[index], found, value, edits, name, ids)
            if kept:
                yield name, kept
            break


def _values(test: Test, row: ast.expr, width: int) -> list[ast.expr] | None:
    if test.called(row) == "pytest.param" and isinstance(row, ast.Call):
        found = row.args
    else:
        found = [row] if width == 1 else getattr(row, "elts", [])
    return found if len(found) == width and not any(isinstance(each, ast.Starred) for each in found) else None


def _id(
    test: Test, row: ast.expr, values: list[ast.expr], names: list[str], index: int, ids: ast.expr | None
) -> str | None:
    """The id that pytest gives the case; None where that is not certain."""
    own = _own_id(test, row)
    if own is not None:
        return own.value if isinstance(own, ast.Constant) and isinstance(own.value, str) else None
    if ids is not None:
        listed = ids.elts if isinstance(ids, ast.List | ast.Tuple) else []
        name = listed[index] if index < len(listed) else None
        return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
    parts = [_part(value, name, index) for value, name in zip(values, names, strict=True)]
    return "-".join(part for part in parts if part is not None) if None not in parts else None


def _own_id(test: Test, row: ast.expr) -> ast.expr | None:
    if test.called(row) == "pytest.param" and isinstance(row, ast.Call):
        return next((each.value for each in row.keywords if each.arg == "id"), None)
    return None


def _part(value: ast.expr, name: str, index: int) -> str | None:
    if isinstance(value, ast.List | ast.Tuple | ast.Dict | ast.Set):
        return f"{name}{index}"
    if not is_pure(value) or isinstance(value, ast.BinOp | ast.JoinedStr):
        return None
    found = ast.literal_eval(value)
    if isinstance(found, str):
        return found if re.fullmatch(r"[ -~]+", found) and "\\" not in found and "::" not in found else None
    return str(found) if found is None or isinstance(found, bool | int | float | complex) else None


def _keeping_id(
    test: Test,
    row: ast.expr,
    values: list[ast.expr],
    value: ast.expr,
    edits: tuple[Edit, ...],
    name: str,
    ids: ast.expr | None,
) -> tuple[Edit, ...] | None:
    """The edits, and what else it takes that the case keeps its id."""
    stays = isinstance(value, ast.List | ast.Tuple | ast.Dict | ast.Set)
    if stays or ids is not None or _own_id(test, row) is not None:
        return edits
    quoted = '"' + name.replace('"', '\\"') + '"'
    if test.called(row) == "pytest.param":
        return (*edits, test.text.after(values[-1], f", id={quoted}"))
    param = next((f"{n}.param" for n, origin in test.module.imports.items() if origin == "pytest"), None)
    if param is None:
        return None
    text = test.text
    if len(values) == 1 and values[0] is row:
        return (text.before(row, f"{param}("), *edits, text.after(row, f", id={quoted})"))
    opening = Edit(text.start(row), text.start(row) + 1, f"{param}(")
    if text.source[text.start(row)] not in "([":
        return None
    return (opening, *edits, text.after(values[-1], f", id={quoted}"), Edit(text.end(row) - 1, text.end(row), ")"))
